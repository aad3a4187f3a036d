#include "common/error.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "absl/strings/cord.h"
#include "cairn/types.pb.h"
#include "common/status.h"
#include "common/utf8.h"

namespace cairn {
namespace {

constexpr char kPayloadUrl[] = "type.cairn/cairn.v1.ErrorDetail";

struct KindRow {
  ErrorKind kind;
  std::string_view name;
  absl::StatusCode code;
  std::string_view hadoop_class;
  int errno_value;
};

using absl::StatusCode;

// The one table. Hadoop's class names are as HDFS throws them over IPC.
constexpr std::array kRows = {
    KindRow{ErrorKind::kNone, "kNone", StatusCode::kUnknown, "java.io.IOException", EIO},
    KindRow{ErrorKind::kNotFound, "kNotFound", StatusCode::kNotFound, "java.io.FileNotFoundException", ENOENT},
    KindRow{ErrorKind::kAlreadyExists, "kAlreadyExists", StatusCode::kAlreadyExists, "org.apache.hadoop.fs.FileAlreadyExistsException",
            EEXIST},
    KindRow{ErrorKind::kInvalidPath, "kInvalidPath", StatusCode::kInvalidArgument, "org.apache.hadoop.fs.InvalidPathException", EINVAL},
    KindRow{ErrorKind::kNotDirectory, "kNotDirectory", StatusCode::kFailedPrecondition, "org.apache.hadoop.fs.ParentNotDirectoryException",
            ENOTDIR},
    KindRow{ErrorKind::kNotEmpty, "kNotEmpty", StatusCode::kFailedPrecondition, "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException",
            ENOTEMPTY},
    KindRow{ErrorKind::kIsDirectory, "kIsDirectory", StatusCode::kFailedPrecondition, "java.io.FileNotFoundException", EISDIR},
    KindRow{ErrorKind::kPermission, "kPermission", StatusCode::kPermissionDenied, "org.apache.hadoop.security.AccessControlException",
            EACCES},
    KindRow{ErrorKind::kQuota, "kQuota", StatusCode::kResourceExhausted, "org.apache.hadoop.hdfs.protocol.QuotaExceededException", EDQUOT},
    KindRow{ErrorKind::kLeaseExpired, "kLeaseExpired", StatusCode::kFailedPrecondition,
            "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException", ESTALE},
    KindRow{ErrorKind::kBeingWritten, "kBeingWritten", StatusCode::kFailedPrecondition,
            "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException", EBUSY},
    KindRow{ErrorKind::kNotReplicatedYet, "kNotReplicatedYet", StatusCode::kUnavailable,
            "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException", EAGAIN},
    KindRow{ErrorKind::kSafeMode, "kSafeMode", StatusCode::kUnavailable, "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
            EAGAIN},
    KindRow{ErrorKind::kRetriable, "kRetriable", StatusCode::kUnavailable, "org.apache.hadoop.ipc.RetriableException", EAGAIN},
    KindRow{ErrorKind::kStandby, "kStandby", StatusCode::kUnavailable, "org.apache.hadoop.ipc.StandbyException", EAGAIN},
    KindRow{ErrorKind::kStaleGeneration, "kStaleGeneration", StatusCode::kAborted,
            "org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException", ESTALE},
    KindRow{ErrorKind::kReplicaNotFound, "kReplicaNotFound", StatusCode::kNotFound,
            "org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException", ENOENT},
    KindRow{ErrorKind::kChecksum, "kChecksum", StatusCode::kDataLoss, "org.apache.hadoop.fs.ChecksumException", EIO},
    KindRow{ErrorKind::kDiskFull, "kDiskFull", StatusCode::kResourceExhausted, "org.apache.hadoop.util.DiskChecker$DiskOutOfSpaceException",
            ENOSPC},
    KindRow{ErrorKind::kUnregistered, "kUnregistered", StatusCode::kFailedPrecondition,
            "org.apache.hadoop.hdfs.protocol.UnregisteredNodeException", ENOTCONN},
    KindRow{ErrorKind::kInvalidArgument, "kInvalidArgument", StatusCode::kInvalidArgument,
            "org.apache.hadoop.HadoopIllegalArgumentException", EINVAL},
    KindRow{ErrorKind::kSlotExpired, "kSlotExpired", StatusCode::kAborted, "java.io.IOException", EIO},
    KindRow{ErrorKind::kNoTargets, "kNoTargets", StatusCode::kUnavailable, "java.io.IOException", ENOSPC},
    KindRow{ErrorKind::kAccessToken, "kAccessToken", StatusCode::kPermissionDenied,
            "org.apache.hadoop.security.token.SecretManager$InvalidToken", EACCES},
    KindRow{ErrorKind::kReadOnly, "kReadOnly", StatusCode::kFailedPrecondition, "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
            EROFS},
    KindRow{ErrorKind::kCancelled, "kCancelled", StatusCode::kCancelled, "java.io.InterruptedIOException", EINTR},
    KindRow{ErrorKind::kCorruptMetadata, "kCorruptMetadata", StatusCode::kDataLoss, "java.io.IOException", EIO},
    KindRow{ErrorKind::kUnsupported, "kUnsupported", StatusCode::kUnimplemented, "java.lang.UnsupportedOperationException", ENOTSUP},
    KindRow{ErrorKind::kBusy, "kBusy", StatusCode::kUnavailable, "org.apache.hadoop.ipc.RetriableException", EAGAIN},
};

constexpr bool RowsStandAtTheirNumbers() {
  for (size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<size_t>(kRows[i].kind) != i) return false;
  return true;
}
static_assert(RowsStandAtTheirNumbers());

const KindRow& RowOf(ErrorKind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < kRows.size() ? kRows[index] : kRows[0];
}

// Bytes that are no UTF-8 as \xNN: a message of a proto3 string that is not UTF-8 does not parse, and would take the kind with it.
std::string Utf8(std::string text) {
  // The length of the character that begins at `at`, 0 if none does.
  const auto length_at = [&text](size_t at) -> size_t {
    for (size_t length = 1; length <= 4 && at + length <= text.size(); ++length)
      if (IsUtf8(std::string_view(text).substr(at, length))) return length;
    return 0;
  };
  if (IsUtf8(text)) return text;
  std::string clean;
  size_t copied = 0;
  for (size_t at = 0; at < text.size();) {
    if (const size_t length = length_at(at); length != 0) {
      at += length;
      continue;
    }
    clean.append(text, copied, at - copied);
    clean += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    copied = ++at;
  }
  clean.append(text, copied);
  return clean;
}

std::optional<v1::ErrorDetail> PayloadOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  v1::ErrorDetail detail;
  if (!payload || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

absl::Status WithPayload(absl::StatusCode code, const v1::ErrorDetail& detail) {
  absl::Status status(code, detail.message());
  status.SetPayload(kPayloadUrl, absl::Cord(detail.SerializeAsString()));
  return status;
}

}  // namespace

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  const std::string message = Utf8(fmt::format("{}: {}", context, std::string(status.message())));
  absl::Status annotated(status.code(), message);
  if (auto detail = PayloadOf(status)) {
    detail->set_message(message);
    annotated.SetPayload(kPayloadUrl, absl::Cord(detail->SerializeAsString()));
  }
  return annotated;
}

absl::Status MakeError(ErrorKind kind, std::string message) {
  Error error;
  error.kind = kind;
  error.message = std::move(message);
  return MakeError(std::move(error));
}

absl::Status MakeError(Error error) {
  v1::ErrorDetail detail;
  detail.set_kind(std::string(KindName(error.kind)));
  detail.set_reason(Utf8(std::move(error.reason)));
  detail.set_path(Utf8(std::move(error.path)));
  detail.set_block_id(error.block_id);
  for (std::string& node : error.nodes) detail.add_nodes(Utf8(std::move(node)));
  detail.set_limit(error.limit);
  detail.set_key(Utf8(std::move(error.key)));
  detail.set_message(Utf8(std::move(error.message)));
  return WithPayload(CodeOf(error.kind), detail);
}

ErrorKind KindOf(const absl::Status& status) {
  if (status.ok()) return ErrorKind::kNone;
  const auto detail = PayloadOf(status);
  return detail ? KindFromName(detail->kind()) : ErrorKind::kNone;
}

std::string ReasonOf(const absl::Status& status) {
  const auto detail = PayloadOf(status);
  return detail ? detail->reason() : std::string();
}

std::optional<Error> ErrorOf(const absl::Status& status) {
  const auto detail = PayloadOf(status);
  if (!detail) return std::nullopt;
  Error error;
  error.kind = KindFromName(detail->kind());
  error.message = std::string(status.message());
  error.reason = detail->reason();
  error.path = detail->path();
  error.block_id = detail->block_id();
  error.nodes.assign(detail->nodes().begin(), detail->nodes().end());
  error.limit = detail->limit();
  error.key = detail->key();
  return error;
}

v1::ErrorDetail ToDetail(const absl::Status& status) {
  if (status.ok()) return {};
  if (auto detail = PayloadOf(status)) return *detail;
  v1::ErrorDetail detail;
  detail.set_kind(std::string(KindName(ErrorKind::kNone)));
  detail.set_message(Utf8(std::string(status.message())));
  return detail;
}

absl::Status FromDetail(const v1::ErrorDetail& detail) {
  const ErrorKind kind = KindFromName(detail.kind());
  if (kind == ErrorKind::kNone) return absl::UnknownError(detail.message());
  return WithPayload(CodeOf(kind), detail);
}

std::string_view KindName(ErrorKind kind) { return RowOf(kind).name; }

ErrorKind KindFromName(std::string_view name) {
  for (const KindRow& row : kRows)
    if (row.name == name) return row.kind;
  return ErrorKind::kNone;
}

absl::StatusCode CodeOf(ErrorKind kind) { return RowOf(kind).code; }
std::string_view HadoopClassOf(ErrorKind kind) { return RowOf(kind).hadoop_class; }
int ErrnoOf(ErrorKind kind) { return RowOf(kind).errno_value; }

bool IsRetriable(const absl::Status& status) {
  switch (KindOf(status)) {
    case ErrorKind::kNotReplicatedYet:
    case ErrorKind::kSafeMode:
    case ErrorKind::kRetriable:
    case ErrorKind::kStandby:
    case ErrorKind::kNoTargets:
    case ErrorKind::kBusy: return true;
    case ErrorKind::kNone: return status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kDeadlineExceeded;
    case ErrorKind::kNotFound:
    case ErrorKind::kAlreadyExists:
    case ErrorKind::kInvalidPath:
    case ErrorKind::kNotDirectory:
    case ErrorKind::kNotEmpty:
    case ErrorKind::kIsDirectory:
    case ErrorKind::kPermission:
    case ErrorKind::kQuota:
    case ErrorKind::kLeaseExpired:
    case ErrorKind::kBeingWritten:
    case ErrorKind::kStaleGeneration:
    case ErrorKind::kReplicaNotFound:
    case ErrorKind::kChecksum:
    case ErrorKind::kDiskFull:
    case ErrorKind::kUnregistered:
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kSlotExpired:
    case ErrorKind::kAccessToken:
    case ErrorKind::kReadOnly:
    case ErrorKind::kCancelled:
    case ErrorKind::kCorruptMetadata:
    case ErrorKind::kUnsupported: return false;
  }
  return false;
}

}  // namespace cairn
