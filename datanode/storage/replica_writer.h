#pragma once

#include <atomic>
#include <memory>

#include "absl/functional/function_ref.h"
#include "datanode/storage/replica_file.h"
#include "datanode/storage/replica_map.h"
#include "datanode/storage/volume.h"

namespace cairn::datanode {

// The writer of one replica file; the rules are ReplicaWriter's. All that touches the file runs on the volume's disk executor, one call
// after the other. State that others see is in the replica map and changes under its shard's lock, after the bytes are written and after a
// second look whether the writer still is the writer.
//
// Fault points stand between every two durable effects; an error there is taken for a failed disk.
class FileReplicaWriter : public ReplicaWriter {
 public:
  struct Start {
    BlockId id;
    GenerationStamp stamp;
    ReplicaState state = ReplicaState::kRbw;
    uint64_t received = 0;
    uint32_t partial_checksum = 0;
    uint64_t expected_bytes = 0;  // Reserved on the volume, by the caller.
  };
  FileReplicaWriter(Volume* volume, CreationGate* gate, std::unique_ptr<ReplicaFile> file, std::shared_ptr<WriterLink> link,
                    const Start& start);
  ~FileReplicaWriter() override;

  Executor* disk() const override { return volume_->disk(); }
  ReplicaDescription Describe() const override;
  uint64_t received() const override { return received_.load(std::memory_order_acquire); }
  uint64_t capacity() const override { return file_->header().capacity; }
  uint32_t bytes_per_checksum() const override { return file_->header().bytes_per_checksum; }
  ChecksumType checksum_type() const override { return file_->header().checksum_type; }

  absl::Status Write(const PacketToWrite& packet) override;
  absl::Status Sync() override;
  void SetVisibleLength(uint64_t length) override;
  absl::Status Finalize(uint64_t length, bool sync) override;
  absl::Status ConvertToRbw() override;
  void OnRevoked(absl::AnyInvocable<void()> stop) override { link_->OnRevoked(std::move(stop)); }

  // (disk) A new stamp, durable; for the store's recovery.
  absl::Status ChangeStamp(GenerationStamp stamp);

 private:
  absl::Status CheckUsable() const;
  absl::Status Store(const PacketToWrite& packet);
  absl::Status MakeDurable(ReplicaState state, uint8_t flags);
  absl::Status SyncFile();
  // What writers wait for is the volume's to know.
  absl::Status Timed(DiskLatency* latency, absl::FunctionRef<absl::Status()> work);
  absl::Status SyncDirectoryOnce();
  // The volume is full, or it fails; the status as it is.
  absl::Status DiskTrouble(absl::Status status);
  void ReleaseReservation(uint64_t down_to);
  // The record if it is still this writer's.
  ReplicaRecord* FindLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(volume_->shard().mu);

  Volume* const volume_;
  CreationGate* const gate_;
  const std::unique_ptr<ReplicaFile> file_;
  const std::shared_ptr<WriterLink> link_;
  const BlockId id_;
  std::atomic<uint64_t> received_;  // Written on the disk executor.
  // Of the disk executor.
  GenerationStamp stamp_;
  ReplicaState state_;
  uint32_t partial_checksum_;
  uint64_t reservation_;
  bool directory_synced_ = false;
  bool finalized_ = false;
};

}  // namespace cairn::datanode
