#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "common/env/env.h"
#include "common/mutex.h"
#include "datanode/storage/file_block_store.h"
#include "datanode/storage/replica_move.h"
#include "datanode/storage/scanner.h"
#include "datanode/storage/scanner_options.h"

namespace cairn::datanode {

// Makes the volumes of one node even, as HDFS's disk balancer does, but unasked: when the used shares of the fullest and the emptiest
// volume differ by more than a threshold, because one was added, say, replicas are moved from the one to the other, in the order of their
// ids, until they differ by less than half of it. One at a time, at its own pace, and while either disk has work waiting it gives way,
// for a second at most. Nothing is written down: a node that starts anew looks anew.
//
// A replica is copied and proved (ReplicaMove), then changes places in one step of the map (FileBlockStore::InstallMoved). Who has the old
// file open goes on reading it. A deletion, an append or a recovery that comes before that step wins, and the copy goes. Only to a storage
// that the NameNode has registered: of others it takes no events. One that could not be moved is left alone until
// nothing else is left to be moved, and the next look after that.
//
// Open blocks are moved too, once their replica is FINALIZED. The namespace then names the old storage as holder; that is of the same node,
// which is asked by block.
//
// Works on an executor of its own, and for the last step on that of the volume that a replica comes from. Thread-safe; the destructor waits
// for the step under way.
class VolumeMover {
 public:
  using Options = VolumeMoverOptions;
  // `verify` judges a replica that does not read as it was written. All outlive this.
  VolumeMover(Env* env, Options options, Scanner::Verify verify, FileBlockStore* store);
  ~VolumeMover();
  VolumeMover(const VolumeMover&) = delete;
  VolumeMover& operator=(const VolumeMover&) = delete;

  void SetOptions(const Options& options);
  // Now, and not at the next look: there is a volume more that the NameNode knows.
  void LookAgain();
  BlockStore::VolumeMoves moves() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Where the last step, on a volume's executor, and the end of this meet.
  struct Installer {
    Mutex mu;
    CondVar ended;
    bool closed ABSL_GUARDED_BY(mu) = false;
    bool running ABSL_GUARDED_BY(mu) = false;
  };

  void StepAt(SteadyTime when);
  void Step();
  // False if the volumes are even, or nothing can be done about it.
  bool BeginNext();
  // Forgets what was to be left alone until now.
  void EndRound();
  std::optional<ReplicaMove::Replica> ChooseReplica(Volume* from, uint64_t most_bytes);
  bool Busy() const;
  static bool StillThere(const ReplicaMove& move);
  void Copy();
  void Install();
  void OnInstalled(const absl::Status& status);
  void GiveUp(const absl::Status& why);
  void Show(std::string under_way) ABSL_LOCKS_EXCLUDED(mu_);

  const Scanner::Verify verify_;
  FileBlockStore* const store_;
  const std::shared_ptr<Installer> installer_ = std::make_shared<Installer>();
  std::atomic<uint64_t> replicas_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> failed_{0};
  mutable Mutex mu_;
  std::string under_way_ ABSL_GUARDED_BY(mu_);
  // Of the executor.
  Options options_;
  std::unique_ptr<ReplicaMove> move_;
  bool installing_ = false;
  bool evening_ = false;  // Above the threshold, and not yet below half of it.
  Volume* last_from_ = nullptr;
  uint64_t next_id_ = 0;                       // Of that volume.
  absl::flat_hash_set<BlockId> left_alone_;    // Could not be moved.
  absl::flat_hash_set<Volume*> give_nothing_;  // None of their replicas fits.
  SteadyTime yielding_since_ = SteadyTime::Infinite();
  SteadyTime not_before_;
  Executor::TimerId timer_ = 0;
  std::unique_ptr<Executor> executor_;  // Last: ends before what its tasks use.
};

}  // namespace cairn::datanode
