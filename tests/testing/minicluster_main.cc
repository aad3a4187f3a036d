// cairn-minicluster: all daemons of a cluster in one process, for people's own tests. Run by `cairn minicluster`.

#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "common/daemon/daemon.h"
#include "tests/testing/grpc_transport.h"

int main(int argc, char** argv) {
  cairn::BlockTerminationSignals();
  cairn::testing::MiniClusterOptions options;
  options.check_namespace = false;  // Nobody waits for it, and people's own trees may be large.
  uint16_t port = 0;
  CLI::App app("A whole Cairn cluster in one process, for tests. Runs until SIGTERM or SIGINT.", "cairn minicluster");
  app.add_option("--datanodes", options.datanodes, "How many DataNodes")->check(CLI::Range(1, 100));
  app.add_option("--dir", options.directory, "Directory for everything it keeps; made if missing, used again if it has a cluster")
      ->required();
  app.add_option("--port", port, "gRPC port of the NameNode; 0: any");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 255;
  }
  const std::unique_ptr<cairn::Env> env = cairn::NewRealEnv();
  cairn::testing::GrpcTransport transport(env.get(), port);
  auto cluster = cairn::testing::MiniCluster::Start(std::move(options), &transport, env.get());
  if (!cluster.ok()) return cairn::FailDaemon("cairn minicluster", cluster.status());
  std::printf("%s\n", transport.uri().c_str());
  std::fflush(stdout);
  cairn::WaitForTermination();
  cluster->reset();
  return 0;
}
