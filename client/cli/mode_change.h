#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cairn::cli {

// A change of permission bits, as chmod is told: octal ("755", "1777": three digits, or four with 0 or 1 in front) or symbolic clauses
// ("u+rwx,go=rX,a-t"). As HDFS's ChmodParser: no class means all; X is x where there is an x already, or on a directory; t is
// the sticky bit and belongs to the others. Otherwise than HDFS, several clauses for one class all count, in order. A value type.
class ModeChange {
 public:
  // kInvalidArgument if it is neither.
  static absl::StatusOr<ModeChange> Parse(const std::string& text);

  uint32_t Apply(uint32_t mode, bool is_directory) const;

 private:
  struct Clause {
    bool user = false;
    bool group = false;
    bool others = false;
    char operation = '=';  // + - =
    uint32_t bits = 0;     // rwx as 4, 2, 1.
    bool execute_if_any = false;
    bool sticky = false;
  };
  static bool ParseClause(const std::string& text, Clause* clause);
  uint32_t octal_ = 0;
  std::vector<Clause> clauses_;  // Empty: the octal mode.
};

}  // namespace cairn::cli
