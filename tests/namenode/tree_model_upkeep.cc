// What the namespace does for itself, as TreeModel has it; and what the model says is kept.

#include <algorithm>

#include <fmt/format.h>

#include "common/ids.h"
#include "namenode/store/keys.h"
#include "tests/namenode/namespace_dump.h"
#include "tests/namenode/tree_model.h"

namespace cairn::testing {

void TreeModel::Acted(const v1::Mutation& mutation) {
  last_ms_ = std::max(last_ms_, mutation.time_ms());
  // Of a deleted file's block, the only one whose answer is not predicted.
  if (mutation.has_start_block_recovery()) left_blocks_[mutation.start_block_recovery().block_id()].recovery_id = next_stamp_++;
}

Expected TreeModel::SweepRetries(const v1::Mutation& m) {
  const v1::Mutation::SweepRetries& op = m.sweep_retries();
  Expected expected;
  uint32_t seen = 0;
  uint32_t dropped = 0;
  expected.done = true;
  for (auto row = rows_.begin(); row != rows_.end();) {
    if (seen == op.max_rows()) {
      expected.done = false;
      break;
    }
    ++seen;
    if (row->second.last_used_ms < op.unused_since_ms()) {
      row = rows_.erase(row);
      ++dropped;
    } else {
      ++row;
    }
  }
  expected.next = dropped;
  expected.acted = dropped > 0;
  return expected;
}

Expected TreeModel::RegisterStorages(const v1::Mutation& m) {
  const v1::Mutation::RegisterStorages& op = m.register_storages();
  const bool named =
      std::none_of(op.storage_uuids().begin(), op.storage_uuids().end(), [](const std::string& uuid) { return uuid.empty(); });
  if (op.datanode_uuid().empty() || !named) return Refused(ErrorKind::kInvalidArgument);
  Expected expected;
  expected.storage_numbers.emplace();
  for (const std::string& uuid : op.storage_uuids()) {
    Storage& storage = storages_[uuid];
    if (storage.number == 0) storage.number = next_storage_++;
    expected.acted = expected.acted || storage.node != op.datanode_uuid();
    storage.node = op.datanode_uuid();
    expected.storage_numbers->push_back(storage.number);
  }
  return expected;
}

Expected TreeModel::SetMeta(const v1::Mutation& m) {
  const v1::Mutation::SetMeta& op = m.set_meta();
  if (op.name().starts_with("next_") || op.name() == namenode::kMetaAppliedIndex || op.name() == namenode::kMetaLastMutationTime ||
      op.at_least_block_id() > kEndBlockId.value() - kBlockIdStep)
    return Refused(ErrorKind::kInvalidArgument);
  Expected expected;
  const uint64_t block = (op.at_least_block_id() + kBlockIdStep - 1) / kBlockIdStep * kBlockIdStep;
  expected.acted = !op.name().empty() || block > next_block_ || op.at_least_generation_stamp() > next_stamp_;
  if (!op.name().empty()) meta_[op.name()] = op.value();
  next_block_ = std::max(next_block_, block);
  next_stamp_ = std::max(next_stamp_, op.at_least_generation_stamp());
  return expected;
}

std::map<std::string, std::string> TreeModel::Lines() const {
  const auto add_block = [](NodeFacts& facts, const ModelBlock& block) {
    facts.blocks.push_back({.id = block.id,
                            .stamp = block.stamp,
                            .length = block.length,
                            .replication = block.replication,
                            .charged = block.charged,
                            .state = v1::BlockUCState_Name(block.state),
                            .storages = block.storages,
                            .committed_ms = block.committed_ms,
                            .recovery_id = block.recovery_id,
                            .truncate_to = block.truncate_to,
                            .closed_length = block.closed_length,
                            .append_from = block.append_from,
                            .synced = block.synced});
  };
  std::map<std::string, std::string> lines;
  for (const auto& [path, node] : nodes_) {
    NodeFacts facts;
    facts.is_directory = node.is_directory;
    facts.id = node.id;
    facts.mode = node.mode;
    facts.owner = node.owner;
    facts.group = node.group;
    facts.modified_ms = node.modified_ms;
    facts.accessed_ms = node.accessed_ms;
    if (node.vanishes) facts.more.emplace_back("vanishes");
    if (node.never_closed) facts.more.emplace_back("never closed");
    for (const auto& [key, value] : node.xattrs) facts.more.push_back(XattrText(key.first, key.second, value));
    if (node.is_directory) {
      if (node.name_quota) facts.more.push_back(fmt::format("names<={}", *node.name_quota));
      if (node.space_quota) facts.more.push_back(fmt::format("charged<={}", *node.space_quota));
      facts.children = ChildrenOf(path);
      for (const auto& [other, below] : nodes_) {
        if (!IsBelow(other, path)) continue;
        ++(below.is_directory ? facts.directories : facts.files);
        facts.length += below.length();
        facts.charged += below.charged();
      }
    } else {
      facts.replication = node.replication;
      facts.block_size = node.block_size;
      facts.holder = node.holder;
      facts.length = node.length();
      facts.charged = node.charged();
      for (const ModelBlock& block : node.blocks) add_block(facts, block);
      if (node.reserved) add_block(facts, *node.reserved);
    }
    lines[path] = NodeLine(facts);
  }
  return lines;
}

std::string TreeModel::Counters() const {
  CounterFacts facts;
  facts.next_inode = next_inode_;
  facts.next_block = next_block_;
  facts.next_stamp = next_stamp_;
  facts.last_time_ms = static_cast<uint64_t>(last_ms_);
  facts.retry_rows = rows_.size();
  for (const auto& [uuid, storage] : storages_) facts.storages.push_back(StorageText(uuid, storage.node, storage.number));
  const auto keep = meta_.find(std::string(namenode::kMetaKeepUnknownReplicas));
  if (keep != meta_.end()) facts.keep_unknown_replicas = keep->second;
  return CounterLine(facts);
}

uint64_t TreeModel::blocks() const {
  uint64_t count = 0;
  for (const auto& [path, node] : nodes_) count += node.blocks.size() + (node.reserved ? 1 : 0);
  return count;
}

}  // namespace cairn::testing
