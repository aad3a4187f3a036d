#pragma once

#include <atomic>
#include <span>

namespace cairn::cli {

// Turns the first SIGINT, SIGTERM or SIGHUP into a flag, so that a copy can clean up; the second
// one kills as usual. A write to a closed pipe is an error of that write.
const std::atomic<bool>* CatchInterrupts();

// Reads standard input: as Shell::read_input.
long ReadStandardInput(std::span<char> into);

}  // namespace cairn::cli
