// The report lane: the stream, walks, and what becomes of a log that is full.

#include <optional>

#include "tests/datanode/lanes_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::SizeIs;

TEST_F(LanesTest, HeldHeartbeatAnswersDelayNoReport) {
  Start();
  Resume();
  ASSERT_THAT(ArmFault("datanode.heartbeat.answer", "block"), IsOk());
  world_.RunFor(absl::Seconds(5));
  const SteadyTime before = world_.Now();
  Put(kBlock, 100);
  ASSERT_TRUE(world_.RunUntil([this] { return !Heard().empty() && Heard().back().type() == v1::REPLICA_FINALIZED; }, absl::Seconds(1)));
  EXPECT_LE(world_.Now() - before, absl::Milliseconds(10));
}

TEST_F(LanesTest, AnEventLeavesAtOnceAndThoseThatFollowItShareAMessage) {
  Start();
  Resume();
  world_.RunFor(absl::Seconds(1));
  const uint64_t sent = lanes_->report().messages_sent();
  const SteadyTime before = world_.Now();
  store().MarkEpoch(Epoch(5));
  ASSERT_TRUE(world_.RunUntil([&] { return lanes_->report().messages_sent() == sent + 1; }, absl::Seconds(1)));
  EXPECT_EQ(world_.Now(), before);
  for (int i = 0; i < 100; ++i) {
    store().MarkEpoch(Epoch(5));
    world_.RunFor(absl::Microseconds(50));
  }
  EXPECT_EQ(lanes_->report().messages_sent(), sent + 1);
  world_.RunFor(absl::Milliseconds(10));
  EXPECT_EQ(lanes_->report().messages_sent(), sent + 2);
  EXPECT_EQ(namenode_.reports.back()->heard.back().events().events_size(), 100);
  // More than a message holds.
  for (int i = 0; i < 1000; ++i) store().MarkEpoch(Epoch(5));
  world_.RunFor(absl::Milliseconds(10));
  EXPECT_EQ(Heard().size(), 1u + 1 + 100 + 1000);
}

TEST_F(LanesTest, EventsLeaveStrictlyByNumberAndAreForgottenWhenDurable) {
  Start();
  EXPECT_EQ(namenode_.reports[0]->heard[0].hello().last(), 1u);  // The mark.
  Resume();
  for (uint64_t i = 0; i < 20; ++i) Put(BlockId(kBlock.value() + 16 * i), 10);
  Run();
  const auto heard = Heard();
  ASSERT_THAT(heard, SizeIs(41));
  for (size_t i = 0; i < heard.size(); ++i) EXPECT_EQ(heard[i].number(), i + 1);
  Acknowledge(41, 30);
  EXPECT_EQ(events().first_kept(), 31u);
  // A broken stream goes on where the NameNode says.
  namenode_.reports.back()->Break();
  world_.RunFor(absl::Seconds(2));
  ASSERT_THAT(namenode_.reports, SizeIs(2));
  EXPECT_EQ(namenode_.reports[1]->heard[0].hello().first_kept(), 31u);
  EXPECT_EQ(namenode_.reports[1]->heard[0].hello().last(), 41u);
  Resume(35);
  EXPECT_EQ(Heard().front().number(), 35u);
  EXPECT_THAT(Heard(), SizeIs(7));
}

TEST_F(LanesTest, MessageHoldsAtMostAThousandEventsAndASlowStreamIsNotFlooded) {
  Start();
  for (uint64_t i = 0; i < 3000; ++i) store().MarkEpoch(Epoch(5));
  namenode_.reports.back()->queued = 100;
  Resume();
  EXPECT_TRUE(Heard().empty());
  namenode_.reports.back()->queued = 0;
  Run();
  EXPECT_THAT(Heard(), SizeIs(3001));
  for (const v1::ReportUp& up : namenode_.reports.back()->heard) {
    EXPECT_LE(up.events().events_size(), 1000);
    EXPECT_LE(up.ByteSizeLong(), 66u << 10);
  }
}

