#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/file_system.h"

namespace cairn::client {

// One user's trash, on any FileSystem, as HDFS's TrashPolicyDefault; see common/trash.h for its layout. Holds no state; as thread-safe as
// `files`, which outlives it. `now` is the wall clock's.
class Trash {
 public:
  Trash(FileSystem* files, std::string user);

  // Moves `path` into the trash and returns where it stands then; an empty answer if it is in the trash already. What stands at its place
  // in the trash stays: the newcomer's name gets the time in ms behind it. kNotFound; kInvalidArgument with reason CONTAINS_TRASH for the
  // trash itself and what is above it.
  absl::StatusOr<std::string> Move(const std::string& path, absl::Time now);

  // FileSystem::ExpungeTrash.
  absl::StatusOr<ExpungedTrash> Expunge(absl::Time now, absl::Duration interval, bool immediately);

 private:
  // Makes a checkpoint of what was moved and returns its path; an empty one if there is nothing.
  absl::StatusOr<std::string> MakeCheckpoint(absl::Time now);
  // Deletes the checkpoints made before `before`, and returns them. Entries that are no checkpoints stay.
  absl::StatusOr<std::vector<std::string>> DeleteCheckpoints(absl::Time before);
  // Makes `directory` and those above it. Where a file stands in its way, a directory with the time behind its name takes that name's
  // place, and `directory` is changed so.
  absl::Status MakeRoom(std::string* directory, absl::Time now);

  FileSystem* const files_;
  const std::string home_;
  const std::string root_;
};

}  // namespace cairn::client
