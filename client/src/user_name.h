#pragma once

#include <string>
#include <string_view>

#include "common/env/file_system.h"

namespace cairn::client {

// The name of the user that this process runs as, from /proc and /etc/passwd; the number if it has
// no name there. May block.
std::string OsUserName(LocalFileSystem* files);

// The parts of it. `status`: text of /proc/self/status, `passwd`: of /etc/passwd. Empty if not
// found.
std::string EffectiveUid(std::string_view status);
std::string NameOfUid(std::string_view passwd, std::string_view uid);

}  // namespace cairn::client
