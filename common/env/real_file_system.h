#pragma once

#include <memory>

#include "common/env/file_system.h"

namespace cairn {

// The machine's own files, through POSIX calls.
std::unique_ptr<LocalFileSystem> NewRealFileSystem();

}  // namespace cairn
