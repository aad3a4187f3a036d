#include "datanode/storage/replica_format.h"

#include <string>

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "tests/testing/matchers.h"

namespace cairn::datanode {
namespace {

using cairn::testing::HasKind;
using cairn::testing::IsOk;

// Both made by a program that shares no code with ours.
constexpr char kGoldenHeader[] =
    "434149524e52504c0100000002000000000200000000000000000040000000000001"
    "02030405060708090a0b0c0d0e0f0000004000000000a3cbeaf9";
constexpr char kGoldenSlot[] = "0700000000000000e903000000000000bc0200000000000002020000efbeaddea0a1a2a3a4a5a6a7a8a9aaabacadaeaf818ed4bd";

ReplicaHeader SomeHeader() {
  std::string pool(16, '\0');
  for (size_t i = 0; i < pool.size(); ++i) pool[i] = static_cast<char>(i);
  return {.checksum_type = ChecksumType::kCrc32c, .bytes_per_checksum = 512, .capacity = 1 << 30, .pool_id = pool, .id = BlockId(1 << 30)};
}

ReplicaSlot SomeSlot() {
  std::string boot(16, '\0');
  for (size_t i = 0; i < boot.size(); ++i) boot[i] = static_cast<char>(0xa0 + i);
  return {.sequence = 7,
          .stamp = GenerationStamp(1001),
          .length = 700,
          .state = ReplicaState::kRbw,
          .flags = kSlotCut,
          .partial_checksum = 0xdeadbeef,
          .boot_id = boot};
}

TEST(ReplicaFormat, HeaderHasItsGoldenBytes) {
  const std::string bytes = EncodeHeader(SomeHeader());
  EXPECT_EQ(absl::BytesToHexString(bytes), kGoldenHeader);
  const auto header = DecodeHeader(absl::HexStringToBytes(kGoldenHeader));
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(EncodeHeader(*header), bytes);
  EXPECT_EQ(header->id, BlockId(1 << 30));
  EXPECT_EQ(header->capacity, 1u << 30);
}

TEST(ReplicaFormat, SlotHasItsGoldenBytes) {
  const std::string bytes = EncodeSlot(SomeSlot());
  ASSERT_EQ(bytes.size(), kSlotBytes);
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(0, kSlotContentBytes)), kGoldenSlot);
  EXPECT_EQ(bytes.substr(kSlotContentBytes), std::string(kSlotBytes - kSlotContentBytes, '\0'));
  const auto slot = DecodeSlot(bytes);
  ASSERT_TRUE(slot.has_value());
  EXPECT_EQ(EncodeSlot(*slot), bytes);
}

TEST(ReplicaFormat, AnyFlippedBitOfAHeaderIsNoticed) {
  const std::string bytes = EncodeHeader(SomeHeader());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string broken = bytes;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THAT(DecodeHeader(broken), HasKind(ErrorKind::kCorruptMetadata)) << "bit " << bit;
  }
}

TEST(ReplicaFormat, AnyFlippedBitOfASlotIsNoticed) {
  const std::string bytes = EncodeSlot(SomeSlot());
  for (size_t bit = 0; bit < 8 * kSlotContentBytes; ++bit) {
    std::string broken = bytes;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(DecodeSlot(broken).has_value()) << "bit " << bit;
  }
}

TEST(ReplicaFormat, TooFewBytesAreNeitherHeaderNorSlot) {
  const std::string header = EncodeHeader(SomeHeader());
  for (size_t size = 0; size < header.size(); ++size) EXPECT_FALSE(DecodeHeader(std::string_view(header).substr(0, size)).ok());
  const std::string slot = EncodeSlot(SomeSlot());
  for (size_t size = 0; size < kSlotContentBytes; ++size) EXPECT_FALSE(DecodeSlot(std::string_view(slot).substr(0, size)));
}

TEST(ReplicaFormat, NewerLayoutIsRefusedNamingBoth) {
  std::string bytes = EncodeHeader(SomeHeader());
  bytes[8] = 2;
  const uint32_t checksum = Crc32c(std::span<const char>(bytes).first(56));
  for (int i = 0; i < 4; ++i) bytes[static_cast<size_t>(56 + i)] = static_cast<char>(checksum >> (8 * i));
  const auto header = DecodeHeader(bytes);
  EXPECT_THAT(header, HasKind(ErrorKind::kUnsupported));
  EXPECT_NE(std::string(header.status().message()).find("layout 2, this version reads 1"), std::string::npos);
}

TEST(ReplicaFormat, HeadersThatCannotBeAreRefused) {
  ReplicaHeader header = SomeHeader();
  header.bytes_per_checksum = 63;
  EXPECT_THAT(CheckHeader(header), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(DecodeHeader(EncodeHeader(header)), HasKind(ErrorKind::kCorruptMetadata));
  header.bytes_per_checksum = (1 << 20) + 1;
  EXPECT_THAT(CheckHeader(header), HasKind(ErrorKind::kInvalidArgument));
  header = SomeHeader();
  header.capacity = kMaxCapacity + 1;
  EXPECT_THAT(CheckHeader(header), HasKind(ErrorKind::kInvalidArgument));
  header = SomeHeader();
  header.checksum_type = ChecksumType::kNull;
  EXPECT_THAT(CheckHeader(header), HasKind(ErrorKind::kInvalidArgument));
  header = SomeHeader();
  header.id = kEndBlockId;
  EXPECT_THAT(CheckHeader(header), HasKind(ErrorKind::kInvalidArgument));
}

TEST(ReplicaFormat, PlacesFollowTheContract) {
  EXPECT_EQ(SlotOffset(0), 1024u);
  EXPECT_EQ(SlotOffset(1), 1536u);
  EXPECT_EQ(SlotOffset(2), 2048u);
  EXPECT_EQ(SlotOffset(3), 2560u);
  EXPECT_EQ(DataOffset(0, 512), 4096u);
  EXPECT_EQ(DataOffset(1, 512), 8192u);
  EXPECT_EQ(DataOffset(512 * 1024, 512), 8192u);
  EXPECT_EQ(DataOffset(512 * 1024 + 1, 512), 12288u);
  EXPECT_EQ(DataOffset(1 << 30, 512), 4096u + (8u << 20));
  EXPECT_EQ(UsedBytes(0, 512), 4096u);
  EXPECT_EQ(UsedBytes(1, 512), 3 * 4096u);
  EXPECT_EQ(UsedBytes(4096, 512), 3 * 4096u);
  EXPECT_EQ(UsedBytes(4097, 512), 4 * 4096u);
}

}  // namespace
}  // namespace cairn::datanode
