#pragma once

// Matchers for absl::Status and StatusOr that print kind, reason and message when they fail.

#include <ostream>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/error.h"

namespace cairn::testing {

inline absl::Status StatusOfResult(const absl::Status& status) { return status; }
template <class T>
absl::Status StatusOfResult(const absl::StatusOr<T>& result) {
  return result.status();
}

inline void Explain(const absl::Status& status, ::testing::MatchResultListener* listener) {
  *listener << "which is " << KindName(KindOf(status)) << " (" << ReasonOf(status) << "): " << status.ToString();
}

// EXPECT_THAT(status_or_result, IsOk()).
MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  const absl::Status status = StatusOfResult(arg);
  Explain(status, result_listener);
  return status.ok();
}

// EXPECT_THAT(status_or_result, HasKind(ErrorKind::kNotFound)).
MATCHER_P(HasKind, kind, std::string(negation ? "has not kind " : "has kind ") + std::string(KindName(kind))) {
  const absl::Status status = StatusOfResult(arg);
  Explain(status, result_listener);
  return KindOf(status) == kind;
}

// EXPECT_THAT(status_or_result, HasReason("SLOT_EXPIRED")).
MATCHER_P(HasReason, reason, std::string(negation ? "has not reason " : "has reason ") + std::string(reason)) {
  const absl::Status status = StatusOfResult(arg);
  Explain(status, result_listener);
  return ReasonOf(status) == std::string(reason);
}

// EXPECT_THAT(result, IsOkAndHolds(matcher_or_value)).
MATCHER_P(IsOkAndHolds, inner, "is OK and holds what " + ::testing::PrintToString(inner)) {
  if (!arg.ok()) {
    Explain(arg.status(), result_listener);
    return false;
  }
  return ::testing::ExplainMatchResult(inner, *arg, result_listener);
}

}  // namespace cairn::testing
