#pragma once

#include <memory>

#include "common/env/network.h"

namespace cairn {

// TCP through Boost.Asio. Connections and listeners belong to executors of NewRealExecutor.
std::unique_ptr<Network> NewRealNetwork();

}  // namespace cairn