TEST_F(LanesTest, WalkKeepsAtMostEightRangesUnappliedAndAnswersExpansionsFirst) {
  Start();
  for (uint64_t i = 0; i < 20'000; ++i) Put(BlockId(kBlock.value() + 16 * i), 0, kStamp, false);
  const uint64_t before = events().last();
  Resume(before + 1);
  v1::ReportDown request;
  request.mutable_walk()->add_storage_uuids(storage());
  namenode_.reports.back()->Say(request);
  Run();
  ASSERT_THAT(Heard(), SizeIs(8));
  v1::ReportDown expand;
  expand.mutable_expand()->set_storage_uuid(storage());
  expand.mutable_expand()->set_first_id(kBlock.value());
  expand.mutable_expand()->set_end_id(kBlock.value() + 16 * 10);
  namenode_.reports.back()->Say(expand);
  Acknowledge(before + 8, before);
  ASSERT_GT(Heard().size(), 9u);
  EXPECT_TRUE(Heard()[8].range().expanded());
  EXPECT_FALSE(Heard()[9].range().expanded());
  for (int i = 0; i < 10; ++i) Acknowledge(events().last(), before);
  EXPECT_TRUE(Heard().back().range().last());
  EXPECT_EQ(Heard().back().range().first_id(), 0u);
  EXPECT_EQ(lanes_->report().walks_done(), 1u);
}

TEST_F(LanesTest, RangesThatAreSentAgainWaitForOneAnotherToo) {
  Start();
  for (uint64_t i = 0; i < 30'000; ++i) Put(BlockId(kBlock.value() + 16 * i), 0, kStamp, false);
  const uint64_t before = events().last();
  Walk({}, before + 1);
  for (int i = 0; i < 20; ++i) Acknowledge(events().last(), 0);  // Applied, and never durable.
  const uint64_t after = events().last();
  ASSERT_GE(after, before + 30);
  namenode_.reports.back()->Break();
  world_.RunFor(absl::Seconds(2));
  Put(BlockId(kBlock.value() - 16), 10);
  Resume(before + 1);  // It has lost them all.
  EXPECT_THAT(Heard(), SizeIs(8));
  Acknowledge(before + 3, 0);
  EXPECT_THAT(Heard(), SizeIs(11));
  for (int i = 0; i < 20; ++i) Acknowledge(Heard().back().number(), 0);
  EXPECT_EQ(Heard().back().type(), v1::REPLICA_FINALIZED);
  for (size_t i = 0; i < Heard().size(); ++i) EXPECT_EQ(Heard()[i].number(), before + 1 + i);
}

TEST_F(LanesTest, EventsOfANamenodeThatIsLongAwayCollapseIntoAWalk) {
  StartWithRoomForFiftyEvents();
  namenode_.reports.back()->Break();
  for (uint64_t i = 0; i < 100; ++i) Put(BlockId(kBlock.value() + 16 * i), 10);
  EXPECT_EQ(events().kept(), 50u);
  world_.RunFor(absl::Seconds(2));
  const v1::ReportHello hello = namenode_.reports.back()->heard[0].hello();
  EXPECT_EQ(hello.first_kept(), events().last() - 49);
  Walk({}, hello.first_kept());
  ASSERT_GT(Heard().size(), 50u);  // The walk's own ranges have pushed out nothing that was still to be said.
  EXPECT_EQ(Heard().front().number(), hello.first_kept());
  EXPECT_TRUE(Heard().back().range().last());
  EXPECT_EQ(Heard().back().range().finalized(), 100u);
}

// A slow NameNode, not an absent one: what is gone is noticed in the middle of a stream.
TEST_F(LanesTest, EventThatFellOutOfTheLogWhileStreamingOpensTheStreamAgain) {
  StartWithRoomForFiftyEvents();
  namenode_.reports.back()->queued = 100;
  for (uint64_t i = 0; i < 100; ++i) Put(BlockId(kBlock.value() + 16 * i), 10);
  Run();
  namenode_.reports.back()->queued = 0;
  world_.RunFor(absl::Seconds(2));
  ASSERT_THAT(namenode_.reports, SizeIs(2));
  EXPECT_EQ(namenode_.reports[1]->heard[0].hello().first_kept(), events().first_kept());
}

TEST_F(LanesTest, RejectionOfAClassThatIsNewIsOverWithinTwoHeartbeats) {
  Start();
  Resume();
  v1::ReportDown down;
  down.mutable_rejection()->set_reject(static_cast<v1::RejectionClass>(9999));
  namenode_.reports.back()->Say(down);
  ASSERT_TRUE(world_.RunUntil([this] { return namenode_.reports.size() == 2; }, absl::Seconds(6)));
  Run();
  EXPECT_TRUE(namenode_.reports[1]->heard[0].has_hello());
  Resume();
  EXPECT_TRUE(lanes_->report().streaming());
}

TEST_F(LanesTest, AskedToTryAgainForLongItAsksLessOften) {
  Start();
  for (int i = 0; i < 8; ++i) {
    v1::ReportDown down;
    down.mutable_rejection()->set_reject(v1::RETRY_SAME);
    const size_t streams = namenode_.reports.size();
    namenode_.reports.back()->Say(down);
    ASSERT_TRUE(world_.RunUntil([&] { return namenode_.reports.size() > streams; }, absl::Seconds(13))) << i;
  }
  v1::ReportDown down;
  down.mutable_rejection()->set_reject(v1::RETRY_SAME);
  const size_t streams = namenode_.reports.size();
  namenode_.reports.back()->Say(down);
  world_.RunFor(absl::Seconds(9));
  EXPECT_EQ(namenode_.reports.size(), streams);
}

TEST_F(LanesTest, WalkAskedForDuringAWalkGoesRoundOnceMore) {
  Start();
  for (uint64_t i = 0; i < 20'000; ++i) Put(BlockId(kBlock.value() + 16 * i), 0, kStamp, false);
  Walk({}, events().last() + 1);
  v1::ReportDown request;
  request.mutable_walk()->add_storage_uuids(storage());
  namenode_.reports.back()->Say(request);
  namenode_.reports.back()->Say(request);
  for (int i = 0; i < 20; ++i) Acknowledge(events().last(), 0);
  EXPECT_EQ(lanes_->report().walks_done(), 2u);
}

TEST_F(LanesTest, RejectionsAreObeyedByTheirClass) {
  Start();
  const auto reject = [this](v1::RejectionClass rejection) {
    v1::ReportDown down;
    down.mutable_rejection()->set_reject(rejection);
    namenode_.reports.back()->Say(down);
  };
  reject(v1::RETRY_SAME);
  world_.RunFor(absl::Milliseconds(1100));
  EXPECT_THAT(namenode_.reports, SizeIs(2));
  for (int i = 0; i < 6; ++i) {
    const size_t streams = namenode_.reports.size();
    reject(i % 2 == 0 ? v1::START_AFRESH : static_cast<v1::RejectionClass>(77));
    ASSERT_TRUE(world_.RunUntil([&] { return namenode_.reports.size() > streams; }, absl::Minutes(6)));
  }
  const size_t streams = namenode_.reports.size();
  reject(v1::START_AFRESH);
  world_.RunFor(absl::Seconds(30));
  EXPECT_EQ(namenode_.reports.size(), streams);  // The back-off has grown.
}

TEST_F(LanesTest, StreamThatIsNotGreetedIsOpenedAgain) {
  Start();
  world_.RunFor(absl::Seconds(35));
  EXPECT_GE(namenode_.reports.size(), 2u);
}

TEST_F(LanesTest, VolumeThatComesIsRegisteredAndWalkedUnasked) {
  Start();
  Resume();
  const size_t registrations = namenode_.registrations.size();
  std::optional<absl::Status> changed;
  opened_.volumes->ChangeVolumes({"/data/1", "/data/2"}, [&changed](absl::Status status) { changed = std::move(status); });
  world_.RunFor(absl::Seconds(2));
  ASSERT_TRUE(changed.has_value());
  EXPECT_THAT(*changed, IsOk());
  ASSERT_GT(namenode_.registrations.size(), registrations);
  EXPECT_EQ(namenode_.registrations.back().storages_size(), 2);
  EXPECT_EQ(Heard().back().storage_uuid(), storage(1));
  EXPECT_TRUE(Heard().back().range().last());
}

}  // namespace
}  // namespace cairn::datanode::testing
