#include "namenode/lease_monitor.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/status.h"
#include "namenode/background_loop.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/records.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {

namespace {

std::optional<BlockId> LastBlock(const ReadView& view, InodeId id) {
  const absl::StatusOr<std::optional<InodeAt>> inode = FindInodeAnywhere(view, id);
  if (!inode.ok() || !*inode || (*inode)->record.block_count() == 0) return std::nullopt;
  const absl::StatusOr<BlockId> block = BlockIdAt(view, (*inode)->record, (*inode)->record.block_count() - 1);
  return block.ok() ? std::optional<BlockId>(*block) : std::nullopt;
}

bool IsDeletedIfAbandoned(std::string_view row) {
  v1::LeaseRecord lease;
  return lease.ParseFromArray(row.data(), static_cast<int>(row.size())) && lease.delete_if_abandoned();
}

}  // namespace

struct LeaseMonitor::State : std::enable_shared_from_this<LeaseMonitor::State> {
  struct Limits {
    absl::Duration soft, hard;
  };
  struct Holder {
    SteadyTime renewed;
    absl::Duration renews_within;  // What it was told last, or said, whichever is longer.
  };
  State(Options options_in, NamespaceAccess* space_in, Executor* executor_in)
      : options(options_in),
        space(space_in),
        executor(executor_in),
        started_at(executor_in->clock().Now()),
        limits({options_in.soft_limit, options_in.hard_limit}) {}

  const Options options;
  NamespaceAccess* const space;
  Executor* const executor;

  mutable Mutex mu;
  SteadyTime started_at ABSL_GUARDED_BY(mu);
  Limits limits ABSL_GUARDED_BY(mu);
  std::map<std::string, Holder, std::less<>> holders ABSL_GUARDED_BY(mu);
  Stats published ABSL_GUARDED_BY(mu);

  // The executor's from here.
  std::string next_key;  // Where the walk goes on; empty: from the start.
  uint64_t rows_seen = 0;
  uint64_t recovering = 0;
  absl::AnyInvocable<void(std::vector<BlockId>)> on_recovering;
  size_t in_flight = 0;
  BackgroundLoop loop{executor};

  void RunAt(SteadyTime when) {
    if (loop.stopping()) return;
    loop.RunAt(when, [self = shared_from_this(), when] {
      self->ForgiveStall(self->executor->clock().Now() - when);
      self->Page();
    });
  }

  // While this NameNode itself stood still (a machine that was paused, say) nobody could renew: that silence was its own.
  void ForgiveStall(absl::Duration late) {
    if (late <= options.check_interval) return;
    MutexLock lock(mu);
    started_at = started_at + late;
    for (auto& [name, holder] : holders) holder.renewed = std::min(holder.renewed + late, executor->clock().Now());
  }

  // For how long a holder has been silent, and what its silence is judged by.
  std::pair<absl::Duration, Limits> Judge(std::string_view name) const {
    MutexLock lock(mu);
    const auto found = holders.find(name);
    const Holder holder = found == holders.end() ? Holder{started_at, options.unsaid_limit} : found->second;
    const Limits judged = {std::max(limits.soft, holder.renews_within), std::max(limits.hard, holder.renews_within)};
    return {executor->clock().Now() - holder.renewed, judged};
  }

  // One page of the walk. Its expiries are answered before the next begins, so that the queue of the writer holds one page at most.
  void Page() {
    if (loop.stopping()) return;
    std::vector<v1::Mutation> expired;
    std::vector<BlockId> blocks;
    bool more = false;
    {
      const std::shared_ptr<const ReadView> view = space->Snapshot();
      const auto cursor = view->Scan(Family::kLease, next_key, "");
      size_t rows = 0;
      for (; cursor->Valid(); cursor->Next()) {
        if (rows++ == options.rows_per_page) {
          next_key = std::string(cursor->key());
          more = true;
          break;
        }
        ++rows_seen;
        const std::optional<LeaseKeyParts> lease = ParseLeaseKey(cursor->key());
        if (!lease) continue;
        if (lease->holder == kRecoveryHolder) {
          ++recovering;
          if (const std::optional<BlockId> block = LastBlock(*view, lease->id)) blocks.push_back(*block);
          continue;
        }
        const auto [idle, judged] = Judge(lease->holder);
        if (idle < judged.soft && idle < judged.hard) continue;
        if (idle < judged.hard && !IsDeletedIfAbandoned(cursor->value())) continue;
        v1::Mutation& mutation = expired.emplace_back();
        mutation.mutable_expire_lease()->set_holder(std::string(lease->holder));
        mutation.mutable_expire_lease()->set_inode_id(lease->id.value());
        mutation.mutable_expire_lease()->set_observed_idle_ms(absl::ToInt64Milliseconds(idle));
      }
      IgnoreError(cursor->status(), "what could not be read is walked again; the writer refuses to go on over damage");
    }
    if (!more) EndWalk();
    if (!blocks.empty() && on_recovering) on_recovering(std::move(blocks));
    in_flight = expired.size();
    for (v1::Mutation& mutation : expired) {
      space->Submit(std::move(mutation), [self = shared_from_this()](const absl::StatusOr<v1::MutationResult>& result) {
        const bool taken = result.ok() && result->has_inode();
        const bool deleted = taken && result->deleted();
        if (deleted)
          log::Info("{}: deleted, since its writer {} fell silent before he closed it", result->path(), result->inode().lease_holder());
        self->executor->Post([self, taken, deleted] { self->Finish(taken, deleted); });
      });
    }
    if (in_flight == 0) GoOn();
  }

