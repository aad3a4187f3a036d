#pragma once

// datanode/storage: replicas on disks. The seam between what receives, sends and reports replicas and how they are stored (one file a
// replica today, segments for small blocks later).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/datanode_namenode.pb.h"
#include "common/crc32c.h"
#include "common/env/executor.h"
#include "common/env/file_system.h"
#include "common/ids.h"

namespace cairn::datanode {

enum class ReplicaState : uint8_t { kFinalized = 1, kRbw = 2, kRwr = 3, kRur = 4, kTemporary = 5 };  // As in the file format.

// What the map knows of a replica; a copy.
struct ReplicaDescription {
  BlockId id;
  GenerationStamp stamp;
  ReplicaState state = ReplicaState::kRbw;
  uint64_t length = 0;          // Received and written.
  uint64_t visible_length = 0;  // Acknowledged by all downstream; what readers may see. FINALIZED: = length.
  bool corrupt = false;
  bool sure = false;  // See "sure" in docs/formats.md.
  std::string storage_uuid;
};

// A packet to be stored. The bytes outlive the call.
struct PacketToWrite {
  uint64_t offset = 0;
  std::span<const char> data;
  std::span<const char> checksums;  // Big-endian, of chunks counted from `offset`; empty: computed here (sender's NULL).
  bool verify = true;               // Of the last node; a continued chunk is always verified.
  bool sync = false;                // Durable before this returns (hsync).
};

// The one writer of a replica that is RBW or TEMPORARY. Calls marked (disk) block: run them on disk(). Others are memory only, from any
// thread. A second opening for recovery, or an invalidation, revokes it: then every call is kCancelled and the
// stop callback has run.
class ReplicaWriter {
 public:
  virtual ~ReplicaWriter() = default;  // Leaves the replica as it is.
  virtual Executor* disk() const = 0;
  virtual ReplicaDescription Describe() const = 0;
  virtual uint64_t received() const = 0;
  virtual uint64_t capacity() const = 0;
  virtual uint32_t bytes_per_checksum() const = 0;
  virtual ChecksumType checksum_type() const = 0;

  // (disk) Stores [offset, end) by the rules of docs/formats.md: beyond received: error; end <= received: nothing; else only [received,
  // end). kChecksum if bytes do not match (nothing stored), kDiskFull, kCancelled.
  virtual absl::Status Write(const PacketToWrite& packet) = 0;
  // (disk) Everything received so far is on disk, with a durable slot, when it returns.
  virtual absl::Status Sync() = 0;
  // Memory: what downstream has acknowledged too; never falls.
  virtual void SetVisibleLength(uint64_t length) = 0;
  // (disk) RBW or TEMPORARY becomes FINALIZED at `length` (= received, else error); on disk before it returns if `sync`. Numbers the
  // REPLICA_FINALIZED event. The writer is then of no more use.
  virtual absl::Status Finalize(uint64_t length, bool sync) = 0;
  // (disk) A TEMPORARY becomes RBW (transfer of a block being written).
  virtual absl::Status ConvertToRbw() = 0;
  // Called once, on any thread, when the writer is revoked: close the connection. Set before the first Write.
  virtual void OnRevoked(absl::AnyInvocable<void()> stop) = 0;
};

// A replica as it was when it was opened: {visible length, checksum of the last partial chunk} taken together, so that a reader is
// consistent while the writer goes on. Holds the file open: an invalidation meanwhile does not disturb it.
class ReplicaReader {
 public:
  virtual ~ReplicaReader() = default;
  virtual Executor* disk() const = 0;
  virtual const ReplicaDescription& description() const = 0;
  virtual uint64_t length() const = 0;  // Visible.
  virtual uint32_t bytes_per_checksum() const = 0;
  virtual ChecksumType checksum_type() const = 0;
  // The file and where data begins in it, for Connection::SendFile.
  virtual File* file() const = 0;
  virtual uint64_t data_offset() const = 0;
  // (disk) Checksums of chunks [first, first + count), 4 bytes each; the last partial chunk's is the snapshot's.
  virtual absl::StatusOr<std::string> ReadChecksums(uint64_t first_chunk, uint64_t count) = 0;
  // (disk)
  virtual absl::StatusOr<size_t> ReadData(uint64_t offset, std::span<char> into) = 0;
};

// All volumes of one DataNode. Thread-safe; calls marked (disk) block. Every change of the map numbers its event in the same critical
// section.
class BlockStore {
 public:
  struct CreateOptions {
    uint64_t capacity = 0;  // 0: cairn.block.max-size.
    ChecksumType checksum = ChecksumType::kCrc32c;
    uint32_t bytes_per_checksum = 512;
    std::string storage_uuid = {};  // The NameNode's choice; another volume is taken if it is gone or full.
    uint64_t expected_bytes = 0;    // Reserved until written or ended; 0: unknown.
  };

