#include "datanode/storage/replica_map.h"

#include <malloc.h>

#include <vector>

#include <gtest/gtest.h>

#include "common/env/random.h"

namespace cairn::datanode {
namespace {

TEST(ReplicaRecord, KeepsEveryFieldAtItsExtremes) {
  ReplicaRecord record(GenerationStamp(~0ull), ReplicaState::kTemporary, kMaxCapacity, kMaxBytesPerChecksum);
  EXPECT_EQ(record.stamp(), GenerationStamp(~0ull));
  EXPECT_EQ(record.length(), kMaxCapacity);
  EXPECT_EQ(record.bytes_per_checksum(), kMaxBytesPerChecksum);
  EXPECT_EQ(record.state(), ReplicaState::kTemporary);
  EXPECT_FALSE(record.corrupt());
  record.set_corrupt(true);
  record.set_sure(false);
  record.set_length(0);
  record.set_state(ReplicaState::kFinalized);
  EXPECT_EQ(record.length(), 0u);
  EXPECT_EQ(record.bytes_per_checksum(), kMaxBytesPerChecksum);
  EXPECT_EQ(record.state(), ReplicaState::kFinalized);
  EXPECT_TRUE(record.corrupt());
  EXPECT_FALSE(record.sure());
}

TEST(ReplicaIndex, FinalizedReplicaTakesAtMost64BytesInAnyOrderOfInsertion) {
  constexpr uint64_t kCount = 100'000;
  for (const bool shuffled : {false, true}) {
    std::vector<uint64_t> ids;
    for (uint64_t i = 0; i < kCount; ++i) ids.push_back(kFirstBlockId.value() + i * kBlockIdStep);
    if (shuffled) Random(5).Shuffle(ids);
    const size_t before = mallinfo2().uordblks;
    ReplicaIndex index;
    for (const uint64_t id : ids) index.emplace(BlockId(id), ReplicaRecord(GenerationStamp(1001), ReplicaState::kFinalized, 1 << 27, 512));
    const size_t bytes = mallinfo2().uordblks - before;  // A sanitizer's malloc counts nothing here.
    EXPECT_LE(bytes, 64 * kCount) << (shuffled ? "shuffled" : "ascending");
  }
}

TEST(WriterLink, StopRunsOnceAndAtOnceIfRevokedBefore) {
  WriterLink link;
  int stops = 0;
  link.OnRevoked([&stops] { ++stops; });
  link.Revoke();
  EXPECT_TRUE(link.revoked());
  link.Stop();
  link.Stop();
  EXPECT_EQ(stops, 1);
  link.OnRevoked([&stops] { ++stops; });
  EXPECT_EQ(stops, 2);
}

TEST(CreationGate, LetsOneInAtATimeForEachBlock) {
  CreationGate gate(10);
  auto pass = gate.TryEnter(BlockId(16));
  EXPECT_TRUE(pass.has_value());
  EXPECT_FALSE(gate.TryEnter(BlockId(16)).has_value());
  EXPECT_TRUE(gate.TryEnter(BlockId(32)).has_value());
  pass.reset();
  EXPECT_TRUE(gate.TryEnter(BlockId(16)).has_value());
}

}  // namespace
}  // namespace cairn::datanode
