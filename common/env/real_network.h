#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/env/network.h"

namespace cairn {

// TCP through Boost.Asio. Connections and listeners belong to executors of NewRealExecutor.
std::unique_ptr<Network> NewRealNetwork();

// Asks the system's resolver for `host`, and blocks while it does. OK for an address and for a name that has one, else in the resolver's
// words.
absl::Status CheckResolves(const std::string& host);

}  // namespace cairn
