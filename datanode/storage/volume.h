#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/env/env.h"
#include "datanode/storage/deleter.h"
#include "datanode/storage/event_log.h"
#include "datanode/storage/replica_map.h"
#include "datanode/storage/slow_volumes.h"
#include "datanode/storage/version_file.h"

namespace cairn::datanode {

struct VolumeOptions {
  std::string directory;
  size_t index = 0;             // For names of threads.
  uint64_t reserved_bytes = 0;  // dfs.datanode.du.reserved: kept free for others.
  bool format_empty = false;    // Make a volume of a directory that is empty or absent.
  DeleterOptions deleter;
};

// One data directory of a DataNode:
//   VERSION                                    version_file.h
//   blocks/<(id>>4)&255>/<(id>>12)&255>/blk_<id>   replicas, whatever their state
//   recycle/                                   for files to be used again
//   quarantine/                                files that are no replicas of ours; never served, never deleted
//   moving/blk_<id>                            copies on their way here from another volume of this node (replica_move.h)
//
// Owns its shard of the replica map, its disk executor (all that writes and syncs runs there, so that one sync for many has its place) and
// its deleter. Full is not failed: it stops taking bytes and still serves. A failed write, sync or read of a directory fails it for good:
// its rows stop counting, its writers end, nothing is tried again. Should the disk come back, another Volume is made of the directory
// (volume_keeper.h), and this one is retired: it stays where it is, for whoever still holds it, and does nothing more.
//
// Counters are atomics, memory only; calls marked (disk) block.
class Volume {
 public:
  // (disk) Locks the directory and reads VERSION, or makes it from `fresh`. Errors say what is wrong with the directory, and what to do.
  static absl::StatusOr<std::unique_ptr<Volume>> Open(Env* env, EventLog* events, VolumeOptions options, const VersionRecord& fresh);
  ~Volume();

  const std::string& storage_uuid() const { return storage_uuid_; }
  const std::string& directory() const { return options_.directory; }
  const VersionRecord& version_at_open() const { return version_; }
  // (disk) With this volume's storage uuid. An error, and nothing is written, if the directory does not hold this storage any more.
  absl::Status WriteVersion(VersionRecord record) ABSL_LOCKS_EXCLUDED(version_mu_);

  // It has failed, be it in an earlier process, and what it holds has not been read from the disk since: a sync that failed may have lost
  // whatever was not synced before, and the system's cache goes on showing it. Kept in VERSION, so that a restart knows it too.
  bool distrusted() const { return distrusted_.load(std::memory_order_acquire); }
  absl::Status SetDistrusted(bool distrusted) ABSL_LOCKS_EXCLUDED(version_mu_);  // (disk) Errors as WriteVersion's.

  Executor* disk() const { return disk_.get(); }
  Deleter& deleter() { return *deleter_; }
  const Deleter& deleter() const { return *deleter_; }
  ReplicaShard& shard() { return shard_; }
  EventLog& events() { return *events_; }
  Env* env() const { return env_; }

