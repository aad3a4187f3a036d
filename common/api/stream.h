#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"

namespace cairn::api {

// The sending half of a message stream. Thread-safe; never blocks. Messages arrive in order or the stream ends.
template <class Out>
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  // Queues a message; false when the stream has ended.
  virtual bool Send(Out message) = 0;
  // Messages queued and not yet on their way: senders keep it small.
  virtual size_t Queued() const = 0;
  // Ends the stream; the other end's OnClosed gets `status`. Idempotent.
  virtual void Close(absl::Status status) = 0;
};

// The receiving half. Calls come one at a time, in order; OnClosed is the last, exactly once. Does not block.
template <class In>
class MessageHandler {
 public:
  virtual ~MessageHandler() = default;
  virtual void OnMessage(In message) = 0;
  virtual void OnClosed(absl::Status status) = 0;
};

}  // namespace cairn::api
