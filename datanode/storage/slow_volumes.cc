#include "datanode/storage/slow_volumes.h"

#include <algorithm>
#include <utility>

#include "common/median.h"

namespace cairn::datanode {
namespace {

constexpr uint64_t kLongestMemory = 32;  // Samples that the average is of, more or less.
constexpr absl::Duration kForgotten = absl::Minutes(5);
constexpr uint64_t kEnoughSamples = 64;
// Far above: HDFS has a lower bound for its slow disks, too (dfs.datanode.slowdisk.low.threshold.ms); among fast ones nobody waits.
constexpr double kFarAbove = 5;
constexpr absl::Duration kNeverSlowBelow = absl::Milliseconds(20);

}  // namespace

void DiskLatency::Note(absl::Duration took, SteadyTime now) {
  MutexLock lock(mu_);
  if (now - last_ > kForgotten) figures_ = {};
  last_ = now;
  ++figures_.samples;
  const auto weight = static_cast<int64_t>(std::min(figures_.samples, kLongestMemory));
  figures_.average += (took - figures_.average) / weight;
}

DiskLatency::Figures DiskLatency::Get(SteadyTime now) const {
  MutexLock lock(mu_);
  return now - last_ > kForgotten ? Figures() : figures_;
}

std::vector<double> HowSlow(const std::vector<DiskLatency::Figures>& disks) {
  std::vector<double> slow(disks.size(), 0);
  for (size_t i = 0; i < disks.size(); ++i) {
    if (disks[i].samples < kEnoughSamples || disks[i].average < kNeverSlowBelow) continue;
    std::vector<absl::Duration> others;
    for (size_t j = 0; j < disks.size(); ++j)
      if (j != i && disks[j].samples >= kEnoughSamples) others.push_back(disks[j].average);
    if (others.empty()) continue;
    const double times = absl::FDivDuration(disks[i].average, std::max(LowerMedian(std::move(others)), absl::Microseconds(1)));
    if (times >= kFarAbove) slow[i] = times;
  }
  return slow;
}

}  // namespace cairn::datanode
