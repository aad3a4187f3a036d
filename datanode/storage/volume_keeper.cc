#include "datanode/storage/volume_keeper.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"

namespace cairn::datanode {
namespace {

constexpr absl::Duration kDrainPoll = absl::Milliseconds(200);

}  // namespace

VolumeKeeper::VolumeKeeper(Env* env, Options options, FileBlockStore* store)
    : options_(options), store_(store), executor_(env->executors().NewExecutor("volumes")) {
  if (options_.check_interval == absl::InfiniteDuration()) return;  // Nothing comes back then.
  executor_->PostAt(executor_->clock().Now() + options_.check_interval, [this] { Check(); });
}

// Not by executor_.reset(), which clears the pointer first: a step that is under way still uses it.
VolumeKeeper::~VolumeKeeper() = default;

void VolumeKeeper::Check() {
  for (Volume* volume : store_->Volumes()) {
    if (!volume->failed()) continue;
    const SteadyTime now = executor_->clock().Now();
    const auto [known, is_new] = failed_.try_emplace(volume->directory(), Patience{now + options_.first_return, options_.first_return});
    Patience& patience = known->second;
    // Known from an earlier failure, and this is a later one.
    if (!is_new && patience.not_before == SteadyTime::Infinite()) patience.not_before = now + patience.next;
    if (now < patience.not_before || !volume->Probe().ok()) continue;
    patience.not_before = SteadyTime::Infinite();
    patience.next = std::min(2 * patience.next, options_.last_return);
    if (const absl::Status back = store_->BringBack(volume); !back.ok()) {
      log::Warning("volume {} answers again, but cannot be used: {}", volume->directory(), std::string(back.message()));
    }
  }
  executor_->PostAt(executor_->clock().Now() + options_.check_interval, [this] { Check(); });
}

void VolumeKeeper::Change(std::vector<std::string> directories, Changed done) {
  executor_->Post(
      [this, directories = std::move(directories), done = std::move(done)]() mutable { ChangeNow(directories, std::move(done)); });
}

void VolumeKeeper::ChangeNow(const std::vector<std::string>& directories, Changed done) {
  Leaving leaving;
  leaving.deadline = executor_->clock().Now() + options_.drain;
  leaving.done = std::move(done);
  std::vector<std::string> present;
  for (Volume* volume : store_->Volumes()) {
    present.push_back(volume->directory());
    if (std::find(directories.begin(), directories.end(), volume->directory()) != directories.end()) continue;
    volume->SetLeaving();
    leaving.volumes.push_back(volume);
  }
  for (const std::string& directory : directories) {
    if (std::find(present.begin(), present.end(), directory) != present.end()) continue;
    const absl::Status added = store_->AddVolume(directory);
    if (!added.ok()) leaving.failures += fmt::format("; {}", std::string(added.message()));
  }
  size_t staying = 0;
  for (Volume* volume : store_->Volumes()) staying += !volume->leaving() && !volume->failed() ? 1 : 0;
  if (staying == 0 && !leaving.volumes.empty()) {
    for (Volume* volume : leaving.volumes) volume->SetLeaving(false);
    leaving.volumes.clear();
    leaving.failures += "; no volume would be left, so none is taken out";
  }
  Drain(std::move(leaving));
}

void VolumeKeeper::Drain(Leaving leaving) {
  const bool over = executor_->clock().Now() >= leaving.deadline;
  std::erase_if(leaving.volumes, [this, over](Volume* volume) {
    if (!over && volume->CountWriters() > 0) return false;
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
