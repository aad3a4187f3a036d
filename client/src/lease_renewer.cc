#include "client/src/lease_renewer.h"

#include "common/status.h"

namespace cairn::client {

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

}  // namespace cairn::client
