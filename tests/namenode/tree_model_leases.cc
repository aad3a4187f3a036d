// Files that are taken from their writers, opened again, cut and recovered, as TreeModel has them.

#include <algorithm>
#include <set>

#include "namenode/namespace/file_edit.h"
#include "tests/namenode/tree_model.h"

namespace cairn::testing {

Expected TreeModel::BeingWritten(const v1::Mutation& m, const ModelNode& file, const v1::Mutation::LeaseSeen& seen) {
  const auto because = [](const char* reason) { return Refused(ErrorKind::kBeingWritten, reason); };
  if (file.holder == m.client_name()) return because("ALREADY_OPEN_BY_YOU");
  if (file.holder == namenode::kRecoveryHolder)
    return because(!file.blocks.empty() && file.blocks.back().truncate_to ? "BUSY" : "RECOVERING");
  // Silent for long, and as it was seen: whoever wants the file may take it over.
  const bool abandoned = seen.holder() == file.holder && seen.idle_ms() >= std::max(m.limits().lease_soft_limit_ms(), seen.limit_ms());
  return because(abandoned ? "MAY_BE_TAKEN_OVER" : "HELD_BY_OTHER");
}

Expected TreeModel::CheckHolding(const v1::Mutation& m, const ModelBlock& block, uint64_t id, uint64_t stamp,
                                 const google::protobuf::RepeatedField<uint32_t>& holding) {
  if (block.id != id || block.stamp != stamp) return Refused(ErrorKind::kRetriable, "CHANGED_MEANWHILE");
  const std::set<uint32_t> distinct(holding.begin(), holding.end());
  if (distinct.size() < std::max(m.limits().min_replication(), 1u) || distinct.size() != static_cast<size_t>(holding.size()))
    return Refused(ErrorKind::kNotReplicatedYet, "NOT_SUFFICIENTLY_REPLICATED");
  return {};
}

Expected TreeModel::Append(const v1::Mutation& m) {
  const v1::Mutation::Append& op = m.append();
  if (m.client_name().empty() || m.client_name() == namenode::kRecoveryHolder) return Refused(ErrorKind::kInvalidArgument);
  const Walk walk = WalkTo(op.path(), &m);
  if (walk.error != ErrorKind::kNone) return Refused(walk.error);
  if (const ErrorKind kind = MayChange(m, walk, 2); kind != ErrorKind::kNone) return Refused(kind);
  if (!walk.complete()) return Refused(ErrorKind::kNotFound);
  ModelNode file = nodes_[walk.path()];
  if (file.is_directory) return Refused(ErrorKind::kAlreadyExists, "IS_DIRECTORY");
  if (!file.holder.empty()) return BeingWritten(m, file, op.lease_seen());
  Expected expected;
  expected.path = walk.path();
  expected.inode_id = file.id;
  if (!op.new_block() && !file.blocks.empty() && file.blocks.back().length < file.block_size) {
    ModelBlock& last = file.blocks.back();
    if (Expected held = CheckHolding(m, last, op.block_id(), op.generation_stamp(), op.holding()); held.refused != ErrorKind::kNone)
      return held;
    const uint64_t whole = file.block_size * file.replication;
    if (CheckQuota(walk.path(), 0, static_cast<int64_t>(whole - last.charged)) != ErrorKind::kNone) return Refused(ErrorKind::kQuota);
    expected.old_stamp = last.stamp;
    last.append_from = last.stamp;
    last.closed_length = last.length;
    last.stamp = next_stamp_++;
    last.state = v1::UNDER_CONSTRUCTION;
    last.committed_ms = 0;
    last.storages.assign(op.holding().begin(), op.holding().end());
    last.charged = whole;
    expected.block = last;
    expected.storages = last.storages;
    expected.offset = file.length() - last.length;
  } else {
    expected.block = ModelBlock();  // None: the writer asks for one.
    expected.old_stamp = 0;
  }
  file.holder = m.client_name();
  nodes_[walk.path()] = file;
  expected.acted = true;
  return expected;
}

Expected TreeModel::Truncate(const v1::Mutation& m) {
  const v1::Mutation::Truncate& op = m.truncate();
  const Walk walk = WalkTo(op.path(), &m);
  if (walk.error != ErrorKind::kNone) return Refused(walk.error);
  if (!walk.complete()) return Refused(ErrorKind::kNotFound);
  if (const ErrorKind kind = MayChange(m, walk, 2); kind != ErrorKind::kNone) return Refused(kind);
  ModelNode file = nodes_[walk.path()];
  if (file.is_directory) return Refused(ErrorKind::kIsDirectory);
  if (!file.holder.empty()) return BeingWritten(m, file, op.lease_seen());
  const uint64_t wanted = op.new_length_bytes();
  if (wanted > file.length()) return Refused(ErrorKind::kInvalidArgument, "LARGER_THAN_FILE");
  Expected expected;
  expected.path = walk.path();
  expected.inode_id = file.id;
  expected.done = true;
  if (wanted == file.length()) return expected;
  while (!file.blocks.empty() && file.length() - file.blocks.back().length >= wanted) file.blocks.pop_back();
  if (file.length() > wanted) {
    ModelBlock& last = file.blocks.back();
    if (Expected held = CheckHolding(m, last, op.block_id(), op.generation_stamp(), op.holding()); held.refused != ErrorKind::kNone)
      return held;
    expected.done = false;
    expected.block = last;
    last.truncate_to = last.length - (file.length() - wanted);
    last.state = v1::UNDER_RECOVERY;
    last.recovery_id = next_stamp_++;
    last.committed_ms = 0;
    last.storages.assign(op.holding().begin(), op.holding().end());
    file.holder = namenode::kRecoveryHolder;
  }
  file.modified_ms = now_ms_;
  nodes_[walk.path()] = file;
  expected.acted = true;
  return expected;
}

Expected TreeModel::ExpireLease(const v1::Mutation& m) {
  const v1::Mutation::ExpireLease& op = m.expire_lease();
  Expected expected;
  const std::string* path = PathOfId(op.inode_id());
  if (path == nullptr || op.holder().empty() || nodes_[*path].holder != op.holder()) {
    expected.unpredictable = left_leases_.contains({op.holder(), op.inode_id()});
    expected.existed = false;
    return expected;
  }
  return nodes_[*path].vanishes ? Vanish(std::string(*path)) : TakeFromWriter(*path);
}

Expected TreeModel::Vanish(const std::string& path) {
  Expected expected;
  expected.existed = true;
  expected.done = true;
  expected.path = path;
  expected.inode_id = nodes_[path].id;
  expected.acted = true;
  Remove(path);
  return expected;
}

Expected TreeModel::TakeFromWriter(const std::string& path) {
  ModelNode& file = nodes_[path];
  Expected expected;
  expected.existed = true;
  expected.path = path;
  expected.inode_id = file.id;
  expected.done = true;
  if (!file.blocks.empty() && file.blocks.back().state != v1::COMMITTED) {
    ModelBlock& last = file.blocks.back();
    if (last.length != 0 || !last.storages.empty()) {
      expected.done = false;
      if (last.state == v1::UNDER_RECOVERY) return expected;
      last.state = v1::UNDER_RECOVERY;
      last.recovery_id = next_stamp_++;
      file.reserved.reset();
      file.holder = namenode::kRecoveryHolder;
      file.vanishes = false;
      expected.acted = true;
      return expected;
    }
    file.blocks.pop_back();  // No pipeline was ever set up.
  }
  Close(&file, /*by_writer=*/false);
  expected.acted = true;
  return expected;
}

Expected TreeModel::RecoverLease(const v1::Mutation& m) {
  const v1::Mutation::RecoverLease& op = m.recover_lease();
  const Walk walk = WalkTo(op.path(), &m);
  if (walk.error != ErrorKind::kNone) return Refused(walk.error);
  if (!walk.complete()) return Refused(ErrorKind::kNotFound);
  if (const ErrorKind kind = MayChange(m, walk, 2); op.by_force() && kind != ErrorKind::kNone) return Refused(kind);
  const ModelNode& file = nodes_[walk.path()];
  if (file.is_directory) return Refused(ErrorKind::kIsDirectory);
  if (file.holder.empty() || file.holder == namenode::kRecoveryHolder) {
    Expected expected;
    expected.existed = !file.holder.empty();
    expected.done = file.holder.empty();
    expected.path = walk.path();
    expected.inode_id = file.id;
    return expected;
  }
  if (!op.by_force()) {
    Expected refusal = BeingWritten(m, file, op.lease_seen());
    if (*refusal.reason != "MAY_BE_TAKEN_OVER") return refusal;
    if (file.vanishes) return Vanish(walk.path());
  }
  return TakeFromWriter(walk.path());
}

Expected TreeModel::StartBlockRecovery(const v1::Mutation& m) {
  const uint64_t id = m.start_block_recovery().block_id();
  const auto answer = [](const ModelBlock& block, uint64_t recovery_id) {
    Expected expected;
    expected.block = block;
    expected.recovery_id = recovery_id;
    return expected;
  };
  std::string path;
  if (const ModelBlock* found = FindBlock(id, &path); found != nullptr) {
    if (found->state != v1::UNDER_RECOVERY) return Refused(ErrorKind::kStaleGeneration, "NOT_UNDER_RECOVERY");
    ModelBlock& block = nodes_[path].blocks.back();
    block.recovery_id = next_stamp_++;
    Expected expected = answer(block, block.recovery_id);
    expected.acted = true;
    return expected;
  }
  const auto left = left_blocks_.find(id);
  if (left == left_blocks_.end() || left->second.state != v1::UNDER_RECOVERY)
    return Refused(ErrorKind::kStaleGeneration, "NOT_UNDER_RECOVERY");
  Expected expected = answer(left->second, next_stamp_);
  expected.unpredictable = true;  // Its row may be reclaimed.
  expected.or_refused = ErrorKind::kStaleGeneration;
  return expected;
}

Expected TreeModel::CommitBlockRecovery(const v1::Mutation& m) {
  const v1::Mutation::CommitBlockRecovery& op = m.commit_block_recovery();
  const uint64_t length = op.block().length_bytes();
  const auto said_before = [&](const ModelBlock& block) {
    return block.state == v1::COMMITTED && block.stamp == op.recovery_id() && !op.drop() && block.length == length;
  };
  const auto is_current = [&](const ModelBlock& block) {
    return block.state == v1::UNDER_RECOVERY && block.recovery_id == op.recovery_id();
  };
  std::string path;
  const ModelBlock* found = FindBlock(op.block().id(), &path);
  Expected expected;
  if (found == nullptr) {
    expected = Refused(ErrorKind::kLeaseExpired, "BLOCK_GONE");
    const auto left = left_blocks_.find(op.block().id());
    if (left == left_blocks_.end()) return expected;
    expected.unpredictable = true;  // Of a deleted file, whose rows may be there still.
    if (!is_current(left->second)) expected.or_refused = said_before(left->second) ? ErrorKind::kNone : ErrorKind::kStaleGeneration;
    if (is_current(left->second)) expected.or_refused = ErrorKind::kLeaseExpired;
    return expected;
  }
  expected.done = true;
  if (said_before(*found)) return expected;
  if (!is_current(*found)) return Refused(ErrorKind::kStaleGeneration, "RECOVERY_ID");
  const auto all_in = [](const auto& wanted, const auto& there) {
    return std::all_of(wanted.begin(), wanted.end(), [&](uint32_t s) { return std::find(there.begin(), there.end(), s) != there.end(); });
  };
  ModelNode file = nodes_[path];
  ModelBlock& last = file.blocks.back();
  if (op.drop()) {
    if (!all_in(last.storages, op.empty())) return Refused(ErrorKind::kInvalidArgument, "NOT_ALL_ANSWERED");
    if (last.closed_length > 0 || last.synced > 0 || last.truncate_to) return Refused(ErrorKind::kInvalidArgument, "DATA_LOST");
    file.blocks.pop_back();
  } else {
    const auto bad = [](const char* reason) { return Refused(ErrorKind::kInvalidArgument, reason); };
    if (op.block().generation_stamp() != op.recovery_id()) return bad("STAMP");
    if (op.storages().empty() || !all_in(op.storages(), last.storages)) return bad("NOT_EXPECTED_STORAGE");
    if (last.truncate_to) {
      if (length != *last.truncate_to) return bad("WRONG_LENGTH");
    } else {
      if (length > file.block_size) return bad("LONGER_THAN_BLOCK");
      if (length < last.closed_length || length < last.synced) return bad("DATA_LOST");
      if (length < last.length && !all_in(last.storages, op.answered())) return bad("SHORTER_THAN_SYNCED");
    }
    last.length = length;
    last.stamp = op.recovery_id();
    last.state = v1::COMMITTED;
    last.storages.assign(op.storages().begin(), op.storages().end());
    last.charged = length * last.replication;
    last.committed_ms = now_ms_;
    last.recovery_id = 0;
    last.truncate_to.reset();
    last.closed_length = 0;
    last.append_from = 0;
    last.synced = 0;
  }
  Close(&file, /*by_writer=*/false);
  nodes_[path] = file;
  expected.acted = true;
  expected.path = path;
  expected.inode_id = file.id;
  return expected;
}

}  // namespace cairn::testing
