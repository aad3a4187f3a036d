#include "namenode/store/views.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"

namespace cairn::namenode {

std::string_view FamilyName(Family family) {
  static constexpr std::array<std::string_view, kFamilyCount> kNames = {"inode", "inode_by_id", "file_block", "block",    "usage",
                                                                        "lease", "work",        "retry",      "datanode", "meta"};
  return kNames.at(static_cast<size_t>(family));
}

absl::Status CorruptRow(Family family, std::string_view key, std::string_view what) {
  std::string hex;
  for (const char c : key) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return MakeError(ErrorKind::kCorruptMetadata, fmt::format("family {}, key 0x{}: the row {}", FamilyName(family), hex, what));
}

absl::StatusOr<SharedMessage> ReadView::GetMessage(Family family, std::string_view key, ParseRow parse) const {
  ASSIGN_OR_RETURN(const std::optional<std::string> bytes, Get(family, key));
  if (!bytes) return nullptr;
  SharedMessage message = parse(*bytes);
  if (message == nullptr) return CorruptRow(family, key, "does not parse");
  return message;
}

absl::StatusOr<std::shared_ptr<const RowGroup>> ReadView::GetGroup(std::string_view number, ParseRow parse, size_t most) const {
  static_cast<void>(number), static_cast<void>(parse), static_cast<void>(most);
  return nullptr;
}

void Transaction::PutMessage(Family family, std::string_view key, SharedMessage message) { Put(family, key, message->SerializeAsString()); }

// Of a code that nothing else gives without a kind.
absl::Status NotInMemory() { return {absl::StatusCode::kOutOfRange, "not in memory"}; }

bool IsNotInMemory(const absl::Status& status) {
  return status.code() == absl::StatusCode::kOutOfRange && KindOf(status) == ErrorKind::kNone;
}

}  // namespace cairn::namenode