  static std::string NameOf(BlockId id);  // Of its file, wherever that is.
  std::string PathOf(BlockId id) const;
  absl::Status MakeDirectoryOf(BlockId id);  // (disk) Not yet durable.
  absl::Status SyncDirectoryOf(BlockId id);  // (disk) With those above it, the first time.
  std::string QuarantineDirectory() const { return options_.directory + "/quarantine"; }
  std::string QuarantinedPathOf(BlockId id) const { return QuarantineDirectory() + "/" + NameOf(id); }
  std::string MovingDirectory() const { return directory() + "/moving"; }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // (disk) Numbers the event, revokes every writer and marks it as distrusted. The first call acts; of one that was retired while it was
  // well, it still makes the mark. Any thread, no shard lock held.
  void Fail(const absl::Status& why) ABSL_LOCKS_EXCLUDED(shard_.mu);
  std::string failure() const ABSL_LOCKS_EXCLUDED(failure_mu_);
  // At a start: it is distrusted, and what it holds has not been read yet. It has failed until it comes back; nothing is written.
  void KeepAway(const std::string& why) ABSL_LOCKS_EXCLUDED(shard_.mu);
  // Of one that has failed: what its executors were at has ended, and nobody uses it. Until then a late write could reach what another
  // Volume has made of the directory. A disk that hangs settles when it answers.
  bool settled() const { return ended_executors_.load(std::memory_order_acquire) == 2 && users_.load(std::memory_order_acquire) == 0; }
  // Held by whoever writes into the directory from another executor than the volume's. Begin it, then ask whether it has failed.
  class Use {
   public:
    explicit Use(Volume* volume) : volume_(volume) { volume_->users_.fetch_add(1, std::memory_order_acq_rel); }
    ~Use() { volume_->users_.fetch_sub(1, std::memory_order_acq_rel); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Volume* const volume_;
  };
  // (disk) Whether the directory can be written, synced and read just now, by a file of its own. Any executor, several at once.
  absl::Status Probe();
  // Fails it, if it has not, forgets its replicas, and lets go of the directory. With `removed`, numbers its REMOVED. Any thread.
  void Retire(bool removed);
  // So that another Volume can be made of it. Only of one that has failed.
  void ReleaseDirectory() { lock_.reset(); }
  bool retired() const { return retired_.load(std::memory_order_acquire); }
  bool removed() const { return removed_.load(std::memory_order_acquire); }
  // One that is to be taken out gets no new replicas; those that are being written go on.
  void SetLeaving(bool leaving = true) { leaving_.store(leaving, std::memory_order_relaxed); }
  bool leaving() const { return leaving_.load(std::memory_order_relaxed); }
  size_t CountWriters() ABSL_LOCKS_EXCLUDED(shard_.mu);
  // The NameNode has answered a registration that named this storage: it takes events of it from now on.
  // False if it did so before.
  bool SetKnown() { return !known_.exchange(true, std::memory_order_acq_rel); }
  bool known() const { return known_.load(std::memory_order_acquire); }

  // Space. Used grows with what is written; a reservation holds room for what a writer said it would write.
  bool TryGrow(uint64_t bytes, uint64_t own_reservation);  // False: no room.
  void Adjust(int64_t used_bytes) { used_.fetch_add(static_cast<uint64_t>(used_bytes), std::memory_order_relaxed); }
  void Reserve(uint64_t bytes) { reserved_.fetch_add(bytes, std::memory_order_relaxed); }
  void Unreserve(uint64_t bytes) { reserved_.fetch_sub(bytes, std::memory_order_relaxed); }
  void NoteFull();                                                     // The file system said so, whatever the counters say.
  bool full() const { return full_.load(std::memory_order_relaxed); }  // Said so, and nothing that has been asked since says otherwise.
  void MaybeRefreshSpace();                                            // (disk, on disk()) At most every few seconds.
  void RefreshSpaceSoon();  // Has disk() do it. One where nothing is created, for want of space say, is asked in no other way.
  uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  uint64_t remaining_bytes() const;
  // What it may hold of replicas in all, be it full, or promised to writers, just now.
  uint64_t capacity_bytes() const { return used_bytes() + RoomBytes(); }
  absl::Status FullError(const std::string& what) const;
  v1::StorageStatistics Statistics() const;  // Without `replicas`.

  // What writers wait for.
  DiskLatency& write_latency() { return write_latency_; }
  DiskLatency& sync_latency() { return sync_latency_; }
  // Somebody writes, syncs or reads at `now`, and would feel what else the disk does.
  void NoteUse(SteadyTime now) { used_at_ns_.store(absl::ToInt64Nanoseconds(now.since_start()), std::memory_order_relaxed); }

  // How full, of what it may hold: 0 to 1.
  double fullness() const;

  uint64_t replicas() const { return replicas_.load(std::memory_order_relaxed); }
  void CountReplica(int64_t change) { replicas_.fetch_add(static_cast<uint64_t>(change), std::memory_order_relaxed); }

  // (disk) Unlinks and numbers DELETED. Any executor; trouble fails the volume.
  absl::Status Remove(const Deleter::File& file);

