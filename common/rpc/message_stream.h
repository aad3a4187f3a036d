#pragma once

#include <memory>
#include <utility>

#include <google/protobuf/message_lite.h>

#include "absl/status/status.h"
#include "common/api/stream.h"

namespace cairn::rpc {

// The ends of a stream without their message types, which both sides of the transport handle; contracts as in common/api/stream.h.
class RawSink {
 public:
  virtual ~RawSink() = default;
  virtual bool Send(const google::protobuf::MessageLite& message) = 0;
  virtual size_t Queued() const = 0;
  virtual void Close(absl::Status status) = 0;
};

class RawHandler {
 public:
  virtual ~RawHandler() = default;
  virtual std::unique_ptr<google::protobuf::MessageLite> NewMessage() = 0;
  virtual void OnMessage(google::protobuf::MessageLite* message) = 0;
  virtual void OnClosed(absl::Status status) = 0;
};

// And with them.
template <class Out>
class TypedSink : public api::MessageSink<Out> {
 public:
  explicit TypedSink(std::shared_ptr<RawSink> raw) : raw_(std::move(raw)) {}
  bool Send(Out message) override { return raw_->Send(message); }
  size_t Queued() const override { return raw_->Queued(); }
  void Close(absl::Status status) override { raw_->Close(std::move(status)); }

 private:
  std::shared_ptr<RawSink> raw_;
};

template <class In>
class TypedHandler : public RawHandler {
 public:
  explicit TypedHandler(std::shared_ptr<api::MessageHandler<In>> typed) : typed_(std::move(typed)) {}
  std::unique_ptr<google::protobuf::MessageLite> NewMessage() override { return std::make_unique<In>(); }
  void OnMessage(google::protobuf::MessageLite* message) override { typed_->OnMessage(std::move(*static_cast<In*>(message))); }
  void OnClosed(absl::Status status) override { typed_->OnClosed(std::move(status)); }

 private:
  std::shared_ptr<api::MessageHandler<In>> typed_;
};

}  // namespace cairn::rpc
