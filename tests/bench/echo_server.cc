// The raw limit beside the NameNode in `./dev bench nn`: a server of the same style that parses a request and answers an empty response.
//
//   echo_server HOST PORT
//
// Prints the port it listens on, and serves until it is terminated.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cairn/client_namenode.pb.h"
#include "common/daemon/daemon.h"
#include "common/env/env.h"
#include "common/rpc/grpc_server.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: echo_server HOST PORT\n");
    return 255;
  }
  cairn::BlockTerminationSignals();
  const std::unique_ptr<cairn::Env> env = cairn::NewRealEnv();
  cairn::rpc::GrpcServer::Options options;
  options.bind = cairn::HostPort{argv[1], static_cast<uint16_t>(std::atoi(argv[2]))};
  cairn::rpc::GrpcServer server(options, env.get());
  server.AddUnary<cairn::v1::GetFileInfoRequest, cairn::v1::GetFileInfoResponse>(
      "/cairn.v1.Bench/Echo", [](const cairn::api::CallContext&, const cairn::v1::GetFileInfoRequest&,
                                 cairn::api::Done<cairn::v1::GetFileInfoResponse> done) { done(cairn::v1::GetFileInfoResponse()); });
  const auto address = server.Start();
  if (!address.ok()) {
    std::fprintf(stderr, "echo_server: %s\n", std::string(address.status().message()).c_str());
    return 1;
  }
  std::printf("%u\n", static_cast<unsigned>(address->port));
  std::fflush(stdout);
  cairn::WaitForTermination();
  server.Stop();
  return 0;
}
