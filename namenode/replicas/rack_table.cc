#include "namenode/replicas/rack_table.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "absl/strings/ascii.h"
#include "common/error.h"
#include "common/line_words.h"

namespace cairn::namenode {

absl::StatusOr<RackTable> RackTable::Parse(std::string_view text) {
  RackTable table;
  size_t number = 0;
  for (const std::vector<std::string>& words : LineWords(text)) {
    ++number;
    if (words.empty()) continue;
    if (words.size() != 2 || words[1].front() != '/' || words[1].size() < 2)
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("line {}: a host and its rack, '/' first, are wanted", number));
    table.racks_[absl::AsciiStrToLower(words[0])] = words[1];
  }
  return table;
}

RackTable RackTable::Of(const std::map<std::string, std::string>& racks) {
  RackTable table;
  table.racks_.insert(racks.begin(), racks.end());
  return table;
}

RackTable RackTable::SoFar(const std::map<std::string, std::string>& racks) {
  RackTable table = Of(racks);
  table.is_final_ = false;
  return table;
}

bool RackTable::Answers(std::string_view host) const {
  return is_final_ || host.empty() || host.starts_with('-') || racks_.contains(absl::AsciiStrToLower(std::string(host)));
}

const std::string& RackTable::RackOf(std::string_view host) const {
  static const std::string kNowhere = kDefaultRack;
  const auto found = racks_.find(absl::AsciiStrToLower(std::string(host)));
  return found == racks_.end() ? kNowhere : found->second;
}

}  // namespace cairn::namenode
