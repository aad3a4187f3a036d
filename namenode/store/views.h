#pragma once

// The namespace's tables as everything above RocksDB sees them: byte keys and byte values in families. Key layouts are
// in namenode/store/keys.h, values are the messages of proto/cairn/namespace.proto; docs/formats.md has the table.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/message_lite.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cairn::namenode {

// Order and names are on disk: only ever add.
enum class Family : uint8_t { kInode, kInodeById, kFileBlock, kBlock, kUsage, kLease, kWork, kRetry, kDatanode, kMeta };
inline constexpr size_t kFamilyCount = 10;
std::string_view FamilyName(Family family);  // "inode", "inode_by_id", ...

absl::Status CorruptRow(Family family, std::string_view key, std::string_view what);

// A row as a message, shared by all who read it.
using SharedMessage = std::shared_ptr<const google::protobuf::MessageLite>;
// Makes the message of a row; null if the bytes are none. A family has one kind of message.
using ParseRow = SharedMessage (*)(std::string_view bytes);

// The rows of a family whose keys begin with one number, in key order: a directory's children.
struct RowGroup {
  std::vector<std::pair<std::string, SharedMessage>> rows;  // Whole keys; messages are never null.
};

// Rows of a range in key order. Views stay valid until Next. Not thread-safe.
class Cursor {
 public:
  virtual ~Cursor() = default;
  virtual bool Valid() const = 0;  // False at the end, and after an error.
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  virtual void Next() = 0;
  virtual absl::Status status() const = 0;  // kCorruptMetadata if reading failed.
};

// A consistent state of all families. Calls may block on a disk read, except in a view that reads memory only: that answers NotInMemory for
// what would have to be read from the disk. Errors: kCorruptMetadata.
class ReadView {
 public:
  virtual ~ReadView() = default;
  virtual absl::StatusOr<std::optional<std::string>> Get(Family family, std::string_view key) const = 0;
  // The row as a message, which views that keep rows in memory parse once for all readers; null if there is no such row.
  virtual absl::StatusOr<SharedMessage> GetMessage(Family family, std::string_view key, ParseRow parse) const;
  // The rows of kInode whose keys begin with `number` (8 bytes), if this view keeps groups in memory and there are at most `most`; else
  // null.
  virtual absl::StatusOr<std::shared_ptr<const RowGroup>> GetGroup(std::string_view number, ParseRow parse, size_t most) const;
  // [begin, end); an empty `end` means to the end of the family.
  virtual std::unique_ptr<Cursor> Scan(Family family, std::string_view begin, std::string_view end) const = 0;
};

// How far a question may go.
enum class Reach { kDisk, kMemory };

// The answer of what reads memory only to a question that needs the disk: ask again with Reach::kDisk.
absl::Status NotInMemory();
bool IsNotInMemory(const absl::Status& status);

// A batch being made on top of the last commit: reads see its own writes. One thread, the writer's.
class Transaction : public ReadView {
 public:
  virtual void Put(Family family, std::string_view key, std::string_view value) = 0;
  // The same with a message, never null: of one that is put again and again in a batch only the last is ever serialized.
  virtual void PutMessage(Family family, std::string_view key, SharedMessage message);
  virtual void Delete(Family family, std::string_view key) = 0;
  // Only over ranges that this transaction neither read nor wrote; later reads of it see the old rows until the commit.
  virtual void DeleteRange(Family family, std::string_view begin, std::string_view end) = 0;
  // Encoded size so far, to keep a batch within its bound.
  virtual size_t ApproximateBytes() const = 0;
};

}  // namespace cairn::namenode
