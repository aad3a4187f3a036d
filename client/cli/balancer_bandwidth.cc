#include "client/cli/balancer_bandwidth.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "client/cli/format.h"
#include "common/api/balance.h"

namespace cairn::cli {
namespace {

int RunSet(const SetBandwidth& set, Shell* shell, const Arguments& arguments) {
  const absl::StatusOr<int64_t> bandwidth = ParseQuota(arguments.values[0], true);
  if (!bandwidth.ok() || *bandwidth < 0) {
    *shell->err << "Bandwidth should be a non-negative integer\n";
    return kUsage;
  }
  if (!api::IsBalanceRate(static_cast<uint64_t>(*bandwidth))) {
    *shell->err << fmt::format("Bandwidth should be 0, or at least {} bytes per second\n", api::kLeastBalanceBytesPerSecond);
    return kUsage;
  }
  if (const absl::Status done = set(static_cast<uint64_t>(*bandwidth)); !done.ok()) {
    *shell->err << fmt::format("setBalancerBandwidth: {}\n", std::string(done.message()));
    return kFailure;
  }
  *shell->out << fmt::format("Balancer bandwidth is set to {}\n", *bandwidth);
  return kSuccess;
}

int RunGet(const AskDatanode& ask, Shell* shell, const Arguments& arguments) {
  return ShowDatanode(ask, "getBalancerBandwidth", arguments.values[0], shell, [](const v1::GetDatanodeInfoResponse& info) {
    return fmt::format("Balancer bandwidth is {} bytes per second.\n", info.balancer_bytes_per_second());
  });
}

}  // namespace

std::vector<Verb> BandwidthVerbs(SetBandwidth set, AskDatanode ask) {
  std::vector<Verb> verbs(2);
  verbs[0].name = "setBalancerBandwidth";
  verbs[0].synopsis = "<bandwidth in bytes per second>";
  verbs[0].help =
      "What each DataNode may use for the balancer, until the NameNode restarts or it is set again; k, m, g may follow; 64k at least. 0: "
      "as each is configured (dfs.datanode.balance.bandwidthPerSec).";
  verbs[0].least = verbs[0].most = 1;
  verbs[0].run = [set = std::move(set)](Shell* shell, const Arguments& arguments) { return RunSet(set, shell, arguments); };
  verbs[1].name = "getBalancerBandwidth";
  verbs[1].synopsis = "<datanode_host:admin_port>";
  verbs[1].help =
      "What a DataNode may use for the balancer now, as its last heartbeat was told. The port is that of gRPC, 9868 unless given.";
  verbs[1].least = verbs[1].most = 1;
  verbs[1].run = [ask = std::move(ask)](Shell* shell, const Arguments& arguments) { return RunGet(ask, shell, arguments); };
  return verbs;
}

}  // namespace cairn::cli
