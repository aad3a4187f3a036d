#pragma once

#include <string>
#include <vector>

#include "namenode/namespace/checker.h"

namespace cairn::testing {

// What a check of the whole namespace finds wrong, a line each: EXPECT_THAT(ViolationsOf(view), IsEmpty()).
inline std::vector<std::string> ViolationsOf(const namenode::ReadView& view) {
  std::vector<std::string> lines;
  const auto summary =
      namenode::CheckNamespace(view, [&](const namenode::Violation& violation) { lines.push_back(namenode::ToString(violation)); });
  if (!summary.ok()) lines.push_back(summary.status().ToString());
  return lines;
}

}  // namespace cairn::testing
