#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "client/cli/shell.h"

namespace cairn::cli {

// Exit codes of HDFS's balancer (ExitStatus): 0, -1 to -5, as a shell sees them. An interrupt ends it with 130, as everything here.
inline constexpr int kAlreadyRunning = 255;
inline constexpr int kNoMoveBlock = 254;
inline constexpr int kNoMoveProgress = 253;
inline constexpr int kIoException = 252;
inline constexpr int kIllegalArguments = 251;

// Asks the NameNode; blocks. The header is filled by it.
using AskBalance = std::function<absl::StatusOr<v1::BalanceResponse>(v1::BalanceRequest request)>;

struct BalancerTarget {
  AskBalance ask;
  std::string namenode;  // Of the table's last column.
  uint64_t run = 0;      // Drawn by chance.
};

// cairn balancer, with HDFS's options and words, and a table of its columns: a row for every iteration's start, one now and then while
// bytes move, one at the end. `words` are those behind "balancer". The NameNode does the work as long as this asks for it; one that
// restarts is given the run again. Uses shell's out, err, zone, now, wait and interrupted.
int RunBalancer(const BalancerTarget& target, Shell* shell, std::span<const std::string> words);

}  // namespace cairn::cli
