#include "common/env/real_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "common/mutex.h"

extern char** environ;

namespace cairn {
namespace {

constexpr size_t kMostOutput = 1 << 20;
constexpr absl::Duration kLookForEnd = absl::Milliseconds(5);

absl::Status Failed(const std::string& program, const std::string& why) {
  return absl::UnavailableError(fmt::format("{}: {}", program, why));
}

std::string ErrorText(int error) { return std::error_code(error, std::generic_category()).message(); }

int MillisecondsUntil(absl::Time end) {
  return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(end - absl::Now()) + 1, 0, 60'000));
}

// What is written there until it is closed.
absl::Status ReadAll(const std::string& program, int from, absl::Time end, std::string* output) {
  std::array<char, 4096> buffer;
  for (;;) {
    pollfd wanted{.fd = from, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wanted, 1, MillisecondsUntil(end));
    if (ready < 0 && errno != EINTR) return Failed(program, ErrorText(errno));
    if (absl::Now() >= end) return absl::DeadlineExceededError(program + ": it takes too long");
    if (ready <= 0) continue;
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count == 0) return absl::OkStatus();
    if (count < 0 && errno != EINTR) return Failed(program, ErrorText(errno));
    if (count > 0) output->append(buffer.data(), static_cast<size_t>(count));
    if (output->size() > kMostOutput) return Failed(program, fmt::format("it writes more than {} bytes", kMostOutput));
  }
}

absl::Status WaitFor(const std::string& program, pid_t child, absl::Time end) {
  for (;;) {
    int state = 0;
    const pid_t ended = ::waitpid(child, &state, WNOHANG);
    if (ended < 0 && errno != EINTR) return Failed(program, ErrorText(errno));
    if (ended == child) {
      if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return absl::OkStatus();
      if (WIFEXITED(state)) return Failed(program, fmt::format("it ended with code {}", WEXITSTATUS(state)));
      return Failed(program, fmt::format("signal {} has ended it", WTERMSIG(state)));
    }
    if (absl::Now() >= end) return absl::DeadlineExceededError(program + ": it takes too long");
    ::poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kLookForEnd)));
  }
}

}  // namespace

absl::StatusOr<std::string> RunRealProgram(const std::vector<std::string>& words, absl::Duration timeout) {
  AssertMayBlock("RunRealProgram");
  const std::string& program = words.front();
  const absl::Time end = absl::Now() + timeout;
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return Failed(program, ErrorText(errno));

  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  // A group of its own, to be ended as a whole; and the daemon's blocked signals are not its.
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int spawned = ::posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  if (spawned != 0) {
    ::close(pipe[0]);
    return Failed(program, fmt::format("it cannot be started: {}", ErrorText(spawned)));
  }

  std::string output;
  absl::Status status = ReadAll(program, pipe[0], end, &output);
  ::close(pipe[0]);
  if (status.ok()) status = WaitFor(program, child, end);
  if (status.ok()) return output;
  ::kill(-child, SIGKILL);  // It may have ended by itself; what it has started may still be there.
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace cairn
