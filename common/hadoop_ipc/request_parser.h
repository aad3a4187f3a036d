#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/hadoop_ipc/call.h"

namespace cairn::ipc {

// What one client sends, bytes in, events out: the preamble, the handshake and its order, frames and their headers. No sockets.
//
// Connection: 7 bytes of preamble; if they ask for SASL, its negotiation, which ends at once as only simple authentication is known;
// the connection context; then calls and pings. Whatever breaks this order, or does not parse, is Refused, and nothing is read after it.
// What is kept in memory is what came, at most one frame more than was asked for, and before the context came, when nobody has said who he
// is, a small one; not thread-safe.
class RequestParser {
 public:
  struct NeedsMore {};  // Feed it.
  struct Reply {
    std::string bytes;
  };  // To be sent at once; the handshake goes on.
  struct Ready {
    Caller caller;
  };  // The context came: calls may follow.
  struct Ping {};  // Nothing is to be done.
  struct Refused {
    std::string answer;
  };  // To be sent, if not empty, before the connection is closed. All later events are this one.
  using Event = std::variant<NeedsMore, Reply, Ready, Ping, Call, Refused>;

  // Of a frame before the calls.
  static constexpr size_t kMaxHandshakeFrameBytes = 16 << 10;

  explicit RequestParser(size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes) {}

  void Feed(std::string_view bytes);
  // The next thing that the bytes so far say.
  Event Next();

  bool ready() const { return state_ == State::kCalls; }
  // Bytes of something came, and not all of it.
  bool midway() const { return at_ < buffer_.size(); }
  // What it takes of the memory.
  size_t held_bytes() const { return buffer_.capacity(); }

 private:
  enum class State { kPreamble, kSasl, kContext, kCalls, kRefused };

  Event ReadPreamble();
  Event ReadFrame(std::string_view frame);
  Event ReadSasl(int32_t call_id, std::string_view rest);
  Event ReadContext(int32_t call_id, std::string_view rest);
  Event Refuse(std::string answer);
  Event RefuseHeader(int32_t call_id, std::string message);
  Event RefuseBytes(int32_t call_id, std::string message);
  void Drop(size_t count);
  size_t MaxFrameBytes() const;

  const size_t max_frame_bytes_;
  State state_ = State::kPreamble;
  std::string buffer_;
  size_t at_ = 0;  // Of buffer_: what comes before is done with.
};

}  // namespace cairn::ipc
