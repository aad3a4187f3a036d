#include "common/rpc/grpc_conversions.h"

#include <utility>

#include "absl/synchronization/mutex.h"
#include "cairn/types.pb.h"
#include "common/error.h"

namespace cairn::rpc {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string details;
  if (KindOf(status) != ErrorKind::kNone) details = ToDetail(status).SerializeAsString();
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message()), details};
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  v1::ErrorDetail detail;
  if (!status.error_details().empty() && detail.ParseFromString(status.error_details())) {
    if (absl::Status with_kind = FromDetail(detail); KindOf(with_kind) != ErrorKind::kNone) return with_kind;
  }
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

std::string PlainWords(const std::string& message) {
  constexpr std::pair<const char*, const char*> kKnown[] = {
      {"DNS resolution failed", "the host name cannot be resolved"},
      {"Connection refused", "connection refused"},
      {"Connection reset by peer", "the connection was reset"},
      {"Connection timed out", "connecting timed out"},
      {"No route to host", "no route to the host"},
      {"Network is unreachable", "the network is unreachable"},
      {"Socket closed", "the connection was closed"},
      {"Deadline Exceeded", "no answer in time"},
  };
  for (const auto& [theirs, ours] : kKnown)
    if (message.find(theirs) != std::string::npos) return ours;
  return message;
}

grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return {&slice, 1};
}

bool FromBytes(grpc::ByteBuffer* bytes, google::protobuf::MessageLite* message) {
  grpc::Slice slice;
  if (bytes->TrySingleSlice(&slice).ok()) return message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  return bytes->DumpToSingleSlice(&slice).ok() && message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
}

gpr_timespec ToGrpcDeadline(const Clock& clock, SteadyTime deadline) {
  if (deadline == SteadyTime::Infinite()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const int64_t left_us = absl::ToInt64Microseconds(deadline - clock.Now());
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(left_us < 0 ? 0 : left_us, GPR_TIMESPAN));
}

SteadyTime FromGrpcDeadline(const Clock& clock, gpr_timespec deadline) {
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return SteadyTime::Infinite();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  return clock.Now() + absl::Seconds(left.tv_sec) + absl::Nanoseconds(left.tv_nsec);
}

void LockWithoutDeadlockSearch() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

void PollUntilShutdown(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<Tag*>(tag)->Proceed(ok);
}

}  // namespace cairn::rpc
