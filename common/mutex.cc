#include "common/mutex.h"

#include <chrono>

#include "common/check.h"

namespace cairn {
namespace {
thread_local int held_count = 0;
}  // namespace

void Mutex::Lock() {
  mu_.lock();
  ++held_count;
}

void Mutex::Unlock() {
  --held_count;
  mu_.unlock();
}

// The waiting thread gives the mutex back while it sleeps, so its count is right again when it wakes.
void CondVar::Wait(Mutex& mu) { cv_.wait(mu.mu_); }

bool CondVar::WaitFor(Mutex& mu, absl::Duration timeout) {
  return cv_.wait_for(mu.mu_, absl::ToChronoNanoseconds(timeout)) == std::cv_status::no_timeout;
}

void AssertMayBlock(const char* what) { CAIRN_CHECK(held_count == 0, std::string(what) + " while a Mutex is held"); }

}  // namespace cairn
