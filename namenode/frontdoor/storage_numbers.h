#pragma once

#include <map>
#include <string>

#include "common/ids.h"
#include "common/mutex.h"
#include "common/status.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// Storage uuids, as clients speak of them, to the numbers of family `datanode`, with a cache: a number never changes its uuid. It
// asks the namespace and not the replica plane, because after a NameNode restart a writer may complete its file before the DataNodes
// have registered again. Thread-safe; a miss reads the whole family, which is as long as the cluster has volumes.
class StorageNumbers {
 public:
  // kInvalidArgument with reason UNKNOWN_STORAGE.
  absl::StatusOr<StorageNumber> NumberOf(const std::string& uuid, const ReadView& view);

 private:
  Mutex mu_;
  std::map<std::string, StorageNumber, std::less<>> numbers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::namenode
