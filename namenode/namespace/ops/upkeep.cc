#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/datanode_rows.h"
#include "namenode/namespace/ops/ops.h"

namespace cairn::namenode {

absl::Status ApplyRegisterStorages(const v1::Mutation::RegisterStorages& op, OpContext& ctx) {
  if (op.datanode_uuid().empty()) return MakeError(ErrorKind::kInvalidArgument, "a DataNode registered storages without its uuid");
  std::map<std::string, std::pair<StorageNumber, v1::DatanodeRecord>> known;
  ASSIGN_OR_RETURN(auto registered, RegisteredStorages(ctx.view()));
  for (auto& [number, record] : registered) {
    std::string uuid = record.storage_uuid();
    known.emplace(std::move(uuid), std::pair(number, std::move(record)));
  }
  for (const std::string& uuid : op.storage_uuids())
    if (uuid.empty()) return MakeError(ErrorKind::kInvalidArgument, fmt::format("DataNode {}: a storage without uuid", op.datanode_uuid()));

  for (const std::string& uuid : op.storage_uuids()) {
    auto found = known.find(uuid);
    if (found == known.end()) {
      ASSIGN_OR_RETURN(const uint64_t number, TakeNumber(ctx.Change(), kMetaNextStorageNumber, 1));
      v1::DatanodeRecord record;
      record.set_storage_uuid(uuid);
      found = known.emplace(uuid, std::pair(StorageNumber(number), std::move(record))).first;
    }
    auto& [number, record] = found->second;
    if (record.datanode_uuid() != op.datanode_uuid()) {  // New, or a disk that was moved to another node.
      record.set_datanode_uuid(op.datanode_uuid());
      PutRecord(ctx.Change(), Family::kDatanode, DatanodeKey(number), record);
    }
    ctx.result().add_storage_numbers(static_cast<uint32_t>(number.value()));
  }
  return absl::OkStatus();
}

absl::Status ApplySweepRetries(const v1::Mutation::SweepRetries& op, OpContext& ctx) {
  std::vector<std::string> unused;
  std::string last;
  uint32_t seen = 0;
  bool more = false;
  {
    const std::string begin = op.start_after().empty() ? std::string() : op.start_after() + '\0';
    const auto cursor = ctx.view().Scan(Family::kRetry, begin, "");
    for (; cursor->Valid(); cursor->Next()) {
      if (seen == op.max_rows()) {
        more = true;
        break;
      }
      ++seen;
      last = std::string(cursor->key());
      v1::RetryRecord record;
      if (!record.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size())))
        return CorruptRow(Family::kRetry, cursor->key(), "does not parse");
      if (record.last_used_ms() < op.unused_since_ms()) unused.push_back(last);
    }
    RETURN_IF_ERROR(cursor->status());
  }
  for (const std::string& key : unused) ctx.Change().Delete(Family::kRetry, key);
  ctx.result().set_next(static_cast<uint32_t>(unused.size()));
  ctx.result().set_done(!more);
  if (more) ctx.result().set_cursor(last);
  return absl::OkStatus();
}

absl::Status ApplySetMeta(const v1::Mutation::SetMeta& op, OpContext& ctx) {
  if (op.name().starts_with("next_") || op.name() == kMetaAppliedIndex || op.name() == kMetaLastMutationTime)
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("meta {} is a counter: it can only be raised", op.name()));
  ASSIGN_OR_RETURN(const uint64_t block_id, GetNumber(ctx.view(), kMetaNextBlockId));
  ASSIGN_OR_RETURN(const uint64_t stamp, GetNumber(ctx.view(), kMetaNextGenerationStamp));
  if (op.at_least_block_id() > kEndBlockId.value() - kBlockIdStep)
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("block ids cannot go on from {}", op.at_least_block_id()));
  for (const std::string& name : op.also_remove())
    if (!name.starts_with(kMetaNodeAdminPrefix)) return MakeError(ErrorKind::kInvalidArgument, fmt::format("meta {} is not to go", name));
  if (op.compare()) {
    ASSIGN_OR_RETURN(const std::optional<std::string> row, ctx.view().Get(Family::kMeta, op.name()));
    if (row.value_or("") != op.expected())
      return MakeError(ErrorKind::kStaleGeneration, fmt::format("meta {} was changed meanwhile", op.name()));
  }
  for (const std::string& name : op.also_remove()) ctx.Change().Delete(Family::kMeta, name);
  if (!op.name().empty() && op.remove()) {
    ctx.Change().Delete(Family::kMeta, op.name());
  } else if (!op.name().empty()) {
    ctx.Change().Put(Family::kMeta, op.name(), op.value());
  }
  const uint64_t aligned = (op.at_least_block_id() + kBlockIdStep - 1) / kBlockIdStep * kBlockIdStep;
  if (aligned > block_id) PutNumber(ctx.Change(), kMetaNextBlockId, aligned);
  if (op.at_least_generation_stamp() > stamp) PutNumber(ctx.Change(), kMetaNextGenerationStamp, op.at_least_generation_stamp());
  return absl::OkStatus();
}

}  // namespace cairn::namenode
