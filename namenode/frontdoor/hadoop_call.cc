#include "namenode/frontdoor/hadoop_call.h"

#include <string_view>
#include <utility>

#include "common/error.h"
#include "hdfs/client_protocol.pb.h"
#include "namenode/namespace/lease_rules.h"
#include "namenode/namespace/retry_table.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

// Stands for the client id of calls whose own is of another length: they have no retry id.
constexpr std::string_view kNoClientId = "hadoop-no-client";
static_assert(kNoClientId.size() == kClientIdBytes);

// Where a reason says more than its kind.
struct ReasonRow {
  ErrorKind kind;
  std::string_view reason;
  std::string_view hadoop_class;
};
constexpr ReasonRow kReasons[] = {
    {ErrorKind::kBeingWritten, kRecovering, "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException"},
    {ErrorKind::kQuota, "NAMESPACE_QUOTA", "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException"},
    {ErrorKind::kQuota, "SPACE_QUOTA", "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException"},
    {ErrorKind::kQuota, "NAME_TOO_LONG", "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException"},
    {ErrorKind::kQuota, "DIRECTORY_FULL", "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException"},
    {ErrorKind::kQuota, "PATH_TOO_LONG", ipc::kIoException},
    {ErrorKind::kQuota, "PATH_TOO_DEEP", ipc::kIoException},
    {ErrorKind::kQuota, "TOO_MANY_BLOCKS", ipc::kIoException},
    {ErrorKind::kQuota, "TOO_MANY_XATTRS", ipc::kIoException},
    {ErrorKind::kInvalidArgument, "XATTR_NOT_FOUND", ipc::kIoException},
    {ErrorKind::kInvalidArgument, "XATTR_EXISTS", ipc::kIoException},
    {ErrorKind::kInvalidArgument, "REPLICATION_OUT_OF_RANGE", ipc::kIoException},
    {ErrorKind::kInvalidArgument, "BLOCK_SIZE_OUT_OF_RANGE", ipc::kIoException},
};

}  // namespace

v1::RequestHeader HadoopCall::Header(const std::string& client_name) const {
  v1::RequestHeader header;
  header.set_client_id(call_.client_id.size() == kClientIdBytes ? call_.client_id : std::string(kNoClientId));
  header.set_user(caller_.user);
  header.set_client_name(client_name);
  return header;
}

v1::RequestHeader HadoopCall::HeaderOfOnce(const std::string& client_name, absl::Time now) const {
  v1::RequestHeader header = Header(client_name);
  if (call_.client_id.size() != kClientIdBytes) return header;
  const auto id = static_cast<uint32_t>(call_.id);
  header.set_slot(id % kMaxSlots);
  header.set_sequence(uint64_t{1} + id / kMaxSlots);
  header.set_slot_opened_ms(absl::ToUnixMillis(now));
  return header;
}

void HadoopCall::Answer(const google::protobuf::MessageLite& response) { std::exchange(done_, nullptr)(response.SerializeAsString()); }

void HadoopCall::AnswerBool(bool result) {
  hdfs::BoolResponseProto response;
  response.set_result(result);
  Answer(response);
}

void HadoopCall::Fail(ipc::Failure failure) { std::exchange(done_, nullptr)(std::move(failure)); }

void HadoopCall::Fail(const absl::Status& status) { Fail(ToHadoopFailure(status)); }

void HadoopCall::FailAsIo(const absl::Status& status) {
  ipc::Failure failure = ToHadoopFailure(status);
  const ErrorKind kind = KindOf(status);
  if (kind == ErrorKind::kInvalidArgument || kind == ErrorKind::kStaleGeneration) failure.exception = ipc::kIoException;
  Fail(std::move(failure));
}

ipc::Failure ToHadoopFailure(const absl::Status& status) {
  ipc::Failure failure;
  const ErrorKind kind = KindOf(status);
  const std::string reason = ReasonOf(status);
  failure.exception = std::string(HadoopClassOf(kind));
  for (const ReasonRow& row : kReasons)
    if (row.kind == kind && row.reason == reason) failure.exception = std::string(row.hadoop_class);
  failure.message = std::string(status.message());
  return failure;
}

}  // namespace cairn::namenode
