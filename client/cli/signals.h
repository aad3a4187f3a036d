#pragma once

#include <atomic>
#include <span>

namespace cairn::cli {

// How an interrupted command ends, as shells see it.
constexpr int kInterruptedExit = 130;

// Turns the first SIGINT, SIGTERM or SIGHUP into a flag, so that a copy can clean up; the second one kills as usual. A process that has not
// ended ten seconds after the first, since it waits for a NameNode that is not there, ends then. A write to a closed pipe is an error of
// that write.
const std::atomic<bool>* CatchInterrupts();

// Reads standard input: as Shell::read_input.
long ReadStandardInput(std::span<char> into);

}  // namespace cairn::cli
