#include "namenode/replicas/rack_script.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "absl/strings/ascii.h"
#include "common/line_words.h"
#include "common/log.h"
#include "common/status.h"

namespace cairn::namenode {

RackScript::RackScript(Options options, std::shared_ptr<const RackTable> table, Run run, Executor* executor, OnRacks on_racks)
    : options_(std::move(options)), run_(std::move(run)), executor_(executor), on_racks_(std::move(on_racks)), table_(std::move(table)) {}

std::shared_ptr<const RackTable> RackScript::RacksLocked() const {
  std::map<std::string, std::string> racks = known_;
  if (table_ != nullptr)
    for (const auto& [host, rack] : table_->racks()) racks[host] = rack;
  return std::make_shared<const RackTable>(RackTable::SoFar(racks));
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
  if (hosts_.size() >= options_.most_hosts || !hosts_.insert(name).second) return;
  if (table_ != nullptr && table_->racks().contains(name)) return;
  wanted_.insert(std::move(name));
  StepAtLocked(executor_->clock().Now());
}

void RackScript::AskAgain(std::shared_ptr<const RackTable> table) {
  MutexLock lock(mu_);
  table_ = std::move(table);
  wanted_.clear();
  alone_.clear();
  failing_.clear();
  for (const std::string& host : hosts_)
    if (table_ == nullptr || !table_->racks().contains(host)) wanted_.insert(host);
  StepAtLocked(executor_->clock().Now());
}

void RackScript::StepAtLocked(SteadyTime time) {
  if (posted_ && *posted_ <= time) return;
  posted_ = time;
  executor_->PostAt(time, [this] { Step(); });
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

std::vector<std::string> RackScript::TakeLocked(SteadyTime now) {
  std::vector<std::string> hosts;
  while (!wanted_.empty() && hosts.size() < options_.most_arguments) hosts.push_back(std::move(wanted_.extract(wanted_.begin()).value()));
  if (hosts.empty() && !alone_.empty() && alone_.begin()->first <= now) {
    hosts.push_back(alone_.begin()->second);
    alone_.erase(alone_.begin());
  }
  return hosts;
}

bool RackScript::FailedLocked(const std::vector<std::string>& hosts, const absl::Status& status, SteadyTime now) {
  const bool many = hosts.size() > 1;
  for (const std::string& host : hosts) alone_.emplace(many ? now : now + options_.retry_after, host);
  if (many) return false;
  const std::string& host = hosts.front();
  if (failing_.empty())
    log::Error("net.topology.script.file.name: {}; hosts that it has not answered for are on {}, {} among them",
               std::string(status.message()), kDefaultRack, host);
  failing_.insert(host);
  return known_.emplace(host, kDefaultRack).second;
}

void RackScript::Step() {
  std::vector<std::string> hosts;
  {
    MutexLock lock(mu_);
    posted_.reset();
    hosts = TakeLocked(executor_->clock().Now());
  }
  absl::StatusOr<std::vector<std::string>> racks = std::vector<std::string>();
  if (!hosts.empty()) racks = RacksOf(hosts);  // Takes its time: no lock is held.
  std::shared_ptr<const RackTable> all;
  {
    MutexLock lock(mu_);
    const SteadyTime now = executor_->clock().Now();
    bool news = racks.ok();
    if (!racks.ok()) news = FailedLocked(hosts, racks.status(), now);
    for (size_t i = 0; racks.ok() && i < hosts.size(); ++i) {
      known_[hosts[i]] = (*racks)[i];
      if (failing_.erase(hosts[i]) > 0 && failing_.empty()) log::Info("net.topology.script.file.name: {} works again", options_.program);
    }
    if (!wanted_.empty()) {
      StepAtLocked(now);
    } else if (!alone_.empty()) {
      StepAtLocked(std::max(now, alone_.begin()->first));
    }
    if (news) all = RacksLocked();
  }
  if (all != nullptr) on_racks_(std::move(all));
}

}  // namespace cairn::namenode
