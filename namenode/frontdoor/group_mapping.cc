#include "namenode/frontdoor/group_mapping.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"

namespace cairn::namenode {
namespace {

// How long the others go on with what is old while one asks again.
constexpr absl::Duration kAskingTime = absl::Seconds(10);

std::shared_ptr<const Caller::Groups> ToGroups(const std::vector<std::string>& names) {
  auto groups = std::make_shared<Caller::Groups>();
  for (const std::string& name : names) *groups->Add() = name;
  return groups;
}

std::string Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

std::vector<std::string> Parts(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (std::string part = Trimmed(text.substr(begin, end - begin)); !part.empty()) parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

GroupMapping::GroupMapping(Options options, Lookup lookup, const Clock* clock)
    : options_(std::move(options)), lookup_(std::move(lookup)), clock_(clock) {
  for (const auto& [user, groups] : options_.overrides) overrides_.emplace(user, ToGroups(groups));
}

std::shared_ptr<const Caller::Groups> GroupMapping::GroupsOf(const std::string& user) {
  if (user.empty()) return none_;
  if (const auto fixed = overrides_.find(user); fixed != overrides_.end()) return fixed->second;
  std::shared_ptr<const Groups> old;
  {
    MutexLock lock(mu_);
    if (const auto found = by_user_.find(user); found != by_user_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      Entry& entry = entries_.front();
      const SteadyTime now = clock_->Now();
      if (now < entry.ask_again) return entry.groups;
      old = entry.groups;
      entry.ask_again = now + kAskingTime;
    }
  }
  const absl::StatusOr<std::vector<std::string>> asked = lookup_(user);
  if (!asked.ok() && KindOf(asked.status()) != ErrorKind::kNotFound) {
    log::Warning("groups of user {}: {}; {}", user, std::string(asked.status().message()),
                 old == nullptr ? "taken to be none" : "the ones known so far hold");
  }
  std::shared_ptr<const Groups> groups = none_;
  if (asked.ok()) {
    groups = ToGroups(*asked);
  } else if (old != nullptr && KindOf(asked.status()) != ErrorKind::kNotFound) {
    groups = old;
  }
  MutexLock lock(mu_);
  Keep(user, groups, asked.ok() ? options_.keep : options_.keep_none);
  return groups;
}

std::shared_ptr<const Caller::Groups> GroupMapping::KnownGroupsOf(const std::string& user) {
  if (user.empty()) return none_;
  if (const auto fixed = overrides_.find(user); fixed != overrides_.end()) return fixed->second;
  MutexLock lock(mu_);
  const auto found = by_user_.find(user);
  if (found == by_user_.end() || clock_->Now() >= found->second->ask_again) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().groups;
}

void GroupMapping::Keep(const std::string& user, std::shared_ptr<const Groups> groups, absl::Duration keep) {
  const SteadyTime ask_again = clock_->Now() + keep;
  if (const auto found = by_user_.find(user); found != by_user_.end()) {
    found->second->groups = std::move(groups);
    found->second->ask_again = ask_again;
    return;
  }
  entries_.push_front(Entry{user, std::move(groups), ask_again});
  by_user_.emplace(user, entries_.begin());
  if (entries_.size() <= options_.max_users) return;
  by_user_.erase(entries_.back().user);
  entries_.pop_back();
}

void GroupMapping::Forget() {
  MutexLock lock(mu_);
  for (Entry& entry : entries_) entry.ask_again = SteadyTime();
}

size_t GroupMapping::kept() const {
  MutexLock lock(mu_);
  return entries_.size();
}

absl::StatusOr<GroupMapping::Overrides> ParseGroupOverrides(std::string_view text) {
  GroupMapping::Overrides overrides;
  for (const std::string& mapping : Parts(text, ';')) {
    const size_t equals = mapping.find('=');
    const std::string user = Trimmed(std::string_view(mapping).substr(0, equals));
    if (equals == std::string::npos || user.empty())
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("\"{}\" is not user=group,group", mapping));
    if (!overrides.emplace(user, Parts(std::string_view(mapping).substr(equals + 1), ',')).second)
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("user {} has groups twice", user));
  }
  return overrides;
}

}  // namespace cairn::namenode
