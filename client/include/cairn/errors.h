#pragma once

// What went wrong, for programs. A Status of Cairn carries its kind beside code and message; these
// tell kinds apart (cairn::errors::IsNotFound(status); the namespace keeps them apart from Abseil's
// functions of the same names). All are false for OK and for statuses of others. Thread-safe.

#include <string>

#include "absl/status/status.h"

namespace cairn::errors {

bool IsNotFound(const absl::Status& status);  // No such file or directory.
bool IsAlreadyExists(const absl::Status& status);
bool IsInvalidPath(const absl::Status& status);
bool IsNotDirectory(const absl::Status& status);  // A file where a directory is needed.
bool IsADirectory(const absl::Status& status);    // A directory where a file is needed.
bool IsNotEmpty(const absl::Status& status);
bool IsPermissionDenied(const absl::Status& status);
bool IsLimitExceeded(const absl::Status& status);  // A quota or another limit; the message names the key.
bool IsBeingWritten(const absl::Status& status);   // By another client.
bool IsLeaseExpired(const absl::Status& status);   // The writer lost its file: to another writer, or to a delete.
bool IsNoDatanodes(const absl::Status& status);    // No DataNode would take a block; Reason says why.
bool IsChecksumError(const absl::Status& status);
bool IsCancelled(const absl::Status& status);  // Abort, or the client was closed.
// The call may or may not have acted: the NameNode did not answer within the retry budget, or no
// longer knows.
bool IsOutcomeUnknown(const absl::Status& status);

// "kNotFound", ...; "kNone" without a kind.
std::string KindName(const absl::Status& status);
// UPPER_CASE detail ("NO_LIVE_DATANODES", "ALL_EXCLUDED", "NO_SPACE"), or empty.
std::string Reason(const absl::Status& status);

}  // namespace cairn::errors
