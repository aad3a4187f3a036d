#include "tests/namenode/tree_workload.h"

#include <algorithm>

#include <fmt/format.h>

#include "namenode/namespace/file_edit.h"
#include "tests/testing/builders.h"

namespace cairn::testing {
namespace {

constexpr size_t kEarlierKept = 40;
constexpr uint64_t kBlockSize = 1000;
constexpr uint32_t kStorages = 6;

}  // namespace

TreeWorkload::TreeWorkload(Options options, Random random) : options_(options), random_(std::move(random)), now_ms_(kTestStartMs) {
  for (size_t i = 0; i < options_.clients; ++i) {
    Client client;
    client.id = fmt::format("client-{:0>9}", i);
    client.name = fmt::format("holder{}", i);
    client.user = i == 0 ? "root" : fmt::format("user{}", i);
    client.slots.resize(options_.slots);
    clients_.push_back(std::move(client));
  }
  names_ = {
      "a", "b", "c", "d e", "%2f", "+:", "caf\u00e9", "\U0001f600", ".reserved", ".snapshot", std::string(255, 'x'), std::string(256, 'y')};
  for (int i = 0; i < 3 && options_.long_names > 0; ++i) names_[static_cast<size_t>(i)] += std::string(options_.long_names, '0');
}

std::string TreeWorkload::Name() { return names_[random_.Below(random_.OneIn(4) ? names_.size() : 4)]; }

std::string TreeWorkload::Existing(const TreeModel& model) {
  auto at = model.nodes().begin();
  std::advance(at, static_cast<ptrdiff_t>(random_.Below(model.nodes().size())));
  return at->first;
}

std::string TreeWorkload::NewPath(const TreeModel& model) {
  std::string directory = Existing(model);
  if (!model.nodes().at(directory).is_directory && !random_.OneIn(8)) directory = TreeModel::ParentOf(directory);
  std::string path = (directory == "/" ? "/" : directory + "/") + Name();
  while (random_.OneIn(5)) path += "/" + Name();
  return path;
}

std::string TreeWorkload::AnyPath(const TreeModel& model) {
  std::string path = random_.OneIn(2) ? Existing(model) : NewPath(model);
  if (random_.OneIn(25)) path += random_.OneIn(2) ? "/" : "//.";
  if (random_.OneIn(40)) path = random_.OneIn(2) ? "/" + path : path.substr(1);
  if (random_.OneIn(60)) path += "/..";
  return path;
}

const ModelNode* TreeWorkload::OpenFile(const TreeModel& model, std::string* path) {
  std::vector<const std::string*> open, files;
  for (const auto& [at, node] : model.nodes()) {
    if (node.is_directory) continue;
    (node.holder.empty() ? files : open).push_back(&at);
  }
  const std::vector<const std::string*>& from = open.empty() || random_.OneIn(10) ? files : open;
  if (from.empty()) return nullptr;
  *path = *from[random_.Below(from.size())];
  return &model.nodes().at(*path);
}

std::vector<uint32_t> TreeWorkload::Targets() {
  std::vector<uint32_t> targets;
  if (random_.OneIn(30)) return targets;
  const auto first = static_cast<uint32_t>(random_.Below(kStorages));
  for (uint32_t i = 0; i < 1 + random_.Below(3); ++i) targets.push_back(1 + (first + i) % kStorages);
  return targets;
}

// The file's last block, or the reserved one, or one that is not its own.
v1::Block TreeWorkload::BlockOf(const ModelNode& file) {
  ModelBlock block;
  block.id = 1 << 30;
  block.stamp = 1001;
  if (!file.blocks.empty()) block = file.blocks.back();
  if (file.reserved && random_.OneIn(4)) block = *file.reserved;
  if (file.blocks.size() > 1 && random_.OneIn(12)) block = file.blocks[file.blocks.size() - 2];
  if (random_.OneIn(20)) block.stamp += random_.Below(3);
  if (random_.OneIn(40)) block.id += 16;
  return MakeBlock(block.id, block.stamp, block.length);
}

v1::Mutation::Commit TreeWorkload::CommitOf(const ModelNode& file) {
  v1::Block block = BlockOf(file);
  std::vector<uint32_t> acknowledged;
  if (!file.blocks.empty()) acknowledged = file.blocks.back().storages;
  if (acknowledged.size() > 1 && random_.OneIn(4)) acknowledged.pop_back();
  if (random_.OneIn(20)) acknowledged.push_back(static_cast<uint32_t>(1 + random_.Below(kStorages)));
  if (random_.OneIn(25)) acknowledged.clear();
  std::reverse(acknowledged.begin(), acknowledged.end());
  const bool written = !file.blocks.empty() && file.blocks.back().state == v1::UNDER_CONSTRUCTION;
  uint64_t length = block.length_bytes();
  if (written || random_.OneIn(20))
    length = random_.OneIn(15) ? random_.Below(kBlockSize + 100) : length + random_.Below(kBlockSize + 1 - std::min(length, kBlockSize));
  return MakeCommit(block, length, acknowledged);
}

void TreeWorkload::WriterCall(const TreeModel& model, v1::Mutation* m) {
  std::string path;
  const ModelNode* file = OpenFile(model, &path);
  if (file == nullptr) {
    *m->mutable_mkdirs() = MkdirsMutation(NewPath(model)).mkdirs();
    return;
  }
  // No client bears the NameNode's own name: the writer that a file was taken from has its own.
  const bool taken = file->holder == namenode::kRecoveryHolder;
  if (!file->holder.empty() && !taken && !random_.OneIn(20)) m->set_client_name(file->holder);
  const uint64_t inode_id = random_.OneIn(6) ? 0 : random_.OneIn(40) ? file->id + 1 : file->id;
  const uint64_t reserved_id = file->reserved ? file->reserved->id : 0;
  const bool take_reserved = reserved_id != 0 && random_.OneIn(2);
  const auto name_previous = [&](auto* op) {
    if (take_reserved || random_.OneIn(30)) op->set_use_reserved_id(take_reserved ? reserved_id : BlockOf(*file).id());
    if (op->use_reserved_id() != 0 && !file->blocks.empty() && !random_.OneIn(5)) *op->mutable_previous() = CommitOf(*file);
  };
  switch (random_.Below(12)) {
    case 0:
    case 1:
    case 2: {
      v1::Mutation::AddBlock& op = *m->mutable_add_block();
      op.set_path(path);
      op.set_inode_id(inode_id);
      for (const uint32_t target : Targets()) op.add_targets(target);
      if (take_reserved) {
        name_previous(&op);
      } else {
        op.set_reserve(random_.OneIn(3));
        if (!op.reserve() && !file->blocks.empty() && !random_.OneIn(6)) *op.mutable_previous() = CommitOf(*file);
      }
      return;
    }
    case 3: {
      v1::Mutation::AbandonBlock& op = *m->mutable_abandon_block();
      op.set_path(path);
      op.set_inode_id(inode_id);
      *op.mutable_block() = BlockOf(*file);
      return;
    }
    case 4: {
      v1::Mutation::UpdateBlockForPipeline& op = *m->mutable_update_block_for_pipeline();
      op.set_path(path);
      op.set_inode_id(inode_id);
      *op.mutable_block() = BlockOf(*file);
      return;
    }
    case 5:
    case 6: {
      v1::Mutation::UpdatePipeline& op = *m->mutable_update_pipeline();
      op.set_path(path);
      op.set_inode_id(inode_id);
      *op.mutable_old_block() = BlockOf(*file);
      *op.mutable_new_block() = op.old_block();
      op.mutable_new_block()->set_generation_stamp(op.old_block().generation_stamp() + random_.Below(4));
      op.mutable_new_block()->set_length_bytes(op.old_block().length_bytes() + random_.Below(100));
      if (random_.OneIn(15)) op.mutable_new_block()->set_length_bytes(random_.Below(kBlockSize + 100));
      for (const uint32_t storage : Targets()) op.add_storages(storage);
      if (random_.OneIn(30) && op.storages_size() > 0) op.add_storages(op.storages(0));
      return;
    }
    case 7:
    case 8: {
      v1::Mutation::Fsync& op = *m->mutable_fsync();
      op.set_path(path);
      op.set_inode_id(inode_id);
      name_previous(&op);
      *op.mutable_last_block() = BlockOf(*file);
      op.mutable_last_block()->set_length_bytes(random_.Below(kBlockSize + (random_.OneIn(20) ? 100 : 1)));
      if (take_reserved && !random_.OneIn(4)) {
        *op.mutable_last_block() = MakeBlock(reserved_id, file->reserved->stamp, file->reserved->length + random_.Below(50));
      } else if (random_.OneIn(10)) {
        op.clear_last_block();
      }
      return;
    }
    default: {
      v1::Mutation::Complete& op = *m->mutable_complete();
      op.set_path(path);
      op.set_inode_id(inode_id);
      name_previous(&op);
      if (op.use_reserved_id() == reserved_id && reserved_id != 0) {
        ModelNode next = *file;
        next.blocks.push_back(*file->reserved);
        next.blocks.back().state = v1::UNDER_CONSTRUCTION;
        next.reserved.reset();
        *op.mutable_last() = CommitOf(next);
      } else if (!file->blocks.empty() && !random_.OneIn(8)) {
        *op.mutable_last() = CommitOf(*file);
      }
      return;
    }
  }
}

v1::Mutation::Limits TreeWorkload::Limits() {
  v1::Mutation::Limits limits = DefaultLimits();
  limits.set_max_directory_entries(6);
  limits.set_max_depth(6);
  limits.set_max_path_bytes(700);
  limits.set_max_blocks_per_file(7);
  limits.set_max_block_size_bytes(2 * kBlockSize);
  limits.set_max_replication(5);
  limits.set_max_xattrs(3);
  limits.set_max_xattr_bytes(50);
  limits.set_permissions_enabled(!random_.OneIn(4));
  if (random_.OneIn(20)) limits.set_min_replication(2);
  limits.set_lease_soft_limit_ms(60'000);
  return limits;
}

v1::Mutation TreeWorkload::Operation(const TreeModel& model) {
  v1::Mutation m;
  const Client& client = clients_[random_.Below(clients_.size())];
  m.set_user(client.user);
  m.set_client_id(client.id);
  m.set_client_name(client.name);
  *m.mutable_limits() = Limits();
  m.set_superuser(&client == &clients_.front());
  m.add_groups(&client == &clients_.back() ? "staff" : "others");
  if (random_.OneIn(6)) m.add_groups("more");
  switch (random_.Below(30)) {
    case 0:
    case 1: {
      *m.mutable_mkdirs() = MkdirsMutation(AnyPath(model)).mkdirs();
      m.mutable_mkdirs()->set_create_parent(!random_.OneIn(5));
      m.mutable_mkdirs()->set_mode(static_cast<uint32_t>(random_.Below(02000)));
      break;
    }
    case 2:
    case 3:
    case 4:
    case 5: {
      *m.mutable_create() = CreateMutation(random_.OneIn(4) ? AnyPath(model) : NewPath(model), client.name).create();
      v1::Mutation::Create& op = *m.mutable_create();
      op.set_overwrite(random_.OneIn(3));
      op.set_create_parent(!random_.OneIn(4));
      op.set_replication(static_cast<uint32_t>(1 + random_.Below(random_.OneIn(20) ? 8 : 3)));
      op.set_block_size_bytes(random_.OneIn(20) ? random_.Below(4 * kBlockSize) : kBlockSize);
      op.set_with_first_block(random_.OneIn(2));
      if (op.with_first_block())
        for (const uint32_t target : Targets()) op.add_targets(target);
      if (random_.OneIn(60)) m.clear_client_name();
      break;
    }
    case 6:
    case 7: {
      *m.mutable_rename() = RenameMutation(AnyPath(model), AnyPath(model), random_.OneIn(2)).rename();
      break;
    }
    case 8: {
      *m.mutable_delete_() = DeleteMutation(AnyPath(model), random_.OneIn(2)).delete_();
      break;
    }
    case 9: {
      v1::Mutation::DeleteMany& op = *m.mutable_delete_many();
      op.set_recursive(random_.OneIn(2));
      for (uint64_t paths = 1 + random_.Below(4); paths > 0; --paths) op.add_paths(AnyPath(model));
      break;
    }
    case 10: {
      v1::Mutation::SetQuota& op = *m.mutable_set_quota();
      op.set_path(AnyPath(model));
      const auto quota = [this](uint64_t most) { return random_.OneIn(3) ? -1 : static_cast<int64_t>(random_.Below(most)); };
      if (random_.OneIn(2)) op.set_namespace_quota(quota(20));
      if (random_.OneIn(2)) op.set_space_quota_bytes(quota(30 * kBlockSize));
      if (random_.OneIn(30)) op.set_namespace_quota(-2);
      break;
    }
    case 11: {
      m.mutable_set_replication()->set_path(AnyPath(model));
      m.mutable_set_replication()->set_replication(static_cast<uint32_t>(random_.Below(random_.OneIn(10) ? 8 : 4)));
      break;
    }
    case 12: {
      v1::Mutation::Concat& op = *m.mutable_concat();
      const std::string target = Existing(model);
      op.set_target(target);
      for (const auto& [other, node] : model.nodes()) {
        const bool beside = other != "/" && target != "/" && TreeModel::ParentOf(other) == TreeModel::ParentOf(target);
        if (beside && other != target && !node.is_directory && node.holder.empty() && !random_.OneIn(3)) op.add_sources(other);
      }
      if (random_.OneIn(6)) op.add_sources(AnyPath(model));
      break;
    }
    case 13: {
      m.mutable_set_permission()->set_path(AnyPath(model));
      // Mostly open: where nobody may do anything, nothing happens.
      m.mutable_set_permission()->set_mode(static_cast<uint32_t>(random_.OneIn(3) ? random_.Below(02010) : 0777 ^ random_.Below(8)));
      break;
    }
    case 14: {
      v1::Mutation::SetOwner& op = *m.mutable_set_owner();
      op.set_path(AnyPath(model));
      if (random_.OneIn(2)) op.set_owner(random_.OneIn(3) ? client.user : clients_[random_.Below(clients_.size())].user);
      if (random_.OneIn(2)) op.set_group(random_.OneIn(2) ? "staff" : "more");
      break;
    }
    case 15: {
      v1::Mutation::SetTimes& op = *m.mutable_set_times();
      op.set_path(AnyPath(model));
      if (random_.OneIn(2)) op.set_modification_time_ms(now_ms_ + static_cast<int64_t>(random_.Below(20'000)) - 10'000);
      if (random_.OneIn(2)) op.set_access_time_ms(random_.OneIn(20) ? -1 : now_ms_);
      break;
    }
    case 16:
    case 17: {
      v1::Xattr xattr;
      xattr.set_name_space(random_.OneIn(4) ? static_cast<v1::XattrNamespace>(random_.Below(6)) : v1::XATTR_USER);
      if (!random_.OneIn(30)) xattr.set_name(std::string(1, static_cast<char>('a' + random_.Below(4))));
      xattr.set_value(std::string(random_.OneIn(20) ? 60 : random_.Below(5), 'v'));
      if (random_.OneIn(3)) {
        m.mutable_remove_xattr()->set_path(AnyPath(model));
        *m.mutable_remove_xattr()->mutable_xattr() = xattr;
        break;
      }
      m.mutable_set_xattr()->set_path(AnyPath(model));
      *m.mutable_set_xattr()->mutable_xattr() = xattr;
      m.mutable_set_xattr()->set_create(random_.OneIn(2));
      m.mutable_set_xattr()->set_replace(random_.OneIn(2));
      break;
    }
    case 18: {
      if (!random_.OneIn(3)) {
        WriterCall(model, &m);
        break;
      }
      std::string path;
      const ModelNode* file = OpenFile(model, &path);
      v1::Mutation::RecoverLease& op = *m.mutable_recover_lease();
      op.set_path(file == nullptr || random_.OneIn(6) ? AnyPath(model) : path);
      op.set_by_force(random_.OneIn(2));
      if (file != nullptr && !random_.OneIn(6)) op.mutable_lease_seen()->set_holder(file->holder);
      op.mutable_lease_seen()->set_idle_ms(static_cast<int64_t>(random_.OneIn(4) ? random_.Below(60'000) : 60'000));
      break;
    }
    default: WriterCall(model, &m); break;
  }
  return m;
}

// What the primary of a block's recovery says at its end. A second round (StartBlockRecovery) is not among the changes: it takes a stamp
// also where the block is of a deleted file, as long as its row is there, and the model does not follow those.
bool TreeWorkload::EndRecovery(const TreeModel& model, v1::Mutation* m) {
  std::vector<const ModelNode*> waiting;
  for (const auto& [path, node] : model.nodes())
    if (node.holder == namenode::kRecoveryHolder) waiting.push_back(&node);
  if (waiting.empty()) return false;
  const ModelNode& file = *waiting[random_.Below(waiting.size())];
  const ModelBlock& block = file.blocks.back();
  v1::Mutation::CommitBlockRecovery& op = *m->mutable_commit_block_recovery();
  op.set_recovery_id(block.recovery_id + (random_.OneIn(15) ? random_.Below(3) : 0));
  op.set_drop(random_.OneIn(4));
  const uint64_t length = random_.OneIn(3) ? random_.Below(kBlockSize + 100) : block.length;
  *op.mutable_block() = MakeBlock(block.id, random_.OneIn(20) ? block.stamp : op.recovery_id(), length);
  for (const uint32_t storage : block.storages) {
    if (!random_.OneIn(8)) op.add_answered(storage);
    if (!random_.OneIn(8)) (op.drop() ? op.mutable_empty() : op.mutable_storages())->Add(storage);
  }
  if (random_.OneIn(20)) op.add_storages(static_cast<uint32_t>(1 + random_.Below(kStorages)));
  return true;
}

void TreeWorkload::Background(const std::vector<uint64_t>& works, const TreeModel& model, v1::Mutation* m) {
  if (random_.OneIn(4) && EndRecovery(model, m)) return;
  switch (random_.Below(6)) {
    case 0: {
      std::string path;
      const ModelNode* file = OpenFile(model, &path);
      m->mutable_expire_lease()->set_holder(file == nullptr || random_.OneIn(8) ? "nobody" : file->holder);
      m->mutable_expire_lease()->set_inode_id(file == nullptr ? 16386 : file->id);
      m->mutable_expire_lease()->set_observed_idle_ms(3'600'000);
      return;
    }
    case 1: {
      m->mutable_sweep_retries()->set_unused_since_ms(now_ms_ - 10 * 60 * 1000);
      m->mutable_sweep_retries()->set_max_rows(static_cast<uint32_t>(1 + random_.Below(10)));
      return;
    }
    case 2: {
      if (random_.OneIn(2)) {
        m->mutable_set_meta()->set_at_least_generation_stamp(1000 + random_.Below(200));
        m->mutable_set_meta()->set_at_least_block_id((1 << 30) + random_.Below(4000));
        return;
      }
      m->mutable_register_storages()->set_datanode_uuid("node");
      m->mutable_register_storages()->add_storage_uuids(fmt::format("storage-{}", random_.Below(kStorages)));
      return;
    }
    default: {
      m->mutable_reclaim_step()->set_work_id(works.empty() ? 1 : works[random_.Below(works.size())]);
      m->mutable_reclaim_step()->set_max_entries(static_cast<uint32_t>(1 + random_.Below(5)));
      return;
    }
  }
}

v1::Mutation TreeWorkload::Next(const TreeModel& model, const std::vector<uint64_t>& works) {
  now_ms_ += static_cast<int64_t>(random_.Below(2000));
  if (random_.OneIn(150)) now_ms_ += 10 * 60 * 1000;
  v1::Mutation m;
  const bool background = random_.OneIn(6);
  if (background) {
    Background(works, model, &m);
  } else {
    m = Operation(model);
  }
  // The clock of the machine may step back; mutation time does not.
  m.set_time_ms(random_.OneIn(20) ? now_ms_ - static_cast<int64_t>(random_.Below(5000)) : now_ms_);
  if (background || random_.OneIn(5)) return m;

  Client& client = *std::find_if(clients_.begin(), clients_.end(), [&](const Client& c) { return c.id == m.client_id(); });
  const auto number = static_cast<uint32_t>(random_.Below(client.slots.size()));
  Slot& slot = client.slots[number];
  if (slot.opened_ms == 0 || (now_ms_ - slot.opened_ms > 8 * 60 * 1000 && !random_.OneIn(4))) slot.opened_ms = now_ms_;
  m.set_slot(number);
  m.set_sequence(++slot.sequence);
  m.set_slot_opened_ms(slot.opened_ms);
  m.set_request_hash(random_.Next() | 1);
  earlier_.push_back(m);
  if (earlier_.size() > kEarlierKept) earlier_.pop_front();
  return m;
}

v1::Mutation TreeWorkload::Earlier() {
  // Mostly the last ones: those are repeated at once.
  const size_t back = random_.OneIn(3) ? random_.Below(earlier_.size()) : random_.Below(std::min<size_t>(earlier_.size(), 4));
  v1::Mutation m = earlier_[earlier_.size() - 1 - back];
  now_ms_ += static_cast<int64_t>(random_.Below(2000));
  m.set_time_ms(now_ms_);
  if (random_.OneIn(30)) m.set_request_hash(m.request_hash() + 2);
  return m;
}

}  // namespace cairn::testing
