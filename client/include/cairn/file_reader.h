#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cairn {

// A file being read. Checksums are verified; a bad or lost replica is reported and another one
// read, unnoticed. ReadAt is thread-safe; Read and Seek are for one thread at a time.
class FileReader {
 public:
  virtual ~FileReader() = default;

  // Up to into.size() bytes from the current position, at least 1 unless at the end (0).
  virtual absl::StatusOr<size_t> Read(std::span<char> into) = 0;
  // Exactly into.size() bytes from `offset`, fewer only at the end of the file.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> into) = 0;
  virtual absl::Status Seek(uint64_t offset) = 0;  // Past the end: kInvalidArgument, the position stays.
  virtual uint64_t position() const = 0;
  virtual uint64_t length() const = 0;  // As of the opening.
  virtual void Close() = 0;
};

}  // namespace cairn
