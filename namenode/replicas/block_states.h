#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/namespace.pb.h"
#include "common/ids.h"
#include "namenode/replicas/datanode_registry.h"
#include "namenode/store/replica_store.h"

namespace cairn::namenode {

// The rules about one block's copies, as a pure function: which are present, which count, what may be deleted,
// whether it must be repaired.

struct ReplicaEvidence {
  ReplicaRow row;
  std::optional<StorageStanding> standing;  // Nothing: its DataNode has not registered with this NameNode.
  bool told_to_go = false;                  // An invalidation was sent and is unanswered.
};

struct BlockEvidence {
  BlockId id;
  std::optional<v1::BlockRecord> record;  // Read after the rows: a block is in the namespace before any DataNode hears of it.
  std::vector<ReplicaEvidence> replicas;  // By storage number.
  std::vector<StorageStanding> expected;  // Those of the record's expected storages that are registered.
  uint64_t next_block_id = 0;
  size_t unregistered_expected = 0;  // Expected storages without a row whose DataNode has not registered yet.
  bool starting = false;             // So early that DataNodes may still be on their way: what they had is not yet lost.
  bool keep_unknown = false;         // A rolled-back namespace: blocks without a row are not garbage until an operator says so.
  int64_t now_ms = 0;
  int64_t acknowledged_grace_ms = 60'000;
  uint32_t maintenance_minimum = 1;  // Copies that must be live while others are in maintenance.
  uint32_t min_replication = 1;      // Copies that the last block of an open file needs where its nodes stay.
  size_t racks = 1;                  // That there are; on one of several is not enough.
  // The balancer moves the copy there away: of too many it goes first, unless the others without it are on fewer racks than those that
  // there were before the move.
  std::optional<StorageNumber> leaving;
  std::string arriving;  // Uuid of the DataNode that takes its place: its copy was not there before. Empty if nothing leaves.
};

// FINALIZED at the block's stamp with all of its bytes, and not known to be bad.
bool IsWhole(const ReplicaRow& row, const v1::BlockRecord& record);

enum class GoReason : uint8_t { kGarbage, kCorrupt, kStale, kExcess };

struct BlockVerdict {
  uint32_t wanted = 0;   // 0 unless COMMITTED.
  uint32_t needed = 0;   // Wanted, less what is in maintenance, but not below the least that has to be live.
  uint32_t present = 0;  // Nodes that stay, with a copy, as repair sees it: good rows, and in the grace what was acknowledged.
  uint32_t counted = 0;  // Nodes with a copy that counts for deletion.
  uint32_t left = 0;     // Nodes with a copy that can be read, those that drain or are in maintenance among them.
  // Nodes with a copy that a stream has told of, not dead: those that stay; those that are drained; those in maintenance, dead or not.
  uint32_t live = 0;
  uint32_t draining = 0;
  uint32_t maintenance = 0;
  bool open = false;  // Not COMMITTED: being written or recovered. `live` then counts replicas of its stamp in any state.
  uint32_t corrupt = 0;
  bool under_replicated = false;
  bool mis_replicated = false;  // Enough copies, of which more than one are wanted, all on one rack of several. As HDFS.
  std::string rack;             // Mis-replicated: which one.
  bool missing = false;         // COMMITTED, and nothing present or left.
  bool quarantined = false;     // Rows of a block that this namespace cannot have made.
  bool unconfirmed = false;     // An acknowledged storage's stream has not said FINALIZED yet.
  bool in_grace = false;
  std::vector<StorageNumber> sources;  // Good rows that can be read, live nodes first.
  std::vector<std::string> holders;    // DataNodes with any row, or an acknowledgement in the grace: no targets.
  struct Go {
    StorageNumber storage;
    GenerationStamp stamp;
    GoReason reason;
  };
  std::vector<Go> go;  // May be invalidated, all of them together.
};

// A replica is *good* if it is FINALIZED at the block's stamp and length, not corrupt, not told to go, its
// storage neither FAILED nor REMOVED and its node not dead. It *counts* if besides its node is live and neither
// drained nor in maintenance, its storage HEALTHY, the mark of this epoch was sent in this incarnation and this
// incarnation's walk is past its id.
//
// A node *stays* if operators want nothing of it. What is on one that does not is read and copied from, and is no excess; a block needs its
// wanted copies on nodes that stay, less those in maintenance (live or not) as long as `maintenance_minimum` are live. As HDFS.
//
// Excess goes if the counted others are at least the wanted number. Corrupt or older-stamp replicas go if at
// least one other counts; FINALIZED ones of a wrong length, if the wanted number does. Garbage (no row, id
// below next) goes at once. What was merely acknowledged never counts for any of these. Of a block that is not
// COMMITTED nothing goes.
BlockVerdict JudgeBlock(const BlockEvidence& evidence);

// Whether a node that has a replica of the block must not yet be let go: too few copies are live where nodes stay. For maintenance that is
// `maintenance_minimum`; else the wanted number; for an open block, of which nobody makes copies, `min_replication`. What was merely
// acknowledged does not help.
bool HoldsBack(const BlockEvidence& evidence, const BlockVerdict& verdict, v1::NodeAdminState state);

}  // namespace cairn::namenode
