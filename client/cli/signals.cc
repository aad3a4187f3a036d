#include "client/cli/signals.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace cairn::cli {
namespace {

constexpr unsigned kCleanUpSeconds = 10;

std::atomic<bool> interrupted{false};

void OnSignal(int) {
  interrupted.store(true);
  alarm(kCleanUpSeconds);
}

void OnAlarm(int) { _exit(kInterruptedExit); }

}  // namespace

const std::atomic<bool>* CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // And no SA_RESTART: a read of standard input returns.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  std::signal(SIGALRM, OnAlarm);
  std::signal(SIGPIPE, SIG_IGN);
  return &interrupted;
}

long ReadStandardInput(std::span<char> into) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, into.data(), into.size());
    if (count >= 0 || errno != EINTR || interrupted.load()) return count;
  }
}

}  // namespace cairn::cli
