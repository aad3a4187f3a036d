#pragma once

#include "common/env/executor.h"
#include "common/task_group.h"

namespace cairn::client {

// Where a coroutine runs and what ends it: waits inside client code give up with kCancelled once
// the group is stopped, so that Abort never waits for a NameNode or a DataNode. Plain value; both
// outlive the coroutines that carry it.
struct Scope {
  Scope(Executor* on, TaskGroup* of) : executor(on), group(of) {}
  Executor* executor;
  TaskGroup* group;
};

}  // namespace cairn::client
