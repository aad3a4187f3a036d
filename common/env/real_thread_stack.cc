#include "common/env/thread_stack.h"

#include <execinfo.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>
#include "absl/debugging/symbolize.h"

#include "common/mutex.h"

namespace cairn {
namespace {

constexpr int kSignal = SIGURG;  // Ignored by default, so one that comes late or is not ours harms nobody.
constexpr int kMaxFrames = 64;
// Of the handler and the trampoline that the kernel returns through.
constexpr int kOwnFrames = 2;

// One at a time, and static: a handler that runs late finds it still there. wanted -> busy -> done by the handler; back to idle by who
// asked.
enum State : int { kIdle, kWanted, kBusy, kDone };
std::atomic<int> state{kIdle};
std::atomic<ThreadId> wanted_thread{0};
std::array<void*, kMaxFrames> frames;
std::atomic<int> frame_count{0};

void Collect(int) {
  const int saved = errno;
  int expected = kWanted;
  if (wanted_thread.load() == CurrentThreadId() && state.compare_exchange_strong(expected, kBusy)) {
    frame_count.store(backtrace(frames.data(), kMaxFrames));
    state.store(kDone);
  }
  errno = saved;
}

void InstallOnce() {
  static const bool installed = [] {
    std::array<void*, 1> warm_up;
    backtrace(warm_up.data(), 1);  // Loads the unwinder, which allocates: not to happen in a handler.
    struct sigaction action = {};
    action.sa_handler = &Collect;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    return sigaction(kSignal, &action, nullptr) == 0;
  }();
  static_cast<void>(installed);
}

std::string NameOf(void* frame) {
  std::array<char, 512> name;
  // A return address belongs to the call before it.
  const char* const pc = static_cast<const char*>(frame) - 1;
  if (!absl::Symbolize(pc, name.data(), static_cast<int>(name.size()))) return fmt::format("{}", frame);
  return name.data();
}

}  // namespace

ThreadId CurrentThreadId() { return static_cast<ThreadId>(syscall(SYS_gettid)); }

void InitializeStackNames(const char* argv0) {
  absl::InitializeSymbolizer(argv0);
  InstallOnce();
}

std::vector<std::string> StackOfThread(ThreadId thread, absl::Duration patience) {
  static Mutex* const one_at_a_time = new Mutex;  // Never destroyed: threads may ask while the process ends.
  InstallOnce();
  std::vector<std::string> lines;
  MutexLock lock(*one_at_a_time);
  wanted_thread.store(thread);
  state.store(kWanted);
  if (syscall(SYS_tgkill, getpid(), thread, kSignal) != 0) {
    state.store(kIdle);
    return lines;
  }
  constexpr absl::Duration kPause = absl::Milliseconds(1);
  for (absl::Duration waited; state.load() != kDone; waited += kPause) {
    int expected = kWanted;
    if (waited >= patience && state.compare_exchange_strong(expected, kIdle)) return lines;
    const timespec pause = absl::ToTimespec(kPause);
    nanosleep(&pause, nullptr);
  }
  const int count = frame_count.load();
  for (int i = kOwnFrames; i < count; ++i) lines.push_back(NameOf(frames[static_cast<size_t>(i)]));
  state.store(kIdle);
  return lines;
}

}  // namespace cairn
