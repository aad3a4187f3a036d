#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/api/admin.h"
#include "common/env/env.h"
#include "common/env/network.h"

namespace cairn::cli {

// What one call of the NameNode's admin service needs.
struct AdminTarget {
  Env* env = nullptr;
  HostPort namenode;
  std::string user;
  absl::Duration timeout = absl::Seconds(30);
};

// Errors name the NameNode.
absl::Status AnnotateAdmin(const AdminTarget& target, const absl::Status& status);
std::unique_ptr<api::NamenodeAdmin> ConnectAdmin(const AdminTarget& target);

// Asks and waits.
template <class Request, class Response>
absl::StatusOr<Response> CallAdmin(const AdminTarget& target,
                                   void (api::NamenodeAdmin::*call)(api::CallContext, Request, api::Done<Response>), Request request) {
  struct Answer {
    absl::StatusOr<Response> result = absl::UnknownError("no answer");
    std::atomic<bool> done{false};
  };
  auto answer = std::make_shared<Answer>();
  const std::unique_ptr<api::NamenodeAdmin> admin = ConnectAdmin(target);
  request.mutable_header()->set_user(target.user);
  api::CallContext context;
  context.deadline = target.env->clock().Now() + target.timeout;
  (admin.get()->*call)(std::move(context), std::move(request), [answer, env = target.env](absl::StatusOr<Response> result) {
    answer->result = std::move(result);
    answer->done.store(true, std::memory_order_release);
    env->Wake();
  });
  target.env->BlockUntil([answer] { return answer->done.load(std::memory_order_acquire); }, SteadyTime::Infinite());
  if (answer->result.ok()) return std::move(answer->result);
  return AnnotateAdmin(target, answer->result.status());
}

// One GetDatanodeInfo call to a DataNode's admin port, within `timeout`. Blocks.
absl::StatusOr<v1::GetDatanodeInfoResponse> AskDatanodeInfo(Env* env, const HostPort& datanode, const std::string& user,
                                                            absl::Duration timeout);

// The same for a change of its configuration, which may take as long as its disks do.
absl::StatusOr<v1::ReconfigureResponse> AskDatanodeReconfigure(Env* env, const HostPort& datanode, const std::string& user,
                                                               v1::ReconfigureRequest request, absl::Duration timeout);

}  // namespace cairn::cli
