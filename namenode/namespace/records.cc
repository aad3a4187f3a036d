#include "namenode/namespace/records.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.h"

namespace cairn::namenode {

absl::StatusOr<uint64_t> GetNumber(const ReadView& view, std::string_view name) {
  ASSIGN_OR_RETURN(const std::optional<std::string> bytes, view.Get(Family::kMeta, name));
  if (!bytes) return CorruptRow(Family::kMeta, name, "is missing");
  const std::optional<uint64_t> value = DecodeU64(*bytes);
  if (!value) return CorruptRow(Family::kMeta, name, "is not a number");
  return *value;
}

void PutNumber(Transaction& txn, std::string_view name, uint64_t value) { txn.Put(Family::kMeta, name, EncodeU64(value)); }

absl::StatusOr<uint64_t> TakeNumber(Transaction& txn, std::string_view name, uint64_t step) {
  ASSIGN_OR_RETURN(const uint64_t value, GetNumber(txn, name));
  PutNumber(txn, name, value + step);
  return value;
}

absl::StatusOr<std::optional<InodeAt>> FindInodeAnywhere(const ReadView& view, InodeId id) {
  std::optional<InodeAt> found;
  ASSIGN_OR_RETURN(const std::optional<FoundInode> inode, FindInode(view, id));
  if (inode) found.emplace(InodeAt{inode->parent(), inode->link->name(), *inode->record});
  return found;
}

absl::StatusOr<std::optional<FoundInode>> FindInode(const ReadView& view, InodeId id) {
  std::optional<FoundInode> found;
  ASSIGN_OR_RETURN(std::shared_ptr<const v1::INodeLink> link, FindShared<v1::INodeLink>(view, Family::kInodeById, InodeByIdKey(id)));
  if (link == nullptr) return found;
  ASSIGN_OR_RETURN(std::shared_ptr<const v1::INodeRecord> record,
                   GetShared<v1::INodeRecord>(view, Family::kInode, InodeKey(InodeId(link->parent_id()), link->name())));
  if (record->id() != id.value()) return CorruptRow(Family::kInodeById, InodeByIdKey(id), "points to another inode");
  found.emplace(FoundInode{std::move(link), std::move(record)});
  return found;
}

void PutInode(Transaction& txn, InodeAt inode) {
  txn.PutMessage(Family::kInode, InodeKey(inode.parent, inode.name), std::make_shared<v1::INodeRecord>(std::move(inode.record)));
}

void PutLink(Transaction& txn, InodeId id, InodeId parent, std::string_view name) {
  v1::INodeLink link;
  link.set_parent_id(parent.value());
  link.set_name(std::string(name));
  PutRecord(txn, Family::kInodeById, InodeByIdKey(id), link);
}

absl::StatusOr<BlockId> BlockIdAt(const ReadView& view, const v1::INodeRecord& file, uint64_t index) {
  ASSIGN_OR_RETURN(const std::vector<BlockId> ids, BlockIds(view, file, index, 1));
  if (ids.size() != 1) return CorruptRow(Family::kInodeById, InodeByIdKey(InodeId(file.id())), "has fewer blocks than its count");
  return ids.front();
}

absl::StatusOr<std::vector<BlockId>> BlockIds(const ReadView& view, const v1::INodeRecord& file, uint64_t first, uint64_t count) {
  std::vector<BlockId> ids;
  if (first >= file.block_count()) return ids;
  const uint64_t end = first + std::min(count, file.block_count() - first);
  ids.reserve(static_cast<size_t>(end - first));
  const InodeId id(file.id());
  if (file.block_count() <= kMaxInlineBlocks) {
    if (static_cast<uint64_t>(file.blocks_size()) != file.block_count())
      return CorruptRow(Family::kInodeById, InodeByIdKey(id), "has another number of blocks than its count");
    for (uint64_t i = first; i < end; ++i) ids.emplace_back(file.blocks(static_cast<int>(i)));
    return ids;
  }
  const auto cursor = view.Scan(Family::kFileBlock, FileBlockKey(id, first), FileBlockKey(id, end));
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<uint64_t> block = DecodeU64(cursor->value());
    if (!block || cursor->key() != FileBlockKey(id, first + ids.size()))
      return CorruptRow(Family::kFileBlock, cursor->key(), "is not the block that follows");
    ids.emplace_back(*block);
  }
  RETURN_IF_ERROR(cursor->status());
  if (ids.size() != end - first) return CorruptRow(Family::kFileBlock, FileBlockKey(id, first + ids.size()), "is missing");
  return ids;
}

void AppendBlockId(Transaction& txn, v1::INodeRecord& file, BlockId id) {
  const InodeId file_id(file.id());
  if (file.block_count() < kMaxInlineBlocks) {
    file.add_blocks(id.value());
  } else {
    for (int i = 0; i < file.blocks_size(); ++i)
      txn.Put(Family::kFileBlock, FileBlockKey(file_id, static_cast<uint64_t>(i)), EncodeU64(file.blocks(i)));
    file.clear_blocks();
    txn.Put(Family::kFileBlock, FileBlockKey(file_id, file.block_count()), EncodeU64(id.value()));
  }
  file.set_block_count(file.block_count() + 1);
}

absl::Status DropLastBlockId(Transaction& txn, v1::INodeRecord& file) {
  const InodeId file_id(file.id());
  const uint64_t left = file.block_count() - 1;
  if (left < kMaxInlineBlocks) {
    file.mutable_blocks()->RemoveLast();
  } else if (left == kMaxInlineBlocks) {
    ASSIGN_OR_RETURN(const std::vector<BlockId> kept, BlockIds(txn, file, 0, left));
    for (uint64_t i = 0; i <= left; ++i) txn.Delete(Family::kFileBlock, FileBlockKey(file_id, i));
    for (const BlockId id : kept) file.add_blocks(id.value());
  } else {
    txn.Delete(Family::kFileBlock, FileBlockKey(file_id, left));
  }
  file.set_block_count(left);
  return absl::OkStatus();
}

absl::StatusOr<v1::BlockRecord> GetBlock(const ReadView& view, BlockId id) {
  return GetRecord<v1::BlockRecord>(view, Family::kBlock, BlockKey(id));
}

void PutBlock(Transaction& txn, BlockId id, v1::BlockRecord record) {
  txn.PutMessage(Family::kBlock, BlockKey(id), std::make_shared<v1::BlockRecord>(std::move(record)));
}

}  // namespace cairn::namenode
