#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/namespace.pb.h"
#include "common/ids.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// Every storage that ever registered, by number. kCorruptMetadata, as soon as one of the rows does not parse. May read the disk.
absl::StatusOr<std::vector<std::pair<StorageNumber, v1::DatanodeRecord>>> RegisteredStorages(const ReadView& view);

}  // namespace cairn::namenode
