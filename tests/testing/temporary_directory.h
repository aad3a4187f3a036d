#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/check.h"

namespace cairn::testing {

// A directory of its own for a test, removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_((std::filesystem::temp_directory_path() / "cairn-test-XXXXXX").string()) {
    CAIRN_CHECK(mkdtemp(path_.data()) != nullptr, "cannot make " + path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cairn::testing
