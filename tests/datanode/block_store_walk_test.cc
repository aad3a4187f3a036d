#include <xxhash.h>

#include <limits>
#include <map>
#include <string>

#include "common/env/random.h"
#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::SizeIs;

constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();

std::string BigEndian(uint64_t value) {
  std::string bytes;
  for (int i = 7; i >= 0; --i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return bytes;
}

class WalkTest : public StorageTest {
 protected:
  void SetUp() override { Open(); }

  std::vector<v1::ReportRange> Walk(uint64_t number = 1) {
    const uint64_t before = events().last();
    for (uint64_t end = kEnd; end != 0;) end = store().WalkStep(storage(), end, number);
    std::vector<v1::ReportRange> ranges;
    for (const v1::ReportEvent& event : events().From(before + 1, 1 << 20, 1 << 30).events) {
      EXPECT_EQ(event.type(), v1::RANGE);
      ranges.push_back(event.range());
    }
    return ranges;
  }
};

TEST_F(WalkTest, EmptyStorageIsOneRangeOverEverything) {
  const auto ranges = Walk();
  ASSERT_THAT(ranges, SizeIs(1));
  EXPECT_EQ(ranges[0].first_id(), 0u);
  EXPECT_EQ(ranges[0].end_id(), kEnd);
  EXPECT_TRUE(ranges[0].last());
  EXPECT_EQ(ranges[0].finalized(), 0u);
  EXPECT_EQ(ranges[0].digest(), XXH3_64bits(nullptr, 0));
}

TEST_F(WalkTest, RangesTileTheIdSpaceAndDigestsMatchAnIndependentComputation) {
  Random random(9);
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> finalized;  // Id to stamp and length.
  std::map<uint64_t, uint64_t> others;
  std::vector<std::shared_ptr<ReplicaWriter>> writers;
  for (int i = 0; i < 2500; ++i) {
    const uint64_t id = kBlock.value() + 16 * random.Below(1 << 20);
    const GenerationStamp stamp(1001 + random.Below(100));
    auto writer = Create(BlockId(id), stamp);
    if (!writer.ok()) continue;
    const size_t length = static_cast<size_t>(random.Below(3));
    ASSERT_THAT(WritePattern(**writer, 0, length), IsOk());
    if (random.OneIn(50)) {
      others[id] = stamp.value();
      writers.push_back(*writer);
    } else {
      ASSERT_THAT((*writer)->Finalize(length, false), IsOk());
      finalized[id] = {stamp.value(), length};
    }
  }
  const auto ranges = Walk(3);
  uint64_t end = kEnd;
  uint64_t counted = 0;
  size_t others_seen = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const v1::ReportRange& range = ranges[i];
    ASSERT_EQ(range.end_id(), end);
    ASSERT_LT(range.first_id(), end);
    ASSERT_EQ(range.last(), i + 1 == ranges.size());
    ASSERT_EQ(range.walk(), 3u);
    ASSERT_FALSE(range.expanded());
    std::string covered;
    uint64_t members = 0;
    for (auto at = finalized.lower_bound(range.first_id()); at != finalized.end() && at->first < end; ++at, ++members) {
      covered += BigEndian(at->first) + BigEndian(at->second.first) + BigEndian(at->second.second);
    }
    EXPECT_EQ(range.digest(), XXH3_64bits(covered.data(), covered.size()));
    EXPECT_EQ(range.finalized(), members);
    EXPECT_LE(range.finalized() + static_cast<uint64_t>(range.others_size()), 1024u);
    counted += range.finalized();
    for (const v1::ReplicaEntry& other : range.others()) {
      EXPECT_EQ(others.at(other.block_id()), other.generation_stamp());
      EXPECT_EQ(other.state(), v1::RBW);
      ++others_seen;
    }
    end = range.first_id();
  }
  EXPECT_EQ(end, 0u);
  EXPECT_EQ(counted, finalized.size());
  EXPECT_EQ(others_seen, others.size());
  EXPECT_GE(ranges.size(), 4u);
  EXPECT_EQ(ranges[0].finalized(), 0u);  // Everything above the highest.
  EXPECT_EQ(ranges[0].first_id(), std::max(finalized.rbegin()->first, others.rbegin()->first) + 1);
}

