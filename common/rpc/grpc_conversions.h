#pragma once

// Between gRPC's types and ours. Private to common/rpc.

#include <grpcpp/grpcpp.h>

#include <google/protobuf/message_lite.h>

#include <string>

#include "absl/status/status.h"
#include "common/env/clock.h"

namespace cairn::rpc {

// The code and message of the status; a kind travels as ErrorDetail in grpc-status-details-bin.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);
// What gRPC itself says of a connection, with the address that it says up to three times left to the caller: "connection refused".
// Words that are not known stay.
std::string PlainWords(const std::string& message);

grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message);
// False if the bytes are not such a message.
bool FromBytes(grpc::ByteBuffer* bytes, google::protobuf::MessageLite* message);

gpr_timespec ToGrpcDeadline(const Clock& clock, SteadyTime deadline);
SteadyTime FromGrpcDeadline(const Clock& clock, gpr_timespec deadline);

// gRPC locks with Abseil, and Debian builds Abseil so that it searches for a deadlock at each lock taken. Turned off for the process; our
// own locks are of another make. Idempotent.
void LockWithoutDeadlockSearch();

// What a completion queue gives back: one started operation.
class Tag {
 public:
  virtual ~Tag() = default;
  virtual void Proceed(bool ok) = 0;
};

// Runs completions until the queue is shut down and drained.
void PollUntilShutdown(grpc::CompletionQueue* queue);

inline constexpr int kMaxMessageBytes = 8 << 20;

}  // namespace cairn::rpc
