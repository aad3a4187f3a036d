#include "datanode/transfer/peer_latencies.h"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::datanode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = PeerLatency::Kind;

constexpr absl::Duration kMs = absl::Milliseconds(1);

std::vector<std::string> Names(const std::vector<v1::SlowPeer>& peers) {
  std::vector<std::string> names;
  for (const v1::SlowPeer& peer : peers) names.push_back(peer.datanode_uuid());
  return names;
}

class PeerLatenciesTest : public ::testing::Test {
 protected:
  void Note(const std::string& uuid, absl::Duration took, int times = 10, Kind kind = Kind::kData) {
    const std::shared_ptr<PeerLatency> peer = peers_.Of(uuid, now_);
    ASSERT_NE(peer, nullptr);
    for (int i = 0; i < times; ++i) peer->Note(kind, took, now_);
  }
  std::vector<std::string> Slow() { return Names(peers_.Slow(now_)); }

  PeerLatencies peers_{PeerLatencies::Options()};
  SteadyTime now_ = SteadyTime::FromStart(absl::Hours(1));
};

TEST(OutlierLimit, IsThreeTimesTheMedianOrThreeDeviationsOrTheFloorWhicheverIsMost) {
  absl::Duration median;
  EXPECT_EQ(OutlierLimit({9 * kMs, 10 * kMs, 11 * kMs}, 20 * kMs, &median), 30 * kMs);
  EXPECT_EQ(median, 10 * kMs);
  EXPECT_EQ(OutlierLimit({kMs, kMs, 2 * kMs}, 20 * kMs, &median), 20 * kMs);
  // Deviations of 0, 90, 90, 90, 110 ms around 100.
  const absl::Duration wide = OutlierLimit({10 * kMs, 100 * kMs, 190 * kMs, 210 * kMs, 10 * kMs}, 20 * kMs, &median);
  EXPECT_EQ(median, 100 * kMs);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(wide), 100 + 3 * 1.4826 * 90, 0.01);
  EXPECT_EQ(OutlierLimit({7 * kMs}, 20 * kMs, &median), 21 * kMs);
  EXPECT_EQ(OutlierLimit({10 * kMs, 90 * kMs}, 20 * kMs, &median), 30 * kMs);  // Of two the lower one.
  EXPECT_EQ(median, 10 * kMs);
}

