#pragma once

// How a user's trash is laid out, as in HDFS (TrashPolicyDefault): what was removed stands below /user/<user>/.Trash/Current under its old
// path, and a checkpoint is Current under a name made of the time, /user/<user>/.Trash/yyMMddHHmmss, with -1, -2, ... if there is one
// already. Clients and the NameNode's emptier both make and delete checkpoints, so they must agree on the names; times in them are UTC
// (HDFS: local time, which two machines may read differently).

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace cairn {

inline constexpr std::string_view kHomes = "/user";
inline constexpr std::string_view kTrashName = ".Trash";
inline constexpr std::string_view kTrashCurrent = "Current";

std::string HomeOf(std::string_view user);   // "/user/ada"
std::string TrashOf(std::string_view user);  // "/user/ada/.Trash"

// Of a checkpoint made now. `attempt` > 0 appends it.
std::string TrashCheckpointName(absl::Time time, int attempt = 0);
// When a checkpoint was made; nothing if `name` is not one. Also HDFS's older names, without seconds.
std::optional<absl::Time> TrashCheckpointTime(std::string_view name);

// How often checkpoints are made: every checkpoint interval, but not more seldom than the trash interval, which also holds if it is 0.
absl::Duration TrashCheckpointInterval(absl::Duration trash_interval, absl::Duration checkpoint_interval);

}  // namespace cairn
