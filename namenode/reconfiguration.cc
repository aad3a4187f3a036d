#include "namenode/reconfiguration.h"

#include <utility>

#include "common/check.h"
#include "common/log.h"

namespace cairn::namenode {

Reconfiguration::Reconfiguration(Config current, Load load, const Clock* clock)
    : load_(std::move(load)), clock_(clock), current_(std::move(current)) {}

std::vector<std::string> Reconfiguration::ReloadableKeys() {
  std::vector<std::string> keys;
  for (const ConfigKey& key : ConfigKeys())
    if (key.reloadable) keys.emplace_back(key.name);
  return keys;
}

Reconfiguration::Outcome Reconfiguration::Reload() {
  Outcome outcome;
  outcome.ever = true;
  outcome.started = clock_->WallNow();
  const absl::StatusOr<Config> loaded = load_();
  Config taken;
  {
    const MutexLock lock(mu_);
    taken = current_;
  }
  bool any = false;
  if (loaded.ok()) {
    for (const ConfigKey& key : ConfigKeys()) {
      Change change{std::string(key.name), taken.Text(key.name), loaded->Text(key.name), key.reloadable};
      if (change.from == change.to) continue;
      if (key.reloadable) {
        any = true;
        const absl::Status set = taken.Set(key.name, change.to, loaded->OriginOf(key.name));
        CAIRN_CHECK(set.ok(), "a value that was loaded is refused");
      }
      outcome.changes.push_back(std::move(change));
    }
  }
  outcome.status = loaded.status();
  if (any && take_) take_(taken);
  outcome.ended = clock_->WallNow();
  for (const Change& change : outcome.changes) {
    log::Info("reconfiguration: {} from '{}' to '{}'{}", change.key, change.from, change.to, change.taken ? "" : ": not before a restart");
  }
  if (!outcome.status.ok()) log::Error("reconfiguration refused, nothing has changed: {}", std::string(outcome.status.message()));
  const MutexLock lock(mu_);
  current_ = std::move(taken);
  last_ = outcome;
  return outcome;
}

Reconfiguration::Outcome Reconfiguration::last() const {
  const MutexLock lock(mu_);
  return last_;
}

}  // namespace cairn::namenode
