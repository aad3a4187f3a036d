#include "datanode/storage/volume_choice.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>

#include "datanode/storage/file_block_store.h"
#include "datanode/storage/slow_volumes.h"
#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Volumes that nobody looks into, with numbers.
char places[16];
Volume* Numbered(size_t number) { return reinterpret_cast<Volume*>(places + number); }
size_t NumberOf(const Volume* volume) { return static_cast<size_t>(reinterpret_cast<const char*>(volume) - places); }

VolumeChoice Choice(size_t volume, uint64_t free_mib, double fullness, size_t queued = 0) {
  return {.volume = Numbered(volume), .free_bytes = free_mib << 20, .fullness = fullness, .queued = queued};
}

int TimesOf(const std::vector<VolumeChoice>& choices, size_t wanted) {
  Random random(7);
  int times = 0;
  for (int i = 0; i < 1000; ++i) times += ChooseVolume(choices, &random) == Numbered(wanted) ? 1 : 0;
  return times;
}

TEST(VolumeChoice, EmptierIsTakenMoreOften) {
  const int times = TimesOf({Choice(1, 90'000, 0.1), Choice(2, 20'000, 0.8)}, 1);
  EXPECT_GE(times, 650);
  EXPECT_LE(times, 850);
}

TEST(VolumeChoice, EmptierIsTakenMoreOftenAndNotDrownedInWork) {
  // A thousand blocks, which the disks work off a little slower, each, than all of them come.
  Random random(11);
  const double size_mib = 10;
  double free_mib[] = {90'000, 20'000};
  double queued[] = {0, 0};
  double deepest[] = {0, 0};
  int taken[] = {0, 0};
  for (int i = 0; i < 1000; ++i) {
    std::vector<VolumeChoice> choices;
    for (size_t v = 0; v < 2; ++v) {
      const auto left = static_cast<uint64_t>(free_mib[v]);
      choices.push_back(Choice(v + 1, left, 1 - free_mib[v] / 100'000, static_cast<size_t>(queued[v])));
    }
    const size_t v = NumberOf(ChooseVolume(choices, &random)) - 1;
    ASSERT_LT(v, 2u);
    ++taken[v];
    free_mib[v] -= size_mib;
    queued[v] += 1;
    deepest[v] = std::max(deepest[v], queued[v]);
    for (double& work : queued) work = std::max(0.0, work - 0.9);
  }
  EXPECT_GE(taken[0], 650);
  EXPECT_LE(taken[0], 850);
  EXPECT_LE(deepest[0], 8);
}

TEST(VolumeChoice, SlowDisksAreLeftOutButNeverMoreThanHalf) {
  const auto left = [](std::vector<double> slowness, size_t most, double first_fullness = 0.5) {
    std::vector<VolumeChoice> choices;
    for (size_t i = 0; i < slowness.size(); ++i) {
      choices.push_back(Choice(i + 1, 1000, i == 0 ? first_fullness : 0.5));
      choices.back().times_as_slow = slowness[i];
    }
    ExcludeSlow(&choices, most);
    std::vector<size_t> volumes;
    for (const VolumeChoice& choice : choices) volumes.push_back(NumberOf(choice.volume));
    return volumes;
  };
  EXPECT_THAT(left({7, 9}, 5), ElementsAre(1u));  // Both slow, and more allowed than there are.
  EXPECT_THAT(left({9}, 5), ElementsAre(1u));
  EXPECT_THAT(left({9, 0}, 0), ElementsAre(1u, 2u));
  EXPECT_THAT(left({0, 0, 0}, 5), ElementsAre(1u, 2u, 3u));
  EXPECT_THAT(left({7, 9, 8}, 5), ElementsAre(1u, 3u));
  EXPECT_THAT(left({7, 9, 8, 6, 0}, 5), ElementsAre(1u, 4u, 5u));
  EXPECT_THAT(left({7, 9, 8, 6, 0}, 1), ElementsAre(1u, 3u, 4u, 5u));
  EXPECT_THAT(left({0, 9}, 5, 0.97), ElementsAre(1u, 2u));  // Rather a slow one than a full one alone.
  EXPECT_THAT(left({}, 5), IsEmpty());
}

TEST(SlowVolumes, OneFarAboveTheMedianOfTheOthersIsSlow) {
  const auto disk = [](double milliseconds, uint64_t samples = 100) {
    return DiskLatency::Figures{.average = absl::Milliseconds(milliseconds), .samples = samples};
  };
  EXPECT_THAT(HowSlow({disk(2), disk(3), disk(200), disk(4)}), ElementsAre(0, 0, 200.0 / 3, 0));
  EXPECT_THAT(HowSlow({disk(10), disk(100)}), ElementsAre(0, 10));
  EXPECT_THAT(HowSlow({disk(1), disk(19)}), ElementsAre(0, 0));       // Fast enough, whatever the other does.
  EXPECT_THAT(HowSlow({disk(300), disk(400)}), ElementsAre(0, 0));    // All of them are: the load is, not a disk.
  EXPECT_THAT(HowSlow({disk(1), disk(200, 10)}), ElementsAre(0, 0));  // Too few samples of it,
  EXPECT_THAT(HowSlow({disk(1, 10), disk(200)}), ElementsAre(0, 0));  // or of the others.
  EXPECT_THAT(HowSlow({disk(200)}), ElementsAre(0));
  EXPECT_THAT(HowSlow({}), IsEmpty());
}

TEST(SlowVolumes, LatencyFollowsWhatIsMeasuredAndIsForgotten) {
  DiskLatency latency;
  SteadyTime now;
  EXPECT_EQ(latency.Get(now).samples, 0u);
  for (int i = 0; i < 100; ++i) latency.Note(absl::Milliseconds(10), now = now + absl::Seconds(1));
  EXPECT_EQ(latency.Get(now).average, absl::Milliseconds(10));
  for (int i = 0; i < 100; ++i) latency.Note(absl::Milliseconds(100), now = now + absl::Seconds(1));
  EXPECT_GT(latency.Get(now).average, absl::Milliseconds(90));
  EXPECT_EQ(latency.Get(now).samples, 200u);
  EXPECT_EQ(latency.Get(now + absl::Minutes(6)).samples, 0u);
  latency.Note(absl::Milliseconds(5), now + absl::Minutes(6));
  EXPECT_EQ(latency.Get(now + absl::Minutes(6)).average, absl::Milliseconds(5));
}

class SlowVolume : public StorageTest {};

TEST_F(SlowVolume, GetsNothingNewUntilItIsTriedAgain) {
  options_.directories = {"/data/1", "/data/2"};
  options_.max_slow_excluded = 5;
  Open();
  std::vector<Volume*> volumes;
  for (Volume* volume : dynamic_cast<FileBlockStore&>(store()).Volumes()) volumes.push_back(volume);
  const auto note = [&](size_t volume, absl::Duration took) {
    for (int i = 0; i < 100; ++i) volumes[volume]->sync_latency().Note(took, process_->clock().Now());
  };
  note(0, absl::Milliseconds(500));
  note(1, absl::Milliseconds(2));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(store().Place({.storage_uuid = storage(0)})->storage_uuid, storage(1));
  EXPECT_TRUE(store().disk_speeds()[0].slow);
  EXPECT_FALSE(store().disk_speeds()[1].slow);
  world_.RunFor(absl::Minutes(6));
  EXPECT_EQ(store().Place({.storage_uuid = storage(0)})->storage_uuid, storage(0));
  // Both slow: writes go on.
  note(0, absl::Seconds(5));
  note(1, absl::Milliseconds(500));
  EXPECT_THAT(store().Place({}), IsOk());
  // And what is written is measured.
  EXPECT_EQ(store().disk_speeds()[0].write, absl::ZeroDuration());
  const uint64_t before = volumes[0]->write_latency().Get(process_->clock().Now()).samples;
  const auto writer = store().CreateRbw({.storage_uuid = storage(0), .disk = volumes[0]->disk()}, kBlock, kStamp, {});
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, 0, 1000, /*sync=*/true), IsOk());
  EXPECT_EQ(volumes[0]->write_latency().Get(process_->clock().Now()).samples, before + 1);
  EXPECT_GT(volumes[0]->sync_latency().Get(process_->clock().Now()).samples, 100u);
}

TEST(VolumeChoice, BusyDiskIsTakenLessOften) {
  const int times = TimesOf({Choice(1, 50'000, 0.5, 9), Choice(2, 50'000, 0.5, 0)}, 1);
  EXPECT_GE(times, 50);
  EXPECT_LE(times, 150);
}

TEST(VolumeChoice, NearlyFullOneIsTakenOnlyIfThereIsNoOther) {
  EXPECT_EQ(TimesOf({Choice(1, 900'000, 0.97), Choice(2, 100, 0.9)}, 1), 0);
  EXPECT_GE(TimesOf({Choice(1, 900, 0.97), Choice(2, 900, 0.99)}, 2), 400);
  EXPECT_EQ(TimesOf({Choice(1, 0, 0.97)}, 1), 1000);
  Random random(7);
  EXPECT_EQ(ChooseVolume({}, &random), nullptr);
}

}  // namespace
}  // namespace cairn::datanode::testing
