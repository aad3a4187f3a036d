// cairn-datanode: a DataNode as a daemon.

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/config.h"
#include "common/daemon/daemon.h"
#include "common/env/env.h"
#include "common/http/server.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/mutex.h"
#include "common/reconfiguration.h"
#include "common/rpc/api_services.h"
#include "common/rpc/grpc_client.h"
#include "common/rpc/grpc_server.h"
#include "datanode/datanode.h"

namespace cairn::datanode {
namespace {

constexpr char kProgram[] = "cairn-datanode";

// Why this node cannot go on: said by a lane, read when the daemon has stopped.
class Verdict {
 public:
  void Set(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    status_ = std::move(status);
  }
  absl::Status Get() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return status_;
  }

 private:
  mutable Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

int Serve(const DaemonSetup& setup, Env* env) {
  const Config& config = setup.config;
  Reconfiguration reconfiguration(
      config, [&setup] { return Config::Load(setup.sources); }, &env->clock(), Reconfiguration::Daemon::kDatanode);
  DatanodeOptions options = DatanodeOptionsFrom(config);
  options.reconfiguration = &reconfiguration;
  options.lanes.registration.software_version = CAIRN_VERSION;
  options.on_shutdown = [] { RequestTermination(); };
  Verdict verdict;
  options.on_other_cluster = [&verdict](absl::Status status) {
    verdict.Set(std::move(status));
    RequestTermination();
  };
  const HostPort namenode = *config.GetAddress("cairn.namenode.grpc-address");
  NamenodeChannels channels;
  channels.registration = rpc::NewDatanodeNamenode(namenode, "register", env);
  channels.heartbeat = rpc::NewDatanodeNamenode(namenode, "heartbeat", env);
  channels.report = rpc::NewDatanodeNamenode(namenode, "report", env);
  channels.command = rpc::NewDatanodeNamenode(namenode, "command", env);
  rpc::GrpcServer grpc(rpc::GrpcServer::Options{.bind = *config.GetAddress("cairn.datanode.grpc-bind-address"), .pollers = 1}, env);
  options.peers.serve = [&grpc](api::DatanodeAdmin* admin, api::InterDatanode* peer) {
    rpc::Serve(&grpc, admin);
    rpc::Serve(&grpc, peer);
    return grpc.Start();
  };
  options.peers.withdraw = [&grpc] { grpc.Stop(); };
  options.peers.resolve = rpc::NewInterDatanodeResolver(env);

  metrics::Registry registry;
  absl::StatusOr<std::unique_ptr<Datanode>> datanode = Datanode::Start(std::move(options), std::move(channels), env, &registry);
  if (!datanode.ok()) return FailDaemon(kProgram, datanode.status());

  http::Server::Options http_options;
  http_options.bind = *config.GetAddress("dfs.datanode.http.address");
  absl::StatusOr<std::unique_ptr<http::Server>> http =
      http::Server::Start(http_options, http::DaemonRoutes(&registry, [&datanode] { return (*datanode)->Ready(); }));
  if (!http.ok()) return FailDaemon(kProgram, http.status());

  log::Info("transfers on {}, gRPC on {}, HTTP on {}, NameNode {}", (*datanode)->transfer_address().ToString(),
            (*datanode)->admin_address().ToString(), (*http)->local().ToString(), namenode.ToString());
  const std::string signal = WaitForTermination([&datanode] { (*datanode)->Reconfigure(); });
  log::Info("{}: stopping", signal);
  http->reset();
  (*datanode)->Stop();
  if (const absl::Status why = verdict.Get(); !why.ok()) return FailDaemon(kProgram, why);
  log::Info("stopped");
  return 0;
}

}  // namespace
}  // namespace cairn::datanode

int main(int argc, char** argv) {
  cairn::BlockTerminationSignals(/*hangup_too=*/true);
  int exit_code = 0;
  const cairn::DaemonDescription description{cairn::datanode::kProgram, "A DataNode of a Cairn cluster.", false};
  std::optional<cairn::DaemonSetup> setup = cairn::SetUpDaemon(argc, argv, description, &exit_code);
  if (!setup) return exit_code;
  const std::unique_ptr<cairn::Env> env = cairn::NewRealEnv();
  return cairn::datanode::Serve(*setup, env.get());
}
