#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cairn::namenode {

inline constexpr char kDefaultRack[] = "/default-rack";

// Where hosts stand, from the file of net.topology.table.file.name, as Hadoop's TableMapping has it: a host and a rack a line, apart by
// blanks; '#' begins a comment. Hosts in any case of letters. Immutable.
class RackTable {
 public:
  // kInvalidArgument, naming the line: not two words, or a rack that does not begin with '/'.
  static absl::StatusOr<RackTable> Parse(std::string_view text);
  // Hosts in small letters.
  static RackTable Of(const std::map<std::string, std::string>& racks);
  // The same, where it is not final for hosts that are not there: somebody is asked where they stand.
  static RackTable SoFar(const std::map<std::string, std::string>& racks);
  const std::map<std::string, std::string, std::less<>>& racks() const { return racks_; }
  // kDefaultRack for a host that is not there.
  const std::string& RackOf(std::string_view host) const;
  // False if RackOf may say something else of this host soon.
  bool Answers(std::string_view host) const;
  size_t size() const { return racks_.size(); }

 private:
  std::map<std::string, std::string, std::less<>> racks_;
  bool is_final_ = true;
};

}  // namespace cairn::namenode
