#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/env.h"
#include "namenode/namenode_directory.h"

namespace cairn::namenode {

// Copies of the namespace as of one moment, for backups: directories <name dir>/checkpoints/<UTC time>-<applied index>, each laid out as a
// NameNode's own (VERSION, namespace/), so that a restore is a copy and an offline tool can look at one in place.
//
// Its tables are hard links, so one takes milliseconds and, as long as the tables live, no space; the write-ahead log's end is copied. It
// is made under the name *.making and renamed; one that a crash left is removed by the next. Of finished ones the newest `kept` stay.
//
// Thread-safe. The work is done on `executor`, one call after another, and answered there; it may block.
class Checkpoints {
 public:
  struct Options {
    size_t kept = 2;  // dfs.namenode.num.checkpoints.retained.
  };
  struct Saved {
    std::string name;
    std::string path;
    uint64_t applied_index = 0;  // At least up to this batch.
    absl::Duration took;
  };
  struct ImageFile {
    std::string name;  // Relative: "VERSION", "namespace/000012.sst".
    uint64_t size_bytes = 0;
  };
  struct Image {
    std::string name;
    std::vector<ImageFile> files;
  };
  template <class T>
  using Done = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  static constexpr uint64_t kMostReadBytes = 1 << 20;

  // All outlive the last answer.
  Checkpoints(Options options, NamenodeDirectory* directory, Env* env, Executor* executor)
      : options_(options), directory_(directory), env_(env), executor_(executor) {}

  void Save(Done<Saved> done);
  // Files of a checkpoint; of the newest without a name. kNotFound.
  void Describe(std::string name, Done<Image> done);
  // At most kMostReadBytes of a file of a checkpoint; fewer at its end.
  void Read(std::string name, std::string file, uint64_t offset, uint64_t length, Done<std::string> done);

 private:
  absl::StatusOr<Saved> SaveNow();
  absl::StatusOr<Image> DescribeNow(const std::string& name);
  absl::StatusOr<std::string> ReadNow(const std::string& name, const std::string& file, uint64_t offset, uint64_t length);
  absl::StatusOr<std::vector<std::string>> Names();  // Finished ones, oldest first.
  absl::Status RemoveOld();
  std::string root() const { return directory_->path() + "/checkpoints"; }

  const Options options_;
  NamenodeDirectory* const directory_;
  Env* const env_;
  Executor* const executor_;
};

}  // namespace cairn::namenode
