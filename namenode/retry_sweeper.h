#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "common/env/executor.h"
#include "namenode/namespace_access.h"

namespace cairn::namenode {

// Drops retry rows of slots that were unused for 10 minutes, in paced mutations of a bounded number of rows. What it drops is refused
// later: a call whose slot has no row and was opened over 9 minutes ago is kSlotExpired. Thread-safe.
class RetrySweeper {
 public:
  struct Options {
    absl::Duration unused = absl::Minutes(10);
    absl::Duration interval = absl::Minutes(1);     // Between whole passes.
    absl::Duration pause = absl::Milliseconds(20);  // Between mutations of a pass.
    uint32_t rows_per_step = 500;
  };

  // Pointers outlive the callback of Stop.
  RetrySweeper(Options options, NamespaceAccess* space, Executor* executor);
  ~RetrySweeper();
  RetrySweeper(const RetrySweeper&) = delete;
  RetrySweeper& operator=(const RetrySweeper&) = delete;

  void Start();
  uint64_t rows_dropped() const;
  // Submits nothing more, then calls `then` on the executor, when nothing is under way.
  void Stop(absl::AnyInvocable<void()> then);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cairn::namenode
