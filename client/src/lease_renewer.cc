#include "client/src/lease_renewer.h"

#include <algorithm>

#include "common/status.h"

namespace cairn::client {
namespace {
constexpr int kRenewalsInLimit = 3;
constexpr absl::Duration kDrainStep = absl::Milliseconds(2);  // Between looks at what is still on its way.
}  // namespace

void LeaseRenewer::Add() {
  if (writers_.fetch_add(1) != 0) return;
  scope_.group->Spawn("lease renewal", [this] { return Run(); });
}

void LeaseRenewer::NoteLimit(absl::Duration limit) {
  const int64_t limit_ms = absl::ToInt64Milliseconds(limit);
  if (limit_ms <= 0 || noted_ms_.exchange(limit_ms) == limit_ms) return;
  scope_.group->Spawn("lease limit", [this, limit] { return Heed(limit); });
}

Awaitable<void> LeaseRenewer::Heed(absl::Duration limit) {
  const absl::Duration interval = std::min(longest_, limit / kRenewalsInLimit);
  told_shorter_ = told_shorter_ || interval < interval_;
  interval_ = interval;
  if (told_shorter_ && woken_ != nullptr) woken_->Set();
  co_return;
}

Awaitable<void> LeaseRenewer::Run() {
  if (running_) co_return;
  running_ = true;
  renewed_ = scope_.executor->clock().Now();  // What opened the first file has told the NameNode that we live.
  Event woken(scope_.executor);
  woken_ = &woken;
  const auto hook = scope_.group->OnStop([&woken] { woken.Set(); });
  while (writers_.load() > 0) {
    woken.Reset();
    if (!told_shorter_ && !scope_.group->stopping()) {
      const bool early = co_await woken.Wait(renewed_ + interval_);
      static_cast<void>(early);
    }
    if (writers_.load() == 0 || scope_.group->stopping()) break;
    told_shorter_ = false;
    renewed_ = scope_.executor->clock().Now();
    v1::RenewLeaseRequest request;
    request.set_renews_within_ms(absl::ToInt64Milliseconds(interval_ * kRenewalsInLimit));
    const auto renewed = co_await namenode_->Read(scope_, &api::ClientNamenode::RenewLease, std::move(request));
    IgnoreError(renewed.status(), "the next call of a writer tells whether its lease stands");
    if (renewed.ok()) NoteLimit(absl::Milliseconds(renewed->lease_soft_limit_ms()));
  }
  woken_ = nullptr;
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
