#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.pb.h"
#include "common/env/env.h"
#include "common/ids.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// What a DataNode's own stream said last about one replica.
struct ReplicaRow {
  StorageNumber storage;
  BlockId block;
  GenerationStamp stamp;
  uint64_t length_bytes = 0;
  v1::ReplicaState state = v1::REPLICA_STATE_UNSPECIFIED;
  bool corrupt = false;
  uint32_t group_index = 0;  // Room: erasure coding.
  friend bool operator==(const ReplicaRow&, const ReplicaRow&) = default;
};

// How far the report stream of one DataNode has been applied.
struct StreamPosition {
  // Lowest id that a walk of this incarnation has passed, descending without a hole. kNothingWalked at first;
  // 0: complete.
  struct Walk {
    StorageNumber storage;
    uint64_t floor = 0;
    friend bool operator==(const Walk&, const Walk&) = default;
  };
  Incarnation incarnation;
  uint64_t applied = 0;     // Number of the last event whose effect is in the rows.
  std::vector<Walk> walks;  // Of the storages this incarnation has registered, by number.
  friend bool operator==(const StreamPosition&, const StreamPosition&) = default;
};
inline constexpr uint64_t kNothingWalked = UINT64_MAX;

// The replica plane's RocksDB: `replica` (block id, storage number) and `by_storage` (storage number, block
// id), both with the whole row; `stream` (DataNode uuid) with the position that the rows correspond to. Rows
// and position change in one batch, so whatever prefix of the unsynced log survives a crash is a state the
// stream can go on from; that is why the database needs no sync to be right, and why losing it costs a walk
// and nothing else. A database of another cluster or layout, or one that does not open, is thrown away.
//
// Key numbers are big-endian. A row's value: layout 1 (u8), stamp (u64), length (u64), state (u8), flags (u8,
// 1 = corrupt), group index (u32), all big-endian. RocksDB itself is the sharding: readers take no lock of
// ours, and one executor writes.
//
// Reads are thread-safe and may block on a disk read. Write and Sync belong to one executor.
class ReplicaStore {
 public:
  struct Options {
    std::string directory;
    size_t block_cache_bytes = 64 << 20;
    bool simulated = false;
    std::string cluster_id;
    std::string pool_id;
  };

  // Changes that become visible together.
  class Batch {
   public:
    Batch();
    ~Batch();
    Batch(Batch&&) noexcept;
    Batch& operator=(Batch&&) noexcept;
    void Put(const ReplicaRow& row);
    void Delete(StorageNumber storage, BlockId block);
    void SetPosition(const std::string& datanode_uuid, const StreamPosition& position);
    void ForgetPosition(const std::string& datanode_uuid);
    bool empty() const;

   private:
    friend class ReplicaStore;
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

  static absl::StatusOr<std::unique_ptr<ReplicaStore>> Open(const Options& options, Env* env);
  ~ReplicaStore();
  // True if there was no usable database: every DataNode has to walk.
  bool started_empty() const { return started_empty_; }

  // By storage number. A row that cannot be made out is left out, and noted (TakeDamaged).
  // NotInMemory if the rows would have to be read from the disk and may not be.
  absl::StatusOr<std::vector<ReplicaRow>> ReplicasOf(BlockId block, Reach reach = Reach::kDisk) const;
  // Rows of a storage with ids in [first, end), ascending, at most `limit`. `end` = kNothingWalked stands for
  // the end of the id space. A row that cannot be made out is there in state UNSPECIFIED.
  absl::StatusOr<std::vector<ReplicaRow>> ReplicasOn(StorageNumber storage, uint64_t first, uint64_t end, size_t limit) const;
  // Distinct ids of blocks with rows, from `from` on, ascending, at most `limit`.
  absl::StatusOr<std::vector<BlockId>> BlocksFrom(BlockId from, size_t limit) const;
  // Rows that ReplicasOf could not make out since the last call, at most some hundreds: their DataNodes know what belongs there.
  std::vector<std::pair<StorageNumber, BlockId>> TakeDamaged();
  absl::StatusOr<std::optional<StreamPosition>> PositionOf(const std::string& datanode_uuid) const;

  absl::Status Write(Batch batch);  // Unsynced.
  absl::Status Sync();              // What was written before is durable after it.

 private:
  struct Impl;
  explicit ReplicaStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  bool started_empty_ = false;
};

}  // namespace cairn::namenode
