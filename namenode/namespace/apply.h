#pragma once

#include "cairn/namespace.pb.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// Applies one mutation to `txn` and says what came of it: the namespace's whole logic, a pure function of its arguments (no clock, no
// chance, no configuration, no I/O but the transaction; a fault point of the retry table aside). Everything is checked before the first
// write, so a refused mutation (result.error set) has written nothing and needs no undo.
//
// Repeated calls: a mutation with a sequence is looked up in the retry table first; if it acted before, the kept result is the answer and
// nothing is written; a kept row of another request hash is kInvalidArgument; an older sequence is kInvalidArgument with reason
// OLD_SEQUENCE; no row and slot_opened over 9 minutes before time_ms is kSlotExpired. Results of mutations that acted are kept with the
// change.
//
// Mutation time: time_ms is raised to `last mutation time` (meta) if it is below, and kept there.
//
// Returns an error only when the store cannot be read or holds nonsense (kCorruptMetadata): then the process must stop
// taking changes.
absl::StatusOr<v1::MutationResult> Apply(const v1::Mutation& mutation, Transaction& txn);

// Paths that one DeleteMany mutation may carry; a longer call is several mutations under one retry id.
inline constexpr uint32_t kMaxPathsOfDeleteMany = 256;

// The rows of an empty namespace: the root directory, its usage, the counters, identity. For --format and tests.
// `pool_id`: 16 bytes.
void WriteEmptyNamespace(std::string_view cluster_id, std::string_view pool_id, std::string_view owner, std::string_view group,
                         int64_t time_ms, Transaction& txn);

}  // namespace cairn::namenode
