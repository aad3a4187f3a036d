#pragma once

#include <memory>
#include <string>

#include "tests/testing/mini_cluster.h"

namespace cairn::testing {

// A mini cluster's NameNode behind gRPC on 127.0.0.1, and its DataNodes' admin ports, each a free one. The NameNode's port is
// `port`, or, for 0, whatever the first Serve gets; it stays over restarts.
class GrpcTransport : public MiniClusterTransport {
 public:
  explicit GrpcTransport(Env* env, uint16_t port = 0);
  ~GrpcTransport() override;
  absl::Status Serve(namenode::Namenode* namenode) override;
  void Withdraw() override;
  datanode::NamenodeChannels Channels() override;
  datanode::DatanodePeers Peers() override;
  HostPort address() const { return address_; }
  std::string uri() const { return "cairn://" + address_.ToString(); }

 private:
  struct Server;
  Env* const env_;
  HostPort address_;
  std::unique_ptr<Server> server_;
};

}  // namespace cairn::testing
