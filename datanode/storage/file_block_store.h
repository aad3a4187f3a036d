#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/env/env.h"
#include "datanode/storage/block_store.h"
#include "datanode/storage/node_identity.h"
#include "datanode/storage/open_block_store.h"
#include "datanode/storage/replica_writer.h"
#include "datanode/storage/scanner.h"
#include "datanode/storage/volume_set.h"

namespace cairn::datanode {

class ReplicaMove;
class VolumeKeeper;
class VolumeMover;

// One file a replica. See BlockStore for the contract, Volume for what a directory holds, ReplicaShard for the locking.
//
// A replica lives on one volume, and each volume has its shard of the map: a lookup by id asks the shards one after the other, which is
// cheap for the dozen volumes of a node and lets a walk of one storage hold nothing of the others.
class FileBlockStore : public BlockStore, public NodeIdentity, public ChangeableVolumes {
 public:
  FileBlockStore(Env* env, EventLog* events, const BlockStoreOptions& options, std::vector<std::unique_ptr<Volume>> volumes,
                 VersionRecord identity);
  ~FileBlockStore() override;

  absl::StatusOr<Placement> Place(const CreateOptions& options) override;
  absl::StatusOr<std::shared_ptr<ReplicaWriter>> CreateRbw(const Placement& placement, BlockId id, GenerationStamp stamp,
                                                           const CreateOptions& options) override;
  absl::StatusOr<std::shared_ptr<ReplicaWriter>> CreateTemporary(const Placement& placement, BlockId id, GenerationStamp stamp,
                                                                 const CreateOptions& options) override;
  absl::StatusOr<Executor*> DiskOf(BlockId id) override;
  absl::StatusOr<std::shared_ptr<ReplicaWriter>> RecoverRbw(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp,
                                                            uint64_t min_bytes, uint64_t max_bytes) override;
  absl::Status RecoverClose(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp, uint64_t length, bool sync) override;
  absl::StatusOr<std::shared_ptr<ReplicaWriter>> ReopenForAppend(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp,
                                                                 uint64_t length, bool recovery) override;
  absl::StatusOr<Executor*> DiskOfStorage(const std::string& storage_uuid) override;
  absl::StatusOr<bool> HasQuarantined(BlockId id, const std::string& storage_uuid) override;
  absl::StatusOr<ReplicaDescription> InitReplicaRecovery(BlockId id, GenerationStamp recovery_id) override;
  absl::StatusOr<std::string> UpdateReplicaUnderRecovery(BlockId id, GenerationStamp recovery_id, uint64_t length) override;
  absl::StatusOr<std::shared_ptr<ReplicaReader>> OpenForRead(BlockId id, GenerationStamp at_least) override;
  std::optional<ReplicaDescription> Describe(BlockId id) override;
  void Invalidate(const std::string& storage_uuid, BlockId id, GenerationStamp stamp, uint64_t command_id,
                  const absl::AnyInvocable<bool() const>& voided) override;
  absl::Status Verify(BlockId id, GenerationStamp stamp) override;
  void MarkEpoch(Epoch epoch) override;
  uint64_t WalkStep(const std::string& storage_uuid, uint64_t end_id, uint64_t walk) override;
  void ExpandRange(const std::string& storage_uuid, uint64_t first_id, uint64_t end_id, uint64_t walk) override;
  std::vector<v1::StorageStatistics> Statistics() override;
  uint64_t pending_deletion_blocks() const override;
  uint64_t pending_deletion_bytes() const override;
  uint64_t deletion_backlog() const override;
  absl::Duration oldest_pending_deletion() const override;
  DiskQueue disk_queue() const override;
  std::vector<DiskSpeed> disk_speeds() const override;
  size_t replica_count() const override { return gate_.count(); }
  void SetVolumeObserver(VolumeObserver observer) override;
  void ChangeVolumes(std::vector<std::string> directories, std::function<void(absl::Status)> done) override;
  void SetPace(const DeleterOptions& deleter, const ScannerOptions& scanner, const VolumeMoverOptions& mover) override;
  void NoteRegistered(const std::vector<std::string>& storage_uuids) override;
  VolumeMoves volume_moves() const override;

  VersionRecord Get() const override;
  absl::Status AdoptCluster(std::string cluster_id, std::string pool_id) override;
  absl::Status RememberEpoch(Epoch epoch) override;
  absl::Status RememberIds(BlockId next_block, GenerationStamp next_stamp) override;

  static bool Better(const ReplicaRecord& a, const ReplicaRecord& b);  // Of two replicas of one block.
  // At start, after the scans: of two replicas of one block the better one stays. Counts what is there.
  void SettleDuplicates();
  // At start, after that: from now on volumes come back, and are made even.
  void StartKeeping();

  // For VolumeMover. (disk, the executor of the volume that it comes from) Puts the copy into its place and into the map, and takes the old
  // one out of it, in one step; its file goes to its volume's deleter. kCancelled if the replica is not what was copied any more. After any
  // error the copy does not count.
  absl::Status InstallMoved(ReplicaMove* move);

