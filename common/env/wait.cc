#include "common/env/wait.h"

#include <list>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "common/check.h"

namespace cairn {

// A waiter lives in the frame of its Wait(), so a wait costs no allocation of ours; it is linked here until it is woken.
struct Event::State {
  struct Waiter {
    absl::AnyInvocable<void(bool)> resume;  // Asio's handle on the suspended coroutine.
    Executor::TimerId timer = 0;
    std::list<Waiter*>::iterator place;
  };

  // What Asio calls once the coroutine is suspended. A class, not a lambda (docs/decisions: g++ 12 and co_await).
  class Park {
   public:
    Park(State* state, Waiter* waiter, SteadyTime deadline) : state_(state), waiter_(waiter), deadline_(deadline) {}

    template <class Handler>
    void operator()(Handler handler) const {
      waiter_->resume = std::move(handler);
      waiter_->place = state_->waiters.insert(state_->waiters.end(), waiter_);
      if (deadline_ == SteadyTime::Infinite()) return;
      // A timer that is cancelled on its executor does not run any more, so the bare pointers stay good.
      waiter_->timer = state_->executor->PostAt(deadline_, [state = state_, waiter = waiter_] {
        state->waiters.erase(waiter->place);
        absl::AnyInvocable<void(bool)> resume = std::move(waiter->resume);
        resume(false);
      });
    }

   private:
    State* state_;
    Waiter* waiter_;
    SteadyTime deadline_;
  };

  explicit State(Executor* on) : executor(on) {}

  Executor* const executor;
  bool set = false;
  std::list<Waiter*> waiters;  // In the order they came.
};

Event::Event(Executor* executor) : state_(std::make_shared<State>(executor)) {}

Event::~Event() { CAIRN_CHECK(state_->waiters.empty(), "an Event is destroyed while a coroutine waits for it"); }

void Event::Set() {
  state_->set = true;
  while (!state_->waiters.empty()) {
    State::Waiter* waiter = state_->waiters.front();
    state_->waiters.pop_front();
    if (waiter->timer != 0) state_->executor->CancelTimer(waiter->timer);
    state_->executor->Post([resume = std::move(waiter->resume)]() mutable { resume(true); });
  }
}

void Event::Reset() { state_->set = false; }

bool Event::is_set() const { return state_->set; }

Awaitable<bool> Event::Wait(SteadyTime deadline) {
  if (state_->set) co_return true;
  State::Waiter waiter;
  State::Park park(state_.get(), &waiter, deadline);
  auto suspended =
      boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(bool)>(std::move(park), boost::asio::use_awaitable);
  const bool set = co_await std::move(suspended);
  co_return set;
}

Awaitable<void> SleepUntil(Executor* executor, SteadyTime when) {
  Event never(executor);
  const bool set = co_await never.Wait(when);
  static_cast<void>(set);
}

}  // namespace cairn
