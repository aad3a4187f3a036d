#pragma once

#include <optional>
#include <string>

#include "namenode/namespace/records.h"

namespace cairn::namenode {

// What is known of a call that may have been made before. One row a (client id, slot): the number of the last call in it that acted,
// a hash of its request and its answer, overwritten by the next number, so that the table is bounded by the clients' slots.
struct RetryLookup {
  std::optional<v1::MutationResult> answer;  // It acted: this is what it answered, and nothing is to be done.
  // DeleteMany goes on in several mutations of one number: the codes answered so far.
  std::string codes_before;
};

inline constexpr int64_t kSlotExpiresMs = 9 * 60 * 1000;
inline constexpr uint32_t kMaxSlots = 1024;

// For a mutation with a sequence. kInvalidArgument with reason OLD_SEQUENCE, REQUEST_MISMATCH or NO_EARLIER_PART; kSlotExpired if
// there is no row though the slot was opened over 9 minutes ago: it may have been dropped, so whether the call acted is unknown.
absl::StatusOr<RetryLookup> FindRetry(const v1::Mutation& mutation, int64_t now_ms, const ReadView& view);

// Keeps the answer of a call that acted. What only the replica plane needs is left out.
void KeepRetry(const v1::Mutation& mutation, int64_t now_ms, const v1::MutationResult& result, Transaction& txn);

}  // namespace cairn::namenode
