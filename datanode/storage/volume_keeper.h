#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/env/env.h"
#include "datanode/storage/file_block_store.h"

namespace cairn::datanode {

// Looks after a node's volumes while it runs: brings back one that had failed and works again, and changes which directories are volumes.
//
// A volume that has failed stays failed; what comes back is a new one, made from the same directory as at a start, and since nobody knows
// what the disk lost meanwhile, as after a reboot: what is not proved to be on it is read before it is believed. The disk is asked every
// few seconds, by writing and reading a small file; each failure doubles how long it has to have been away. A directory that could not be
// used when it was asked for, at the start or later, is tried again in the same way, but never made a volume of by itself: an empty one is
// a disk that is not mounted. Whoever asks for a change again has both tried at once. A directory that is taken out gets no new replicas,
// and its writers some time to end; then its storage is REMOVED, which the NameNode is told, and its files stay where they are.
//
// Nothing comes of a directory while work from before it failed, or was taken out, may still reach its disk.
//
// On an executor of its own, which may hang with a disk. Thread-safe; the destructor waits for the step under way.
class VolumeKeeper {
 public:
  using Options = VolumeKeeperOptions;
  // All outlive this. `directories`: those that are to be volumes, whether they are or not.
  VolumeKeeper(Env* env, Options options, std::vector<std::string> directories, FileBlockStore* store);
  ~VolumeKeeper();
  VolumeKeeper(const VolumeKeeper&) = delete;
  VolumeKeeper& operator=(const VolumeKeeper&) = delete;

  // Makes exactly these the volumes. `done`, on the executor: what could not be done, directory by directory, the rest is.
  using Changed = std::function<void(absl::Status)>;
  void Change(std::vector<std::string> directories, Changed done);

 private:
  struct Patience {
    SteadyTime not_before;
    absl::Duration next;
  };
  struct Leaving {
    std::vector<std::pair<Volume*, uint64_t>> volumes;  // With the number in `leaving_` that it had.
    SteadyTime deadline;
    std::string failures;
    Changed done;
  };

  void Check();
  void CheckFailed(Volume* volume);
  void CheckAbsent(const std::string& directory);
  // Those that wait, one after another.
  void TakeChanges();
  void ChangeNow(std::vector<std::string> directories, Changed done);
  absl::Status ReturnNow(Volume* volume);
  void Stay(Volume* volume);
  bool IsVolume(const std::string& directory) const;
  void Drain(Leaving leaving);

  const Options options_;
  FileBlockStore* const store_;
  struct Asked {
    std::vector<std::string> directories;
    Changed done;
    SteadyTime patience;  // Until then it waits for directories to settle.
  };
  // Of the executor.
  std::deque<Asked> asked_;
  bool waiting_ = false;  // A look is posted.
  std::vector<std::string> wanted_;
  std::map<std::string, Patience> failed_;  // By directory.
  std::map<std::string, Patience> absent_;
  std::map<Volume*, uint64_t> leaving_;  // Which time it is that it leaves: it may have been asked back in between.
  uint64_t last_leaving_ = 0;
  std::unique_ptr<Executor> executor_;  // Last: ends before what its tasks use.
};

}  // namespace cairn::datanode
