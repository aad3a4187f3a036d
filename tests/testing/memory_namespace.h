#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "common/env/executor.h"
#include "namenode/namespace_access.h"
#include "tests/testing/builders.h"

namespace cairn::testing {

// NamespaceAccess over a namespace in memory: mutations are applied on `executor`, one batch each. `space` and `executor` outlive it.
class MemoryNamespace : public namenode::NamespaceAccess {
 public:
  MemoryNamespace(TestNamespace* space, Executor* executor) : space_(space), executor_(executor) {}

  void SetObserver(namenode::NamespaceWriter::Observer observer) { observer_ = std::move(observer); }
  // The next mutations are not applied but answered with this.
  void FailNext(absl::Status status, int times = 1) {
    for (; times > 0; --times) failures_.push_back(status);
  }
  // Applied or failed so far.
  const std::vector<v1::Mutation>& submitted() const { return submitted_; }

  std::shared_ptr<const namenode::ReadView> Snapshot() const override { return std::make_shared<MemoryState>(space_->view()); }

  void Submit(v1::Mutation mutation, namenode::NamespaceWriter::Done done) override {
    executor_->Post([this, mutation = std::move(mutation), done = std::move(done)]() mutable {
      if (mutation.time_ms() == 0) mutation.set_time_ms(absl::ToUnixMillis(executor_->clock().WallNow()));
      submitted_.push_back(mutation);
      if (!failures_.empty()) {
        const absl::Status failure = failures_.front();
        failures_.pop_front();
        return done(failure);
      }
      absl::StatusOr<v1::MutationResult> result = space_->Apply(mutation);
      if (result.ok() && observer_) observer_({{&mutation, &*result, space_->rows_written()}});
      done(std::move(result));
    });
  }

 private:
  TestNamespace* space_;
  Executor* executor_;
  namenode::NamespaceWriter::Observer observer_;
  std::deque<absl::Status> failures_;
  std::vector<v1::Mutation> submitted_;
};

}  // namespace cairn::testing
