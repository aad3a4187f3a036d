#pragma once

#include <cstdint>

// Bounds of what the balancer may be told; the same at the command line, the NameNode and DataNodes.

namespace cairn::api {

// Of what one DataNode sends and receives in a second for it. With less, the many moves that share it would each be silent for longer than
// their receivers are patient.
inline constexpr uint64_t kLeastBalanceBytesPerSecond = 64 << 10;
// 0 stands for what is set or configured.
constexpr bool IsBalanceRate(uint64_t bytes_per_second) { return bytes_per_second == 0 || bytes_per_second >= kLeastBalanceBytesPerSecond; }

// From or to one DataNode at once: there are more orders for it than these.
inline constexpr uint32_t kMostBalanceMoves = 32;

}  // namespace cairn::api
