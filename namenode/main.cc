// cairn-namenode: the NameNode as a daemon.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/api/client_namenode.h"
#include "common/config.h"
#include "common/daemon/daemon.h"
#include "common/env/env.h"
#include "common/env/real_program.h"
#include "common/hadoop_ipc/server.h"
#include "common/http/server.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/reconfiguration.h"
#include "common/rpc/api_services.h"
#include "common/rpc/grpc_server.h"
#include "namenode/namenode.h"
#include "namenode/namenode_directory.h"

namespace cairn::namenode {
namespace {

constexpr char kProgram[] = "cairn-namenode";

int Format(const NamenodeOptions& options, Env* env) {
  NamenodeDirectory::FormatOptions format;
  format.group = options.clients.supergroup;
  if (absl::Status status = NamenodeDirectory::Format(options.directory, format, env); !status.ok()) return FailDaemon(kProgram, status);
  std::printf("%s: formatted %s: a new, empty cluster\n", kProgram, options.directory.c_str());
  return 0;
}

// What the port of stock HDFS clients does; shown as long as the result lives.
std::vector<std::unique_ptr<metrics::Registry::Callback>> ShowHadoopIpc(const ipc::ServerState* state, metrics::Registry* registry) {
  std::vector<std::unique_ptr<metrics::Registry::Callback>> shown;
  shown.push_back(registry->NewCallbackGauge("cairn_hadoop_ipc_connections", "Connections of stock HDFS clients.", {},
                                             [state] { return static_cast<double>(state->connections.load()); }));
  shown.push_back(registry->NewCallbackGauge("cairn_hadoop_ipc_calls_running", "Calls of stock HDFS clients that are not answered yet.", {},
                                             [state] { return static_cast<double>(state->calls.load()); }));
  shown.push_back(registry->NewCallbackCounter("cairn_hadoop_ipc_calls_total", "Calls of stock HDFS clients.", {},
                                               [state] { return static_cast<double>(state->calls_begun.load()); }));
  shown.push_back(registry->NewCallbackCounter("cairn_hadoop_ipc_refused_total", "What was refused of stock HDFS clients.",
                                               {{"what", "calls"}}, [state] { return static_cast<double>(state->refused_calls.load()); }));
  shown.push_back(registry->NewCallbackCounter("cairn_hadoop_ipc_refused_total", "What was refused of stock HDFS clients.",
                                               {{"what", "connections"}},
                                               [state] { return static_cast<double>(state->refused_connections.load()); }));
  return shown;
}

int Serve(const DaemonSetup& setup, NamenodeOptions options, Env* env) {
  const Config& config = setup.config;
  options.software_version = CAIRN_VERSION;
  options.run_program = RunRealProgram;
  metrics::Registry registry;
  Reconfiguration reconfiguration(config, [&setup] { return Config::Load(setup.sources); }, &env->clock());
  absl::StatusOr<std::unique_ptr<Namenode>> namenode = Namenode::Start(std::move(options), env, &registry);
  if (!namenode.ok()) return FailDaemon(kProgram, namenode.status());

  (*namenode)->UseReconfiguration(&reconfiguration);

  rpc::GrpcServer grpc(rpc::GrpcServer::Options{.bind = *config.GetAddress("cairn.namenode.grpc-bind-address")}, env);
  rpc::Serve(&grpc, (*namenode)->client_api());
  rpc::Serve(&grpc, (*namenode)->datanode_api());
  rpc::Serve(&grpc, (*namenode)->admin_api());
  const absl::StatusOr<HostPort> grpc_address = grpc.Start();
  if (!grpc_address.ok()) return FailDaemon(kProgram, grpc_address.status());

  HostPort hadoop_bind = *config.GetAddress("dfs.namenode.rpc-address");
  if (const std::string host = config.GetString("dfs.namenode.rpc-bind-host"); !host.empty()) hadoop_bind.host = host;
  ipc::ServerOptions hadoop_options;
  hadoop_options.max_frame_bytes = config.GetBytes("ipc.maximum.data.length");
  ipc::Server hadoop(hadoop_options, (*namenode)->hadoop_api(), env);
  const absl::StatusOr<HostPort> hadoop_address = hadoop.Start(hadoop_bind);
  if (!hadoop_address.ok()) return FailDaemon(kProgram, hadoop_address.status());
  const auto shown = ShowHadoopIpc(&hadoop.state(), &registry);

  http::Server::Options http_options;
  http_options.bind = *config.GetAddress("dfs.namenode.http-address");
  absl::StatusOr<std::unique_ptr<http::Server>> http =
      http::Server::Start(http_options, http::DaemonRoutes(&registry, [&namenode] { return (*namenode)->Ready(); }));
  if (!http.ok()) return FailDaemon(kProgram, http.status());

  log::Info("cluster {} is served: gRPC on {}, Hadoop IPC on {}, HTTP on {}", (*namenode)->cluster_id(), grpc_address->ToString(),
            hadoop_address->ToString(), (*http)->local().ToString());
  const std::string signal = WaitForTermination([&namenode] { (*namenode)->Reconfigure(); });
  log::Info("{}: stopping", signal);
  http->reset();
  hadoop.Stop();
  grpc.Stop();
  (*namenode)->Stop();
  log::Info("stopped");
  return 0;
}

}  // namespace
}  // namespace cairn::namenode

int main(int argc, char** argv) {
  cairn::BlockTerminationSignals(/*hangup_too=*/true);
  int exit_code = 0;
  const cairn::DaemonDescription description{cairn::namenode::kProgram, "The NameNode of a Cairn cluster.", true};
  std::optional<cairn::DaemonSetup> setup = cairn::SetUpDaemon(argc, argv, description, &exit_code);
  if (!setup) return exit_code;
  const std::unique_ptr<cairn::Env> env = cairn::NewRealEnv();
  cairn::namenode::NamenodeOptions options = cairn::namenode::NamenodeOptionsFrom(setup->config);
  if (setup->format) return cairn::namenode::Format(options, env.get());
  return cairn::namenode::Serve(*setup, std::move(options), env.get());
}
