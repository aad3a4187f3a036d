#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cairn/types.pb.h"

namespace cairn::namenode {

// Which DataNodes may come, and which are to be drained, as files say: dfs.hosts and dfs.hosts.exclude, one host or host:port a word, what
// follows a '#' is a comment; or, as HDFS's CombinedHostFileManager has it, dfs.hosts alone with a JSON array of
//   {"hostName": "a", "port": 9866, "adminState": "IN_MAINTENANCE", "maintenanceExpireTimeInMS": 1767225600000}
// where the state may also be DECOMMISSIONED, or NORMAL, and the port be left out.
// A name matches the host that a DataNode advertises, in any case of letters; without a port, every node there.
class HostList {
 public:
  // kInvalidArgument, naming the word or entry that is wrong.
  static absl::StatusOr<HostList> Parse(std::string_view hosts, std::string_view exclude);

  // An empty list of hosts lets everyone in.
  bool Allows(const v1::Endpoint& node) const { return included_.empty() || Names(included_, node); }
  bool Excludes(const v1::Endpoint& node) const { return Names(excluded_, node); }
  // When its maintenance ends, in ms since 1970, 0 for never; nullptr if it is not to be in maintenance.
  const int64_t* MaintenanceOf(const v1::Endpoint& node) const;
  size_t included() const { return included_.size(); }
  size_t excluded() const { return excluded_.size(); }

 private:
  static bool Names(const std::set<std::string>& names, const v1::Endpoint& node);
  absl::Status ParseJson(std::string_view text);

  std::set<std::string> included_;
  std::set<std::string> excluded_;
  std::map<std::string, int64_t> maintenance_;
};

}  // namespace cairn::namenode
