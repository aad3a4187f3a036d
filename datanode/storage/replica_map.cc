#include "datanode/storage/replica_map.h"

#include <algorithm>
#include <utility>

namespace cairn::datanode {

void WriterLink::OnRevoked(absl::AnyInvocable<void()> stop) {
  {
    MutexLock lock(mu_);
    if (!revoked()) {
      stop_ = std::move(stop);
      return;
    }
  }
  stop();
}

void WriterLink::Stop() {
  absl::AnyInvocable<void()> stop;
  {
    MutexLock lock(mu_);
    stop = std::exchange(stop_, nullptr);
  }
  if (stop) stop();
}

CreationGate::Pass::~Pass() {
  if (gate_ == nullptr) return;
  MutexLock lock(gate_->mu_);
  std::erase(gate_->entered_, id_);
}

std::optional<CreationGate::Pass> CreationGate::TryEnter(BlockId id) {
  MutexLock lock(mu_);
  if (std::find(entered_.begin(), entered_.end(), id) != entered_.end()) return std::nullopt;
  entered_.push_back(id);
  return Pass(this, id);
}

}  // namespace cairn::datanode
