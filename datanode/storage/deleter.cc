#include "datanode/storage/deleter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/fault_points.h"

namespace cairn::datanode {
namespace {

constexpr absl::Duration kLeastYield = absl::Milliseconds(1);
constexpr absl::Duration kLookAgain = absl::Milliseconds(5);
constexpr absl::Duration kAskAgain = absl::Milliseconds(20);  // Whether a fault point still blocks.

}  // namespace

absl::Duration DeleterOptions::YieldAfter(absl::Duration unlink, absl::Duration oldest) const {
  const absl::Duration pause = yielding.PauseAfter(unlink, oldest);
  return std::clamp(pause, yielding.ShareAt(oldest) < 1 ? kLeastYield : absl::ZeroDuration(), std::max(kLeastYield, longest_yield));
}

Deleter::Deleter(Env* env, const std::string& thread_name, DeleterOptions options, absl::AnyInvocable<void(const File&)> remove,
                 absl::AnyInvocable<bool() const> busy)
    : options_(options),
      remove_(std::move(remove)),
      busy_(std::move(busy)),
      executor_(env->executors().NewBackgroundExecutor(thread_name)) {}

// Not by executor_.reset(), which clears the pointer first: a step that is under way still uses it.
Deleter::~Deleter() = default;

void Deleter::SetOptions(const DeleterOptions& options) {
  MutexLock lock(mu_);
  options_ = options;
  not_before_ = std::min(not_before_, executor_->clock().Now() + absl::Seconds(1));  // What a slower pace has put off.
}

void Deleter::Add(const File& file) {
  MutexLock lock(mu_);
  if (!files_.emplace(file.id, file).second) return;
  order_.push_back({.id = file.id, .since = executor_->clock().Now()});
  bytes_ += file.used_bytes;
  if (!scheduled_) ScheduleLocked(std::max(not_before_, executor_->clock().Now()));
}

Deleter::Claim Deleter::TryClaim(BlockId id, File* file) {
  MutexLock lock(mu_);
  if (removing_ == id && id != BlockId()) return Claim::kBeingRemoved;
  const auto found = files_.find(id);
  if (found == files_.end()) return Claim::kNone;
  *file = found->second;
  bytes_ -= file->used_bytes;
  files_.erase(found);
  std::erase_if(order_,
                [id](const Waiting& waiting) { return waiting.id == id; });  // Rare: a block comes back while its old file still waits.
  return Claim::kTaken;
}

bool Deleter::Has(BlockId id) const {
  MutexLock lock(mu_);
  return removing_ == id || files_.contains(id);
}

uint64_t Deleter::pending_blocks() const {
  MutexLock lock(mu_);
  return files_.size() + (removing_ == BlockId() ? 0 : 1);
}

uint64_t Deleter::pending_bytes() const {
  MutexLock lock(mu_);
  return bytes_ + removing_bytes_;
}

absl::Duration Deleter::oldest_age() const {
  MutexLock lock(mu_);
  const SteadyTime now = executor_->clock().Now();
  if (removing_ != BlockId()) return now - removing_since_;
  return order_.empty() ? absl::ZeroDuration() : now - order_.front().since;
}

void Deleter::ScheduleLocked(SteadyTime when) {
  scheduled_ = true;
  executor_->PostAt(when, [this] { Step(); });
}

void Deleter::Step() {
  const SteadyTime now = executor_->clock().Now();
  std::optional<absl::Duration> wait;
  if (!std::exchange(delayed_, false)) wait = FaultHold("datanode.deleter.unlink");
  if (wait == absl::InfiniteDuration()) {
    wait = kAskAgain;
  } else if (wait) {
    delayed_ = true;
  }
  if (!wait && busy_()) {
    if (yielding_since_ == SteadyTime::Infinite()) yielding_since_ = now;
    // Looks again before the end, since the others may be through.
    if (now - yielding_since_ < yield_) wait = std::clamp(yielding_since_ + yield_ - now, kLeastYield, kLookAgain);
  }
  File file;
  {
    MutexLock lock(mu_);
    scheduled_ = false;
    if (order_.empty()) return;
    if (wait) {
      ScheduleLocked(now + std::max(*wait, absl::Milliseconds(1)));
      return;
    }
    const auto found = files_.find(order_.front().id);
    file = found->second;
    files_.erase(found);
    removing_since_ = order_.front().since;
    order_.pop_front();
    bytes_ -= file.used_bytes;
    removing_ = file.id;
    removing_bytes_ = file.used_bytes;
  }
  yielding_since_ = SteadyTime::Infinite();
  remove_(file);
  const absl::Duration took = executor_->clock().Now() - now;
  MutexLock lock(mu_);
  yield_ = options_.YieldAfter(took, order_.empty() ? absl::ZeroDuration() : now - order_.front().since);
  const double seconds = std::max(1 / options_.unlinks_per_second, static_cast<double>(file.used_bytes) / options_.bytes_per_second);
  removing_ = BlockId();
  removing_bytes_ = 0;
  // From the planned time, not from now: the time of the unlink itself counts towards the pace; idle time gives no burst.
  not_before_ = std::max(not_before_, now) + absl::Seconds(seconds);
  if (!order_.empty()) ScheduleLocked(not_before_);
}

}  // namespace cairn::datanode
