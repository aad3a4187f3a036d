#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace cairn {

// A file being written, by one thread at a time; Abort may come from any thread. Bytes go to a
// pipeline of DataNodes in packets with a bounded window; a DataNode that fails is dropped or
// replaced without the caller noticing.
//
// After an error every later call returns it, and the file is given up: the NameNode closes it with
// what was acknowledged, as soon as its last block is recovered. Destroyed unclosed: as Abort.
class FileWriter {
 public:
  virtual ~FileWriter() = default;

  // Blocks only while the window is full. The bytes are copied.
  virtual absl::Status Append(std::span<const char> data) = 0;
  absl::Status Append(const std::string& data) { return Append(std::span<const char>(data.data(), data.size())); }
  absl::Status Append(const char* text) { return Append(std::string(text)); }  // Without the NUL.
  // hflush: when it returns new readers see everything appended so far.
  virtual absl::Status Flush() = 0;
  // hsync: and it is on disk at every replica of the pipeline.
  virtual absl::Status Sync() = 0;
  // Ends the file: acknowledged by all, and on disk if close_sync says so, and closed on the
  // NameNode. Idempotent once it succeeded.
  virtual absl::Status Close() = 0;
  // Gives up at once: pending calls of the writing thread return kCancelled; the file ends with
  // what was acknowledged so far, when its last block is recovered.
  virtual void Abort() = 0;

  virtual uint64_t position() const = 0;  // Of the next byte in the file.
  virtual const std::string& path() const = 0;
};

}  // namespace cairn
