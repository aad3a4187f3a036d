#include "common/env/network.h"

#include <fmt/format.h>

namespace cairn {

std::string HostPort::ToString() const {
  const bool address_with_colons = host.find(':') != std::string::npos;
  return address_with_colons ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace cairn