  virtual ~BlockStore() = default;

  // Where a new replica goes: memory only. kDiskFull (with per-volume figures) when none has room.
  struct Placement {
    std::string storage_uuid;
    Executor* disk = nullptr;
  };
  virtual absl::StatusOr<Placement> Place(const CreateOptions& options) = 0;

  // (disk, Placement's) RBW for a new block (HDFS stage PIPELINE_SETUP_CREATE). kAlreadyExists if there is one, unless ours is older and
  // not FINALIZED: then that is dropped.
  virtual absl::StatusOr<std::shared_ptr<ReplicaWriter>> CreateRbw(const Placement& placement, BlockId id, GenerationStamp stamp,
                                                                   const CreateOptions& options) = 0;
  // (disk) Target of a transfer.
  virtual absl::StatusOr<std::shared_ptr<ReplicaWriter>> CreateTemporary(const Placement& placement, BlockId id, GenerationStamp stamp,
                                                                         const CreateOptions& options) = 0;
  // Executor of the volume that holds the replica; kReplicaNotFound.
  virtual absl::StatusOr<Executor*> DiskOf(BlockId id) = 0;
  // (disk) Revokes the writer there is and opens the RBW again at `new_stamp` (stage PIPELINE_SETUP_STREAMING_RECOVERY): its stamp must be
  // in [stamp, new_stamp] else kStaleGeneration; received in [min_bytes, max_bytes] else kInvalidArgument. The stamp is durable before it
  // returns. Bytes received are kept.
  virtual absl::StatusOr<std::shared_ptr<ReplicaWriter>> RecoverRbw(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp,
                                                                    uint64_t min_bytes, uint64_t max_bytes) = 0;
  // (disk) Stage PIPELINE_CLOSE_RECOVERY: as RecoverRbw with min = max = length, then finalizes (synced if `sync`); a FINALIZED one of that
  // length just gets the stamp.
  virtual absl::Status RecoverClose(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp, uint64_t length, bool sync) = 0;

  // (disk) Opens a FINALIZED replica of `length` bytes for more, as RBW at `new_stamp`, durably (stage PIPELINE_SETUP_APPEND): its stamp
  // must be `stamp`. With `recovery` (PIPELINE_SETUP_APPEND_RECOVERY) its stamp may be anything in [stamp, new_stamp], and a replica that
  // is RBW already is taken over. The last partial chunk is verified before its checksum is continued: kChecksum and CORRUPT if it is bad.
  virtual absl::StatusOr<std::shared_ptr<ReplicaWriter>> ReopenForAppend(BlockId id, GenerationStamp stamp, GenerationStamp new_stamp,
                                                                         uint64_t length, bool recovery) = 0;

  // Executor of a volume; kReplicaNotFound if it is not here or has failed.
  virtual absl::StatusOr<Executor*> DiskOfStorage(const std::string& storage_uuid) = 0;
  // (disk) Whether that storage has a file of this block which it could not make out and put aside: bytes all the same.
  virtual absl::StatusOr<bool> HasQuarantined(BlockId id, const std::string& storage_uuid) = 0;
  // (disk) Ends the writer there is and puts the replica under recovery (RUR): from now on only UpdateReplicaUnderRecovery of the same
  // recovery changes it, until a later one has come. Memory only: a restart finds what was there before, RWR if it was being written.
  // The description's state is the one before. kReplicaNotFound; kStaleGeneration unless its stamp and any earlier recovery are below
  // `recovery_id`. As HDFS's call of that name. No event: what the NameNode knows of the replica stays true until the update.
  virtual absl::StatusOr<ReplicaDescription> InitReplicaRecovery(BlockId id, GenerationStamp recovery_id) = 0;
  // (disk) Cuts the RUR to `length` if it is longer, raises its stamp to `recovery_id` and finalizes it, all on disk before it returns,
  // with one REPLICA_FINALIZED event; the storage's uuid. Repeated: OK. kReplicaNotFound if it is not under that recovery,
  // kInvalidArgument if it is shorter, kChecksum (and CORRUPT) if the chunk that is cut in two does not verify.
  virtual absl::StatusOr<std::string> UpdateReplicaUnderRecovery(BlockId id, GenerationStamp recovery_id, uint64_t length) = 0;

