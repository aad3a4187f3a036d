#include "tests/testing/grpc_transport.h"

#include "common/rpc/api_services.h"
#include "common/rpc/grpc_client.h"
#include "common/rpc/grpc_server.h"
#include "common/status.h"

namespace cairn::testing {

struct GrpcTransport::Server {
  Server(const HostPort& bind, Env* env) : grpc(rpc::GrpcServer::Options{.bind = bind}, env) {}
  rpc::GrpcServer grpc;
};

GrpcTransport::GrpcTransport(Env* env, uint16_t port) : env_(env), address_{"127.0.0.1", port} {}
GrpcTransport::~GrpcTransport() = default;

absl::Status GrpcTransport::Serve(namenode::Namenode* namenode) {
  server_ = std::make_unique<Server>(address_, env_);
  rpc::Serve(&server_->grpc, namenode->client_api());
  rpc::Serve(&server_->grpc, namenode->datanode_api());
  rpc::Serve(&server_->grpc, namenode->admin_api());
  ASSIGN_OR_RETURN(address_, server_->grpc.Start());
  return absl::OkStatus();
}

void GrpcTransport::Withdraw() { server_.reset(); }

datanode::NamenodeChannels GrpcTransport::Channels() {
  return {rpc::NewDatanodeNamenode(address_, "register", env_), rpc::NewDatanodeNamenode(address_, "heartbeat", env_),
          rpc::NewDatanodeNamenode(address_, "report", env_), rpc::NewDatanodeNamenode(address_, "command", env_)};
}

datanode::DatanodePeers GrpcTransport::Peers() {
  datanode::DatanodePeers peers;
  auto server = std::make_shared<Server>(HostPort{"127.0.0.1", 0}, env_);
  peers.serve = [server](api::DatanodeAdmin* admin, api::InterDatanode* peer) {
    rpc::Serve(&server->grpc, admin);
    rpc::Serve(&server->grpc, peer);
    return server->grpc.Start();
  };
  peers.withdraw = [server] { server->grpc.Stop(); };
  peers.resolve = rpc::NewInterDatanodeResolver(env_);
  return peers;
}

}  // namespace cairn::testing
