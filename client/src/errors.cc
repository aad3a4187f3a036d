#include "cairn/errors.h"

#include "common/error.h"

namespace cairn::errors {

bool IsNotFound(const absl::Status& status) { return KindOf(status) == ErrorKind::kNotFound; }
bool IsAlreadyExists(const absl::Status& status) { return KindOf(status) == ErrorKind::kAlreadyExists; }
bool IsInvalidPath(const absl::Status& status) { return KindOf(status) == ErrorKind::kInvalidPath; }
bool IsNotDirectory(const absl::Status& status) { return KindOf(status) == ErrorKind::kNotDirectory; }
bool IsADirectory(const absl::Status& status) { return KindOf(status) == ErrorKind::kIsDirectory; }
bool IsNotEmpty(const absl::Status& status) { return KindOf(status) == ErrorKind::kNotEmpty; }
bool IsPermissionDenied(const absl::Status& status) { return KindOf(status) == ErrorKind::kPermission; }
bool IsLimitExceeded(const absl::Status& status) { return KindOf(status) == ErrorKind::kQuota; }
bool IsBeingWritten(const absl::Status& status) { return KindOf(status) == ErrorKind::kBeingWritten; }
bool IsLeaseExpired(const absl::Status& status) { return KindOf(status) == ErrorKind::kLeaseExpired; }
bool IsNoDatanodes(const absl::Status& status) { return KindOf(status) == ErrorKind::kNoTargets; }
bool IsChecksumError(const absl::Status& status) { return KindOf(status) == ErrorKind::kChecksum; }
bool IsCancelled(const absl::Status& status) { return KindOf(status) == ErrorKind::kCancelled; }

bool IsOutcomeUnknown(const absl::Status& status) {
  if (KindOf(status) == ErrorKind::kSlotExpired) return true;
  return KindOf(status) == ErrorKind::kNone &&
         (status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kDeadlineExceeded);
}

std::string KindName(const absl::Status& status) { return std::string(cairn::KindName(KindOf(status))); }
std::string Reason(const absl::Status& status) { return ReasonOf(status); }

}  // namespace cairn::errors
