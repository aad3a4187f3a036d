#include "client/cli/admin_call.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/rpc/grpc_client.h"
#include "common/status.h"

namespace cairn::cli {

absl::StatusOr<v1::ClusterReportResponse> AskClusterReport(Env* env, const HostPort& namenode, const std::string& user,
                                                           absl::Duration timeout) {
  struct Answer {
    absl::StatusOr<v1::ClusterReportResponse> result = absl::UnknownError("no answer");
    std::atomic<bool> done{false};
  };
  auto answer = std::make_shared<Answer>();
  const std::unique_ptr<api::NamenodeAdmin> admin = rpc::NewNamenodeAdmin(namenode, env);
  v1::ClusterReportRequest request;
  request.mutable_header()->set_user(user);
  api::CallContext context;
  context.deadline = env->clock().Now() + timeout;
  admin->ClusterReport(std::move(context), std::move(request), [answer, env](absl::StatusOr<v1::ClusterReportResponse> result) {
    answer->result = std::move(result);
    answer->done.store(true, std::memory_order_release);
    env->Wake();
  });
  env->BlockUntil([answer] { return answer->done.load(std::memory_order_acquire); }, SteadyTime::Infinite());
  if (answer->result.ok()) return std::move(answer->result);
  // Trouble on the way already names the address.
  const absl::Status& status = answer->result.status();
  const std::string message(status.message());
  if (message.starts_with(namenode.ToString() + ": ")) return absl::Status(status.code(), "NameNode " + message);
  return Annotate(status, fmt::format("NameNode {}", namenode.ToString()));
}

}  // namespace cairn::cli