  void Finish(bool taken, bool deleted) {
    if (taken) {
      MutexLock lock(mu);
      ++published.expired;
      published.deleted += deleted ? 1 : 0;
    }
    if (--in_flight > 0) return;
    if (!loop.Ended()) GoOn();
  }

  void GoOn() { RunAt(executor->clock().Now() + (next_key.empty() ? options.check_interval : absl::ZeroDuration())); }

  void EndWalk() {
    const SteadyTime now = executor->clock().Now();
    next_key.clear();
    MutexLock lock(mu);
    const absl::Duration limit = std::max(limits.hard, options.unsaid_limit);
    // A holder that is forgotten counts as silent since the start, which is longer still.
    std::erase_if(holders, [&](const auto& item) { return now - item.second.renewed >= std::max(limit, item.second.renews_within); });
    published.holders = holders.size();
    published.leases = std::exchange(rows_seen, 0);
    published.recovering = std::exchange(recovering, 0);
  }
};

LeaseMonitor::LeaseMonitor(Options options, NamespaceAccess* space, Executor* executor)
    : state_(std::make_shared<State>(options, space, executor)) {}

LeaseMonitor::~LeaseMonitor() = default;

void LeaseMonitor::Start() {
  state_->executor->Post([state = state_] { state->GoOn(); });
}

void LeaseMonitor::SetLimits(absl::Duration soft_limit, absl::Duration hard_limit) {
  MutexLock lock(state_->mu);
  state_->limits = {soft_limit, hard_limit};
}

absl::StatusOr<absl::Duration> LeaseMonitor::Renew(const std::string& holder, absl::Duration renews_within) {
  if (holder.empty()) return MakeError(ErrorKind::kInvalidArgument, "renewLease: the client name is missing");
  if (holder.size() > kMaxHolderBytes)
    return MakeError(ErrorKind::kInvalidArgument,
                     fmt::format("renewLease: a client name of {} bytes is too long (at most {})", holder.size(), kMaxHolderBytes));
  const SteadyTime now = state_->executor->clock().Now();
  MutexLock lock(state_->mu);
  const auto found = state_->holders.find(holder);
  if (found == state_->holders.end() && state_->holders.size() >= state_->options.max_holders)
    return MakeError(
        ErrorKind::kBusy,
        fmt::format("renewLease: {} clients hold leases on this NameNode, as many as it keeps; try again later", state_->holders.size()));
  const absl::Duration told = std::min(state_->limits.soft, state_->limits.hard);
  State::Holder& known = found == state_->holders.end() ? state_->holders[holder] : found->second;
  known.renewed = now;
  // What it says is no way to keep files for longer than the hard limit.
  if (renews_within > absl::ZeroDuration()) {
    known.renews_within = std::min(renews_within, state_->limits.hard);
  } else if (found == state_->holders.end()) {
    known.renews_within = state_->options.unsaid_limit;
  }
  known.renews_within = std::max(known.renews_within, told);
  state_->published.holders = state_->holders.size();
  return told;
}

void LeaseMonitor::SetOnRecovering(absl::AnyInvocable<void(std::vector<BlockId>)> on_recovering) {
  state_->on_recovering = std::move(on_recovering);
}

LeaseMonitor::Silence LeaseMonitor::SilenceOf(std::string_view holder) const {
  const auto [idle, judged] = state_->Judge(holder);
  return {idle, judged.soft};
}

LeaseMonitor::Stats LeaseMonitor::stats() const {
  MutexLock lock(state_->mu);
  return state_->published;
}

void LeaseMonitor::Stop(absl::AnyInvocable<void()> then) {
  state_->executor->Post([state = state_, then = std::move(then)]() mutable { state->loop.Stop(state->in_flight > 0, std::move(then)); });
}

}  // namespace cairn::namenode
