#include "client/cli/mode_change.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.h"

namespace cairn::cli {
namespace {

constexpr uint32_t kSticky = 01000;

bool IsOctal(const std::string& text) {
  if (text.size() != 3 && text.size() != 4) return false;
  if (text.find_first_not_of("01234567") != std::string::npos) return false;
  return text.size() == 3 || text[0] <= '1';
}

uint32_t Combine(char operation, uint32_t bits, uint32_t existing) {
  switch (operation) {
    case '+': return existing | bits;
    case '-': return existing & ~bits;
    default: return bits;
  }
}

}  // namespace

bool ModeChange::ParseClause(const std::string& text, Clause* clause) {
  size_t at = 0;
  for (; at < text.size() && std::string("ugoa").find(text[at]) != std::string::npos; ++at) {
    clause->user |= text[at] == 'u' || text[at] == 'a';
    clause->group |= text[at] == 'g' || text[at] == 'a';
    clause->others |= text[at] == 'o' || text[at] == 'a';
  }
  if (at == 0) clause->user = clause->group = clause->others = true;
  if (at == text.size() || std::string("+-=").find(text[at]) == std::string::npos) return false;
  clause->operation = text[at++];
  if (at == text.size()) return false;
  for (; at < text.size(); ++at) {
    switch (text[at]) {
      case 'r': clause->bits |= 4; break;
      case 'w': clause->bits |= 2; break;
      case 'x': clause->bits |= 1; break;
      case 'X': clause->execute_if_any = true; break;
      case 't': clause->sticky = true; break;
      default: return false;
    }
  }
  return true;
}

absl::StatusOr<ModeChange> ModeChange::Parse(const std::string& text) {
  ModeChange change;
  if (IsOctal(text)) {
    for (const char digit : text) change.octal_ = change.octal_ * 8 + static_cast<uint32_t>(digit - '0');
    return change;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (!ParseClause(text.substr(begin, end - begin), &change.clauses_.emplace_back()))
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("mode '{}' does not match the expected pattern.", text));
    begin = end + 1;
  }
  return change;
}

uint32_t ModeChange::Apply(uint32_t mode, bool is_directory) const {
  if (clauses_.empty()) return octal_;
  for (const Clause& clause : clauses_) {
    uint32_t bits = clause.bits;
    if (clause.execute_if_any && (is_directory || (mode & 0111) != 0)) bits |= 1;
    uint32_t result = mode & kSticky;
    const bool named[] = {clause.user, clause.group, clause.others};
    for (int i = 0; i < 3; ++i) {
      const int shift = 6 - 3 * i;
      const uint32_t existing = mode >> shift & 7;
      result |= (named[i] ? Combine(clause.operation, bits, existing) : existing) << shift;
    }
    if (clause.others) result = (result & 0777) | Combine(clause.operation, clause.sticky ? kSticky : 0, mode & kSticky);
    mode = result;
  }
  return mode;
}

}  // namespace cairn::cli
