#include "common/task_group.h"

#include <atomic>
#include <exception>
#include <list>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "common/check.h"

namespace cairn {
namespace {

[[noreturn]] void Die(const std::string& name, const char* what) {
  CAIRN_CHECK(false, "coroutine " + name + " threw: " + what);
  std::abort();
}

}  // namespace

struct TaskGroup::State {
  struct Hook {
    absl::AnyInvocable<void()> on_stop;
  };
  class HookOwner;

  explicit State(Executor* on) : executor(on), idle(on) {}

  void Stop() {
    if (stopping) return;
    stopping = true;
    // A hook may destroy its own or other owners, so each is taken off the list before it runs.
    while (!hooks.empty()) {
      std::shared_ptr<Hook> hook = std::move(hooks.front());
      hooks.pop_front();
      if (hook->on_stop) hook->on_stop();
    }
  }

  void Finish() {
    if (running.fetch_sub(1) != 1) return;
    idle.Set();
    for (absl::AnyInvocable<void()>& then : std::exchange(when_idle, {})) executor->Post(std::move(then));
  }

  Executor* const executor;
  std::atomic<size_t> running = 0;  // Counted from Spawn on, which may be called on any thread; the rest is the executor's.
  bool stopping = false;
  Event idle;
  std::list<std::shared_ptr<Hook>> hooks;  // In the order they came.
  std::vector<absl::AnyInvocable<void()>> when_idle;
};

class TaskGroup::State::HookOwner : public TaskGroup::StopHook {
 public:
  HookOwner(std::shared_ptr<State> state, std::shared_ptr<Hook> hook) : state_(std::move(state)), hook_(std::move(hook)) {}
  ~HookOwner() override { state_->hooks.remove(hook_); }

 private:
  std::shared_ptr<State> state_;
  std::shared_ptr<Hook> hook_;
};

namespace {

Awaitable<void> Run(std::string name, absl::AnyInvocable<Awaitable<void>()> body) {
  try {
    Awaitable<void> running = body();  // `body` stays in this frame: what it captured lives as long as its coroutine.
    co_await std::move(running);
  } catch (const std::exception& e) {
    Die(name, e.what());
  } catch (...) {
    Die(name, "something that is no std::exception");
  }
}

}  // namespace

TaskGroup::TaskGroup(Executor* executor) : state_(std::make_shared<State>(executor)) {}

TaskGroup::~TaskGroup() { CAIRN_CHECK(state_->running.load() == 0, "a TaskGroup is destroyed while coroutines run"); }

void TaskGroup::Spawn(std::string name, absl::AnyInvocable<Awaitable<void>()> body) {
  state_->running.fetch_add(1);
  state_->executor->Post([state = state_, name = std::move(name), body = std::move(body)]() mutable {
    if (state->stopping) {
      body = nullptr;
      state->Finish();
      return;
    }
    Executor* executor = state->executor;
    // Called once the coroutine's frame, and with it `body`, is gone. Run() lets no exception out.
    boost::asio::co_spawn(executor->asio(), Run(std::move(name), std::move(body)),
                          [state = std::move(state)](std::exception_ptr) { state->Finish(); });
  });
}

std::unique_ptr<TaskGroup::StopHook> TaskGroup::OnStop(absl::AnyInvocable<void()> on_stop) {
  auto hook = std::make_shared<State::Hook>();
  if (state_->stopping) {
    on_stop();
  } else {
    hook->on_stop = std::move(on_stop);
    state_->hooks.push_back(hook);
  }
  return std::make_unique<State::HookOwner>(state_, std::move(hook));
}

void TaskGroup::Stop() {
  if (state_->executor->IsCurrent()) {
    const std::shared_ptr<State> state = state_;  // A hook may destroy the group.
    state->Stop();
  } else {
    state_->executor->Post([state = state_] { state->Stop(); });
  }
}

bool TaskGroup::stopping() const { return state_->stopping; }

size_t TaskGroup::running() const { return state_->running.load(); }

Awaitable<void> TaskGroup::Join() {
  const std::shared_ptr<State> state = state_;
  while (state->running.load() != 0) {
    state->idle.Reset();
    const bool idle = co_await state->idle.Wait(SteadyTime::Infinite());
    static_cast<void>(idle);
  }
}

void TaskGroup::StopAndThen(absl::AnyInvocable<void()> then) {
  state_->executor->Post([state = state_, then = std::move(then)]() mutable {
    state->Stop();
    if (state->running.load() == 0) {
      then();
    } else {
      state->when_idle.push_back(std::move(then));
    }
  });
}

}  // namespace cairn
