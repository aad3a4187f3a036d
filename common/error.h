#pragma once

// Error kinds: what somebody reacts to. A kind travels as a payload of absl::Status inside a process and as
// cairn.v1.ErrorDetail outside. common/error.cc alone knows more than one vocabulary (gRPC codes, Hadoop's exception
// classes, WebHDFS, errno). All functions are thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace cairn::v1 {
class ErrorDetail;
}

namespace cairn {

// The numbers are on the wire (DeleteManyResponse.codes) and in retry rows: only ever add.
enum class ErrorKind : uint8_t {
  kNone = 0,  // A status without a kind: outcome unknown, bad argument, a broken connection.
  kNotFound = 1,
  kAlreadyExists = 2,
  kInvalidPath = 3,
  kNotDirectory = 4,
  kNotEmpty = 5,
  kIsDirectory = 6,
  kPermission = 7,
  kQuota = 8,  // Also other limits: `key` says which raises it.
  kLeaseExpired = 9,
  kBeingWritten = 10,
  kNotReplicatedYet = 11,
  kSafeMode = 12,
  kRetriable = 13,
  kStandby = 14,
  kStaleGeneration = 15,
  kReplicaNotFound = 16,
  kChecksum = 17,
  kDiskFull = 18,
  kUnregistered = 19,
  kInvalidArgument = 20,
  kSlotExpired = 21,  // Outcome unknown: the retry slot is too old.
  kNoTargets = 22,    // Placement found nothing; `reason` tells NO_LIVE_DATANODES, ALL_EXCLUDED, NO_SPACE, ...
  kAccessToken = 23,  // Block token refused: fetch locations again.
  kReadOnly = 24,     // The NameNode takes no changes; see its log.
  kCancelled = 25,    // Abort or shutdown.
  kCorruptMetadata = 26,
  kUnsupported = 27,
  kBusy = 28,  // A limit on concurrency; retry with a back-off.
};

struct Error {
  ErrorKind kind = ErrorKind::kNone;
  // Strings may hold any bytes; in the Status and on the wire those that are no UTF-8 stand as \xNN.
  std::string message;  // What was attempted, on what, the numbers that decided, what to do.
  std::string reason;   // UPPER_CASE, for programs; may be empty.
  std::string path;
  uint64_t block_id = 0;
  std::vector<std::string> nodes;
  int64_t limit = 0;
  std::string key;  // Configuration key that changes it.
};

absl::Status MakeError(ErrorKind kind, std::string message);
absl::Status MakeError(Error error);

// The kind that a status carries; kNone for OK and for statuses without one.
ErrorKind KindOf(const absl::Status& status);
// UPPER_CASE reason, or empty.
std::string ReasonOf(const absl::Status& status);
// All of it; nothing for OK or a status without a payload.
std::optional<Error> ErrorOf(const absl::Status& status);

// To and from the wire. Of an OK status: an empty detail. From a detail without a known kind: code UNKNOWN, kNone.
v1::ErrorDetail ToDetail(const absl::Status& status);
absl::Status FromDetail(const v1::ErrorDetail& detail);

std::string_view KindName(ErrorKind kind);       // "kNotFound"
ErrorKind KindFromName(std::string_view name);   // kNone if unknown.
absl::StatusCode CodeOf(ErrorKind kind);         // gRPC's code of the kind.
std::string_view HadoopClassOf(ErrorKind kind);  // "java.io.FileNotFoundException"; as HDFS's RemoteException.
int ErrnoOf(ErrorKind kind);                     // ENOENT ...

// True for kinds and codes after which the same call may be tried again (also unknown outcomes: UNAVAILABLE,
// DEADLINE_EXCEEDED without a kind), with the same retry id.
bool IsRetriable(const absl::Status& status);

}  // namespace cairn
