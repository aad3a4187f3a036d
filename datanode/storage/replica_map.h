#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/any_invocable.h"
#include "common/ids.h"
#include "common/mutex.h"
#include "datanode/storage/block_store.h"
#include "datanode/storage/replica_format.h"

namespace cairn::datanode {

// The thread that ends a writer and the writer itself meet here. Thread-safe.
class WriterLink {
 public:
  bool revoked() const { return revoked_.load(std::memory_order_acquire); }
  // Runs `stop` once, when revoked: at once if it was.
  void OnRevoked(absl::AnyInvocable<void()> stop) ABSL_LOCKS_EXCLUDED(mu_);
  // From now on every call of the writer is kCancelled. Call Stop() after letting go of all locks.
  void Revoke() { revoked_.store(true, std::memory_order_release); }
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::atomic<bool> revoked_{false};
  Mutex mu_;
  absl::AnyInvocable<void()> stop_ ABSL_GUARDED_BY(mu_);
};

// What only a replica that is not FINALIZED needs.
struct OpenReplica {
  uint64_t visible_length = 0;
  uint32_t partial_checksum = 0;
  std::shared_ptr<WriterLink> writer;  // Null: RWR, RUR.
  // Of a RUR only: whose recovery, and what it was.
  GenerationStamp recovery_id;
  ReplicaState state_before = ReplicaState::kRbw;
};

// One replica in memory. A FINALIZED one takes 24 bytes and its id 8, in a B-tree whose nodes are at least half full: at most 64 bytes.
class ReplicaRecord {
 public:
  ReplicaRecord() = default;
  ReplicaRecord(GenerationStamp stamp, ReplicaState state, uint64_t length, uint32_t bytes_per_checksum) : stamp_(stamp.value()) {
    set_state(state);
    set_length(length);
    bytes_per_checksum_ = bytes_per_checksum & ((1u << 21) - 1);
  }

  GenerationStamp stamp() const { return GenerationStamp(stamp_); }
  void set_stamp(GenerationStamp stamp) { stamp_ = stamp.value(); }
  uint64_t length() const { return length_; }
  void set_length(uint64_t length) { length_ = length & kMaxCapacity; }
  uint32_t bytes_per_checksum() const { return static_cast<uint32_t>(bytes_per_checksum_); }
  ReplicaState state() const { return static_cast<ReplicaState>(state_); }
  void set_state(ReplicaState state) { state_ = static_cast<uint64_t>(state) & 7; }
  bool corrupt() const { return corrupt_ != 0; }
  void set_corrupt(bool corrupt) { corrupt_ = corrupt ? 1 : 0; }
  bool sure() const { return sure_ != 0; }
  void set_sure(bool sure) { sure_ = sure ? 1 : 0; }
  OpenReplica* open() const { return open_.get(); }
  void set_open(std::unique_ptr<OpenReplica> open) { open_ = std::move(open); }
  uint64_t used_bytes() const { return UsedBytes(length(), bytes_per_checksum()); }
  // As long as it is FINALIZED and whole, a range statement covers it by its digest; a TEMPORARY is nobody's business yet.
  bool in_digest() const { return state() == ReplicaState::kFinalized && !corrupt(); }
  bool reported() const { return state() != ReplicaState::kTemporary; }

 private:
  uint64_t stamp_ = 0;
  uint64_t length_ : 38 = 0;
  uint64_t bytes_per_checksum_ : 21 = 0;  // Up to 2^20.
  uint64_t state_ : 3 = 0;
  uint64_t corrupt_ : 1 = 0;
  uint64_t sure_ : 1 = 1;
  std::unique_ptr<OpenReplica> open_;
};

using ReplicaIndex = absl::btree_map<BlockId, ReplicaRecord>;
static_assert(sizeof(ReplicaIndex::value_type) == 32, "half-full nodes must still give at most 64 bytes a replica");

// The replicas of one volume: a shard of the replica map, ordered by id. What changes here and the number of the event that tells of it
// belong to one critical section; the event log's lock comes after this one. Held for memory operations only.
struct ReplicaShard {
  Mutex mu;
  ReplicaIndex replicas ABSL_GUARDED_BY(mu);
};

// Ids whose files are being made, over all volumes: creation does I/O between looking whether there is such a replica and putting it
// into a shard, and no two may do so for one id. Also keeps the count to its bound. Thread-safe.
class CreationGate {
 public:
  explicit CreationGate(size_t max_replicas) : max_replicas_(max_replicas) {}

  class Pass {
   public:
    Pass(CreationGate* gate, BlockId id) : gate_(gate), id_(id) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)), id_(other.id_) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass();

   private:
    CreationGate* gate_;
    BlockId id_;
  };
  // Nothing if somebody else is making it.
  std::optional<Pass> TryEnter(BlockId id) ABSL_LOCKS_EXCLUDED(mu_);

  void Count(int64_t change) { count_.fetch_add(static_cast<uint64_t>(change), std::memory_order_relaxed); }
  size_t count() const { return static_cast<size_t>(count_.load(std::memory_order_relaxed)); }
  size_t max_replicas() const { return max_replicas_; }
  bool Full() const { return count() >= max_replicas_; }

 private:
  const size_t max_replicas_;
  std::atomic<uint64_t> count_{0};
  Mutex mu_;
  std::vector<BlockId> entered_ ABSL_GUARDED_BY(mu_);  // A handful: as many as disk executors.
};

}  // namespace cairn::datanode
