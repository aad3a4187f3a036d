#pragma once

// common/hadoop_ipc: Hadoop IPC version 9, the serving side: framing, handshake, calls. What the calls mean is their handler's.
// The bytes are described in docs/formats.md ("Hadoop IPC").

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "absl/functional/any_invocable.h"
#include "common/api/callback.h"
#include "hdfs/ipc.pb.h"

namespace cairn::ipc {

using ErrorCode = hdfs::RpcResponseHeaderProto::RpcErrorCodeProto;

// Who a connection speaks for, as its context said.
struct Caller {
  std::string user;
  std::string real_user;  // Who speaks for `user`; empty: he himself.
};

// One call as it came.
struct Call {
  int32_t id = 0;           // From 0.
  std::string client_id;    // 16 bytes from every client that is known; may be anything.
  int32_t retry_count = 0;  // 0 for the first try; -1 from clients that do not count.
  std::string protocol;     // "org.apache.hadoop.hdfs.protocol.ClientProtocol".
  uint64_t version = 0;
  std::string method;
  std::string request;  // The message, serialized.
};

// An error as Java sees it.
struct Failure {
  std::string exception;  // Full name of a Java class.
  std::string message;    // Its first line is what users see.
  ErrorCode code = hdfs::RpcResponseHeaderProto::ERROR_APPLICATION;
};

// The response message, serialized, or what went wrong.
using Answer = std::variant<std::string, Failure>;
// Called once, from any thread, possibly before Handle returns. Does not block.
using Done = absl::AnyInvocable<void(Answer)>;

// Serves the calls of all connections. Thread-safe; does not block.
class Handler {
 public:
  virtual ~Handler() = default;
  // `context` has the peer, and the connection's thread as home.
  virtual void Handle(const Caller& caller, Call call, api::CallContext context, Done done) = 0;
};

inline constexpr char kIoException[] = "java.io.IOException";
inline constexpr char kRetriableException[] = "org.apache.hadoop.ipc.RetriableException";

}  // namespace cairn::ipc