TEST_F(PeerLatenciesTest, ThePeerFarAboveTheOthersIsSlowAndIsNamedWithTheNumbers) {
  Note("a", 2 * kMs);
  Note("b", 3 * kMs);
  Note("c", 250 * kMs, 12);
  now_ = now_ + absl::Seconds(90);
  const std::vector<v1::SlowPeer> slow = peers_.Slow(now_);
  ASSERT_THAT(slow, SizeIs(1));
  EXPECT_EQ(slow[0].datanode_uuid(), "c");
  EXPECT_FALSE(slow[0].at_close());
  EXPECT_EQ(slow[0].latency_us(), 250'000u);
  EXPECT_EQ(slow[0].peers_latency_us(), 3'000u);
  EXPECT_EQ(slow[0].limit_us(), 20'000u);
  EXPECT_EQ(slow[0].samples(), 12u);
  EXPECT_EQ(slow[0].oldest_sample_ms(), 90'000u);
}

TEST_F(PeerLatenciesTest, NobodyIsSlowWhenAllAreOrWhenAllAreFastEnough) {
  Note("a", 200 * kMs);
  Note("b", 300 * kMs);
  Note("c", 400 * kMs);
  EXPECT_THAT(Slow(), IsEmpty());
  now_ = now_ + absl::Hours(1);
  Note("a", kMs);
  Note("b", kMs);
  Note("c", 19 * kMs);
  EXPECT_THAT(Slow(), IsEmpty());
}

TEST_F(PeerLatenciesTest, TooFewPeersOrSamplesAreNoGroundToJudgeBy) {
  Note("slow", 500 * kMs);
  EXPECT_THAT(Slow(), IsEmpty());  // Slower than whom?
  Note("quick", kMs, 9);
  EXPECT_THAT(Slow(), IsEmpty());
  Note("quick", kMs, 1);
  EXPECT_THAT(Slow(), ElementsAre("slow"));
  Note("new", 900 * kMs, 9);
  EXPECT_THAT(Slow(), ElementsAre("slow"));

  PeerLatencies::Options options;
  options.min_peers = 4;
  PeerLatencies many(options);
  for (const auto& [uuid, took] : {std::pair{"a", kMs}, {"b", kMs}, {"c", 500 * kMs}})
    for (int i = 0; i < 10; ++i) many.Of(uuid, now_)->Note(Kind::kData, took, now_);
  EXPECT_THAT(many.Slow(now_), IsEmpty());
  for (int i = 0; i < 10; ++i) many.Of("d", now_)->Note(Kind::kData, kMs, now_);
  EXPECT_THAT(Names(many.Slow(now_)), ElementsAre("c"));
}

TEST_F(PeerLatenciesTest, AMedianForgivesFewOutliersAndFollowsAChange) {
  Note("a", kMs);
  Note("b", kMs, 30);
  Note("b", absl::Seconds(5), 29);
  EXPECT_THAT(Slow(), IsEmpty());
  Note("b", absl::Seconds(5), 10);
  EXPECT_THAT(Slow(), ElementsAre("b"));
  Note("b", kMs, 40);  // The window is full of them soon.
  EXPECT_THAT(Slow(), IsEmpty());
}

TEST_F(PeerLatenciesTest, WhatIsOldIsForgotten) {
  Note("a", kMs);
  Note("b", 300 * kMs);
  now_ = now_ + PeerLatency::kForgotten;
  EXPECT_THAT(Slow(), ElementsAre("b"));
  now_ = now_ + kMs;
  EXPECT_THAT(Slow(), IsEmpty());
  Note("a", kMs);
  Note("b", 300 * kMs, 9);
  EXPECT_THAT(Slow(), IsEmpty());  // It has to be measured anew.
  EXPECT_EQ(peers_.Longest(Kind::kData, now_), kMs);
}

TEST_F(PeerLatenciesTest, SlowSyncsAreFoundBesideFastPackets) {
  for (const char* uuid : {"a", "b", "c"}) {
    Note(uuid, kMs, 20);
    Note(uuid, 8 * kMs, 20, Kind::kClose);
  }
  Note("d", kMs, 20);
  Note("d", 700 * kMs, 20, Kind::kClose);
  const std::vector<v1::SlowPeer> slow = peers_.Slow(now_);
  ASSERT_THAT(Names(slow), ElementsAre("d"));
  EXPECT_TRUE(slow[0].at_close());
  EXPECT_EQ(peers_.Longest(Kind::kClose, now_), 700 * kMs);
  // Slow in both: named once, with the worse.
  Note("d", absl::Seconds(60), 64);
  ASSERT_THAT(Slow(), ElementsAre("d"));
  EXPECT_FALSE(peers_.Slow(now_)[0].at_close());
}

TEST_F(PeerLatenciesTest, AReportIsBoundedAndHasTheSlowestFirst) {
  for (int i = 0; i < 30; ++i) Note(fmt::format("q{}", i), kMs);
  for (int i = 0; i < 12; ++i) Note(fmt::format("s{:02}", i), (100 + i) * kMs);
  const std::vector<std::string> slow = Slow();
  ASSERT_THAT(slow, SizeIs(PeerLatencies::kMostReported));
  EXPECT_EQ(slow.front(), "s11");
  EXPECT_EQ(slow.back(), "s02");
}

TEST_F(PeerLatenciesTest, NothingIsMeasuredWhereThatIsSwitchedOffOrThePeerHasNoName) {
  EXPECT_EQ(peers_.Of("", now_), nullptr);
  PeerLatencies::Options options;
  options.enabled = false;
  EXPECT_EQ(PeerLatencies(options).Of("a", now_), nullptr);
}

TEST_F(PeerLatenciesTest, OddTimesDoNoHarm) {
  const std::shared_ptr<PeerLatency> peer = peers_.Of("a", now_);
  peer->Note(Kind::kData, -5 * kMs, now_);
  EXPECT_EQ(peer->Get(Kind::kData, now_).median, absl::ZeroDuration());
  peer->Note(Kind::kClose, absl::Hours(3), now_);
  EXPECT_GT(peer->Get(Kind::kClose, now_).median, absl::Minutes(4));
  // One that another thread has noted a moment later than this one asks.
  EXPECT_EQ(peer->Get(Kind::kClose, now_ - kMs).samples, 1u);
  EXPECT_EQ(peer->Get(Kind::kClose, now_ - kMs).oldest, absl::ZeroDuration());
}

}  // namespace
}  // namespace cairn::datanode
