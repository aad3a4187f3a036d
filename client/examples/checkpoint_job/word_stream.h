#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// The job's input: the text of the C and C++ headers installed on this machine, one file after another in bytewise order of their
// paths. A word is a longest run of ASCII letters, digits and underscores.
class WordStream {
 public:
  // Finds the files below `roots`; `share` in (0, 1] takes only that part of them, spread evenly.
  static absl::StatusOr<WordStream> Open(const std::vector<std::string>& roots, double share);

  size_t file_count() const { return files_.size(); }
  const std::string& file(size_t index) const { return files_[index]; }
  absl::StatusOr<std::string> ReadFile(size_t index) const;

 private:
  std::vector<std::string> files_;
};

// Calls `each` for every word of `text`, in order.
void ForEachWord(std::string_view text, const std::function<void(std::string_view)>& each);
