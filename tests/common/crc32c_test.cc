#include "common/crc32c.h"

#include <string>

#include <gtest/gtest.h>

#include "common/buffer.h"
#include "common/error.h"

namespace cairn {
namespace {

TEST(Crc32c, HasItsKnownValues) {
  EXPECT_EQ(Crc32c(std::string("123456789")), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string()), 0u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4.
  EXPECT_EQ(Crc32(std::string("123456789")), 0xCBF43926u);
}

TEST(Crc32c, ContinuesWhereItStopped) {
  const std::string data = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= data.size(); ++cut) {
    EXPECT_EQ(Crc32c(data.substr(cut), Crc32c(data.substr(0, cut))), Crc32c(data));
    EXPECT_EQ(Crc32(data.substr(cut), Crc32(data.substr(0, cut))), Crc32(data));
  }
}

TEST(ChunkChecksums, NameTheBadChunk) {
  std::string data(1200, 'a');
  std::string checksums(12, '\0');
  ComputeChunkChecksums(ChecksumType::kCrc32c, 512, data, checksums);
  EXPECT_TRUE(VerifyChunkChecksums(ChecksumType::kCrc32c, 512, data, checksums).ok());
  data[1199] = 'b';
  const absl::Status status = VerifyChunkChecksums(ChecksumType::kCrc32c, 512, data, checksums);
  EXPECT_EQ(KindOf(status), ErrorKind::kChecksum);
  EXPECT_NE(std::string(status.message()).find("176 bytes at 1024"), std::string::npos) << status;
}

TEST(ChunkChecksums, MissingOnesAreAMismatch) {
  const std::string data(513, 'a');
  EXPECT_EQ(KindOf(VerifyChunkChecksums(ChecksumType::kCrc32c, 512, data, std::string(4, '\0'))), ErrorKind::kChecksum);
  EXPECT_TRUE(VerifyChunkChecksums(ChecksumType::kNull, 512, data, std::string()).ok());
}

TEST(BufferPool, GivesTheSameBytesAgain) {
  BufferPool pool(1 << 20);
  Buffer first = pool.Get(100'000);
  const char* where = first.data();
  EXPECT_GE(first.capacity(), 100'000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(where) % 4096, 0u);
  Buffer second_owner = first.Share();
  first = Buffer();
  EXPECT_EQ(pool.idle_bytes(), 0u);  // Somebody still reads them.
  second_owner = Buffer();
  EXPECT_GT(pool.idle_bytes(), 0u);
  EXPECT_EQ(pool.Get(100'000).data(), where);
}

TEST(BufferPool, KeepsNoMoreThanItsBound) {
  BufferPool pool(300 << 10);
  Buffer a = pool.Get(256 << 10);
  Buffer b = pool.Get(256 << 10);
  a = Buffer();
  b = Buffer();
  EXPECT_EQ(pool.idle_bytes(), 256u << 10);
}

TEST(BufferPool, ItsBuffersMayOutliveIt) {
  Buffer kept;
  {
    BufferPool pool(1 << 20);
    kept = pool.Get(64 << 10);
  }
  kept.data()[0] = 'x';
  EXPECT_EQ(kept.data()[0], 'x');
}

}  // namespace
}  // namespace cairn