TEST_F(WalkTest, ExpansionListsEverythingOfTheInterval) {
  for (uint64_t i = 0; i < 10; ++i) Put(BlockId(kBlock.value() + 16 * i), 100 + i);
  auto open = Create(BlockId(kBlock.value() + 16 * 20));
  ASSERT_THAT(open, IsOk());
  const uint64_t before = events().last();
  store().ExpandRange(storage(), kBlock.value() + 16 * 3, kBlock.value() + 16 * 100, 5);
  const auto slice = events().From(before + 1, 10, 1 << 20).events;
  ASSERT_THAT(slice, SizeIs(1));
  const v1::ReportRange& range = slice[0].range();
  EXPECT_TRUE(range.expanded());
  EXPECT_EQ(range.first_id(), kBlock.value() + 16 * 3);
  EXPECT_EQ(range.end_id(), kBlock.value() + 16 * 100);
  ASSERT_EQ(range.entries_size(), 7);
  EXPECT_EQ(range.entries(0).block_id(), kBlock.value() + 16 * 3);
  EXPECT_EQ(range.entries(6).length_bytes(), 109u);
  ASSERT_EQ(range.others_size(), 1);
  EXPECT_FALSE(range.last());
}

TEST_F(WalkTest, IntervalThatFilledUpIsExpandedInSeveralStatements) {
  for (uint64_t i = 0; i < 1500; ++i) Put(BlockId(kBlock.value() + 16 * i), 0, kStamp, false);
  const uint64_t before = events().last();
  store().ExpandRange(storage(), 0, kEnd, 1);
  const auto slice = events().From(before + 1, 10, 1 << 30).events;
  ASSERT_THAT(slice, SizeIs(2));
  EXPECT_EQ(slice[0].range().entries_size(), 1024);
  EXPECT_EQ(slice[1].range().entries_size(), 476);
  EXPECT_EQ(slice[1].range().end_id(), slice[0].range().first_id());
  EXPECT_EQ(slice[1].range().first_id(), 0u);
}

TEST_F(WalkTest, CorruptReplicaIsListedApartFromTheDigest) {
  Put(kBlock, 1000);
  ASSERT_THAT(machine_->disk().FlipByte(PathOf(kBlock), 8192 + 4096), IsOk());
  ASSERT_THAT(store().Verify(kBlock, kStamp), HasKind(ErrorKind::kChecksum));
  const auto ranges = Walk();
  EXPECT_EQ(ranges.back().finalized(), 0u);
  ASSERT_EQ(ranges.back().others_size(), 1);
  EXPECT_TRUE(ranges.back().others(0).corrupt());
  EXPECT_EQ(ranges.back().others(0).state(), v1::FINALIZED);
}

TEST_F(WalkTest, TransferTargetsAreNotStated) {
  auto copy = store().CreateTemporary(*store().Place({}), kBlock, kStamp, {});
  ASSERT_THAT(copy, IsOk());
  for (const v1::ReportRange& range : Walk()) EXPECT_EQ(range.others_size(), 0);
}

TEST_F(WalkTest, StorageThatCannotBeReadHasFailedAndIsNeverEmpty) {
  EXPECT_EQ(store().WalkStep("no-such-storage", kEnd, 1), 0u);
  EXPECT_EQ(EventsOf(v1::STORAGE_STATE_CHANGED).back().storage_state(), v1::FAILED);
  auto writer = Create();
  ASSERT_THAT(writer, IsOk());
  machine_->disk().FailNextSync("/data/1");
  EXPECT_FALSE((*writer)->Sync().ok());
  EXPECT_EQ(store().WalkStep(storage(), kEnd, 1), 0u);
  EXPECT_EQ(EventsOf(v1::STORAGE_STATE_CHANGED).back().storage_state(), v1::FAILED);
  EXPECT_THAT(EventsOf(v1::RANGE), SizeIs(0));
}

TEST_F(WalkTest, MarkTakesItsNumberAfterWhatWasDecidedBefore) {
  Put(kBlock, 1);
  store().MarkEpoch(Epoch(9));
  const auto marks = EventsOf(v1::EPOCH_MARK);
  ASSERT_THAT(marks, SizeIs(1));
  EXPECT_EQ(marks[0].epoch(), 9u);
  EXPECT_EQ(marks[0].number(), events().last());
}

}  // namespace
}  // namespace cairn::datanode::testing
