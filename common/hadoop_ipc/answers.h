#pragma once

// The frames that an IPC server sends.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/hadoop_ipc/call.h"

namespace cairn::ipc {

inline constexpr uint32_t kVersion = 9;
inline constexpr int32_t kConnectionContextId = -3;
inline constexpr int32_t kPingId = -4;
inline constexpr int32_t kSaslId = -33;
inline constexpr int32_t kNoCallId = -1;  // Of an answer to what is no call.

// `answer` to a call, with the length before it. A message is followed by nothing, an error by nothing but its header.
std::string EncodeAnswer(int32_t call_id, std::string_view client_id, int32_t retry_count, const Answer& answer);
// After it the connection is closed.
std::string EncodeFatal(int32_t call_id, const Failure& failure);
// "There is nothing to negotiate, go on without": what a server says that knows simple authentication only.
std::string EncodeSaslSuccess();
// For whoever points a browser here.
std::string HttpAnswer();

}  // namespace cairn::ipc
