#include "namenode/replicas/rack_script.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "absl/strings/ascii.h"
#include "common/log.h"
#include "common/status.h"
#include "namenode/replicas/line_words.h"

namespace cairn::namenode {

RackScript::RackScript(Options options, std::shared_ptr<const RackTable> table, Run run, Executor* executor, OnRacks on_racks)
    : options_(std::move(options)), run_(std::move(run)), executor_(executor), on_racks_(std::move(on_racks)), table_(std::move(table)) {}

std::shared_ptr<const RackTable> RackScript::RacksLocked() const {
  std::map<std::string, std::string> racks = known_;
  if (table_ != nullptr)
    for (const auto& [host, rack] : table_->racks()) racks[host] = rack;
  return std::make_shared<const RackTable>(RackTable::Of(racks));
}

std::shared_ptr<const RackTable> RackScript::racks() const {
  MutexLock lock(mu_);
  return RacksLocked();
}

void RackScript::Ask(const std::string& host) {
  std::string name = absl::AsciiStrToLower(host);
  // A word that looks like an option is none of a host; the program is not to be led astray by it.
  if (name.empty() || name.starts_with('-')) return;
  MutexLock lock(mu_);
  if (known_.contains(name) || (table_ != nullptr && table_->racks().contains(name))) return;
  if (known_.size() + wanted_.size() >= options_.most_hosts) return;
  if (wanted_.insert(std::move(name)).second) StepSoonLocked(absl::ZeroDuration());
}

void RackScript::AskAgain(std::shared_ptr<const RackTable> table) {
  MutexLock lock(mu_);
  table_ = std::move(table);
  for (const auto& [host, rack] : known_)
    if (table_ == nullptr || !table_->racks().contains(host)) wanted_.insert(host);
  StepSoonLocked(absl::ZeroDuration());
}

void RackScript::StepSoonLocked(absl::Duration pause) {
  if (std::exchange(posted_, true)) return;
  executor_->PostAt(executor_->clock().Now() + pause, [this] { Step(); });
}

absl::StatusOr<std::vector<std::string>> RackScript::RacksOf(const std::vector<std::string>& hosts) const {
  std::vector<std::string> words{options_.program};
  words.insert(words.end(), hosts.begin(), hosts.end());
  ASSIGN_OR_RETURN(const std::string output, run_(words, options_.timeout));
  std::vector<std::string> racks;
  for (std::vector<std::string>& line : LineWords(output))
    for (std::string& word : line) racks.push_back(std::move(word));
  if (racks.size() != hosts.size())
    return absl::InvalidArgumentError(fmt::format("{} answered {} racks for {} hosts", options_.program, racks.size(), hosts.size()));
  for (const std::string& rack : racks)
    if (!rack.starts_with('/') || rack.size() < 2)
      return absl::InvalidArgumentError(fmt::format("{} answered '{}', which is no rack: '/' comes first", options_.program, rack));
  return racks;
}

void RackScript::Step() {
  std::vector<std::string> hosts;
  {
    MutexLock lock(mu_);
    posted_ = false;
    for (const std::string& host : wanted_) {
      if (hosts.size() >= options_.most_arguments) break;
      hosts.push_back(host);
    }
  }
  absl::StatusOr<std::vector<std::string>> racks = std::vector<std::string>();
  if (!hosts.empty()) racks = RacksOf(hosts);  // Takes its time: no lock is held.
  std::shared_ptr<const RackTable> all;
  {
    MutexLock lock(mu_);
    if (!racks.ok()) {
      if (!std::exchange(fails_, true))
        log::Error("net.topology.script.file.name: {}; hosts that it has not answered for are on {}: {}",
                   std::string(racks.status().message()), kDefaultRack, fmt::join(hosts, " "));
      return StepSoonLocked(options_.retry_after);
    }
    if (!hosts.empty() && std::exchange(fails_, false)) log::Info("net.topology.script.file.name: {} works again", options_.program);
    for (size_t i = 0; i < hosts.size(); ++i) {
      known_[hosts[i]] = (*racks)[i];
      wanted_.erase(hosts[i]);
    }
    if (!wanted_.empty()) StepSoonLocked(absl::ZeroDuration());
    all = RacksLocked();
  }
  on_racks_(std::move(all));
}

}  // namespace cairn::namenode
