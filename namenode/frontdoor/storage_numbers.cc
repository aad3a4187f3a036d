#include "namenode/frontdoor/storage_numbers.h"

#include <optional>

#include <fmt/format.h>

#include "cairn/namespace.pb.h"
#include "common/error.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {

absl::StatusOr<StorageNumber> StorageNumbers::NumberOf(const std::string& uuid, const ReadView& view) {
  {
    MutexLock lock(mu_);
    const auto found = numbers_.find(uuid);
    if (found != numbers_.end()) return found->second;
  }
  std::map<std::string, StorageNumber, std::less<>> numbers;
  const auto cursor = view.Scan(Family::kDatanode, "", "");
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<StorageNumber> number = ParseDatanodeKey(cursor->key());
    v1::DatanodeRecord record;
    if (number && record.ParseFromArray(cursor->value().data(), static_cast<int>(cursor->value().size())))
      numbers.emplace(record.storage_uuid(), *number);
  }
  RETURN_IF_ERROR(cursor->status());
  const auto found = numbers.find(uuid);
  if (found == numbers.end()) {
    Error error;
    error.kind = ErrorKind::kInvalidArgument;
    error.reason = "UNKNOWN_STORAGE";
    error.message = fmt::format("no storage {} has ever registered", uuid);
    return MakeError(std::move(error));
  }
  const StorageNumber number = found->second;
  MutexLock lock(mu_);
  numbers_ = std::move(numbers);
  return number;
}

}  // namespace cairn::namenode
