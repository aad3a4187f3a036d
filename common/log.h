#pragma once

// The log of a process: lines with time, level and thread, to standard error and to files that rotate.
//
//   log::Info("registered with {} as {}", namenode, uuid);
//
// One line a call: control characters in a message, which may come from a peer, are escaped. Before SetUp only warnings and errors are
// written, to standard error. Thread-safe. A call writes to a file, so never call it while a Mutex is held. spdlog is seen by log.cc only.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "absl/status/status.h"

namespace cairn::log {

enum class Level { kDebug, kInfo, kWarning, kError };

std::optional<Level> LevelFromName(std::string_view name);  // debug, info, warning, error.

struct Options {
  Level level = Level::kInfo;        // cairn.log.level.
  std::string directory;             // cairn.log.dir; empty: no files. Made if missing.
  std::string program = "cairn";     // The file is <directory>/<program>.log, older ones <program>.1.log and up.
  size_t max_file_bytes = 64 << 20;  // cairn.log.file.size.
  size_t max_files = 8;              // cairn.log.file.count: how many older files are kept.
  bool to_standard_error = true;     // cairn.log.stderr.
};

// May be called again; the last call counts. An error names the file that cannot be opened; then the old set-up stays.
absl::Status SetUp(const Options& options);
void SetLevel(Level level);
bool Enabled(Level level);
void Write(Level level, std::string_view message);

template <class... Args>
void Debug(fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kDebug)) Write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void Info(fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kInfo)) Write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void Warning(fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kWarning)) Write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void Error(fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kError)) Write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cairn::log