  // (disk) kReplicaNotFound; kStaleGeneration if the replica's stamp is older than `at_least`; kChecksum if it is known to be corrupt.
  virtual absl::StatusOr<std::shared_ptr<ReplicaReader>> OpenForRead(BlockId id, GenerationStamp at_least) = 0;
  virtual std::optional<ReplicaDescription> Describe(BlockId id) = 0;

  // Memory: acts only on that exact replica of that storage: takes it out of the map (DROPPED) and hands its file to the volume's deleter
  // (DELETED when unlinked), else KEPT. `voided` decides inside the critical section: true answers KEPT.
  virtual void Invalidate(const std::string& storage_uuid, BlockId id, GenerationStamp stamp, uint64_t command_id,
                          const absl::AnyInvocable<bool() const>& voided) = 0;
  // (disk) Reads the whole replica; CORRUPT flag, synced, then the event, if it does not verify.
  virtual absl::Status Verify(BlockId id, GenerationStamp stamp) = 0;
  // Takes every shard's lock once and numbers an EPOCH_MARK.
  virtual void MarkEpoch(Epoch epoch) = 0;

  // One step of a walk of `storage_uuid`, downward from `end_id` (exclusive): numbers a RANGE event, inside the critical section of the ids
  // it covers, of at most 1,024 replicas. Returns where the next step begins (0: done). A storage that was taken out (REMOVED) or
  // that is not here or has failed (FAILED) numbers STORAGE_STATE_CHANGED instead and is done: nothing is ever stated of it, least of all
  // that it is empty.
  virtual uint64_t WalkStep(const std::string& storage_uuid, uint64_t end_id, uint64_t walk) = 0;
  // The full list of [first_id, end_id) as a new RANGE event with expanded = true.
  virtual void ExpandRange(const std::string& storage_uuid, uint64_t first_id, uint64_t end_id, uint64_t walk) = 0;

  virtual std::vector<v1::StorageStatistics> Statistics() = 0;  // Counters only, never stat().
  virtual uint64_t pending_deletion_blocks() const = 0;
  virtual uint64_t pending_deletion_bytes() const = 0;
  virtual absl::Duration oldest_pending_deletion() const = 0;
  // What of them speaks against more: each volume may hold its share of a backlog, and one that hangs only its own, so this is the
  // shortest of the volumes that work, times how many these are.
  virtual uint64_t deletion_backlog() const { return pending_deletion_blocks(); }
  // Work that waits for the disks: of all volumes together, and the oldest of it.
  struct DiskQueue {
    size_t depth = 0;
    absl::Duration oldest_age = absl::ZeroDuration();
  };
  virtual DiskQueue disk_queue() const = 0;
  // Of each volume that works, what writers have lately waited for; zero where nothing was written for a while.
  struct DiskSpeed {
    std::string directory;
    absl::Duration write;
    absl::Duration sync;
    bool slow = false;  // Far above the others.
  };
  virtual std::vector<DiskSpeed> disk_speeds() const { return {}; }
  virtual size_t replica_count() const = 0;

  // The NameNode has answered a registration that named these storages. Until then it would not hear what is moved to them.
  virtual void NoteRegistered(const std::vector<std::string>& storage_uuids) { static_cast<void>(storage_uuids); }
  // What was moved from the fullest volume to the emptiest, since the process started.
  struct VolumeMoves {
    uint64_t replicas = 0;
    uint64_t bytes = 0;  // As they take up on a disk.
    uint64_t failed = 0;
    std::string under_way;  // "from DIRECTORY to DIRECTORY"; empty: nothing is moved just now.
  };
  virtual VolumeMoves volume_moves() const { return {}; }

  // Told of each volume that was added or has come back: it has to be registered and walked. On any thread, a lock held: it only posts.
  using VolumeObserver = std::function<void(const std::string& storage_uuid)>;
  virtual void SetVolumeObserver(VolumeObserver observer) { static_cast<void>(observer); }
};

}  // namespace cairn::datanode
