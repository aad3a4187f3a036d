#pragma once

// Rows of the namespace as messages: typed reads and writes over a view's bytes. A row that is there but does not parse, or that
// must be there and is not, is kCorruptMetadata naming family and key. Pure functions of their arguments.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/namespace.pb.h"
#include "common/ids.h"
#include "common/status.h"
#include "namenode/store/keys.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

template <class Message>
SharedMessage ParseRowAs(std::string_view bytes) {
  auto message = std::make_shared<Message>();
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ? message : nullptr;
}

// A row that is only read: shared with everybody who reads it, and parsed once while it stays in memory. Null if there is none.
template <class Message>
absl::StatusOr<std::shared_ptr<const Message>> FindShared(const ReadView& view, Family family, std::string_view key) {
  ASSIGN_OR_RETURN(SharedMessage row, view.GetMessage(family, key, &ParseRowAs<Message>));
  return std::static_pointer_cast<const Message>(std::move(row));
}

template <class Message>
absl::StatusOr<std::shared_ptr<const Message>> GetShared(const ReadView& view, Family family, std::string_view key) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Message> row, FindShared<Message>(view, family, key));
  if (row == nullptr) return CorruptRow(family, key, "is missing");
  return row;
}

// Copies of rows, to be changed.
template <class Message>
absl::StatusOr<std::optional<Message>> FindRecord(const ReadView& view, Family family, std::string_view key) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Message> row, FindShared<Message>(view, family, key));
  if (row == nullptr) return std::optional<Message>();
  return std::optional<Message>(*row);
}

template <class Message>
absl::StatusOr<Message> GetRecord(const ReadView& view, Family family, std::string_view key) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Message> row, GetShared<Message>(view, family, key));
  return *row;
}

template <class Message>
void PutRecord(Transaction& txn, Family family, std::string_view key, const Message& record) {
  txn.Put(family, key, record.SerializeAsString());
}

// A number of family `meta`; it must be there.
absl::StatusOr<uint64_t> GetNumber(const ReadView& view, std::string_view name);
void PutNumber(Transaction& txn, std::string_view name, uint64_t value);
// The number, which is then `step` more.
absl::StatusOr<uint64_t> TakeNumber(Transaction& txn, std::string_view name, uint64_t step);

// An inode with its place, to be changed.
struct InodeAt {
  InodeId parent;
  std::string name;
  v1::INodeRecord record;

  InodeId id() const { return InodeId(record.id()); }
  bool is_directory() const { return record.type() == v1::DIRECTORY; }
};

// By id through inode_by_id, wherever it stands: also below parent 0. Nothing if there is no such id.
absl::StatusOr<std::optional<InodeAt>> FindInodeAnywhere(const ReadView& view, InodeId id);
// The same only to be read.
struct FoundInode {
  std::shared_ptr<const v1::INodeLink> link;
  std::shared_ptr<const v1::INodeRecord> record;

  InodeId parent() const { return InodeId(link->parent_id()); }
};
absl::StatusOr<std::optional<FoundInode>> FindInode(const ReadView& view, InodeId id);
void PutInode(Transaction& txn, InodeAt inode);
void PutLink(Transaction& txn, InodeId id, InodeId parent, std::string_view name);

// Ids of a file's blocks. Up to 4 are kept in its record; the fifth moves all of them to family file_block, so that a long file's
// record stays small and an append writes one row.
inline constexpr uint64_t kMaxInlineBlocks = 4;
absl::StatusOr<BlockId> BlockIdAt(const ReadView& view, const v1::INodeRecord& file, uint64_t index);
// Ids [first, first + count), fewer at the end of the file.
absl::StatusOr<std::vector<BlockId>> BlockIds(const ReadView& view, const v1::INodeRecord& file, uint64_t first, uint64_t count);
// Change `file` and the file_block rows; the caller puts the record.
void AppendBlockId(Transaction& txn, v1::INodeRecord& file, BlockId id);
absl::Status DropLastBlockId(Transaction& txn, v1::INodeRecord& file);

absl::StatusOr<v1::BlockRecord> GetBlock(const ReadView& view, BlockId id);
void PutBlock(Transaction& txn, BlockId id, v1::BlockRecord record);

}  // namespace cairn::namenode
