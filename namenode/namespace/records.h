#pragma once

// Rows of the namespace as messages: typed reads and writes over a view's bytes. A row that is there but does not parse, or that
// must be there and is not, is kCorruptMetadata naming family and key. Pure functions of their arguments.

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

absl::Status CorruptRow(Family family, std::string_view key, std::string_view what);

template <class Message>
absl::StatusOr<std::optional<Message>> FindRecord(const ReadView& view, Family family, std::string_view key) {
  ASSIGN_OR_RETURN(const std::optional<std::string> bytes, view.Get(family, key));
  if (!bytes) return std::optional<Message>();
  absl::StatusOr<std::optional<Message>> record{std::optional<Message>(std::in_place)};  // Parsed where it is returned: dear to move.
  if (!(*record)->ParseFromString(*bytes)) return CorruptRow(family, key, "does not parse");
  return record;
}

template <class Message>
absl::StatusOr<Message> GetRecord(const ReadView& view, Family family, std::string_view key) {
  ASSIGN_OR_RETURN(const std::optional<std::string> bytes, view.Get(family, key));
  if (!bytes) return CorruptRow(family, key, "is missing");
  absl::StatusOr<Message> record{Message()};
  if (!record->ParseFromString(*bytes)) return CorruptRow(family, key, "does not parse");
  return record;
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

// An inode with its place.
struct InodeAt {
  InodeId parent;
  std::string name;
  v1::INodeRecord record;

  InodeId id() const { return InodeId(record.id()); }
  bool is_directory() const { return record.type() == v1::DIRECTORY; }
};

// By id through inode_by_id, wherever it stands: also below parent 0. Nothing if there is no such id.
absl::StatusOr<std::optional<InodeAt>> FindInodeAnywhere(const ReadView& view, InodeId id);
void PutInode(Transaction& txn, const InodeAt& inode);
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
void PutBlock(Transaction& txn, BlockId id, const v1::BlockRecord& record);

}  // namespace cairn::namenode
