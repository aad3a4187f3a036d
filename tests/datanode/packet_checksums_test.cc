#include "datanode/storage/packet_checksums.h"

#include <string>

#include <gtest/gtest.h>

#include "common/env/random.h"
#include "datanode/storage/replica_format.h"
#include "tests/testing/matchers.h"

namespace cairn::datanode {
namespace {

using cairn::testing::HasKind;
using cairn::testing::IsOk;

constexpr uint32_t kChunk = 64;

uint32_t Crc(std::string_view bytes) { return Crc32c(bytes); }

std::string ChecksumsOf(std::string_view data) {
  std::string checksums(4 * ChunkCount(data.size(), kChunk), '\0');
  ComputeChunkChecksums(ChecksumType::kCrc32c, kChunk, data, checksums);
  return checksums;
}

// What must be stored after `all` has been received up to `end`, when `received` of it were there before.
ChecksumPlan Expected(std::string_view all, uint64_t received, uint64_t end) {
  ChecksumPlan plan;
  plan.first_chunk = received / kChunk;
  for (uint64_t chunk = plan.first_chunk; (chunk + 1) * kChunk <= end; ++chunk) {
    plan.entries.resize(plan.entries.size() + 4);
    StoreChunkChecksum(Crc(all.substr(chunk * kChunk, kChunk)), plan.entries.data() + plan.entries.size() - 4);
  }
  if (end % kChunk != 0) plan.partial_checksum = Crc(all.substr(end - end % kChunk, end % kChunk));
  return plan;
}

StoredEnd EndOf(std::string_view all, uint64_t received) {
  return {.received = received,
          .partial_checksum = received % kChunk == 0 ? 0 : Crc(all.substr(received - received % kChunk, received % kChunk))};
}

class PacketChecksums : public ::testing::Test {
 protected:
  absl::StatusOr<ChecksumPlan> Plan(uint64_t received, uint64_t offset, std::string data, std::string checksums, bool verify) {
    const StoredEnd end = EndOf(all_, received);
    return PlanChecksums(
        ChecksumType::kCrc32c, kChunk, end, offset, data, checksums, verify,
        [this, received]() -> absl::StatusOr<std::string> { return stored_.substr(received - received % kChunk, received % kChunk); });
  }
  std::string Part(uint64_t offset, uint64_t end) const { return all_.substr(offset, end - offset); }

  const std::string all_ = Random(3).Bytes(1000);
  std::string stored_ = all_;
};

TEST_F(PacketChecksums, EveryOverlapGivesWhatTheBytesThemselvesGive) {
  for (uint64_t received = 0; received <= 200; ++received) {
    for (uint64_t offset = received > 140 ? received - 140 : 0; offset <= received; offset += 3) {
      for (uint64_t end = received + 1; end <= received + 150; end += 7) {
        const std::string data = Part(offset, end);
        for (const bool verify : {false, true}) {
          for (const bool given : {false, true}) {
            const auto plan = Plan(received, offset, data, given ? ChecksumsOf(data) : "", verify);
            ASSERT_THAT(plan, IsOk()) << received << " " << offset << " " << end;
            const ChecksumPlan expected = Expected(all_, received, end);
            ASSERT_EQ(plan->first_chunk, expected.first_chunk);
            ASSERT_EQ(plan->entries, expected.entries) << received << " " << offset << " " << end;
            ASSERT_EQ(plan->partial_checksum, expected.partial_checksum) << received << " " << offset << " " << end;
          }
        }
      }
    }
  }
}

TEST_F(PacketChecksums, ResentBytesThatDifferAreRefusedThoughTheirOwnChecksumIsRight) {
  for (const uint64_t offset : {64u, 70u, 99u}) {  // At the chunk's start, and inside what is stored of it.
    std::string data = Part(offset, 128);
    data[0] = static_cast<char>(data[0] ^ 1);
    EXPECT_THAT(Plan(100, offset, data, ChecksumsOf(data), false), HasKind(ErrorKind::kChecksum)) << offset;
    EXPECT_THAT(Plan(100, offset, data, "", false), HasKind(ErrorKind::kChecksum)) << offset;
  }
}

TEST_F(PacketChecksums, AChunkThatContinuesAStoredOneIsVerifiedByEveryNode) {
  std::string data = Part(64, 192);
  const std::string checksums = ChecksumsOf(data);
  data[50] = static_cast<char>(data[50] ^ 1);  // Of the new bytes of the chunk inside which 100 lies.
  EXPECT_THAT(Plan(100, 64, data, checksums, false), HasKind(ErrorKind::kChecksum));
  data = Part(100, 128);
  const std::string own = ChecksumsOf(data);
  data[5] = static_cast<char>(data[5] ^ 1);
  EXPECT_THAT(Plan(100, 100, data, own, false), HasKind(ErrorKind::kChecksum));
}

TEST_F(PacketChecksums, OtherChunksAreVerifiedByTheLastNodeOnly) {
  std::string data = Part(64, 192);
  const std::string checksums = ChecksumsOf(data);
  data[100] = static_cast<char>(data[100] ^ 1);
  EXPECT_THAT(Plan(64, 64, data, checksums, true), HasKind(ErrorKind::kChecksum));
  const auto plan = Plan(64, 64, data, checksums, false);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->entries, checksums);  // The sender's word is kept, so whoever verifies later finds the damage.
}

TEST_F(PacketChecksums, StoredBytesThatRottedAreNotBlessed) {
  stored_[70] = static_cast<char>(stored_[70] ^ 1);
  const std::string data = Part(80, 128);
  EXPECT_THAT(Plan(100, 80, data, ChecksumsOf(data), false), HasKind(ErrorKind::kChecksum));
  // Continued without a look at the disk: the checksum stays that of the bytes as they came.
  const std::string next = Part(100, 128);
  const auto plan = Plan(100, 100, next, ChecksumsOf(next), false);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->entries, Expected(all_, 100, 128).entries);
}

TEST_F(PacketChecksums, WrongNumberOfChecksumsIsAnError) {
  const std::string data = Part(0, 100);
  EXPECT_THAT(Plan(0, 0, data, ChecksumsOf(data).substr(4), false), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(Plan(0, 0, data, ChecksumsOf(data) + "abcd", true), HasKind(ErrorKind::kInvalidArgument));
}

}  // namespace
}  // namespace cairn::datanode
