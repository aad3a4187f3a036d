#pragma once

// tests/sim: the cluster in one thread, from seeds. A run is a workload (this file), attackers
// (attackers.h), and checks of what is left once all heals and settles (CheckFiles here).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/src/file_writer_core.h"
#include "common/task_group.h"
#include "tests/testing/sim_cluster.h"

namespace cairn::testing {

// How a file is written, and what becomes of it once it is closed.
struct FilePlan {
  uint64_t size = 0;
  uint64_t part_bytes = 100'000;                // Of one Append.
  absl::Duration pause = absl::ZeroDuration();  // After each part.
  bool flush = false;                           // After each part.
  absl::Duration keep = absl::ZeroDuration();   // Between the close and what follows.
  std::string rename_to = {};                   // Empty: it stays where it is.
  bool remove = false;                          // In the end.
};

// What came of it.
struct FileLife {
  FilePlan plan;
  std::string path;  // Where it was last.
  bool done = false;
  absl::Status written = absl::UnknownError("not finished");
  absl::Status renamed;
  absl::Status removed;
  bool existed = true;           // As the delete was answered.
  std::vector<uint64_t> blocks;  // As they were before the delete.
  absl::Duration open_took;
  absl::Duration close_took;
  // Acknowledged, and not deleted: it has to be there.
  bool stays() const { return written.ok() && !plan.remove; }
};

// Files whose bytes derive from their names, written, renamed and deleted by coroutines of one
// client process; and readers of them.
class Workload {
 public:
  // A hook for after a flush of `bytes` was acknowledged, with the file's blocks as the NameNode tells them then.
  using AfterFlush = absl::AnyInvocable<void(const std::string& path, uint64_t bytes, const v1::GetBlockLocationsResponse& located)>;

  explicit Workload(SimCluster* cluster);
  ~Workload();
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  // Paths are used once, also as targets of renames.
  void Start(const std::string& path, const FilePlan& plan);
  void Write(const std::string& path, uint64_t size) { Start(path, {.size = size}); }
  void SetAfterFlush(AfterFlush after_flush) { after_flush_ = std::move(after_flush); }
  // Runs the cluster until all files are done. False at the limit.
  bool WaitForAll(absl::Duration limit);
  bool AllDone() const;
  const std::map<std::string, FileLife>& files() const { return files_; }  // By the path they were written to.
  const FileLife& file(const std::string& path) const { return files_.at(path); }

  // Reads the file that was written as `path`, wherever it is now. Empty if it is identical, else what is wrong.
  std::string Compare(const std::string& path);

 private:
  Awaitable<void> Live(std::string path);
  Awaitable<absl::Status> WriteFile(std::string path, FileLife* life);
  Awaitable<absl::Status> Fill(client::FileWriterCore* writer, std::string path, FileLife* life);
  Awaitable<absl::Status> RenameFile(std::string from, std::string to);
  Awaitable<absl::Status> RemoveFile(FileLife* life);
  Awaitable<absl::StatusOr<v1::GetBlockLocationsResponse>> Locate(std::string path);
  Awaitable<void> ReadFile(std::string path, std::string content_of, uint64_t size);
  Awaitable<void> Pause(absl::Duration duration);
  client::Scope scope() { return client::Scope(executor_, &group_); }

  SimCluster* const cluster_;
  const std::shared_ptr<client::ClientCore> core_;
  Executor* const executor_;
  TaskGroup group_;
  AfterFlush after_flush_;
  std::map<std::string, FileLife> files_;
  std::optional<std::string> verdict_;
};

// What is wrong with the files of a cluster that has settled. Every file that was acknowledged is
// there and identical, each of its blocks on as many nodes as it should be, and these are all that
// the NameNode knows; of files that were deleted no DataNode has anything left; no call acted
// twice.
std::vector<std::string> CheckFiles(SimCluster* cluster, Workload* workload, size_t replication = 3);

}  // namespace cairn::testing
