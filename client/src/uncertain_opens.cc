#include "client/src/uncertain_opens.h"

#include <utility>

#include "client/src/lease_renewer.h"
#include "common/error.h"

namespace cairn::client {
namespace {

constexpr absl::Duration kPause = absl::Seconds(15);  // Longer than a call that is on its way may still act.
constexpr absl::Duration kPatience = absl::Hours(1);  // Then all is given up when the client goes.
constexpr int kMostAsking = 1024;                     // Paths; of more, too.

}  // namespace

void UncertainOpens::Begin(const std::string& path) {
  MutexLock lock(mu_);
  ++under_way_[path];
}

void UncertainOpens::EndLocked(const std::string& path) {
  const auto found = under_way_.find(path);
  if (found != under_way_.end() && --found->second == 0) under_way_.erase(found);
}

void UncertainOpens::End(const std::string& path, uint64_t inode_id) {
  MutexLock lock(mu_);
  if (inode_id != 0) writers_.insert(inode_id);
  EndLocked(path);
}

void UncertainOpens::EndUnknown(const std::string& path) {
  {
    MutexLock lock(mu_);
    EndLocked(path);
    ++unsettled_;
    if (asking_ >= kMostAsking) return;
    ++asking_;
  }
  scope_.group->Spawn("uncertain open", [this, path] { return Settle(path); });
}

void UncertainOpens::Closed(uint64_t inode_id) {
  MutexLock lock(mu_);
  writers_.erase(inode_id);
}

bool UncertainOpens::any() const {
  MutexLock lock(mu_);
  return unsettled_ > 0 || !under_way_.empty();
}

bool UncertainOpens::IsBeingOpened(const std::string& path) const {
  MutexLock lock(mu_);
  return under_way_.contains(path);
}

bool UncertainOpens::IsWritersOwn(uint64_t inode_id) const {
  MutexLock lock(mu_);
  return writers_.contains(inode_id);
}

Awaitable<void> UncertainOpens::Settle(std::string path) {
  Event stopped(scope_.executor);
  const auto hook = scope_.group->OnStop([&stopped] { stopped.Set(); });
  const SteadyTime give_up = scope_.executor->clock().Now() + kPatience;
  bool settled = false;
  while (!settled && scope_.executor->clock().Now() < give_up) {
    const bool stop = co_await stopped.Wait(scope_.executor->clock().Now() + kPause);
    if (stop) co_return;
    settled = co_await LookAt(path);
  }
  StopAsking(settled);
}

void UncertainOpens::StopAsking(bool settled) {
  MutexLock lock(mu_);
  --asking_;
  if (settled) --unsettled_;
}

Awaitable<bool> UncertainOpens::LookAt(std::string path) {
  if (IsBeingOpened(path)) co_return false;
  v1::GetFileInfoRequest request;
  request.set_path(path);
  const auto found = co_await namenode_->Read(scope_, &api::ClientNamenode::GetFileInfo, std::move(request));
  if (!found.ok()) co_return KindOf(found.status()) == ErrorKind::kNotFound || KindOf(found.status()) == ErrorKind::kNotDirectory;
  if (IsBeingOpened(path)) co_return false;
  const uint64_t inode_id = found->status().inode_id();
  if (found->status().under_construction() && !IsWritersOwn(inode_id)) leases_->Release(inode_id);
  co_return true;
}

}  // namespace cairn::client
