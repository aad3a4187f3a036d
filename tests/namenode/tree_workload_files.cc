// What TreeWorkload does with files: their writers, and what happens to those that are taken from them, appended to and cut.

#include <algorithm>
#include <utility>

#include "namenode/namespace/file_edit.h"
#include "tests/namenode/tree_workload.h"
#include "tests/testing/builders.h"

namespace cairn::testing {
namespace {

constexpr size_t kRoundsKept = 8;
constexpr int kMostStalled = 9;  // A quota forbids it, or several calls are under way.

// The block that holds the byte before `length`, if that is inside it.
const ModelBlock* CutBy(const ModelNode& file, uint64_t length) {
  uint64_t begin = 0;
  for (const ModelBlock& block : file.blocks) {
    if (begin < length && length < begin + block.length) return &block;
    begin += block.length;
  }
  return nullptr;
}

}  // namespace

const ModelNode* TreeWorkload::SomeFile(const TreeModel& model, bool open, std::string* path) {
  std::vector<const std::string*> wanted, others;
  for (const auto& [at, node] : model.nodes())
    if (!node.is_directory) (node.holder.empty() == open ? others : wanted).push_back(&at);
  const std::vector<const std::string*>& from = wanted.empty() || random_.OneIn(10) ? others : wanted;
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
  const ModelNode* file = SomeFile(model, /*open=*/true, &path);
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
      op.mutable_new_block()->set_generation_stamp(random_.OneIn(2) ? model.next_stamp() - 1
                                                                    : op.old_block().generation_stamp() + random_.Below(4));
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
      op.set_synced(random_.OneIn(3));
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

v1::Mutation::LeaseSeen TreeWorkload::LeaseSeen(const ModelNode& file) {
  v1::Mutation::LeaseSeen seen;
  if (!random_.OneIn(6)) seen.set_holder(file.holder);
  seen.set_idle_ms(static_cast<int64_t>(random_.OneIn(3) ? random_.Below(60'000) : 60'000));
  if (random_.OneIn(4)) seen.set_limit_ms(static_cast<int64_t>(random_.Below(120'000)));
  return seen;
}

template <class Op>
void TreeWorkload::SetHolding(const ModelNode& file, const ModelBlock* block, Op* op) {
  const ModelBlock none;
  if (block == nullptr) block = file.blocks.empty() || random_.OneIn(2) ? &none : &file.blocks.front();
  op->set_block_id(block->id + (random_.OneIn(40) ? 16 : 0));
  op->set_generation_stamp(block->stamp + (random_.OneIn(25) ? 1 : 0));
  for (const uint32_t storage : block->storages)
    if (!random_.OneIn(8)) op->add_holding(storage);
  if (random_.OneIn(30) && op->holding_size() > 0) op->add_holding(op->holding(0));
}

void TreeWorkload::Append(const TreeModel& model, v1::Mutation* m) {
  v1::Mutation::Append& op = *m->mutable_append();
  std::string path;
  const ModelNode* file = SomeFile(model, /*open=*/false, &path);
  op.set_new_block(random_.OneIn(4));
  if (random_.OneIn(40)) m->set_client_name(random_.OneIn(2) ? "" : std::string(namenode::kRecoveryHolder));
  if (file == nullptr || random_.OneIn(10)) {
    op.set_path(AnyPath(model));
    return;
  }
  op.set_path(path);
  *op.mutable_lease_seen() = LeaseSeen(*file);
  SetHolding(*file, file->blocks.empty() ? nullptr : &file->blocks.back(), &op);
}

void TreeWorkload::Truncate(const TreeModel& model, v1::Mutation* m) {
  v1::Mutation::Truncate& op = *m->mutable_truncate();
  std::string path;
  const ModelNode* file = nullptr;
  for (int i = 0; i < 3 && (file == nullptr || file->length() == 0); ++i) file = SomeFile(model, /*open=*/false, &path);
  if (file == nullptr || random_.OneIn(10)) {
    op.set_path(AnyPath(model));
    return;
  }
  op.set_path(path);
  *op.mutable_lease_seen() = LeaseSeen(*file);
  uint64_t length = file->length();
  switch (random_.Below(6)) {
    case 0: length += random_.Below(2); break;  // As it is, or longer.
    case 1:                                     // At the border of a block.
      length = 0;
      for (uint64_t count = random_.Below(file->blocks.size() + 1); count > 0; --count) length += file->blocks[count - 1].length;
      break;
    default: length = random_.Below(length + 1); break;
  }
  op.set_new_length_bytes(length);
  SetHolding(*file, CutBy(*file, length), &op);
}

void TreeWorkload::LeaseCall(const TreeModel& model, v1::Mutation* m) {
  switch (random_.Below(5)) {
    case 0: {
      std::string path;
      const ModelNode* file = SomeFile(model, /*open=*/true, &path);
      v1::Mutation::RecoverLease& op = *m->mutable_recover_lease();
      op.set_path(file == nullptr || random_.OneIn(6) ? AnyPath(model) : path);
      op.set_by_force(random_.OneIn(2));
      if (file != nullptr) *op.mutable_lease_seen() = LeaseSeen(*file);
      return;
    }
    case 1:
    case 2: return Append(model, m);
    default: return Truncate(model, m);
  }
}

// A round of a block's recovery begins once more, or its primary says how it ended: as it should be, or not, or of a round that is over.
bool TreeWorkload::Recovery(const TreeModel& model, v1::Mutation* m) {
  std::vector<const ModelNode*> waiting;
  for (const auto& [path, node] : model.nodes())
    if (node.holder == namenode::kRecoveryHolder) waiting.push_back(&node);
  if (!rounds_.empty() && (waiting.empty() || random_.OneIn(6))) {
    const v1::Mutation::CommitBlockRecovery& told = rounds_[random_.Below(rounds_.size())];
    if (random_.OneIn(3)) {
      m->mutable_start_block_recovery()->set_block_id(told.block().id());
    } else {
      *m->mutable_commit_block_recovery() = told;
    }
    return true;
  }
  if (waiting.empty()) return false;
  const ModelNode& file = *waiting[random_.Below(waiting.size())];
  const ModelBlock& block = file.blocks.back();
  if (random_.OneIn(3)) {
    m->mutable_start_block_recovery()->set_inode_id(file.id);
    m->mutable_start_block_recovery()->set_block_id(block.id);
    if (!random_.OneIn(3)) return true;
    m->mutable_start_block_recovery()->set_block_id(file.blocks.front().id);
    return true;
  }
  v1::Mutation::CommitBlockRecovery& op = *m->mutable_commit_block_recovery();
  op.set_recovery_id(block.recovery_id + (random_.OneIn(15) ? random_.Below(3) : 0));
  op.set_drop(random_.OneIn(4));
  uint64_t length = block.truncate_to.value_or(block.length);
  if (random_.OneIn(block.truncate_to ? 8 : 3)) length = random_.Below(random_.OneIn(2) ? kBlockSize + 100 : block.length + 1);
  *op.mutable_block() = MakeBlock(block.id, random_.OneIn(20) ? block.stamp : op.recovery_id(), length);
  for (const uint32_t storage : block.storages) {
    if (!random_.OneIn(4)) op.add_answered(storage);
    if (!random_.OneIn(8)) (op.drop() ? op.mutable_empty() : op.mutable_storages())->Add(storage);
  }
  if (random_.OneIn(20)) op.add_storages(static_cast<uint32_t>(1 + random_.Below(kStorages)));
  rounds_.push_back(op);
  if (rounds_.size() > kRoundsKept) rounds_.pop_front();
  return true;
}

// Now and then a few short files, one after the other in one directory, so that there is something to concat.
std::optional<v1::Mutation> TreeWorkload::ShortFile(const TreeModel& model) {
  if (short_files_ == 0) {
    if (!random_.OneIn(60)) return std::nullopt;
    short_files_ = 3;
    short_file_ = 0;
    short_directory_ = Existing(model);
  }
  const Client& client = clients_.front();
  v1::Mutation m = CreateMutation((short_directory_ == "/" ? "/" : short_directory_ + "/") + Name(), client.name, {1, 2, 3});
  m.set_user(client.user);
  m.set_superuser(true);
  m.set_client_id(client.id);
  *m.mutable_limits() = Limits();
  if (short_file_ == 0) {
    m.mutable_create()->set_block_size_bytes(kBlockSize);
    m.mutable_create()->set_create_parent(false);
    short_file_ = model.next_inode();
    return m;
  }
  --short_files_;
  const uint64_t id = std::exchange(short_file_, 0);
  for (const auto& [path, node] : model.nodes()) {
    if (node.id != id || node.is_directory || node.blocks.empty()) continue;
    const ModelBlock& last = node.blocks.back();
    m.mutable_complete()->set_inode_id(id);
    *m.mutable_complete()->mutable_last() = MakeCommit(MakeBlock(last.id, last.stamp, 0), 1 + random_.Below(kBlockSize), last.storages);
    return m;
  }
  return std::nullopt;
}

// Begins a file now and then and writes it block by block until it is long, closes it and changes its replication. All by one client,
// whom nothing forbids; what others do meanwhile may end it.
std::optional<v1::Mutation> TreeWorkload::LongFile(const TreeModel& model) {
  const Client& client = clients_.front();
  v1::Mutation m;
  m.set_user(client.user);
  m.set_superuser(true);
  m.set_client_id(client.id);
  m.set_client_name(client.name);
  *m.mutable_limits() = Limits();
  m.mutable_limits()->set_max_blocks_per_file(2 * kLongFile);
  if (long_file_ == 0) {
    if (!random_.OneIn(options_.long_file_one_in)) return std::nullopt;
    *m.mutable_create() = CreateMutation(NewPath(model), client.name, {1, 2}).create();
    m.mutable_create()->set_replication(2);
    m.mutable_create()->set_block_size_bytes(kBlockSize);
    long_file_ = model.next_inode();  // If it is made: parents that have to be made come first.
    stalled_ = 0;
    return m;
  }
  std::string path;
  const ModelNode* file = nullptr;
  for (const auto& [at, node] : model.nodes()) {
    if (node.is_directory || node.id < long_file_ || node.id > long_file_ + 6 || node.blocks.empty()) continue;
    path = at;
    file = &node;
  }
  if (file != nullptr && file->holder.empty() && file->blocks.size() >= kLongFile) {
    long_file_ = 0;
    m.mutable_set_replication()->set_path(path);
    m.mutable_set_replication()->set_replication(file->replication == 1 ? 3 : 1);
    return m;
  }
  stalled_ = file != nullptr && file->blocks.size() > long_file_blocks_ ? 0 : stalled_ + 1;
  if (file == nullptr || file->holder != client.name || file->blocks.back().state != v1::UNDER_CONSTRUCTION || stalled_ > kMostStalled) {
    long_file_ = 0;
    return std::nullopt;
  }
  long_file_blocks_ = file->blocks.size();
  const ModelBlock& last = file->blocks.back();
  const v1::Mutation::Commit commit = MakeCommit(MakeBlock(last.id, last.stamp, 0), std::max<uint64_t>(last.length, 10), last.storages);
  if (file->blocks.size() >= kLongFile) {
    m.mutable_complete()->set_inode_id(file->id);
    *m.mutable_complete()->mutable_last() = commit;
    return m;
  }
  v1::Mutation::AddBlock& op = *m.mutable_add_block();
  op.set_inode_id(file->id);
  *op.mutable_previous() = commit;
  for (const uint32_t target : {1u, 2u}) op.add_targets(target);
  return m;
}

}  // namespace cairn::testing