  // For VolumeKeeper, on its executor; all block on the disk.
  const VolumeSet& Volumes() const { return volumes_; }
  // Makes a volume of that directory, which may be empty if `format_empty`. The error names it.
  absl::Status AddVolume(const std::string& directory, bool format_empty);
  // Numbers REMOVED; whatever still uses the volume finds it failed.
  void RemoveVolume(Volume* volume);
  // In the place of a volume that has failed, whose disk works again. kBusy while what it was at has not ended.
  absl::Status BringBack(Volume* failed);
  // Whether nothing that worked on this directory before is still at it.
  bool IsSettled(const std::string& directory) const;
  absl::Status CheckSettled(const std::string& directory) const;  // kBusy if it is not.

 private:
  struct Found {
    Volume* volume = nullptr;
    ReplicaDescription description;
    uint32_t partial_checksum = 0;
    GenerationStamp recovery_id;  // Of a RUR.
  };
  Volume* VolumeOf(const std::string& storage_uuid) const;
  absl::StatusOr<std::shared_ptr<ReplicaReader>> OpenWhereItIs(BlockId id, GenerationStamp at_least);
  void StartScanner(Volume* volume) ABSL_LOCKS_EXCLUDED(change_mu_);
  // (disk) With its scan.
  absl::StatusOr<std::unique_ptr<Volume>> OpenAnother(const std::string& directory, bool format_empty, bool distrust)
      ABSL_LOCKS_EXCLUDED(change_mu_);
  void Publish(std::unique_ptr<Volume> volume);
  void DropWorseCopies(Volume* added);
  // Of some of the blocks beginning with `from`, which then says where to go on, or nothing.
  static std::vector<Deleter::File> TakeWorseCopies(Volume* added, Volume* other, std::optional<BlockId>* from);
  // How many times as slow as the others; 0: not far above them.
  std::map<const Volume*, double> SlowVolumes() const;
  std::optional<Found> Find(BlockId id) const;
  std::optional<Found> FindOnce(BlockId id) const;
  absl::StatusOr<Found> FindHealthy(BlockId id) const;
  // For calls that change it, on the executor that DiskOf named. kBusy if the replica has gone to another volume since, or its volume has
  // come back: two executors must not work on one replica.
  absl::StatusOr<Found> FindToChange(BlockId id) const;
  absl::StatusOr<std::shared_ptr<ReplicaWriter>> Create(const Placement& placement, BlockId id, GenerationStamp stamp, ReplicaState state,
                                                        const CreateOptions& options);
  absl::Status MakeRoomFor(Volume* volume, BlockId id, GenerationStamp stamp);
  // RecoverRbw and the first half of RecoverClose.
  absl::StatusOr<std::shared_ptr<FileReplicaWriter>> Recover(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp,
                                                             uint64_t min_bytes, uint64_t max_bytes);
  absl::Status RestampFinalized(const Found& found, GenerationStamp new_stamp);
  struct Fault {
    Found found;
    std::string why;
  };
  // Verify's reading, by any thread that may block: nothing if the replica is as it should be.
  absl::StatusOr<std::optional<Fault>> FindFault(BlockId id, GenerationStamp stamp);
  // Verify for the scanner: the flag is written by the disk's executor, as all slots are, after this has returned.
  absl::Status VerifyFromScanner(BlockId id, GenerationStamp stamp);
  // Of the disk's executor. Nothing if it has changed since it was found so.
  absl::Status MarkCorrupt(const Found& found, const std::string& why);
  absl::StatusOr<std::string> WhatIsWrong(const Found& found);
  // Takes that exact replica out of the map, with its DROPPED, and ends its writer; its file is then the caller's to remove. Nothing if
  // there is no such replica or `voided` says so inside the critical section; then KEPT answers the command, if one is given.
  std::optional<Deleter::File> Drop(Volume* volume, BlockId id, GenerationStamp stamp, const absl::AnyInvocable<bool() const>* voided,
                                    std::optional<uint64_t> command_id);
  absl::Status WriteIdentity();

  Env* const env_;
  EventLog* const events_;
  const uint64_t max_block_bytes_;
  const size_t max_slow_excluded_;
  const BootId boot_id_;
  CreationGate gate_;  // Has its own lock.
  VolumeSet volumes_;  // Added to by the constructor, then by the keeper.
  Mutex change_mu_;
  BlockStoreOptions options_ ABSL_GUARDED_BY(change_mu_);  // As changed.
  VolumeObserver observer_ ABSL_GUARDED_BY(change_mu_);
  std::vector<std::pair<Volume*, std::unique_ptr<Scanner>>> scanners_ ABSL_GUARDED_BY(change_mu_);
  Random random_ ABSL_GUARDED_BY(change_mu_);
  std::set<std::string> removed_ ABSL_GUARDED_BY(change_mu_);  // Storages that were taken out, and have not come again.
  std::atomic<bool> closing_{false};                           // Ends scans.
  std::atomic<uint64_t> relocations_{0};                       // Replicas that were moved, and volumes that came back.
  std::unique_ptr<VolumeKeeper> keeper_;                       // Constant between StartKeeping and the destructor; thread-safe.
  std::unique_ptr<VolumeMover> mover_;                         // Constant between StartKeeping and the destructor; thread-safe.
  mutable Mutex identity_mu_;
  VersionRecord identity_ ABSL_GUARDED_BY(identity_mu_);
  VersionRecord written_ ABSL_GUARDED_BY(identity_mu_);
};

}  // namespace cairn::datanode
