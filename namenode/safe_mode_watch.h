#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "common/env/executor.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/safe_mode.h"

namespace cairn::namenode {

// Ends an automatic safe mode: `extension` after every DataNode of which replicas were known at the start has said all that it has, or is
// lost (see ReplicaPlane::Arrival). So blocks that nobody has any more do not keep it on; they are named when it ends. Thread-safe.
class SafeModeWatch {
 public:
  struct Options {
    absl::Duration extension = absl::Seconds(30);  // dfs.namenode.safemode.extension.
    absl::Duration interval = absl::Milliseconds(500);
  };

  // Pointers outlive the callback of Stop.
  SafeModeWatch(Options options, SafeMode* safe_mode, ReplicaPlane* plane, Executor* executor);
  ~SafeModeWatch();
  SafeModeWatch(const SafeModeWatch&) = delete;
  SafeModeWatch& operator=(const SafeModeWatch&) = delete;

  void Start();  // Looks until there is no automatic safe mode.
  void Stop(absl::AnyInvocable<void()> then);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn::namenode
