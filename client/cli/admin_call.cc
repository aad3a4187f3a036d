#include "client/cli/admin_call.h"

#include <string>

#include <fmt/format.h>

#include "common/rpc/grpc_client.h"
#include "common/status.h"

namespace cairn::cli {

absl::Status AnnotateAdmin(const AdminTarget& target, const absl::Status& status) {
  // Trouble on the way already names the address.
  const std::string message(status.message());
  if (message.starts_with(target.namenode.ToString() + ": ")) return absl::Status(status.code(), "NameNode " + message);
  return Annotate(status, fmt::format("NameNode {}", target.namenode.ToString()));
}

std::unique_ptr<api::NamenodeAdmin> ConnectAdmin(const AdminTarget& target) { return rpc::NewNamenodeAdmin(target.namenode, target.env); }

namespace {

template <class Request, class Response>
using DatanodeCall = void (api::DatanodeAdmin::*)(api::CallContext, Request, api::Done<Response>);

// Blocks.
template <class Request, class Response>
absl::StatusOr<Response> CallDatanode(Env* env, const HostPort& datanode, const std::string& user, absl::Duration timeout,
                                      DatanodeCall<Request, Response> call, Request request) {
  struct Answer {
    absl::StatusOr<Response> result = absl::UnknownError("no answer");
    std::atomic<bool> done{false};
  };
  auto answer = std::make_shared<Answer>();
  const std::unique_ptr<api::DatanodeAdmin> admin = rpc::NewDatanodeAdmin(datanode, env);
  request.mutable_header()->set_user(user);
  api::CallContext context;
  context.deadline = env->clock().Now() + timeout;
  (admin.get()->*call)(std::move(context), std::move(request), [answer, env](absl::StatusOr<Response> result) {
    answer->result = std::move(result);
    answer->done.store(true, std::memory_order_release);
    env->Wake();
  });
  env->BlockUntil([answer] { return answer->done.load(std::memory_order_acquire); }, SteadyTime::Infinite());
  if (answer->result.ok()) return std::move(answer->result);
  return Annotate(answer->result.status(), fmt::format("DataNode {}", datanode.ToString()));
}

}  // namespace

absl::StatusOr<v1::GetDatanodeInfoResponse> AskDatanodeInfo(Env* env, const HostPort& datanode, const std::string& user,
                                                            absl::Duration timeout) {
  return CallDatanode(env, datanode, user, timeout, &api::DatanodeAdmin::GetDatanodeInfo, v1::GetDatanodeInfoRequest());
}

absl::StatusOr<v1::ReconfigureResponse> AskDatanodeReconfigure(Env* env, const HostPort& datanode, const std::string& user,
                                                               v1::ReconfigureRequest request, absl::Duration timeout) {
  return CallDatanode(env, datanode, user, timeout, &api::DatanodeAdmin::Reconfigure, std::move(request));
}

}  // namespace cairn::cli
