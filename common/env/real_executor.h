#pragma once

#include <memory>
#include <string>

#include "common/env/executor.h"

namespace cairn {

// CLOCK_MONOTONIC and CLOCK_REALTIME. Lives for ever.
const Clock& RealClock();

// An executor with a thread of its own, which also drives the sockets that belong to it.
std::unique_ptr<Executor> NewRealExecutor(const std::string& name);
// The same, whose thread gives way to others (ExecutorFactory::NewBackgroundExecutor).
std::unique_ptr<Executor> NewRealBackgroundExecutor(const std::string& name);

}  // namespace cairn