  v1::ReportEvent EventOf(v1::ReportEventType type, BlockId id, const ReplicaRecord& record) const;

 private:
  Volume(Env* env, EventLog* events, VolumeOptions options);
  absl::Status OpenDirectory(const VersionRecord& fresh);
  absl::Status Format(const VersionRecord& fresh);
  absl::Status RefreshSpace();
  uint64_t RoomBytes() const;
  absl::Status RemoveLeftoverProbes();
  // Those of all open replicas, revoked and to be stopped when the lock is let go.
  std::vector<std::shared_ptr<WriterLink>> RevokeWriters() ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard_.mu);
  // Nothing if it had failed before. Otherwise the writers, revoked and to be stopped.
  std::optional<std::vector<std::shared_ptr<WriterLink>>> NoteFailure(std::string why) ABSL_LOCKS_EXCLUDED(shard_.mu, failure_mu_);
  // Lets settled() know when those that work now have ended. After it has been noted that it failed.
  void WatchExecutorsEnd() ABSL_LOCKS_EXCLUDED(ending_mu_);
  // An error if there is none, as where an unmounted disk was, or it is another storage's.
  absl::StatusOr<VersionRecord> ReadOwnVersion();
  // Writes VERSION with what `change` makes of the one that is there; one call at a time.
  absl::Status ChangeVersion(absl::FunctionRef<void(VersionRecord*)> change) ABSL_LOCKS_EXCLUDED(version_mu_);
  static size_t FirstLevel(BlockId id) { return (id.value() >> 20) & 255; }
  static size_t SecondLevel(BlockId id) { return (id.value() >> 12) & 255; }
  std::string DirectoryOf(BlockId id) const;

  Env* const env_;
  EventLog* const events_;
  const VolumeOptions options_;
  std::unique_ptr<DirectoryLock> lock_;  // Constant between Open and Retire.
  VersionRecord version_;                // As read at open; then constant.
  std::string storage_uuid_;             // Constant after Open.
  ReplicaShard shard_;                   // Has its own lock.
  std::atomic<bool> failed_{false};
  std::atomic<bool> retired_{false};
  std::atomic<bool> removed_{false};
  std::atomic<bool> distrusted_{false};
  std::atomic<uint64_t> probes_{0};  // Begun.
  DiskLatency write_latency_;        // Has its own lock.
  DiskLatency sync_latency_;         // Has its own lock.
  std::atomic<int64_t> used_at_ns_{INT64_MIN / 2};
  std::atomic<bool> leaving_{false};
  std::atomic<bool> known_{false};
  std::atomic<int> ended_executors_{0};  // Of the two, since it failed.
  std::atomic<int> users_{0};
  std::vector<std::atomic<bool>> directory_made_;       // Of constant size.
  std::vector<std::atomic<bool>> directory_durable_;    // Of constant size.
  std::vector<std::atomic<bool>> first_level_durable_;  // Of constant size.
  Mutex version_mu_;
  CondVar version_written_;
  bool writing_version_ ABSL_GUARDED_BY(version_mu_) = false;
  mutable Mutex failure_mu_;
  std::string failure_ ABSL_GUARDED_BY(failure_mu_);
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> reserved_{0};
  std::atomic<uint64_t> replicas_{0};
  std::atomic<uint64_t> capacity_{0};         // Of the file system.
  std::atomic<uint64_t> available_{0};        // At the last refresh,
  std::atomic<uint64_t> used_when_asked_{0};  // when used_ was this.
  std::atomic<bool> full_{false};
  std::atomic<bool> refresh_posted_{false};
  // Of the disk executor.
  SteadyTime next_refresh_;
  mutable Mutex ending_mu_;
  bool ending_ ABSL_GUARDED_BY(ending_mu_) = false;
  bool end_watched_ ABSL_GUARDED_BY(ending_mu_) = false;
  std::unique_ptr<Deleter> deleter_;
  std::unique_ptr<Executor> disk_;  // Last: ends before what its tasks use.
};

}  // namespace cairn::datanode
