#include "namenode/namespace/datanode_rows.h"

#include <memory>
#include <optional>

#include "common/status.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {

absl::StatusOr<std::vector<std::pair<StorageNumber, v1::DatanodeRecord>>> RegisteredStorages(const ReadView& view) {
  std::vector<std::pair<StorageNumber, v1::DatanodeRecord>> storages;
  const std::unique_ptr<Cursor> cursor = view.Scan(Family::kDatanode, "", "");
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<StorageNumber> number = ParseDatanodeKey(cursor->key());
    v1::DatanodeRecord record;
    if (!number || !record.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size())))
      return CorruptRow(Family::kDatanode, cursor->key(), "does not parse");
    storages.emplace_back(*number, std::move(record));
  }
  RETURN_IF_ERROR(cursor->status());
  return storages;
}

}  // namespace cairn::namenode
