#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
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
// few seconds, by writing and reading a small file; each failure doubles how long it has to have been away. A directory that is taken out
// gets no new replicas, and its writers some time to end; then its storage is REMOVED, which the NameNode is told, and its files stay where
// they are.
//
// On an executor of its own, which may hang with a disk. Thread-safe; the destructor waits for the step under way.
class VolumeKeeper {
 public:
  using Options = VolumeKeeperOptions;
  // All outlive this.
  VolumeKeeper(Env* env, Options options, FileBlockStore* store);
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
    std::vector<Volume*> volumes;
    SteadyTime deadline;
    std::string failures;
    Changed done;
  };

  void Check();
  void ChangeNow(const std::vector<std::string>& directories, Changed done);
  void Drain(Leaving leaving);

  const Options options_;
  FileBlockStore* const store_;
  std::map<std::string, Patience> failed_;  // By directory. Of the executor.
  std::unique_ptr<Executor> executor_;      // Last: ends before what its tasks use.
};

}  // namespace cairn::datanode
