#include "namenode/namespace/retry_table.h"

#include <fmt/format.h>

#include "common/error.h"
#include "common/fault_points.h"

namespace cairn::namenode {
namespace {

absl::Status Refuse(ErrorKind kind, std::string_view reason, const v1::Mutation& mutation, const std::string& what) {
  Error error;
  error.kind = kind;
  error.reason = std::string(reason);
  error.message = fmt::format("call {} in slot {}: {}", mutation.sequence(), mutation.slot(), what);
  return MakeError(std::move(error));
}

}  // namespace

absl::StatusOr<RetryLookup> FindRetry(const v1::Mutation& mutation, int64_t now_ms, const ReadView& view) {
  if (mutation.client_id().size() != kClientIdBytes)
    return Refuse(ErrorKind::kInvalidArgument, "", mutation, fmt::format("a client id has 16 bytes, not {}", mutation.client_id().size()));
  if (mutation.slot() >= kMaxSlots) return Refuse(ErrorKind::kInvalidArgument, "", mutation, fmt::format("slots are below {}", kMaxSlots));
  RetryLookup lookup;
  ASSIGN_OR_RETURN(const std::shared_ptr<const v1::RetryRecord> row,
                   FindShared<v1::RetryRecord>(view, Family::kRetry, RetryKey(mutation.client_id(), mutation.slot())));
  // A test's switch: every call is taken for a new one, as if there were no table.
  if (!FaultPoint("namespace.retry_ignored").ok()) return lookup;
  const uint32_t from = mutation.has_delete_many() ? mutation.delete_many().from() : 0;
  if (row == nullptr) {
    if (mutation.slot_opened_ms() != 0 && now_ms - mutation.slot_opened_ms() > kSlotExpiresMs)
      return Refuse(ErrorKind::kSlotExpired, "SLOT_EXPIRED", mutation,
                    fmt::format("the slot was opened {} ms ago and nothing is known of it: if this is a retry its outcome is unknown, a "
                                "new call takes a fresh slot",
                                now_ms - mutation.slot_opened_ms()));
  } else if (row->sequence() > mutation.sequence()) {
    return Refuse(ErrorKind::kInvalidArgument, "OLD_SEQUENCE", mutation, fmt::format("the slot has gone on to {}", row->sequence()));
  } else if (row->sequence() == mutation.sequence()) {
    if (row->request_hash() != mutation.request_hash())
      return Refuse(ErrorKind::kInvalidArgument, "REQUEST_MISMATCH", mutation, "another request was made under this number");
    if (from > 0 && from == row->result().next()) {
      lookup.codes_before = row->result().codes();
    } else if (from > row->result().next()) {
      return Refuse(ErrorKind::kInvalidArgument, "NO_EARLIER_PART", mutation,
                    fmt::format("it goes on from path {}, but {} were done", from, row->result().next()));
    } else {
      lookup.answer = row->result();
    }
    return lookup;
  }
  if (from > 0)
    return Refuse(ErrorKind::kInvalidArgument, "NO_EARLIER_PART", mutation,
                  fmt::format("it goes on from path {}, but none was done", from));
  return lookup;
}

void KeepRetry(const v1::Mutation& mutation, int64_t now_ms, const v1::MutationResult& result, Transaction& txn) {
  auto row = std::make_shared<v1::RetryRecord>();
  row->set_sequence(mutation.sequence());
  row->set_request_hash(mutation.request_hash());
  row->set_slot_opened_ms(mutation.slot_opened_ms());
  row->set_last_used_ms(now_ms);
  *row->mutable_result() = result;
  row->mutable_result()->clear_freed();
  row->mutable_result()->clear_changed_blocks();
  row->mutable_result()->clear_near_limits();
  txn.PutMessage(Family::kRetry, RetryKey(mutation.client_id(), mutation.slot()), std::move(row));
}

}  // namespace cairn::namenode
