#include "datanode/storage/volume_keeper.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

constexpr absl::Duration kDrainPoll = absl::Milliseconds(200);
constexpr absl::Duration kSettlePoll = absl::Milliseconds(20);

}  // namespace

VolumeKeeper::VolumeKeeper(Env* env, Options options, std::vector<std::string> directories, FileBlockStore* store)
    : options_(options), store_(store), wanted_(std::move(directories)), executor_(env->executors().NewExecutor("volumes")) {
  if (options_.check_interval == absl::InfiniteDuration()) return;  // Nothing comes back then.
  const SteadyTime now = executor_->clock().Now();
  bool any_away = false;
  for (Volume* volume : store_->Volumes()) {
    if (!volume->failed()) continue;
    failed_[volume->directory()] = {now, options_.first_return};  // Kept away at the start: it has been long enough.
    any_away = true;
  }
  executor_->PostAt(any_away ? now : now + options_.check_interval, [this] { Check(); });
}

// Not by executor_.reset(), which clears the pointer first: a step that is under way still uses it.
VolumeKeeper::~VolumeKeeper() = default;

void VolumeKeeper::Check() {
  for (Volume* volume : store_->Volumes()) {
    if (volume->failed()) {
      CheckFailed(volume);
    } else {
      volume->RefreshSpaceSoon();
    }
  }
  for (const std::string& directory : wanted_)
    if (!IsVolume(directory)) CheckAbsent(directory);
  executor_->PostAt(executor_->clock().Now() + options_.check_interval, [this] { Check(); });
}

void VolumeKeeper::CheckFailed(Volume* volume) {
  const SteadyTime now = executor_->clock().Now();
  const auto [known, is_new] = failed_.try_emplace(volume->directory(), Patience{now + options_.first_return, options_.first_return});
  Patience& patience = known->second;
  // Known from an earlier failure, and this is a later one.
  if (!is_new && patience.not_before == SteadyTime::Infinite()) patience.not_before = now + patience.next;
  if (now < patience.not_before || !volume->settled() || !volume->Probe().ok()) return;
  patience.not_before = SteadyTime::Infinite();
  patience.next = std::min(2 * patience.next, options_.last_return);
  if (const absl::Status back = store_->BringBack(volume); !back.ok()) {
    log::Warning("volume {} answers again, but cannot be used: {}", volume->directory(), std::string(back.message()));
  }
}

void VolumeKeeper::CheckAbsent(const std::string& directory) {
  const SteadyTime now = executor_->clock().Now();
  Patience& patience = absent_.try_emplace(directory, Patience{now + options_.first_return, options_.first_return}).first->second;
  if (now < patience.not_before) return;
  const absl::Status added = store_->AddVolume(directory, /*format_empty=*/false);
  if (added.ok()) {
    absent_.erase(directory);
    return;
  }
  patience.next = std::min(2 * patience.next, options_.last_return);
  patience.not_before = now + patience.next;
  log::Warning("a data directory is still left out: {}", std::string(added.message()));
}

bool VolumeKeeper::IsVolume(const std::string& directory) const {
  for (Volume* volume : store_->Volumes())
    if (volume->directory() == directory) return true;
  return false;
}

void VolumeKeeper::Change(std::vector<std::string> directories, Changed done) {
  executor_->Post([this, directories = std::move(directories), done = std::move(done)]() mutable {
    asked_.push_back({std::move(directories), std::move(done), executor_->clock().Now() + options_.settle});
    TakeChanges();
  });
}

void VolumeKeeper::TakeChanges() {
  while (!waiting_ && !asked_.empty()) {
    const std::vector<std::string>& directories = asked_.front().directories;
    const SteadyTime now = executor_->clock().Now();
    const bool settled =
        std::all_of(directories.begin(), directories.end(), [this](const std::string& directory) { return store_->IsSettled(directory); });
    if (!settled && now < asked_.front().patience) {
      waiting_ = true;
      executor_->PostAt(now + kSettlePoll, [this] {
        waiting_ = false;
        TakeChanges();
      });
      return;
    }
    Asked asked = std::move(asked_.front());
    asked_.pop_front();
    ChangeNow(std::move(asked.directories), std::move(asked.done));
  }
}

void VolumeKeeper::ChangeNow(std::vector<std::string> directories, Changed done) {
  if (const absl::Status named_once = CheckDirectories(directories); !named_once.ok()) return done(named_once);
  Leaving leaving;
  leaving.deadline = executor_->clock().Now() + options_.drain;
  leaving.done = std::move(done);
  std::vector<Volume*> failed;
  for (Volume* volume : store_->Volumes()) {
    if (std::find(directories.begin(), directories.end(), volume->directory()) != directories.end()) {
      Stay(volume);
      if (volume->failed()) failed.push_back(volume);
      continue;
    }
    if (leaving_.try_emplace(volume, last_leaving_ + 1).second) ++last_leaving_;
    volume->SetLeaving();
    leaving.volumes.emplace_back(volume, leaving_.at(volume));
  }
  for (Volume* volume : failed) {
    const absl::Status back = ReturnNow(volume);
    if (!back.ok()) leaving.failures += fmt::format("; volume {} is still failed: {}", volume->directory(), std::string(back.message()));
  }
  for (const std::string& directory : directories) {
    if (IsVolume(directory)) continue;
    absent_.erase(directory);
    const absl::Status added = store_->AddVolume(directory, /*format_empty=*/true);
    if (!added.ok()) leaving.failures += fmt::format("; {}", std::string(added.message()));
  }
  wanted_ = std::move(directories);
  size_t staying = 0;
  for (Volume* volume : store_->Volumes()) staying += !volume->leaving() && !volume->failed() ? 1 : 0;
  if (staying == 0 && !leaving.volumes.empty()) {
    for (const auto& [volume, number] : leaving.volumes) {
      Stay(volume);
      wanted_.push_back(volume->directory());
    }
    leaving.volumes.clear();
    leaving.failures += "; no volume would be left, so none is taken out";
  }
  Drain(std::move(leaving));
}

absl::Status VolumeKeeper::ReturnNow(Volume* volume) {
  RETURN_IF_ERROR(store_->CheckSettled(volume->directory()));
  const absl::Status answers = volume->Probe();
  return answers.ok() ? store_->BringBack(volume) : answers;
}

void VolumeKeeper::Stay(Volume* volume) {
  leaving_.erase(volume);
  volume->SetLeaving(false);
}

void VolumeKeeper::Drain(Leaving leaving) {
  const bool over = executor_->clock().Now() >= leaving.deadline;
  std::erase_if(leaving.volumes, [this, over, &leaving](const std::pair<Volume*, uint64_t>& entry) {
    Volume* const volume = entry.first;
    if (volume->removed()) return true;  // By another change.
    const auto still = leaving_.find(volume);
    if (still == leaving_.end() || still->second != entry.second) {
      leaving.failures += fmt::format("; {} stays: it was asked for again", volume->directory());
      return true;
    }
    if (!over && volume->CountWriters() > 0) return false;
    leaving_.erase(still);
    store_->RemoveVolume(volume);
    return true;
  });
  if (!leaving.volumes.empty()) {
    executor_->PostAt(executor_->clock().Now() + kDrainPoll, [this, leaving = std::move(leaving)]() mutable { Drain(std::move(leaving)); });
    return;
  }
  leaving.done(leaving.failures.empty() ? absl::OkStatus() : MakeError(ErrorKind::kInvalidArgument, leaving.failures.substr(2)));
}

}  // namespace cairn::datanode
