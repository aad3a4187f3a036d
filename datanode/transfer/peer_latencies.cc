#include "datanode/transfer/peer_latencies.h"

#include <algorithm>
#include <utility>

#include "common/median.h"

namespace cairn::datanode {
namespace {

constexpr double kFarAbove = 3;       // As HDFS's MEDIAN_MULTIPLIER and DEVIATION_MULTIPLIER.
constexpr double kMadScale = 1.4826;  // Makes of a median absolute deviation what a standard deviation would be.
constexpr size_t kMostPeers = 4096;   // Beyond, those that are forgotten go when another comes.

// A sample: milliseconds on the clock, plus 1, in the upper bits; microseconds in the lower ones.
constexpr int kLatencyBits = 28;
constexpr uint64_t kLongest = (uint64_t{1} << kLatencyBits) - 1;  // Four and a half minutes; more is as bad.
constexpr uint64_t kTimeMask = ~uint64_t{0} >> kLatencyBits;      // Two years, then it begins anew.

uint64_t TimeOf(SteadyTime now) { return static_cast<uint64_t>(absl::ToInt64Milliseconds(now.since_start())) + 1; }

}  // namespace

void PeerLatency::Note(Kind kind, absl::Duration took, SteadyTime now) {
  Ring& ring = rings_[static_cast<size_t>(kind)];
  const uint64_t latency = std::min(static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Microseconds(took), 0)), kLongest);
  const uint64_t at = ring.next.fetch_add(1, std::memory_order_relaxed) % kWindow;
  ring.samples[at].store(TimeOf(now) << kLatencyBits | latency, std::memory_order_relaxed);
}

PeerLatency::Figures PeerLatency::Get(Kind kind, SteadyTime now) const {
  Figures figures;
  std::vector<absl::Duration> latencies;
  for (const std::atomic<uint64_t>& slot : rings_[static_cast<size_t>(kind)].samples) {
    const uint64_t sample = slot.load(std::memory_order_relaxed);
    if (sample == 0) continue;
    // A sample that another thread has noted meanwhile may be of a later moment.
    const uint64_t since = (TimeOf(now) - (sample >> kLatencyBits)) & kTimeMask;
    const absl::Duration age = since > kTimeMask / 2 ? absl::ZeroDuration() : absl::Milliseconds(since);
    if (age > kForgotten) continue;
    figures.oldest = std::max(figures.oldest, age);
    latencies.push_back(absl::Microseconds(sample & kLongest));
  }
  figures.samples = static_cast<uint32_t>(latencies.size());
  if (!latencies.empty()) figures.median = LowerMedian(std::move(latencies));
  return figures;
}

absl::Duration OutlierLimit(const std::vector<absl::Duration>& all, absl::Duration floor, absl::Duration* median) {
  *median = LowerMedian(all);
  std::vector<absl::Duration> deviations;
  for (const absl::Duration each : all) deviations.push_back(absl::AbsDuration(each - *median));
  const absl::Duration deviation = LowerMedian(std::move(deviations)) * kMadScale;
  return std::max({floor, *median * kFarAbove, *median + deviation * kFarAbove});
}

std::shared_ptr<PeerLatency> PeerLatencies::Of(const std::string& datanode_uuid, SteadyTime now) {
  if (!options_.enabled || datanode_uuid.empty()) return nullptr;
  MutexLock lock(mu_);
  std::shared_ptr<PeerLatency>& peer = peers_[datanode_uuid];
  if (peer != nullptr) return peer;
  peer = std::make_shared<PeerLatency>();
  std::shared_ptr<PeerLatency> made = peer;
  if (peers_.size() > kMostPeers) {
    std::erase_if(peers_, [now](const auto& entry) {
      return entry.second.use_count() == 1 && entry.second->Get(PeerLatency::Kind::kData, now).samples == 0 &&
             entry.second->Get(PeerLatency::Kind::kClose, now).samples == 0;
    });
  }
  return made;
}

std::map<std::string, std::shared_ptr<PeerLatency>> PeerLatencies::Copy() const {
  MutexLock lock(mu_);
  return peers_;
}

std::vector<v1::SlowPeer> PeerLatencies::Slow(SteadyTime now) const {
  struct Outlier {
    double times = 0;
    v1::SlowPeer what;
  };
  std::map<std::string, Outlier> outliers;  // The worse of both kinds.
  const std::map<std::string, std::shared_ptr<PeerLatency>> peers = Copy();
  for (const PeerLatency::Kind kind : {PeerLatency::Kind::kData, PeerLatency::Kind::kClose}) {
    std::vector<std::pair<const std::string*, PeerLatency::Figures>> judged;
    std::vector<absl::Duration> medians;
    for (const auto& [uuid, peer] : peers) {
      const PeerLatency::Figures figures = peer->Get(kind, now);
      if (figures.samples < options_.min_samples) continue;
      judged.emplace_back(&uuid, figures);
      medians.push_back(figures.median);
    }
    if (judged.size() < std::max<size_t>(options_.min_peers, 2)) continue;
    absl::Duration median;
    const absl::Duration limit = OutlierLimit(medians, options_.floor, &median);
    for (const auto& [uuid, figures] : judged) {
      if (figures.median <= limit) continue;
      Outlier outlier;
      outlier.times = absl::FDivDuration(figures.median, std::max(limit, absl::Microseconds(1)));
      outlier.what.set_datanode_uuid(*uuid);
      outlier.what.set_at_close(kind == PeerLatency::Kind::kClose);
      outlier.what.set_latency_us(static_cast<uint64_t>(absl::ToInt64Microseconds(figures.median)));
      outlier.what.set_peers_latency_us(static_cast<uint64_t>(absl::ToInt64Microseconds(median)));
      outlier.what.set_limit_us(static_cast<uint64_t>(absl::ToInt64Microseconds(limit)));
      outlier.what.set_samples(figures.samples);
      outlier.what.set_oldest_sample_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(figures.oldest)));
      Outlier& worst = outliers[*uuid];
      if (outlier.times > worst.times) worst = std::move(outlier);
    }
  }
  std::vector<Outlier> worst_first;
  for (auto& [uuid, outlier] : outliers) worst_first.push_back(std::move(outlier));
  std::sort(worst_first.begin(), worst_first.end(), [](const Outlier& a, const Outlier& b) {
    return a.times != b.times ? a.times > b.times : a.what.datanode_uuid() < b.what.datanode_uuid();
  });
  std::vector<v1::SlowPeer> slow;
  for (Outlier& outlier : worst_first) {
    if (slow.size() == kMostReported) break;
    slow.push_back(std::move(outlier.what));
  }
  return slow;
}

absl::Duration PeerLatencies::Longest(PeerLatency::Kind kind, SteadyTime now) const {
  absl::Duration longest;
  for (const auto& [uuid, peer] : Copy()) {
    const PeerLatency::Figures figures = peer->Get(kind, now);
    if (figures.samples >= options_.min_samples) longest = std::max(longest, figures.median);
  }
  return longest;
}

}  // namespace cairn::datanode
