#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rocksdb {
class DB;
}

// What the job knows of a word in a file.
struct Occurrences {
  uint64_t count = 0;
  uint64_t first_offset = 0;  // In the file, bytes.
  uint64_t last_offset = 0;
};

// The job's state: occurrences by (word, file) in a RocksDB, as a stream processor's state backend keeps it. One thread.
class KeyedState {
 public:
  // Opens the database in `directory`, empty or restored.
  static absl::StatusOr<std::unique_ptr<KeyedState>> Open(const std::string& directory);
  ~KeyedState();

  // Adds to what is known of (word, file): reads the old value, writes the new one.
  absl::Status Add(std::string_view word, std::string_view file, Occurrences found);
  absl::Status ForEach(const std::function<void(std::string_view word, std::string_view file, uint64_t count)>& each);
  // Hard links of the database as it is now in `directory`, which must not exist; returns the file names.
  absl::StatusOr<std::vector<std::string>> SnapshotTo(const std::string& directory);

 private:
  explicit KeyedState(std::unique_ptr<rocksdb::DB> db);
  std::unique_ptr<rocksdb::DB> db_;
};
