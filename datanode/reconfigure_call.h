#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/api/admin.h"
#include "common/env/env.h"
#include "common/reconfiguration.h"
#include "datanode/storage/open_block_store.h"

namespace cairn::datanode {

struct DatanodeOptions;

// `dfsadmin -reconfig datanode ...`, or SIGHUP: reads the configuration anew, and takes over what may change while the node runs: its
// directories, the pace of deletion and of the scan, and how many streams there may be. START is answered when volumes have been added and
// drained; what could not be done is its error, and STATUS says it again. Each START tries all of the directories, so one that failed may
// be repeated. On an executor of its own, since files are read and disks may be slow. Thread-safe.
class ReconfigureCall {
 public:
  // What else takes the options, when some have changed or directories are tried again: on this object's executor, until Close.
  using Taker = std::function<void(const DatanodeOptions& options)>;
  // All outlive this. `take` may be empty.
  ReconfigureCall(Env* env, Reconfiguration* reconfiguration, ChangeableVolumes* volumes, Taker take);
  ~ReconfigureCall();
  ReconfigureCall(const ReconfigureCall&) = delete;
  ReconfigureCall& operator=(const ReconfigureCall&) = delete;

  void Call(v1::ReconfigureRequest request, api::Done<v1::ReconfigureResponse> done);
  // From now on every call is answered with kCancelled, also those that wait for a change of volumes: a disk that hangs holds up no stop.
  // Waits for the step under way; then nothing touches the volumes, which may go. Not from an executor's task.
  void Close();

 private:
  struct Pending;
  void Take(const Config& config);
  v1::ReconfigureResponse Answer(const Reconfiguration::Outcome& outcome) const;

  Env* const env_;
  Reconfiguration* const reconfiguration_;
  ChangeableVolumes* const volumes_;
  const Taker take_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> idle_{false};  // Nothing runs any more, and closed.
  // Of the executor.
  std::shared_ptr<Pending> pending_;  // A change of volumes that the reload under way began.
  std::string volume_error_;
  std::map<uint64_t, api::Done<v1::ReconfigureResponse>> waiting_;  // For changes of volumes.
  uint64_t last_waiting_ = 0;
  std::unique_ptr<Executor> executor_;  // Last: ends before what its tasks use.
};

}  // namespace cairn::datanode
