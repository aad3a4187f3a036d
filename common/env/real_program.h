#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace cairn {

// Runs a program, words[0], with the other words for its arguments, without a shell and without input, and answers what it wrote to its
// standard output; its standard error is ours. Blocks until it has ended. After `timeout` it is killed, with all that it has started and
// that stayed in its process group: kTimeout. Other errors: it cannot be started, ended with another code than 0 or by a signal, or wrote
// more than 1 MiB. Thread-safe.
absl::StatusOr<std::string> RunRealProgram(const std::vector<std::string>& words, absl::Duration timeout);

}  // namespace cairn
