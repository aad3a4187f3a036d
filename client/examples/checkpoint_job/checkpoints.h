#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/file_system.h"
#include "keyed_state.h"

// A checkpoint as its _metadata file lists it.
struct CheckpointMetadata {
  uint64_t number = 0;
  uint64_t next_file = 0;                        // Where the stream goes on.
  std::map<std::string, std::string> shared;     // SST name -> path in Cairn.
  std::map<std::string, std::string> exclusive;  // Other state files.
  uint64_t bytes = 0;

  std::string Serialize() const;
  static absl::StatusOr<CheckpointMetadata> Parse(const std::string& text);
};

// Incremental checkpoints in Cairn, laid out and ordered as Flink's RocksDB backend does it: new
// SST files to <job>/shared/<uuid>, the rest to <job>/chk-N/<uuid>, each synced and closed; then
// _metadata through a temporary name and a rename. The last two are kept; what no kept one refers
// to is deleted file by file, then the empty chk-N.
class Checkpoints {
 public:
  // Stops in the middle of a file so that a test can pull the plug there: in each of these
  // checkpoints, after the first acknowledged bytes of a state file, `marker_file` is made (with
  // the path of the file being written) and waited on until it is gone.
  struct Pause {
    std::set<uint64_t> in_checkpoints;
    std::string marker_file;
  };

  Checkpoints(cairn::FileSystem* files, std::string job_directory, std::string local_directory, std::optional<Pause> pause);

  // The newest complete checkpoint; nothing if there is none.
  absl::StatusOr<std::optional<CheckpointMetadata>> FindNewest();
  // After FindNewest: deletes what belongs to no complete checkpoint, left by a run that crashed.
  // Returns how many files.
  absl::StatusOr<uint64_t> RemoveOrphans();
  // Downloads its files into `state_directory` (empty). Later checkpoints go on from it.
  absl::Status Restore(const CheckpointMetadata& checkpoint, const std::string& state_directory);

  struct Summary {
    uint64_t number = 0;
    uint64_t total_bytes = 0;     // All files of the checkpoint.
    uint64_t uploaded_bytes = 0;  // New in this one.
    uint64_t uploaded_files = 0;
    uint64_t largest_file = 0;
    uint64_t deleted_files = 0;
    double seconds = 0;  // Until _metadata stood under its name.
  };
  absl::StatusOr<Summary> Take(KeyedState* state, uint64_t next_file);

 private:
  struct Upload {
    std::string local;
    std::string remote;
    uint64_t bytes = 0;
    absl::Status status;
  };
  absl::Status UploadAll(std::vector<Upload>* uploads, uint64_t number);
  absl::Status UploadOne(Upload* upload);
  void PauseHere(const std::string& path) const;
  absl::StatusOr<uint64_t> DropOld();

  cairn::FileSystem* const files_;
  const std::string job_;
  const std::string local_;
  const std::optional<Pause> pause_;
  std::string paused_upload_;              // Decided before the uploads of a checkpoint start.
  std::vector<CheckpointMetadata> kept_;   // Oldest first.
  std::map<std::string, uint64_t> sizes_;  // Of shared files, by remote path.
};
