#include "common/reconfiguration.h"

#include <utility>

#include "common/check.h"
#include "common/log.h"

namespace cairn {

namespace {

// Logs and the like are everybody's.
bool Takes(Reconfiguration::Daemon daemon, const ConfigKey& key) {
  if (!key.reloadable) return false;
  const std::string_view other = daemon == Reconfiguration::Daemon::kNamenode ? "DataNode" : "NameNode";
  return !key.part.starts_with(other);
}

}  // namespace

Reconfiguration::Reconfiguration(Config current, Load load, const Clock* clock, Daemon daemon)
    : load_(std::move(load)), clock_(clock), daemon_(daemon), current_(std::move(current)) {}

std::vector<std::string> Reconfiguration::ReloadableKeys() const {
  std::vector<std::string> keys;
  for (const ConfigKey& key : ConfigKeys())
    if (Takes(daemon_, key)) keys.emplace_back(key.name);
  return keys;
}

void Reconfiguration::Fill(const Outcome& outcome, v1::ReconfigureResponse* response) {
  if (!outcome.ever) return;
  response->set_started_ms(absl::ToUnixMillis(outcome.started));
  response->set_ended_ms(absl::ToUnixMillis(outcome.ended));
  if (!outcome.status.ok()) response->set_error(std::string(outcome.status.message()));
  for (const Change& change : outcome.changes) {
    v1::ReconfigureResponse::Change& added = *response->add_changes();
    added.set_key(change.key);
    added.set_from(change.from);
    added.set_to(change.to);
    added.set_taken(change.taken);
  }
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
      Change change{std::string(key.name), taken.Text(key.name), loaded->Text(key.name), Takes(daemon_, key)};
      if (change.from == change.to) continue;
      if (change.taken) {
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

Config Reconfiguration::current() const {
  const MutexLock lock(mu_);
  return current_;
}

}  // namespace cairn
