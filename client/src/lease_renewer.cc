#include "client/src/lease_renewer.h"

#include "common/status.h"

namespace cairn::client {
namespace {
constexpr absl::Duration kDrainStep = absl::Milliseconds(2);  // Between looks at what is still on its way.
}  // namespace

void LeaseRenewer::Add() {
  if (writers_.fetch_add(1) != 0) return;
  scope_.group->Spawn("lease renewal", [this] { return Run(); });
}

Awaitable<void> LeaseRenewer::Run() {
  if (running_) co_return;
  running_ = true;
  Event stopped(scope_.executor);
  const auto hook = scope_.group->OnStop([&stopped] { stopped.Set(); });
  while (writers_.load() > 0) {
    const bool stop = co_await stopped.Wait(scope_.executor->clock().Now() + interval_);
    if (stop) break;
    if (writers_.load() == 0) break;
    v1::RenewLeaseRequest request;
    const auto renewed = co_await namenode_->Read(scope_, &api::ClientNamenode::RenewLease, std::move(request));
    IgnoreError(renewed.status(), "the next call of a writer tells whether its lease stands");
  }
  running_ = false;
  // A writer that came between the last look and here found `running_` set.
  if (writers_.load() > 0 && !scope_.group->stopping()) scope_.group->Spawn("lease renewal", [this] { return Run(); });
}

void LeaseRenewer::Release(uint64_t inode_id) {
  releasing_.fetch_add(1);
  scope_.group->Spawn("lease release", [this, inode_id] { return Tell(inode_id); });
}

Awaitable<void> LeaseRenewer::Tell(uint64_t inode_id) {
  v1::ReleaseLeaseRequest request;
  request.set_inode_id(inode_id);
  const auto told = co_await namenode_->Mutate(scope_, &api::ClientNamenode::ReleaseLease, std::move(request));
  IgnoreError(told.status(), "then the lease runs out by itself");
  releasing_.fetch_sub(1);
}

Awaitable<absl::Status> LeaseRenewer::Drain(SteadyTime deadline) {
  while (releasing_.load() > 0 && scope_.executor->clock().Now() < deadline && !scope_.group->stopping())
    co_await SleepUntil(scope_.executor, scope_.executor->clock().Now() + kDrainStep);
  co_return absl::OkStatus();
}

}  // namespace cairn::client
