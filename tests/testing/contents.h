#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/file_system.h"
#include "common/env/random.h"

namespace cairn::testing {

// Bytes that differ at every offset and for every seed.
inline std::string Content(uint64_t seed, uint64_t size) { return Random(seed * 7919 + size).Bytes(size); }

inline absl::Status WriteFile(FileSystem* files, const std::string& path, const std::string& content, CreateOptions options = {}) {
  auto writer = files->Create(path, options);
  if (!writer.ok()) return writer.status();
  if (absl::Status status = (*writer)->Append(content); !status.ok()) return status;
  return (*writer)->Close();
}

inline absl::StatusOr<std::string> ReadFile(FileSystem* files, const std::string& path) {
  auto reader = files->Open(path);
  if (!reader.ok()) return reader.status();
  std::string content;
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const absl::StatusOr<size_t> got = (*reader)->Read(buffer);
    if (!got.ok()) return got.status();
    if (*got == 0) return content;
    content.append(buffer.data(), *got);
  }
}

}  // namespace cairn::testing
