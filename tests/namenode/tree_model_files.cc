// Files that are being written, as TreeModel has them.

#include <algorithm>
#include <set>

#include "common/ids.h"
#include "tests/namenode/tree_model.h"

namespace cairn::testing {
namespace {

bool IsOpen(const ModelBlock& block) { return block.state == v1::UNDER_CONSTRUCTION || block.state == v1::RESERVED; }

// The block that the writer of `file` may change under this id.
ModelBlock* Writable(ModelNode* file, uint64_t id) {
  ModelBlock* block = nullptr;
  if (!file->blocks.empty() && file->blocks.back().id == id) block = &file->blocks.back();
  if (block == nullptr && file->reserved && file->reserved->id == id) block = &*file->reserved;
  return block != nullptr && IsOpen(*block) ? block : nullptr;
}

}  // namespace

ErrorKind TreeModel::Load(const std::string& path, uint64_t inode_id, Edit* edit) const {
  if (inode_id != 0) {
    const std::string* found = PathOfId(inode_id);
    if (found == nullptr) return ErrorKind::kLeaseExpired;
    edit->path = *found;
  } else {
    const Walk walk = WalkTo(path);
    if (walk.error != ErrorKind::kNone) return walk.error;
    if (!walk.complete()) return ErrorKind::kLeaseExpired;
    edit->path = walk.path();
  }
  edit->file = nodes_.at(edit->path);
  return edit->file.is_directory ? ErrorKind::kIsDirectory : ErrorKind::kNone;
}

ModelBlock TreeModel::Allocate(const ModelNode& file, v1::BlockUCState state, const google::protobuf::RepeatedField<uint32_t>& targets) {
  ModelBlock block;
  block.id = next_block_;
  block.stamp = next_stamp_++;
  block.state = state;
  block.storages.assign(targets.begin(), targets.end());
  block.replication = file.replication;
  block.charged = file.block_size * file.replication;
  next_block_ += kBlockIdStep;
  return block;
}

ErrorKind TreeModel::Commit(const v1::Mutation& m, const v1::Mutation::Commit& commit, ModelNode* file, bool* changed) const {
  const v1::Block& named = commit.block();
  if (file->blocks.empty() || file->blocks.back().id != named.id()) return ErrorKind::kInvalidArgument;
  ModelBlock& block = file->blocks.back();
  if (named.generation_stamp() != block.stamp) return ErrorKind::kStaleGeneration;
  if (block.state == v1::COMMITTED) return named.length_bytes() == block.length ? ErrorKind::kNone : ErrorKind::kInvalidArgument;
  if (block.state == v1::UNDER_RECOVERY) return ErrorKind::kLeaseExpired;
  if (named.length_bytes() < block.length || named.length_bytes() > file->block_size) return ErrorKind::kInvalidArgument;
  const std::set<uint32_t> acknowledged(commit.acknowledged().begin(), commit.acknowledged().end());
  for (const uint32_t storage : acknowledged)
    if (std::find(block.storages.begin(), block.storages.end(), storage) == block.storages.end()) return ErrorKind::kInvalidArgument;
  if (acknowledged.size() < std::max(m.limits().min_replication(), 1u)) return ErrorKind::kNotReplicatedYet;
  block.length = named.length_bytes();
  block.state = v1::COMMITTED;
  block.committed_ms = now_ms_;
  block.closed_length = 0;
  block.append_from = 0;
  block.synced = 0;
  std::erase_if(block.storages, [&](uint32_t storage) { return !acknowledged.contains(storage); });
  block.charged = block.length * block.replication;
  *changed = true;
  return ErrorKind::kNone;
}

ErrorKind TreeModel::TakeReserved(const v1::Mutation& m, const v1::Mutation::Commit* previous, uint64_t id, ModelNode* file,
                                  bool* changed) const {
  if (!file->blocks.empty() && file->blocks.back().id == id) {
    if (previous == nullptr) return ErrorKind::kNone;
    const size_t count = file->blocks.size();
    const bool same = count >= 2 && file->blocks[count - 2].id == previous->block().id() &&
                      file->blocks[count - 2].length == previous->block().length_bytes();
    return same ? ErrorKind::kNone : ErrorKind::kInvalidArgument;
  }
  if (!file->reserved || file->reserved->id != id) return ErrorKind::kInvalidArgument;
  if (file->blocks.empty()) {
    if (previous != nullptr) return ErrorKind::kInvalidArgument;
  } else if (previous != nullptr) {
    if (const ErrorKind kind = Commit(m, *previous, file, changed); kind != ErrorKind::kNone) return kind;
  } else if (file->blocks.back().state != v1::COMMITTED) {
    return ErrorKind::kInvalidArgument;
  }
  file->blocks.push_back(*file->reserved);
  file->blocks.back().state = v1::UNDER_CONSTRUCTION;
  file->reserved.reset();
  *changed = true;
  return ErrorKind::kNone;
}

void TreeModel::Close(ModelNode* file, bool by_writer) const {
  file->reserved.reset();
  file->holder.clear();
  file->vanishes = false;
  if (by_writer) file->never_closed = false;
  file->modified_ms = now_ms_;
}

Expected TreeModel::AddBlock(const v1::Mutation& m) {
  const v1::Mutation::AddBlock& op = m.add_block();
  Edit edit;
  if (const ErrorKind kind = Load(op.path(), op.inode_id(), &edit); kind != ErrorKind::kNone) return Refused(kind);
  ModelNode& file = edit.file;
  if (!Holds(m, file)) return Refused(ErrorKind::kLeaseExpired);
  Expected expected;
  const auto answer = [&](const ModelBlock& block) {
    expected.path = edit.path;
    expected.inode_id = file.id;
    expected.block = block;
    expected.storages = block.storages;
    const bool is_last = !file.blocks.empty() && file.blocks.back().id == block.id;
    expected.offset = file.length() - (is_last ? block.length : 0);
    return expected;
  };
  if (op.use_reserved_id() != 0) {
    const ErrorKind kind = TakeReserved(m, op.has_previous() ? &op.previous() : nullptr, op.use_reserved_id(), &file, &expected.acted);
    if (kind != ErrorKind::kNone) return Refused(kind);
    if (expected.acted) Store(edit);
    return answer(file.blocks.back());
  }
  const bool has_room = file.blocks.size() < m.limits().max_blocks_per_file();
  if (op.reserve()) {
    if (file.reserved) return answer(*file.reserved);
    if (!has_room) return Refused(ErrorKind::kQuota);
    if (op.targets().empty()) return Refused(ErrorKind::kInvalidArgument);
    if (CheckQuota(edit.path, 0, static_cast<int64_t>(file.block_size * file.replication)) != ErrorKind::kNone)
      return Refused(ErrorKind::kQuota);
    file.reserved = Allocate(file, v1::RESERVED, op.targets());
    expected.acted = true;
    Store(edit);
    return answer(*file.reserved);
  }
  // The same call once more, while its block is still untouched.
  if (!file.blocks.empty() && file.blocks.back().state == v1::UNDER_CONSTRUCTION && file.blocks.back().length == 0) {
    const size_t count = file.blocks.size();
    bool repeated = !op.has_previous() && count == 1;
    if (op.has_previous() && count >= 2) {
      const ModelBlock& before = file.blocks[count - 2];
      repeated = before.state == v1::COMMITTED && before.id == op.previous().block().id() &&
                 before.stamp == op.previous().block().generation_stamp() && before.length == op.previous().block().length_bytes();
    }
    if (repeated) return answer(file.blocks.back());
  }
  if (op.has_previous()) {
    if (const ErrorKind kind = Commit(m, op.previous(), &file, &expected.acted); kind != ErrorKind::kNone) return Refused(kind);
  } else if (!file.blocks.empty() && file.blocks.back().state != v1::COMMITTED) {
    return Refused(ErrorKind::kInvalidArgument);
  }
  if (!has_room) return Refused(ErrorKind::kQuota);
  if (op.targets().empty()) return Refused(ErrorKind::kInvalidArgument);
  file.reserved.reset();
  const auto more = static_cast<int64_t>(file.charged() + file.block_size * file.replication - nodes_[edit.path].charged());
  if (CheckQuota(edit.path, 0, more) != ErrorKind::kNone) return Refused(ErrorKind::kQuota);
  file.blocks.push_back(Allocate(file, v1::UNDER_CONSTRUCTION, op.targets()));
  expected.acted = true;
  Store(edit);
  return answer(file.blocks.back());
}

Expected TreeModel::AbandonBlock(const v1::Mutation& m) {
  const v1::Mutation::AbandonBlock& op = m.abandon_block();
  Edit edit;
  Expected expected;
  expected.existed = false;
  const ErrorKind kind = Load(op.path(), op.inode_id(), &edit);
  if (kind == ErrorKind::kLeaseExpired) return expected;  // The file is gone, and its blocks with it.
  if (kind != ErrorKind::kNone) return Refused(kind);
  if (!Holds(m, edit.file)) return Refused(ErrorKind::kLeaseExpired);
  expected.path = edit.path;
  ModelBlock* const block = Writable(&edit.file, op.block().id());
  if (block == nullptr) {
    std::string other;
    if (FindBlock(op.block().id(), &other) != nullptr) return Refused(ErrorKind::kLeaseExpired);  // Not this writer's, or not open.
    expected.unpredictable = left_blocks_.contains(op.block().id());                              // Its row may be there still.
    expected.or_refused = ErrorKind::kLeaseExpired;
    return expected;
  }
  if (block->closed_length > 0) return Refused(ErrorKind::kInvalidArgument, "APPENDED");
  expected.existed = true;
  expected.acted = true;
  expected.block = *block;
  if (block->state == v1::RESERVED) {
    edit.file.reserved.reset();
  } else {
    edit.file.blocks.pop_back();
  }
  Store(edit);
  return expected;
}

Expected TreeModel::UpdateBlockForPipeline(const v1::Mutation& m) {
  const v1::Mutation::UpdateBlockForPipeline& op = m.update_block_for_pipeline();
  Edit edit;
  if (const ErrorKind kind = Load(op.path(), op.inode_id(), &edit); kind != ErrorKind::kNone) return Refused(kind);
  if (!Holds(m, edit.file)) return Refused(ErrorKind::kLeaseExpired);
  ModelBlock* const block = Writable(&edit.file, op.block().id());
  if (block == nullptr) return Refused(ErrorKind::kLeaseExpired);
  Expected expected;
  expected.acted = true;
  expected.path = edit.path;
  expected.storages = block->storages;
  expected.block = *block;
  expected.block->stamp = next_stamp_++;
  return expected;
}

Expected TreeModel::UpdatePipeline(const v1::Mutation& m) {
  const v1::Mutation::UpdatePipeline& op = m.update_pipeline();
  Edit edit;
  if (const ErrorKind kind = Load(op.path(), op.inode_id(), &edit); kind != ErrorKind::kNone) return Refused(kind);
  if (!Holds(m, edit.file)) return Refused(ErrorKind::kLeaseExpired);
  ModelBlock* const block = Writable(&edit.file, op.old_block().id());
  if (block == nullptr) return Refused(ErrorKind::kLeaseExpired);
  const v1::Block& next = op.new_block();
  const std::vector<uint32_t> storages(op.storages().begin(), op.storages().end());
  if (next.id() != block->id || storages.empty() || std::set<uint32_t>(storages.begin(), storages.end()).size() != storages.size())
    return Refused(ErrorKind::kInvalidArgument);
  Expected expected;
  expected.path = edit.path;
  if (next.generation_stamp() == block->stamp && storages == block->storages && next.length_bytes() <= block->length) {
    expected.block = *block;
    return expected;
  }
  if (next.generation_stamp() <= block->stamp) return Refused(ErrorKind::kStaleGeneration);
  if (next.generation_stamp() >= next_stamp_ || next.length_bytes() < block->length || next.length_bytes() > edit.file.block_size)
    return Refused(ErrorKind::kInvalidArgument);
  block->stamp = next.generation_stamp();
  block->storages = storages;
  block->length = next.length_bytes();
  block->append_from = 0;
  expected.acted = true;
  expected.block = *block;
  Store(edit);
  return expected;
}

Expected TreeModel::Fsync(const v1::Mutation& m) {
  const v1::Mutation::Fsync& op = m.fsync();
  Edit edit;
  if (const ErrorKind kind = Load(op.path(), op.inode_id(), &edit); kind != ErrorKind::kNone) return Refused(kind);
  if (!Holds(m, edit.file)) return Refused(ErrorKind::kLeaseExpired);
  Expected expected;
  expected.path = edit.path;
  if (op.use_reserved_id() != 0) {
    const ErrorKind kind = TakeReserved(m, op.has_previous() ? &op.previous() : nullptr, op.use_reserved_id(), &edit.file, &expected.acted);
    if (kind != ErrorKind::kNone) return Refused(kind);
  }
  if (op.has_last_block()) {
    ModelBlock* const block = Writable(&edit.file, op.last_block().id());
    if (block == nullptr) return Refused(ErrorKind::kLeaseExpired);
    if (block->state == v1::RESERVED) return Refused(ErrorKind::kInvalidArgument);
    if (op.last_block().generation_stamp() != block->stamp) return Refused(ErrorKind::kStaleGeneration);
    if (op.last_block().length_bytes() > edit.file.block_size) return Refused(ErrorKind::kInvalidArgument);
    if (op.last_block().length_bytes() > block->length) {
      block->length = op.last_block().length_bytes();
      block->append_from = 0;
      expected.acted = true;
    }
    if (op.synced() && op.last_block().length_bytes() > block->synced) {
      block->synced = op.last_block().length_bytes();
      expected.acted = true;
    }
  }
  if (expected.acted) Store(edit);
  return expected;
}

Expected TreeModel::Complete(const v1::Mutation& m) {
  const v1::Mutation::Complete& op = m.complete();
  Edit edit;
  if (const ErrorKind kind = Load(op.path(), op.inode_id(), &edit); kind != ErrorKind::kNone) return Refused(kind);
  ModelNode& file = edit.file;
  Expected expected;
  expected.path = edit.path;
  expected.inode_id = file.id;
  if (file.holder.empty()) {
    const v1::Block& named = op.last().block();
    const bool ends_so = op.has_last()
                             ? !file.blocks.empty() && file.blocks.back().id == named.id() &&
                                   file.blocks.back().stamp == named.generation_stamp() && file.blocks.back().length == named.length_bytes()
                             : file.blocks.empty();
    if (ends_so) return expected;
  }
  if (!Holds(m, file)) return Refused(ErrorKind::kLeaseExpired);
  if (op.use_reserved_id() != 0) {
    const ErrorKind kind = TakeReserved(m, op.has_previous() ? &op.previous() : nullptr, op.use_reserved_id(), &file, &expected.acted);
    if (kind != ErrorKind::kNone) return Refused(kind);
  }
  if (op.has_last()) {
    if (const ErrorKind kind = Commit(m, op.last(), &file, &expected.acted); kind != ErrorKind::kNone) return Refused(kind);
  } else if (!file.blocks.empty() && file.blocks.back().state != v1::COMMITTED) {
    return Refused(ErrorKind::kInvalidArgument);
  }
  Close(&file, /*by_writer=*/true);
  Store(edit);
  expected.acted = true;
  return expected;
}

}  // namespace cairn::testing
