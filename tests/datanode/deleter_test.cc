#include "datanode/storage/deleter.h"

#include <vector>

#include <gtest/gtest.h>

#include "common/fault_points.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sim_world.h"

namespace cairn::datanode {
namespace {

using cairn::testing::IsOk;

class DeleterTest : public ::testing::Test {
 protected:
  DeleterTest() : process_(world_.AddMachine("datanode")->StartProcess()) { EnableFaultPoints(); }
  ~DeleterTest() override {
    DisarmAllFaults();
    deleter_.reset();
  }
  void Start(DeleterOptions options) {
    deleter_ = std::make_unique<Deleter>(
        process_, "deleter", options, [this](const Deleter::File& file) { removed_.push_back({file.id, world_.Now()}); },
        [this] { return busy_; });
  }
  static Deleter::File File(uint64_t id, uint64_t bytes = 1000) {
    return {.id = BlockId(id), .stamp = GenerationStamp(1), .length = bytes, .used_bytes = bytes};
  }

  struct Removal {
    BlockId id;
    SteadyTime at;
  };
  cairn::testing::SimWorld world_{{.seed = 1}};
  cairn::testing::SimProcess* process_;
  bool busy_ = false;
  std::vector<Removal> removed_;
  std::unique_ptr<Deleter> deleter_;
};

TEST_F(DeleterTest, KeepsToItsUnlinksPerSecond) {
  Start({.unlinks_per_second = 10, .bytes_per_second = 1e12});
  for (uint64_t i = 1; i <= 21; ++i) deleter_->Add(File(i));
  world_.RunFor(absl::Milliseconds(1050));
  EXPECT_EQ(removed_.size(), 11u);
  EXPECT_EQ(deleter_->pending_blocks(), 10u);
  EXPECT_EQ(deleter_->pending_bytes(), 10'000u);
  ASSERT_TRUE(world_.RunUntilQuiet(absl::Seconds(10)));
  EXPECT_EQ(removed_.size(), 21u);
  for (uint64_t i = 1; i <= 21; ++i) EXPECT_EQ(removed_[i - 1].id, BlockId(i));  // In order.
}

TEST_F(DeleterTest, KeepsToItsBytesPerSecond) {
  Start({.unlinks_per_second = 1e9, .bytes_per_second = 1000});
  for (uint64_t i = 1; i <= 5; ++i) deleter_->Add(File(i, 1000));
  ASSERT_TRUE(world_.RunUntilQuiet(absl::Seconds(10)));
  EXPECT_GE(removed_.back().at - removed_.front().at, absl::Seconds(4));
}

TEST_F(DeleterTest, TakesItsShareOfABusyDiskAndNoMore) {
  Start({.unlinks_per_second = 1e6, .bytes_per_second = 1e12});
  busy_ = true;
  for (uint64_t i = 1; i <= 20'000; ++i) deleter_->Add(File(i));
  world_.RunFor(absl::Seconds(2));
  EXPECT_GE(removed_.size(), 500u);   // It comes to an end, however busy the disk is,
  EXPECT_LE(removed_.size(), 2000u);  // and gives way after each.
  busy_ = false;
  ASSERT_TRUE(world_.RunUntilQuiet(absl::Seconds(1)));
  EXPECT_EQ(removed_.size(), 20'000u);
}

TEST(DeleterOptions, AnUnlinkThatTookLongIsFollowedByAPauseInProportion) {
  const DeleterOptions options{.yielding = {.share = 0.25, .patience = absl::Minutes(1)}, .longest_yield = absl::Milliseconds(200)};
  const absl::Duration fresh = absl::Seconds(30);
  EXPECT_EQ(options.YieldAfter(absl::ZeroDuration(), fresh), absl::Milliseconds(1));
  EXPECT_EQ(options.YieldAfter(absl::Milliseconds(1), fresh), absl::Milliseconds(3));
  EXPECT_EQ(options.YieldAfter(absl::Milliseconds(10), fresh), absl::Milliseconds(30));
  EXPECT_EQ(options.YieldAfter(absl::Seconds(1), fresh), absl::Milliseconds(200));  // Never so long that deleting comes to a stop.
}

TEST(DeleterOptions, FilesThatHaveBeenWaitingForLongGetMoreOfTheTime) {
  const DeleterOptions options{.yielding = {.share = 0.25, .patience = absl::Minutes(1), .most = 1}, .longest_yield = absl::Seconds(10)};
  const absl::Duration unlink = absl::Milliseconds(10);
  EXPECT_EQ(options.YieldAfter(unlink, absl::Minutes(1)), absl::Milliseconds(30));
  EXPECT_EQ(options.YieldAfter(unlink, absl::Minutes(2)), absl::Milliseconds(10));
  EXPECT_EQ(options.YieldAfter(unlink, absl::Minutes(3)), absl::ZeroDuration());
  EXPECT_EQ(options.YieldAfter(unlink, absl::Hours(3)), absl::ZeroDuration());
}

TEST_F(DeleterTest, ABacklogThatGrewTooOldIsDoneAtFullPaceHoweverBusyTheDiskIs) {
  Start({.unlinks_per_second = 1e5, .bytes_per_second = 1e12, .yielding = {.share = 0.5, .patience = absl::Seconds(1)}});
  busy_ = true;
  for (uint64_t i = 1; i <= 20'000; ++i) deleter_->Add(File(i));
  world_.RunFor(absl::Seconds(2));
  const size_t yielding = removed_.size();
  EXPECT_LE(yielding, 3'000u);
  world_.RunFor(absl::Milliseconds(500));
  EXPECT_EQ(removed_.size(), 20'000u);
}

TEST_F(DeleterTest, TakesAnotherPaceOver) {
  Start({.unlinks_per_second = 1, .bytes_per_second = 1e12});
  for (uint64_t i = 1; i <= 100; ++i) deleter_->Add(File(i));
  world_.RunFor(absl::Milliseconds(1500));
  EXPECT_EQ(removed_.size(), 2u);
  deleter_->SetOptions({.unlinks_per_second = 1000, .bytes_per_second = 1e12});
  world_.RunFor(absl::Seconds(3));
  EXPECT_EQ(removed_.size(), 100u);
}

TEST_F(DeleterTest, WaitsWhileItsFaultPointBlocksAndGoesOnAfterwards) {
  Start({});
  ASSERT_THAT(ArmFault("datanode.deleter.unlink", "block"), IsOk());
  deleter_->Add(File(1));
  world_.RunFor(absl::Seconds(30));
  EXPECT_TRUE(removed_.empty());
  deleter_->Add(File(2));
  EXPECT_EQ(deleter_->oldest_age(), absl::Seconds(30));
  DisarmAllFaults();
  ASSERT_TRUE(world_.RunUntilQuiet(absl::Seconds(5)));
  EXPECT_EQ(removed_.size(), 2u);
  EXPECT_EQ(deleter_->oldest_age(), absl::ZeroDuration());
}

TEST_F(DeleterTest, ClaimedFileIsNotRemoved) {
  Start({.unlinks_per_second = 1});
  for (uint64_t i = 1; i <= 3; ++i) deleter_->Add(File(i));
  Deleter::File file;
  EXPECT_EQ(deleter_->TryClaim(BlockId(2), &file), Deleter::Claim::kTaken);
  EXPECT_EQ(file.used_bytes, 1000u);
  EXPECT_EQ(deleter_->TryClaim(BlockId(2), &file), Deleter::Claim::kNone);
  EXPECT_EQ(deleter_->pending_bytes(), 2000u);
  ASSERT_TRUE(world_.RunUntilQuiet(absl::Seconds(10)));
  ASSERT_EQ(removed_.size(), 2u);
  EXPECT_EQ(removed_[1].id, BlockId(3));
}

}  // namespace
}  // namespace cairn::datanode
