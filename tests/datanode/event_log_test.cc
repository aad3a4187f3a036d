#include "datanode/storage/event_log.h"

#include <gtest/gtest.h>

#include "tests/testing/sim_world.h"

namespace cairn::datanode {
namespace {

class EventLogTest : public ::testing::Test {
 protected:
  static v1::ReportEvent Event(uint64_t block) {
    v1::ReportEvent event;
    event.set_type(v1::DROPPED);
    event.mutable_replica()->set_block_id(block);
    return event;
  }
  cairn::testing::SimWorld world_{{.seed = 1}};
};

TEST_F(EventLogTest, NumbersFromOneInOrder) {
  EventLog log(&world_.clock());
  EXPECT_EQ(log.last(), 0u);
  EXPECT_EQ(log.first_kept(), 1u);
  EXPECT_EQ(log.Append(Event(10)), 1u);
  EXPECT_EQ(log.Append(Event(11)), 2u);
  const EventLog::Slice slice = log.From(1, 100, 1 << 20);
  ASSERT_EQ(slice.events.size(), 2u);
  EXPECT_EQ(slice.events[0].number(), 1u);
  EXPECT_EQ(slice.events[1].number(), 2u);
  EXPECT_EQ(slice.events[1].replica().block_id(), 11u);
}

TEST_F(EventLogTest, SliceKeepsBothBoundsButGivesAtLeastOne) {
  EventLog log(&world_.clock());
  for (uint64_t i = 0; i < 10; ++i) log.Append(Event(i));
  EXPECT_EQ(log.From(3, 4, 1 << 20).events.size(), 4u);
  EXPECT_EQ(log.From(3, 4, 1).events.size(), 1u);
  const size_t one = log.From(3, 1, 1).events[0].ByteSizeLong() + 4;
  EXPECT_EQ(log.From(3, 10, 3 * one).events.size(), 3u);
  EXPECT_TRUE(log.From(11, 4, 100).events.empty());
  EXPECT_FALSE(log.From(11, 4, 100).gone);
}

TEST_F(EventLogTest, ForgetsWhatIsDurableAndSaysWhatIsGone) {
  EventLog log(&world_.clock());
  for (uint64_t i = 0; i < 10; ++i) log.Append(Event(i));
  log.ForgetUpTo(4);
  EXPECT_EQ(log.first_kept(), 5u);
  EXPECT_TRUE(log.From(4, 10, 1 << 20).gone);
  EXPECT_EQ(log.From(5, 10, 1 << 20).events.size(), 6u);
  log.ForgetUpTo(100);
  EXPECT_EQ(log.first_kept(), 11u);
  EXPECT_EQ(log.last(), 10u);
  EXPECT_EQ(log.Append(Event(10)), 11u);
}

TEST_F(EventLogTest, TwoThatBelongTogetherAreNeverParted) {
  EventLog log(&world_.clock());
  log.Append(Event(1));
  EXPECT_EQ(log.AppendTogether(Event(2), Event(3)), 3u);
  log.Append(Event(4));
  EXPECT_EQ(log.From(1, 2, 1 << 20).events.size(), 1u);
  EXPECT_EQ(log.From(1, 3, 1 << 20).events.size(), 3u);
  EXPECT_EQ(log.From(2, 1, 1 << 20).events.size(), 2u);
  EXPECT_EQ(log.From(2, 10, 1).events.size(), 2u);
  const size_t one = log.From(1, 1, 1).events[0].ByteSizeLong() + 4;
  EXPECT_EQ(log.From(1, 10, 2 * one).events.size(), 1u);
  EXPECT_EQ(log.From(1, 10, 3 * one).events.size(), 3u);
  EXPECT_EQ(log.From(1, 10, 1 << 20).events.size(), 4u);
}

TEST_F(EventLogTest, TwoThatBelongTogetherGoTogether) {
  EventLog log(&world_.clock(), 3);
  log.AppendTogether(Event(1), Event(2));
  log.Append(Event(3));
  EXPECT_EQ(log.first_kept(), 1u);
  log.Append(Event(4));
  EXPECT_EQ(log.first_kept(), 3u);
  log.ForgetUpTo(4);
  log.AppendTogether(Event(5), Event(6));
  log.ForgetUpTo(4);
  EXPECT_EQ(log.first_kept(), 5u);
}

TEST_F(EventLogTest, IsBounded) {
  EventLog log(&world_.clock(), 3);
  for (uint64_t i = 0; i < 10; ++i) log.Append(Event(i));
  EXPECT_EQ(log.kept(), 3u);
  EXPECT_EQ(log.first_kept(), 8u);
  EXPECT_TRUE(log.From(7, 1, 100).gone);
}

TEST_F(EventLogTest, IsBoundedInBytesTooButKeepsTheNewest) {
  v1::ReportEvent range = Event(1);
  for (uint64_t i = 0; i < 100; ++i) range.mutable_range()->add_entries()->set_block_id(1 << 30);
  const size_t size = range.ByteSizeLong() + 2;  // And its number.
  EventLog log(&world_.clock(), 1000, 3 * size);
  for (int i = 0; i < 10; ++i) log.Append(range);
  EXPECT_EQ(log.kept(), 3u);
  for (uint64_t i = 0; i < 100; ++i) range.mutable_range()->add_entries()->set_block_id(1 << 30);
  for (int i = 0; i < 10; ++i) log.Append(Event(1));  // Small ones leave room again.
  EXPECT_EQ(log.kept(), 12u);
  EventLog tiny(&world_.clock(), 1000, 1);
  tiny.Append(range);
  EXPECT_EQ(tiny.kept(), 1u);
  tiny.Append(range);
  EXPECT_EQ(tiny.first_kept(), 2u);
  tiny.ForgetUpTo(2);
  tiny.Append(Event(1));
  EXPECT_EQ(tiny.kept(), 1u);
}

TEST_F(EventLogTest, WakesOnAppendAndKnowsItsOldestAge) {
  EventLog log(&world_.clock());
  int wakes = 0;
  log.SetWake([&wakes] { ++wakes; });
  EXPECT_EQ(log.OldestAge(), absl::ZeroDuration());
  log.Append(Event(1));
  world_.RunFor(absl::Seconds(2));
  log.Append(Event(2));
  EXPECT_EQ(wakes, 2);
  EXPECT_EQ(log.OldestAge(), absl::Seconds(2));
  EXPECT_EQ(log.AgeOf(1), absl::Seconds(2));
  EXPECT_EQ(log.AgeOf(2), absl::ZeroDuration());
  EXPECT_EQ(log.AgeOf(3), std::nullopt);
  log.ForgetUpTo(1);
  EXPECT_EQ(log.AgeOf(1), std::nullopt);
  EXPECT_EQ(log.OldestAge(), absl::ZeroDuration());
}

}  // namespace
}  // namespace cairn::datanode
