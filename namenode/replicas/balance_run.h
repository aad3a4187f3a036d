#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "cairn/admin.pb.h"
#include "common/env/clock.h"
#include "common/ids.h"
#include "namenode/replicas/balance_moves.h"
#include "namenode/replicas/balance_plan.h"

namespace cairn::namenode {

// One run of the balancer: what its driver asked for, and how far it is. It goes by iterations, as HDFS's: each begins with a plan by what
// DataNodes say they use, hands out replicas of each source until the plan's bytes are under way or there is none left that can go, waits
// for the moves to end, and then until DataNodes have said what they use now.
//
// It lives as long as its driver asks for it; nothing of it is kept. Owned by one executor; decides, and does nothing itself.
class BalanceRun {
 public:
  struct Limits {
    absl::Duration lapse = absl::Minutes(1);       // Of silence of its driver.
    absl::Duration iteration = absl::Minutes(20);  // After which an iteration begins no moves. HDFS: dfs.balancer.max-iteration-time.
    absl::Duration settle = absl::Seconds(7);      // Between the last move of an iteration and the next plan.
    uint64_t most_bytes = uint64_t{10} << 30;      // Of a node in an iteration. HDFS: dfs.balancer.max-size-to-move.
    uint32_t failures_of_pair = 5;                 // With which two nodes are kept apart for the rest of the iteration.
  };
  // The first plan is made at `begin_at`.
  BalanceRun(v1::BalanceRequest request, Limits limits, SteadyTime begin_at, SteadyTime now);

  uint64_t id() const { return request_.run(); }
  uint32_t iteration() const { return iteration_; }  // From 1; 0: none has begun.
  const v1::BalanceRequest& request() const { return request_; }
  const Limits& limits() const { return limits_; }
  void Renew(SteadyTime now) { renewed_ = now; }
  // Neither ended nor forgotten by its driver.
  bool IsActive(SteadyTime now) const { return outcome_ == v1::BalanceResponse::RUNNING && now - renewed_ < limits_.lapse; }
  void End(v1::BalanceResponse::Outcome outcome) { outcome_ = outcome; }

  bool PlanIsDue(SteadyTime now) const { return !moving_ && now >= next_plan_; }
  // Begins an iteration, or ends the run if there is nothing to be done or nobody can do it.
  void Begin(BalancePlan plan, const std::vector<BalanceNode>& nodes,
             const std::function<std::vector<StorageNumber>(const std::string& datanode_uuid)>& storages_of, SteadyTime now);

  // Where to look for replicas that could go: rows of a volume with ids in [from, end), of a source that has room for a move, as one of
  // its targets has. Nothing: there is no such source now.
  struct Look {
    std::string source;
    StorageNumber storage;
    uint64_t from = 0;
    uint64_t end = 0;
  };
  using HasRoom = std::function<bool(const std::string& datanode_uuid)>;
  std::optional<Look> NextLook(const HasRoom& has_room, SteadyTime now);
  // It was looked at up to `next`, exclusive; nothing: to its end.
  void Reached(const Look& look, std::optional<uint64_t> next);
  // Who may take so many bytes of this source, in the plan's order: those that the plan pairs it with, as long as the source stays the
  // fuller one.
  std::vector<std::string> TargetsFor(const std::string& source, uint64_t length_bytes) const;
  // Its last move failed in this iteration.
  bool HasFailed(BlockId block) const { return failed_blocks_.contains(block); }

  void Scheduled(const BalanceMove& move);
  void Moved(const BalanceMove& move);
  // Who of the two is to blame is not known: with enough failures they are kept apart, and a node that was kept apart from two others, and
  // with which no move has gone well, takes no part in the rest of the iteration.
  void Failed(const BalanceMove& move);
  // It takes no part in the rest of the iteration.
  void LeaveOut(const std::string& datanode_uuid);
  // Whether the iteration, and with it perhaps the run, is over. `in_flight`: of its moves.
  void Follow(size_t in_flight, SteadyTime now);

  void Fill(v1::BalanceResponse* response) const;

 private:
  static constexpr size_t kRemembered = 100'000;
  struct Slice {
    StorageNumber storage;
    uint64_t from = 0;
    uint64_t end = 0;
  };
  struct Projection {
    double used = 0;
    double capacity = 1;
  };
  bool IsThrough(const std::string& source) const;
  double ShareAfter(const std::string& node, double bytes) const;

  const v1::BalanceRequest request_;
  const Limits limits_;
  v1::BalanceResponse::Outcome outcome_ = v1::BalanceResponse::RUNNING;
  SteadyTime renewed_;
  SteadyTime next_plan_;
  bool moving_ = false;

  // Of the iteration.
  uint32_t iteration_ = 0;
  SteadyTime until_;
  double mean_ = 0;
  uint64_t left_bytes_ = 0;
  uint64_t planned_bytes_ = 0;
  uint64_t moved_in_iteration_ = 0;
  std::vector<BalancePair> pairs_;  // Bytes: what is left.
  absl::btree_map<std::string, Projection> projected_;
  absl::btree_map<std::string, std::deque<Slice>> slices_;  // By source.
  std::string last_source_;
  absl::btree_set<BlockId> failed_blocks_;
  absl::btree_map<std::pair<std::string, std::string>, uint32_t> failures_;  // By source and target.
  absl::btree_map<std::string, absl::btree_set<std::string>> kept_apart_;    // By node: from whom.
  absl::btree_set<std::string> proven_;                                      // Nodes with which a move went well.

  // Of the run.
  absl::btree_map<StorageNumber, uint64_t> resume_;  // Where the last look at a volume ended.
  int idle_ = 0;
  uint64_t moved_bytes_ = 0;
  uint64_t moved_blocks_ = 0;
  uint64_t failed_moves_ = 0;
};

}  // namespace cairn::namenode
