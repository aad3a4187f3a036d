// Quotas, and what changes how much is charged, as TreeModel has them.

#include <algorithm>
#include <set>

#include "tests/namenode/tree_model.h"

namespace cairn::testing {
namespace {

bool Fits(const std::optional<int64_t>& quota, int64_t used, int64_t more) { return !quota || more <= 0 || used + more <= *quota; }

void Settle(ModelBlock* block, uint32_t replication) {
  block->charged = block->charged / block->replication * replication;
  block->replication = replication;
}

}  // namespace

std::pair<int64_t, int64_t> TreeModel::Weight(const std::string& path) const {
  int64_t names = 0;
  int64_t charged = 0;
  for (const auto& [other, node] : nodes_) {
    if (other != path && !IsBelow(other, path)) continue;
    ++names;
    charged += node.is_directory ? 0 : static_cast<int64_t>(node.charged());
  }
  return {names, charged};
}

ErrorKind TreeModel::CheckQuota(const std::string& path, int64_t names, int64_t charged, const std::string& shared) const {
  for (const auto& [directory, node] : nodes_) {
    if (!node.is_directory || !IsBelow(path, directory) || (!shared.empty() && IsBelow(shared, directory))) continue;
    const auto [used_names, used_bytes] = Weight(directory);
    if (!Fits(node.name_quota, used_names, names) || !Fits(node.space_quota, used_bytes, charged)) return ErrorKind::kQuota;
  }
  return ErrorKind::kNone;
}

Expected TreeModel::SetQuota(const v1::Mutation& m) {
  const v1::Mutation::SetQuota& op = m.set_quota();
  if (m.limits().permissions_enabled() && !m.superuser()) return Refused(ErrorKind::kPermission);
  if (op.namespace_quota() < -1 || op.space_quota_bytes() < -1) return Refused(ErrorKind::kInvalidArgument);
  const Walk walk = WalkTo(op.path(), &m);
  if (walk.error != ErrorKind::kNone) return Refused(walk.error);
  if (!walk.complete()) return Refused(ErrorKind::kNotFound);
  ModelNode& node = nodes_[walk.path()];
  if (!node.is_directory) return Refused(ErrorKind::kNotDirectory);
  Expected expected;
  expected.path = walk.path();
  const auto change = [&expected](std::optional<int64_t>* quota, bool given, int64_t wanted) {
    if (!given) return;
    const std::optional<int64_t> after = wanted < 0 ? std::nullopt : std::optional(wanted);
    expected.acted = expected.acted || after != *quota;
    *quota = after;
  };
  change(&node.name_quota, op.has_namespace_quota(), op.namespace_quota());
  change(&node.space_quota, op.has_space_quota_bytes(), op.space_quota_bytes());
  return expected;
}

Expected TreeModel::SetReplication(const v1::Mutation& m) {
  const v1::Mutation::SetReplication& op = m.set_replication();
  const Walk walk = WalkTo(op.path(), &m);
  if (walk.error != ErrorKind::kNone) return Refused(walk.error);
  if (!walk.complete()) return Refused(ErrorKind::kNotFound);
  if (const ErrorKind kind = MayChange(m, walk, 2); kind != ErrorKind::kNone) return Refused(kind);
  if (op.replication() < std::max(m.limits().min_replication(), 1u) || op.replication() > m.limits().max_replication())
    return Refused(ErrorKind::kInvalidArgument);
  ModelNode file = nodes_[walk.path()];
  Expected expected;
  expected.path = walk.path();
  expected.inode_id = file.id;
  if (file.is_directory || file.replication == op.replication()) return expected;
  const auto before = static_cast<int64_t>(file.charged());
  file.replication = op.replication();
  for (ModelBlock& block : file.blocks) Settle(&block, op.replication());
  if (file.reserved) Settle(&*file.reserved, op.replication());
  if (CheckQuota(walk.path(), 0, static_cast<int64_t>(file.charged()) - before) != ErrorKind::kNone) return Refused(ErrorKind::kQuota);
  nodes_[walk.path()] = file;
  expected.acted = true;
  return expected;
}

Expected TreeModel::Concat(const v1::Mutation& m) {
  const v1::Mutation::Concat& op = m.concat();
  if (op.sources().empty()) return Refused(ErrorKind::kInvalidArgument);
  const Walk to = WalkTo(op.target(), &m);
  if (to.error != ErrorKind::kNone) return Refused(to.error);
  if (!to.complete()) return Refused(ErrorKind::kNotFound);
  if (const ErrorKind kind = MayChange(m, to, 2); kind != ErrorKind::kNone) return Refused(kind);
  const std::string target = to.path();
  ModelNode file = nodes_[target];
  if (file.is_directory) return Refused(ErrorKind::kIsDirectory);
  if (!file.holder.empty()) return Refused(ErrorKind::kInvalidArgument);
  std::set<std::string> seen;
  size_t moved = 0;
  for (const std::string& source : op.sources()) {
    const Walk walk = WalkTo(source, &m);
    if (walk.error != ErrorKind::kNone) return Refused(walk.error);
    if (!walk.complete()) return Refused(ErrorKind::kNotFound);
    const std::string path = walk.path();
    const ModelNode& found = nodes_[path];
    const bool beside = path != "/" && ParentOf(path) == ParentOf(target);
    if (beside && (MayChange(m, walk, 4) != ErrorKind::kNone || MayRemove(m, walk) != ErrorKind::kNone))
      return Refused(ErrorKind::kPermission);
    if (found.is_directory) return Refused(ErrorKind::kIsDirectory);
    if (path == target || ParentOf(path) != ParentOf(target) || !found.holder.empty() || found.blocks.empty() ||
        found.block_size > file.block_size || !seen.insert(path).second)
      return Refused(ErrorKind::kInvalidArgument);
    moved += found.blocks.size();
  }
  if (file.blocks.size() + moved > m.limits().max_blocks_per_file()) return Refused(ErrorKind::kQuota);
  int64_t more = 0;
  for (const std::string& source : op.sources()) {
    for (ModelBlock block : nodes_[WalkTo(source).path()].blocks) {
      more -= static_cast<int64_t>(block.charged);
      Settle(&block, file.replication);
      more += static_cast<int64_t>(block.charged);
      file.blocks.push_back(block);
    }
  }
  if (CheckQuota(target, -static_cast<int64_t>(op.sources_size()), more) != ErrorKind::kNone) return Refused(ErrorKind::kQuota);
  for (const std::string& path : seen) nodes_.erase(path);
  file.modified_ms = now_ms_;
  nodes_[target] = file;
  Touch(ParentOf(target));
  Expected expected;
  expected.acted = true;
  expected.path = target;
  expected.inode_id = file.id;
  return expected;
}

}  // namespace cairn::testing
