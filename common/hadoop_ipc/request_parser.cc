#include "common/hadoop_ipc/request_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/message_lite.h>

#include "common/hadoop_ipc/answers.h"

namespace cairn::ipc {
namespace {

constexpr std::string_view kMagic = "hrpc";
constexpr size_t kPreambleBytes = 7;
constexpr size_t kLengthBytes = 4;
constexpr size_t kMaxVarintBytes = 5;
constexpr uint8_t kNoSasl = 0x00;
constexpr uint8_t kSasl = 0xDF;
constexpr size_t kWorthMoving = 64 << 10;  // Bytes that are done with, before the rest moves to the front.

using Codes = hdfs::RpcResponseHeaderProto;

// Takes a length as protobuf writes it, and so many bytes, off the front.
std::optional<std::string_view> TakeDelimited(std::string_view* from) {
  uint64_t length = 0;
  for (size_t i = 0; i < kMaxVarintBytes && i < from->size(); ++i) {
    const auto byte = static_cast<uint8_t>((*from)[i]);
    length |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if ((byte & 0x80) != 0) continue;
    from->remove_prefix(i + 1);
    if (length > from->size()) return std::nullopt;
    const std::string_view taken = from->substr(0, length);
    from->remove_prefix(length);
    return taken;
  }
  return std::nullopt;
}

// False for what does not parse or lacks a required field; without the library's own line in the log.
bool Parse(std::string_view bytes, google::protobuf::MessageLite* message) {
  return message->ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) && message->IsInitialized();
}

bool TakeMessage(std::string_view* from, google::protobuf::MessageLite* message) {
  const std::optional<std::string_view> bytes = TakeDelimited(from);
  return bytes && Parse(*bytes, message);
}

}  // namespace

void RequestParser::Feed(std::string_view bytes) {
  if (state_ == State::kRefused) return;
  buffer_ += bytes;
}

void RequestParser::Drop(size_t count) {
  at_ += count;
  if (at_ == buffer_.size()) {
    at_ = 0;
    buffer_.clear();
    // The room for one large frame is not kept for ever.
    if (buffer_.capacity() > kWorthMoving) buffer_.shrink_to_fit();
  } else if (at_ >= kWorthMoving) {
    buffer_.erase(0, at_);
    at_ = 0;
    if (buffer_.capacity() / 2 > std::max(kWorthMoving, buffer_.size())) buffer_.shrink_to_fit();
  }
}

size_t RequestParser::MaxFrameBytes() const {
  return state_ == State::kCalls ? max_frame_bytes_ : std::min(max_frame_bytes_, kMaxHandshakeFrameBytes);
}

RequestParser::Event RequestParser::Refuse(std::string answer) {
  state_ = State::kRefused;
  buffer_.clear();
  at_ = 0;
  return Refused{std::move(answer)};
}

RequestParser::Event RequestParser::RefuseHeader(int32_t call_id, std::string message) {
  return Refuse(EncodeFatal(call_id, {"org.apache.hadoop.ipc.RpcServerException", std::move(message), Codes::FATAL_INVALID_RPC_HEADER}));
}

RequestParser::Event RequestParser::RefuseBytes(int32_t call_id, std::string message) {
  return Refuse(EncodeFatal(call_id, {"org.apache.hadoop.ipc.RpcServerException", std::move(message), Codes::FATAL_DESERIALIZING_REQUEST}));
}

RequestParser::Event RequestParser::Next() {
  if (state_ == State::kRefused) return Refused{};
  if (state_ == State::kPreamble) return ReadPreamble();
  const std::string_view left = std::string_view(buffer_).substr(at_);
  if (left.size() < kLengthBytes) return NeedsMore{};
  uint32_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length = (length << 8) | static_cast<uint8_t>(left[i]);
  if (length > MaxFrameBytes()) return Refuse("");  // Also what Java takes for negative; it is told nothing, as there.
  if (left.size() < kLengthBytes + length) return NeedsMore{};
  Event event = ReadFrame(left.substr(kLengthBytes, length));
  if (state_ != State::kRefused) Drop(kLengthBytes + length);
  return event;
}

