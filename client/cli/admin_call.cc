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

}  // namespace cairn::cli
