#include "tests/namenode/tree_model.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/ids.h"
#include "tests/testing/builders.h"

namespace cairn::testing {
namespace {

constexpr int64_t kSlotExpiresMs = 9 * 60 * 1000;
constexpr int kMaxPathsOfDeleteMany = 256;

}  // namespace

uint64_t ModelNode::length() const {
  uint64_t sum = 0;
  for (const ModelBlock& block : blocks) sum += block.length;
  return sum;
}

uint64_t ModelNode::charged() const {
  uint64_t sum = reserved ? reserved->charged : 0;
  for (const ModelBlock& block : blocks) sum += block.charged;
  return sum;
}

std::string Difference(const Expected& expected, const absl::StatusOr<v1::MutationResult>& actual) {
  const ErrorKind kind = KindOf(actual.status());
  if (!actual.ok() && kind == ErrorKind::kNone) return actual.status().ToString();
  if (kind != expected.refused && !(expected.unpredictable && kind == expected.or_refused))
    return fmt::format("answered {}, expected {}", actual.ok() ? "OK" : actual.status().ToString(), KindName(expected.refused));
  if (expected.unpredictable) return "";
  if (!actual.ok()) {
    const bool same = !expected.reason || *expected.reason == ReasonOf(actual.status());
    return same ? "" : fmt::format("refused for {}, expected {}", actual.status().ToString(), *expected.reason);
  }
  std::string difference;
  const auto compare = [&difference](const char* what, const auto& wanted, const auto& got) {
    if (wanted && *wanted != got) difference += fmt::format("{} {}, expected {}; ", what, got, *wanted);
  };
  compare("path", expected.path, actual->path());
  compare("inode", expected.inode_id, actual->inode().id());
  compare("existed", expected.existed, actual->existed());
  compare("done", expected.done, actual->done());
  compare("codes", expected.codes, actual->codes());
  compare("next", expected.next, actual->next());
  compare("offset", expected.offset, actual->offset_bytes());
  compare("storages", expected.storages, std::vector<uint32_t>(actual->storages().begin(), actual->storages().end()));
  compare("old stamp", expected.old_stamp, actual->old_generation_stamp());
  compare("recovery id", expected.recovery_id, actual->block_record().recovery_id());
  compare("storage numbers", expected.storage_numbers,
          std::vector<uint32_t>(actual->storage_numbers().begin(), actual->storage_numbers().end()));
  if (expected.block) {
    compare("block id", std::optional(expected.block->id), actual->block().id());
    compare("stamp", std::optional(expected.block->stamp), actual->block().generation_stamp());
    compare("block length", std::optional(expected.block->length), actual->block().length_bytes());
  }
  return difference;
}

TreeModel::TreeModel()
    : next_inode_(kRootInodeId.value() + 1),
      next_block_(kFirstBlockId.value()),
      next_stamp_(kFirstGenerationStamp.value()),
      last_ms_(kTestStartMs) {
  ModelNode root;
  root.id = kRootInodeId.value();
  root.mode = 0755;
  root.owner = "root";
  root.group = "staff";
  root.modified_ms = kTestStartMs;
  nodes_["/"] = root;
}

Expected TreeModel::Apply(const v1::Mutation& m) {
  now_ms_ = std::max(m.time_ms(), last_ms_);
  std::string codes_before;
  const std::pair<std::string, uint32_t> key(m.client_id(), m.slot());
  if (m.sequence() != 0) {
    const uint32_t from = m.has_delete_many() ? m.delete_many().from() : 0;
    const auto row = rows_.find(key);
    if (row == rows_.end()) {
      if (m.slot_opened_ms() != 0 && now_ms_ - m.slot_opened_ms() > kSlotExpiresMs) return Refused(ErrorKind::kSlotExpired);
      if (from > 0) return Refused(ErrorKind::kInvalidArgument, "NO_EARLIER_PART");
    } else if (row->second.sequence > m.sequence()) {
      return Refused(ErrorKind::kInvalidArgument, "OLD_SEQUENCE");
    } else if (row->second.sequence == m.sequence()) {
      const uint32_t next = row->second.answer.next.value_or(0);
      if (row->second.hash != m.request_hash()) return Refused(ErrorKind::kInvalidArgument, "REQUEST_MISMATCH");
      if (from > next) return Refused(ErrorKind::kInvalidArgument, "NO_EARLIER_PART");
      if (from == 0 || from < next) {
        Expected kept = row->second.answer;
        kept.acted = false;
        return kept;
      }
      codes_before = row->second.answer.codes.value_or("");
    } else if (from > 0) {
      return Refused(ErrorKind::kInvalidArgument, "NO_EARLIER_PART");
    }
  }
  Expected expected = Dispatch(m, codes_before);
  if (!expected.acted) return expected;
  last_ms_ = now_ms_;
  if (m.sequence() != 0) rows_[key] = Row{m.sequence(), m.request_hash(), now_ms_, expected};
  return expected;
}

Expected TreeModel::Dispatch(const v1::Mutation& m, const std::string& codes_before) {
  switch (m.op_case()) {
    case v1::Mutation::kCreate: return Create(m);
    case v1::Mutation::kAddBlock: return AddBlock(m);
    case v1::Mutation::kAbandonBlock: return AbandonBlock(m);
    case v1::Mutation::kUpdateBlockForPipeline: return UpdateBlockForPipeline(m);
    case v1::Mutation::kUpdatePipeline: return UpdatePipeline(m);
    case v1::Mutation::kFsync: return Fsync(m);
    case v1::Mutation::kComplete: return Complete(m);
    case v1::Mutation::kMkdirs: return Mkdirs(m);
    case v1::Mutation::kRename: return Rename(m);
    case v1::Mutation::kDelete: return Delete(m);
    case v1::Mutation::kDeleteMany: return DeleteMany(m, codes_before);
    case v1::Mutation::kExpireLease: return ExpireLease(m);
    case v1::Mutation::kRecoverLease: return RecoverLease(m);
    case v1::Mutation::kStartBlockRecovery: return StartBlockRecovery(m);
    case v1::Mutation::kCommitBlockRecovery: return CommitBlockRecovery(m);
    case v1::Mutation::kAppend: return Append(m);
    case v1::Mutation::kTruncate: return Truncate(m);
    case v1::Mutation::kRegisterStorages: return RegisterStorages(m);
    case v1::Mutation::kSweepRetries: return SweepRetries(m);
    case v1::Mutation::kSetMeta: return SetMeta(m);
    case v1::Mutation::kSetQuota: return SetQuota(m);
    case v1::Mutation::kSetReplication: return SetReplication(m);
    case v1::Mutation::kConcat: return Concat(m);
    case v1::Mutation::kSetPermission:
    case v1::Mutation::kSetOwner:
    case v1::Mutation::kSetTimes: return SetAttributes(m);
    case v1::Mutation::kSetXattr:
    case v1::Mutation::kRemoveXattr: return ChangeXattr(m);
    default: break;
  }
  Expected background;
  background.unpredictable = true;
  return background;
}

// --- paths

std::string TreeModel::Walk::Prefix(size_t count) const {
  std::string path;
  for (size_t i = 0; i < count; ++i) path += "/" + components[i];
  return path.empty() ? "/" : path;
}

bool TreeModel::IsBelow(const std::string& path, const std::string& directory) {
  return directory == "/" ? path != "/" : path.starts_with(directory + "/");
}

std::string TreeModel::ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

TreeModel::Walk TreeModel::WalkTo(const std::string& path, const v1::Mutation* by) const {
  Walk walk;
  walk.error = ErrorKind::kInvalidPath;
  if (!path.starts_with('/') || path.find('\0') != std::string::npos) return walk;
  std::string component;
  for (const char c : path + "/") {
    if (c != '/') {
      component += c;
      continue;
    }
    if (component == "." || component == "..") return walk;
    if (!component.empty()) walk.components.push_back(component);
    component.clear();
  }
  walk.error = ErrorKind::kNone;
  while (walk.existing < walk.components.size()) {
    const ModelNode& parent = nodes_.at(walk.Prefix(walk.existing));
    walk.error = !parent.is_directory ? ErrorKind::kNotDirectory : by != nullptr ? MayEnter(*by, parent) : ErrorKind::kNone;
    if (walk.error != ErrorKind::kNone) break;
    if (!nodes_.contains(walk.Prefix(walk.existing + 1))) break;
    ++walk.existing;
  }
  return walk;
}

uint64_t TreeModel::ChildrenOf(const std::string& path) const {
  uint64_t count = 0;
  for (const auto& [other, node] : nodes_) count += other != "/" && ParentOf(other) == path ? 1 : 0;
  return count;
}

const std::string* TreeModel::PathOfId(uint64_t id) const {
  for (const auto& [path, node] : nodes_)
    if (node.id == id) return &path;
  return nullptr;
}

const ModelBlock* TreeModel::FindBlock(uint64_t id, std::string* path) const {
  for (const auto& [at, node] : nodes_) {
    *path = at;
    if (node.reserved && node.reserved->id == id) return &*node.reserved;
    for (const ModelBlock& block : node.blocks)
      if (block.id == id) return &block;
  }
  return nullptr;
}

// --- making and removing

ErrorKind TreeModel::CheckName(const v1::Mutation& m, const Walk& walk, size_t index) const {
  const v1::Mutation::Limits& limits = m.limits();
  const std::string& name = walk.components[index];
  if (name == ".snapshot" || (index == 0 && name == ".reserved")) return ErrorKind::kInvalidArgument;
  const bool fits = name.size() <= limits.max_component_bytes() && walk.Prefix(index + 1).size() <= limits.max_path_bytes() &&
                    index + 1 <= limits.max_depth();
  return fits ? ErrorKind::kNone : ErrorKind::kQuota;
}

ErrorKind TreeModel::CheckMissing(const v1::Mutation& m, const Walk& walk) const {
  for (size_t i = walk.existing; i < walk.components.size(); ++i) {
    if (const ErrorKind kind = CheckName(m, walk, i); kind != ErrorKind::kNone) return kind;
    if (i == walk.existing && ChildrenOf(walk.Prefix(i)) >= m.limits().max_directory_entries()) return ErrorKind::kQuota;
  }
  return ErrorKind::kNone;
}

ModelNode TreeModel::NewNode(const v1::Mutation& m, bool directory, uint32_t mode, const std::string& group) {
  ModelNode node;
  node.id = next_inode_++;
  node.is_directory = directory;
  node.mode = mode & 01777;
  node.owner = m.user();
  node.group = group;
  node.modified_ms = now_ms_;
  node.accessed_ms = directory ? 0 : now_ms_;
  return node;
}

void TreeModel::Touch(const std::string& directory) {
  ModelNode& node = nodes_[directory];
  node.modified_ms = std::max(node.modified_ms, now_ms_);
}

void TreeModel::Insert(const std::string& path, ModelNode node) {
  nodes_[path] = std::move(node);
  Touch(ParentOf(path));
}

void TreeModel::Remove(const std::string& path) {
  for (const auto& [other, node] : nodes_) {
    if (other != path && !IsBelow(other, path)) continue;
    if (other != path && !node.holder.empty()) left_leases_.emplace(node.holder, node.id);
    for (const ModelBlock& block : node.blocks) left_blocks_[block.id] = block;
    if (node.reserved) left_blocks_[node.reserved->id] = *node.reserved;
  }
  std::erase_if(nodes_, [&](const auto& item) { return item.first == path || IsBelow(item.first, path); });
  Touch(ParentOf(path));
}

void TreeModel::MakeDirectories(const v1::Mutation& m, const Walk& walk, size_t until, uint32_t mode, uint32_t parent_mode) {
  for (size_t i = walk.existing; i < until; ++i) {
    const std::string group = nodes_[walk.Prefix(i)].group;
    Insert(walk.Prefix(i + 1), NewNode(m, true, i + 1 == walk.components.size() ? mode : parent_mode, group));
  }
}

Expected TreeModel::Mkdirs(const v1::Mutation& m) {
  const Walk walk = WalkTo(m.mkdirs().path(), &m);
  if (walk.error != ErrorKind::kNone) return Refused(walk.error);
  Expected expected;
  expected.path = walk.path();
  if (walk.complete()) {
    const ModelNode& node = nodes_[walk.path()];
    if (!node.is_directory) return Refused(ErrorKind::kAlreadyExists);
    expected.existed = true;
    expected.inode_id = node.id;
    return expected;
  }
  if (const ErrorKind kind = MayMake(m, walk); kind != ErrorKind::kNone) return Refused(kind);
  if (!walk.has_parent() && !m.mkdirs().create_parent()) return Refused(ErrorKind::kNotFound);
  if (const ErrorKind kind = CheckMissing(m, walk); kind != ErrorKind::kNone) return Refused(kind);
  const auto made = static_cast<int64_t>(walk.components.size() - walk.existing);
  if (CheckQuota(walk.path(), made, 0) != ErrorKind::kNone) return Refused(ErrorKind::kQuota);
  MakeDirectories(m, walk, walk.components.size(), m.mkdirs().mode(), m.mkdirs().parent_mode());
  expected.existed = false;
  expected.inode_id = nodes_[walk.path()].id;
  expected.acted = true;
  return expected;
}

Expected TreeModel::Create(const v1::Mutation& m) {
  const v1::Mutation::Create& op = m.create();
  if (m.client_name().empty()) return Refused(ErrorKind::kInvalidArgument);
  Walk walk = WalkTo(op.path(), &m);
  if (walk.error != ErrorKind::kNone) return Refused(walk.error);
  if (const ErrorKind kind = MayMake(m, walk); kind != ErrorKind::kNone) return Refused(kind);
  if (walk.complete() && nodes_[walk.path()].is_directory) return Refused(ErrorKind::kAlreadyExists);
  if (!walk.has_parent() && !op.create_parent()) return Refused(ErrorKind::kNotFound);
  if (op.replication() < std::max(m.limits().min_replication(), 1u) || op.replication() > m.limits().max_replication() ||
      op.block_size_bytes() < std::max<uint64_t>(m.limits().min_block_size_bytes(), 1) ||
      op.block_size_bytes() > m.limits().max_block_size_bytes())
    return Refused(ErrorKind::kInvalidArgument);
  if (walk.complete()) {
    const ModelNode& there = nodes_[walk.path()];
    if (!op.overwrite()) return there.holder.empty() ? Refused(ErrorKind::kAlreadyExists) : BeingWritten(m, there, op.lease_seen());
    if (const ErrorKind kind = MayChange(m, walk, 2); kind != ErrorKind::kNone) return Refused(kind);
  } else if (const ErrorKind kind = CheckMissing(m, walk); kind != ErrorKind::kNone) {
    return Refused(kind);
  }
  if (op.with_first_block() && op.targets().empty()) return Refused(ErrorKind::kInvalidArgument);
  const auto names = static_cast<int64_t>(walk.components.size() - walk.existing);
  int64_t charged = op.with_first_block() ? static_cast<int64_t>(op.block_size_bytes() * op.replication()) : 0;
  if (walk.complete()) charged -= static_cast<int64_t>(nodes_[walk.path()].charged());  // It leaves first.
  if (CheckQuota(walk.path(), names, charged) != ErrorKind::kNone) return Refused(ErrorKind::kQuota);

  if (walk.complete()) {
    Remove(walk.path());
    --walk.existing;
  }
  MakeDirectories(m, walk, walk.components.size() - 1, op.parent_mode(), op.parent_mode());
  ModelNode file = NewNode(m, false, op.mode(), nodes_[ParentOf(walk.path())].group);
  file.replication = op.replication();
  file.block_size = op.block_size_bytes();
  file.holder = m.client_name();
  file.vanishes = op.delete_if_abandoned();
  file.never_closed = true;
  Expected expected;
  expected.acted = true;
  expected.path = walk.path();
  expected.inode_id = file.id;
  if (op.with_first_block()) {
    file.blocks.push_back(Allocate(file, v1::UNDER_CONSTRUCTION, op.targets()));
    expected.block = file.blocks.back();
    expected.storages = file.blocks.back().storages;
    expected.offset = 0;
  }
  Insert(walk.path(), std::move(file));
  return expected;
}

Expected TreeModel::Rename(const v1::Mutation& m) {
  const v1::Mutation::Rename& op = m.rename();
  const Walk from = WalkTo(op.source(), &m);
  if (from.error != ErrorKind::kNone) return Refused(from.error);
  const Walk to = WalkTo(op.destination(), &m);
  if (to.error != ErrorKind::kNone) return Refused(to.error);
  if (const ErrorKind kind = MayRemove(m, from); kind != ErrorKind::kNone) return Refused(kind);
  if (const ErrorKind kind = MayMake(m, to); kind != ErrorKind::kNone) return Refused(kind);
  if (op.overwrite() && MayRemove(m, to) != ErrorKind::kNone) return Refused(ErrorKind::kPermission);
  if (!from.complete()) return Refused(ErrorKind::kNotFound);
  if (from.components.empty() || to.components.empty()) return Refused(ErrorKind::kInvalidPath);
  const std::string source = from.path();
  const std::string destination = to.path();
  Expected expected;
  expected.path = destination;
  if (source == destination) return op.overwrite() ? expected : Refused(ErrorKind::kAlreadyExists);
  if (IsBelow(destination, source)) return Refused(ErrorKind::kInvalidPath);
  if (!to.has_parent()) return Refused(ErrorKind::kNotFound);
  const bool is_directory = nodes_[source].is_directory;
  if (to.complete()) {
    if (!op.overwrite()) return Refused(ErrorKind::kAlreadyExists);
    const bool replaces_directory = nodes_[destination].is_directory;
    if (is_directory && !replaces_directory) return Refused(ErrorKind::kNotDirectory);
    if (!is_directory && replaces_directory) return Refused(ErrorKind::kIsDirectory);
    if (replaces_directory && ChildrenOf(destination) != 0) return Refused(ErrorKind::kNotEmpty);
  } else {
    if (const ErrorKind kind = CheckName(m, to, to.components.size() - 1); kind != ErrorKind::kNone) return Refused(kind);
    const bool comes_from_elsewhere = ParentOf(source) != ParentOf(destination);
    if (comes_from_elsewhere && ChildrenOf(ParentOf(destination)) >= m.limits().max_directory_entries()) return Refused(ErrorKind::kQuota);
  }
  auto [names, charged] = Weight(source);
  if (to.complete()) {
    names -= Weight(destination).first;
    charged -= Weight(destination).second;
  }
  if (CheckQuota(destination, names, charged, source) != ErrorKind::kNone) return Refused(ErrorKind::kQuota);
  if (to.complete()) Remove(destination);
  std::map<std::string, ModelNode> moved;
  for (const auto& [path, node] : nodes_)
    if (path == source || IsBelow(path, source)) moved[destination + path.substr(source.size())] = node;
  std::erase_if(nodes_, [&](const auto& item) { return item.first == source || IsBelow(item.first, source); });
  nodes_.insert(moved.begin(), moved.end());
  Touch(ParentOf(source));
  Touch(ParentOf(destination));
  if (nodes_[destination].holder.empty()) nodes_[destination].never_closed = false;
  expected.acted = true;
  expected.inode_id = nodes_[destination].id;
  return expected;
}

ErrorKind TreeModel::DeleteOne(const v1::Mutation& m, const std::string& path, bool recursive, bool* existed) {
  *existed = false;
  const Walk walk = WalkTo(path, &m);
  if (walk.error != ErrorKind::kNone) return walk.error;
  if (walk.components.empty()) return ErrorKind::kInvalidPath;
  if (const ErrorKind kind = MayRemove(m, walk); kind != ErrorKind::kNone) return kind;
  if (!walk.complete()) return ErrorKind::kNone;
  if (ChildrenOf(walk.path()) != 0 && MayChange(m, walk, 7) != ErrorKind::kNone) return ErrorKind::kPermission;
  if (!recursive && ChildrenOf(walk.path()) != 0) return ErrorKind::kNotEmpty;
  Remove(walk.path());
  *existed = true;
  return ErrorKind::kNone;
}

Expected TreeModel::Delete(const v1::Mutation& m) {
  bool existed = false;
  if (const ErrorKind kind = DeleteOne(m, m.delete_().path(), m.delete_().recursive(), &existed); kind != ErrorKind::kNone)
    return Refused(kind);
  Expected expected;
  expected.existed = existed;
  expected.acted = existed;
  return expected;
}

Expected TreeModel::DeleteMany(const v1::Mutation& m, const std::string& codes_before) {
  if (m.delete_many().paths_size() > kMaxPathsOfDeleteMany) return Refused(ErrorKind::kInvalidArgument);
  Expected expected;
  expected.acted = true;
  expected.codes = codes_before;
  for (const std::string& path : m.delete_many().paths()) {
    bool existed = false;
    ErrorKind code = DeleteOne(m, path, m.delete_many().recursive(), &existed);
    if (code == ErrorKind::kNone && !existed) code = ErrorKind::kNotFound;
    expected.codes->push_back(static_cast<char>(code));
  }
  expected.next = m.delete_many().from() + static_cast<uint32_t>(m.delete_many().paths_size());
  return expected;
}

}  // namespace cairn::testing