RequestParser::Event RequestParser::ReadPreamble() {
  const std::string_view left = std::string_view(buffer_).substr(at_);
  if (left.size() < kMagic.size()) return NeedsMore{};
  if (left.starts_with("GET ")) return Refuse(HttpAnswer());
  if (!left.starts_with(kMagic)) return Refuse("");
  if (left.size() < kPreambleBytes) return NeedsMore{};
  const auto version = static_cast<uint8_t>(left[4]);
  const auto authentication = static_cast<uint8_t>(left[6]);
  if (version != kVersion) {
    return Refuse(EncodeFatal(kNoCallId, {"org.apache.hadoop.ipc.RPC$VersionMismatch",
                                          fmt::format("Server IPC version {} cannot communicate with client version {}", kVersion, version),
                                          Codes::FATAL_VERSION_MISMATCH}));
  }
  if (authentication != kNoSasl && authentication != kSasl) {
    return Refuse(EncodeFatal(
        kNoCallId, {"org.apache.hadoop.security.AccessControlException",
                    fmt::format("authentication {} of a connection is not known here", authentication), Codes::FATAL_UNAUTHORIZED}));
  }
  state_ = authentication == kSasl ? State::kSasl : State::kContext;
  Drop(kPreambleBytes);
  return Next();
}

RequestParser::Event RequestParser::ReadFrame(std::string_view frame) {
  hdfs::RpcRequestHeaderProto header;
  if (!TakeMessage(&frame, &header)) return RefuseBytes(kNoCallId, "the header of a request does not parse");
  const int32_t id = header.callid();
  if (header.rpckind() != hdfs::RPC_PROTOCOL_BUFFER) return RefuseHeader(id, "a request of another kind than protocol buffers, or of none");
  if (!header.has_rpcop() || header.rpcop() != hdfs::RpcRequestHeaderProto::RPC_FINAL_PACKET)
    return RefuseHeader(id, "a request whose operation is not that of a whole packet");
  if (id == kPingId) return Ping{};
  if (state_ == State::kSasl) return ReadSasl(id, frame);
  if (state_ == State::kContext) return ReadContext(id, frame);
  if (id == kConnectionContextId) return RefuseHeader(id, "a second connection context");
  if (id < 0) return RefuseHeader(id, fmt::format("call id {} is not known here", id));

  hdfs::RequestHeaderProto request;
  if (!TakeMessage(&frame, &request)) return RefuseBytes(id, "the name of the called method does not parse");
  const std::optional<std::string_view> message = TakeDelimited(&frame);
  if (!message) return RefuseBytes(id, fmt::format("{}: the message is not there, or cut off", request.methodname()));
  Call call;
  call.id = id;
  call.client_id = std::move(*header.mutable_clientid());
  call.retry_count = header.retrycount();
  call.protocol = std::move(*request.mutable_declaringclassprotocolname());
  call.version = request.clientprotocolversion();
  call.method = std::move(*request.mutable_methodname());
  call.request = *message;
  return call;
}

RequestParser::Event RequestParser::ReadSasl(int32_t call_id, std::string_view rest) {
  if (call_id != kSaslId) return RefuseHeader(call_id, "a connection that asked for SASL has to negotiate first");
  hdfs::RpcSaslProto sasl;
  if (!TakeMessage(&rest, &sasl)) return RefuseBytes(call_id, "the SASL message does not parse");
  if (sasl.state() == hdfs::RpcSaslProto::NEGOTIATE) {
    state_ = State::kContext;
    return Reply{EncodeSaslSuccess()};
  }
  // Who knows beforehand that there is nothing to negotiate says so, and waits for no answer.
  if (sasl.state() == hdfs::RpcSaslProto::INITIATE && sasl.auths_size() == 1 && sasl.auths(0).method() == "SIMPLE") {
    state_ = State::kContext;
    return Ping{};
  }
  return Refuse(
      EncodeFatal(call_id, {"javax.security.sasl.SaslException", "only simple authentication is known here", Codes::FATAL_UNAUTHORIZED}));
}

RequestParser::Event RequestParser::ReadContext(int32_t call_id, std::string_view rest) {
  if (call_id == kSaslId) return RefuseHeader(call_id, "SASL on a connection that did not ask for it, or has done with it");
  if (call_id != kConnectionContextId) return RefuseHeader(call_id, "a call before the connection context");
  hdfs::IpcConnectionContextProto context;
  if (!TakeMessage(&rest, &context)) return RefuseBytes(call_id, "the connection context does not parse");
  state_ = State::kCalls;
  Ready ready;
  ready.caller.user = context.userinfo().effectiveuser();
  ready.caller.real_user = context.userinfo().realuser();
  if (ready.caller.user.empty()) ready.caller.user = std::exchange(ready.caller.real_user, std::string());
  return ready;
}

}  // namespace cairn::ipc
