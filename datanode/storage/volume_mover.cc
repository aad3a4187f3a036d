#include "datanode/storage/volume_mover.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "datanode/storage/volume_spread.h"

namespace cairn::datanode {
namespace {

constexpr absl::Duration kYield = absl::Milliseconds(50);
constexpr size_t kLookedAtATime = 4096;  // Replicas, under the lock of their volume.

VolumeLoad LoadOf(const Volume& volume) {
  const uint64_t used = volume.used_bytes();
  // Not by what remains: a volume that has just said that it is full would seem to be so by our replicas, and be emptied.
  return {.used_bytes = used - std::min(used, volume.deleter().pending_bytes()),
          .total_bytes = volume.capacity_bytes(),
          .may_take = !volume.full()};
}

}  // namespace

VolumeMover::VolumeMover(Env* env, Options options, Scanner::Verify verify, FileBlockStore* store)
    : verify_(std::move(verify)), store_(store), options_(options), executor_(env->executors().NewBackgroundExecutor("volume-mover")) {
  executor_->Post([this] { Step(); });
}

VolumeMover::~VolumeMover() {
  MutexLock lock(installer_->mu);
  installer_->closed = true;
  while (installer_->running) installer_->ended.Wait(installer_->mu);
}

void VolumeMover::SetOptions(const Options& options) {
  executor_->Post([this, options] {
    options_ = options;
    not_before_ = std::min(not_before_, executor_->clock().Now() + absl::Seconds(1));  // What a slower pace has put off.
    if (!installing_) StepAt(executor_->clock().Now());
  });
}

void VolumeMover::LookAgain() {
  executor_->Post([this] {
    if (installing_ || move_ != nullptr) return;
    EndRound();
    StepAt(executor_->clock().Now());
  });
}

BlockStore::VolumeMoves VolumeMover::moves() const {
  BlockStore::VolumeMoves moves;
  moves.replicas = replicas_.load(std::memory_order_relaxed);
  moves.bytes = bytes_.load(std::memory_order_relaxed);
  moves.failed = failed_.load(std::memory_order_relaxed);
  MutexLock lock(mu_);
  moves.under_way = under_way_;
  return moves;
}

void VolumeMover::Show(std::string under_way) {
  MutexLock lock(mu_);
  under_way_ = std::move(under_way);
}

void VolumeMover::StepAt(SteadyTime when) {
  if (timer_ != 0) executor_->CancelTimer(timer_);
  timer_ = executor_->PostAt(when, [this] {
    timer_ = 0;
    Step();
  });
}

void VolumeMover::Step() {
  if (installing_) return;
  const SteadyTime now = executor_->clock().Now();
  if (options_.threshold_percent <= 0 || options_.bytes_per_second == 0) {  // Until SetOptions.
    move_.reset();
    evening_ = false;
    EndRound();
    return Show("");
  }
  if (now < not_before_) return StepAt(not_before_);
  if (move_ == nullptr && !BeginNext()) return StepAt(now + options_.check_interval);
  if (Busy()) {
    if (yielding_since_ == SteadyTime::Infinite()) yielding_since_ = now;
    if (now - yielding_since_ < options_.longest_yield) return StepAt(now + kYield);
  }
  yielding_since_ = SteadyTime::Infinite();
  Copy();
}

bool VolumeMover::Busy() const { return move_->from()->disk()->QueueDepth() > 0 || move_->to()->disk()->QueueDepth() > 0; }

void VolumeMover::EndRound() {
  left_alone_.clear();
  give_nothing_.clear();
}

bool VolumeMover::BeginNext() {
  std::vector<Volume*> volumes;
  std::vector<VolumeLoad> loads;
  for (Volume* volume : store_->Volumes()) {
    if (volume->failed() || volume->leaving() || !volume->known()) continue;
    volumes.push_back(volume);
    loads.push_back(LoadOf(*volume));
    loads.back().may_give = !give_nothing_.contains(volume);
  }
  const double threshold = evening_ ? options_.threshold_percent / 2 : options_.threshold_percent;
  while (const std::optional<VolumeShift> shift = FindShift(loads, threshold)) {
    Volume* const from = volumes[shift->from];
    Volume* const to = volumes[shift->to];
    if (last_from_ != from) next_id_ = 0;
    last_from_ = from;
    const std::optional<ReplicaMove::Replica> replica = ChooseReplica(from, std::min(shift->most_bytes, to->remaining_bytes()));
    if (!replica) {  // The next fullest may have one.
      loads[shift->from].may_give = false;
      give_nothing_.insert(from);
      continue;
    }
    if (!std::exchange(evening_, true)) {
      log::Info("{} is {:.1f} % full, {} {:.1f} %: replicas are moved from the one to the other", from->directory(),
                100 * loads[shift->from].share(), to->directory(), 100 * loads[shift->to].share());
    }
    Show(fmt::format("from {} to {}", from->directory(), to->directory()));
    move_ = std::make_unique<ReplicaMove>(from, to, *replica);
    return true;
  }
  if (std::exchange(evening_, false)) {
    log::Info("no more is moved between the volumes for now; {} replicas were moved since the start", replicas_.load());
  }
  EndRound();
  Show("");
  return false;
}

// The next one that fits, going round once.
std::optional<ReplicaMove::Replica> VolumeMover::ChooseReplica(Volume* from, uint64_t most_bytes) {
  const uint64_t began_at = next_id_;
  ReplicaShard& shard = from->shard();
  for (bool round = false;;) {
    MutexLock lock(shard.mu);
    auto at = shard.replicas.lower_bound(BlockId(next_id_));
    for (size_t looked = 0; at != shard.replicas.end() && looked < kLookedAtATime; ++at, ++looked) {
      const ReplicaRecord& record = at->second;
      next_id_ = at->first.value() + 1;
      if (round && next_id_ > began_at) return std::nullopt;
      if (!record.in_digest() || record.used_bytes() > most_bytes || left_alone_.contains(at->first)) continue;
      return ReplicaMove::Replica{.id = at->first, .stamp = record.stamp(), .length = record.length(), .used_bytes = record.used_bytes()};
    }
    if (at != shard.replicas.end()) continue;
    if (round || began_at == 0) {
      next_id_ = 0;
      return std::nullopt;
    }
    round = true;
    next_id_ = 0;
  }
}

bool VolumeMover::StillThere(const ReplicaMove& move) {
  const ReplicaMove::Replica& replica = move.replica();
  ReplicaShard& shard = move.from()->shard();
  MutexLock lock(shard.mu);
  const auto at = shard.replicas.find(replica.id);
  return !move.from()->failed() && at != shard.replicas.end() && at->second.in_digest() && at->second.stamp() == replica.stamp;
}

void VolumeMover::Copy() {
  const SteadyTime now = executor_->clock().Now();
  if (move_->to()->failed() || move_->to()->leaving() || !StillThere(*move_)) {
    move_.reset();  // Changed meanwhile.
    return StepAt(now);
  }
  const absl::StatusOr<uint64_t> copied = move_->CopyPiece(options_.piece_bytes);
  // A replica without bytes costs a file and its syncs.
  const uint64_t cost = std::max<uint64_t>(copied.value_or(0), kHeaderPageBytes);
  not_before_ = std::max(not_before_, now) + absl::Seconds(static_cast<double>(cost) / static_cast<double>(options_.bytes_per_second));
  if (!copied.ok()) return GiveUp(copied.status());
  if (move_->copied()) return Install();
  StepAt(not_before_);
}

void VolumeMover::Install() {
  installing_ = true;
  move_->from()->disk()->Post([this, installer = installer_, move = move_.get()] {
    {
      MutexLock lock(installer->mu);
      if (installer->closed) return;
      installer->running = true;
    }
    absl::Status installed = store_->InstallMoved(move);
    executor_->Post([this, installed = std::move(installed)] { OnInstalled(installed); });
    MutexLock lock(installer->mu);
    installer->running = false;
    installer->ended.NotifyAll();
  });
}

void VolumeMover::OnInstalled(const absl::Status& status) {
  installing_ = false;
  if (!status.ok()) return GiveUp(status);
  replicas_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(move_->replica().used_bytes, std::memory_order_relaxed);
  move_.reset();
  StepAt(not_before_);
}

void VolumeMover::GiveUp(const absl::Status& why) {
  const std::unique_ptr<ReplicaMove> move = std::exchange(move_, nullptr);
  left_alone_.insert(move->replica().id);
  StepAt(std::max(not_before_, executor_->clock().Now() + kYield));
  if (!move->is_fault_of_target() && (KindOf(why) == ErrorKind::kCancelled || !StillThere(*move))) return;  // Changed meanwhile.
  if (!move->is_fault_of_target() && KindOf(why) == ErrorKind::kDiskFull) return;                           // Writers came first.
  failed_.fetch_add(1, std::memory_order_relaxed);
  const ReplicaMove::Replica& replica = move->replica();
  log::Warning("block {} stays on {}, it could not be moved to {}: {}", replica.id.value(), move->from()->directory(),
               move->to()->directory(), std::string(why.message()));
  if (!move->is_fault_of_target()) {
    if (KindOf(why) != ErrorKind::kAlreadyExists)
      IgnoreError(verify_(replica.id, replica.stamp), "if it is bad, the NameNode has been told");
  } else if (KindOf(why) == ErrorKind::kDiskFull) {
    move->to()->NoteFull();
  } else {
    move->to()->Fail(why);
  }
}

}  // namespace cairn::datanode
