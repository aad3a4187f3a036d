#pragma once

#include <utility>

#include "absl/functional/any_invocable.h"
#include "common/env/executor.h"

namespace cairn::namenode {

// What a part that works in the background has in common with the others: a step, a pause, the next step; and an end that waits for what is
// under way. One executor's. Lives in what its steps keep alive.
class BackgroundLoop {
 public:
  explicit BackgroundLoop(Executor* executor) : executor_(executor) {}

  bool stopping() const { return stopping_; }
  bool pausing() const { return timer_ != 0; }
  void RunAt(SteadyTime when, absl::AnyInvocable<void()> step) {
    timer_ = executor_->PostAt(when, [this, step = std::move(step)]() mutable {
      timer_ = 0;
      step();
    });
  }
  void RunAfter(absl::Duration pause, absl::AnyInvocable<void()> step) { RunAt(executor_->clock().Now() + pause, std::move(step)); }

  // The step that was to come does not; the caller sees to the next one.
  void CancelPause() {
    if (timer_ != 0) executor_->CancelTimer(std::exchange(timer_, 0));
  }

  // No further step; `then` is called when none is under way, which may be now.
  void Stop(bool under_way, absl::AnyInvocable<void()> then) {
    stopping_ = true;
    CancelPause();
    if (!under_way) return then();
    then_ = std::move(then);
  }
  // At the end of a step: true if there is no next one; whoever stopped the loop is told.
  bool Ended() {
    if (!stopping_) return false;
    if (then_) std::exchange(then_, nullptr)();
    return true;
  }

 private:
  Executor* const executor_;
  bool stopping_ = false;
  Executor::TimerId timer_ = 0;
  absl::AnyInvocable<void()> then_;
};

}  // namespace cairn::namenode
