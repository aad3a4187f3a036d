#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cairn/datanode_namenode.pb.h"
#include "common/env/clock.h"
#include "common/mutex.h"

namespace cairn::datanode {

// What one node downstream has lately added to the acknowledgements of the packets that it was sent: the time from forwarding a packet
// until its acknowledgement, less what the node itself has waited for those behind it. Measured of packets that found nothing else on its
// way to that node by the same stream: others also wait behind earlier ones, for whichever node further down holds those up.
//
// A window of the last samples of each kind; what is older than kForgotten counts no more, so a node that is avoided is tried again.
// Thread-safe without a lock, nothing is allocated: many streams note into one.
class PeerLatency {
 public:
  enum class Kind : uint8_t {
    kData,   // A packet with data.
    kClose,  // The last packet of a block that is synced before it is acknowledged.
  };
  static constexpr size_t kKinds = 2;
  static constexpr absl::Duration kForgotten = absl::Minutes(5);

  void Note(Kind kind, absl::Duration took, SteadyTime now);

  struct Figures {
    absl::Duration median;  // Of an even number the lower one in the middle.
    uint32_t samples = 0;
    absl::Duration oldest;  // Age of the oldest of them.
  };
  Figures Get(Kind kind, SteadyTime now) const;

 private:
  static constexpr size_t kWindow = 64;
  struct Ring {
    std::atomic<uint64_t> next{0};
    std::array<std::atomic<uint64_t>, kWindow> samples{};  // Time and latency in one word, so that none is torn; 0: none.
  };
  std::array<Ring, kKinds> rings_;
};

// The same of all nodes downstream, and which of them are slow.
//
// Slow is an outlier among peers as HDFS has it (OutlierDetector): above the median of all by three median absolute deviations, and by
// three times, and above a floor. Every peer here is measured by this node, so what is slow about this one is in all of them and makes
// none of them an outlier. Thread-safe; no call blocks.
class PeerLatencies {
 public:
  struct Options {
    bool enabled = true;                            // dfs.datanode.peer.stats.enabled
    size_t min_peers = 2;                           // dfs.datanode.min.outlier.detection.nodes: else there is nothing to compare with.
    uint32_t min_samples = 10;                      // dfs.datanode.peer.metrics.min.outlier.detection.samples, within kForgotten.
    absl::Duration floor = absl::Milliseconds(20);  // dfs.datanode.slowpeer.low.threshold.ms: what is faster is fast enough.
  };
  static constexpr size_t kMostReported = 10;

  explicit PeerLatencies(const Options& options) : options_(options) {}

  // Where a stream to that node notes; null if nothing is measured, or the node is not known by name. Once a stream.
  std::shared_ptr<PeerLatency> Of(const std::string& datanode_uuid, SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);

  // The slow ones, by how many times they are above their limit, the slowest first; kMostReported at most, one entry a node.
  std::vector<v1::SlowPeer> Slow(SteadyTime now) const ABSL_LOCKS_EXCLUDED(mu_);
  // The longest median of any peer with enough samples, of both kinds; for metrics.
  absl::Duration Longest(PeerLatency::Kind kind, SteadyTime now) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::map<std::string, std::shared_ptr<PeerLatency>> Copy() const ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  mutable Mutex mu_;
  std::map<std::string, std::shared_ptr<PeerLatency>> peers_ ABSL_GUARDED_BY(mu_);  // By uuid.
};

// Above which a latency is an outlier among `all`, itself among them; `median` gets theirs. `all` is not empty. Pure.
absl::Duration OutlierLimit(const std::vector<absl::Duration>& all, absl::Duration floor, absl::Duration* median);

}  // namespace cairn::datanode
