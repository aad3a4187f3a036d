#pragma once

#include <memory>
#include <string>

#include <google/protobuf/message_lite.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/types.pb.h"
#include "common/hadoop_ipc/call.h"

namespace cairn::namenode {

// One call of a stock HDFS client on its way through HadoopDoor: who makes it, under which retry id, and where the answer goes. Answered
// once, by one of the functions below. Shared by the steps of the call; one of them at a time.
class HadoopCall {
 public:
  HadoopCall(ipc::Caller caller, ipc::Call call, api::CallContext context, ipc::Done done)
      : caller_(std::move(caller)), call_(std::move(call)), context_(std::move(context)), done_(std::move(done)) {}

  const ipc::Caller& caller() const { return caller_; }
  const ipc::Call& call() const { return call_; }
  const api::CallContext& context() const { return context_; }
  // The client says that it has sent this call before.
  bool is_resent() const { return call_.retry_count > 0; }

  // The native header of a call that may be made again without harm. `client_name`: who holds the leases.
  v1::RequestHeader Header(const std::string& client_name = "") const;
  // That of a change that is made once however often it is sent: with the retry id that the client's and the call's ids give. Its slots are
  // the call ids modulo their number, and the rest is the sequence: it grows in each slot, as call ids do.
  v1::RequestHeader HeaderOfOnce(const std::string& client_name, absl::Time now) const;

  void Answer(const google::protobuf::MessageLite& response);
  void AnswerBool(bool result);
  void Fail(ipc::Failure failure);
  // In the words and the class that HDFS has for it.
  void Fail(const absl::Status& status);
  // The same, where HDFS throws a plain IOException at a bad argument: in the calls of writers.
  void FailAsIo(const absl::Status& status);

 private:
  const ipc::Caller caller_;
  const ipc::Call call_;
  const api::CallContext context_;
  ipc::Done done_;
};

using HadoopCallPtr = std::shared_ptr<HadoopCall>;

inline constexpr char kUnsupportedException[] = "java.lang.UnsupportedOperationException";

// What HDFS's NameNode throws in such a case.
ipc::Failure ToHadoopFailure(const absl::Status& status);

}  // namespace cairn::namenode
