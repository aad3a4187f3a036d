// DataNodes of `./dev bench storm` that hold far more replicas than a disk of this machine could: the product's own lanes over a store that
// only remembers (remembered_store.h).
//
//   dn_simulator --namenode HOST:PORT --first-block ID --first-stamp S --replicas N --length L --heartbeat-ms M
//
// Each of its nodes holds all of the blocks. Reads words from standard input, a line each, and answers each with one JSON object: `stats`;
// `restart`, which begins the first node's process anew, as far as the NameNode can tell, so that it walks. Ends with its input.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/config.h"
#include "common/env/env.h"
#include "common/error.h"
#include "common/rpc/api_services.h"
#include "common/rpc/grpc_client.h"
#include "datanode/lanes/namenode_lanes.h"
#include "tests/bench/load_layout.h"
#include "tests/bench/remembered_store.h"

namespace cairn::bench {
namespace {

struct Arguments {
  HostPort namenode;
  RememberedStore::Replicas replicas;
  absl::Duration heartbeat;
};

class Node {
 public:
  Node(int number, const Arguments& arguments, Env* env)
      : number_(number), arguments_(arguments), env_(env), store_(DatanodeUuid(number), StorageUuid(number), arguments.replicas) {
    for (auto* channel : {&registration_, &heartbeat_, &report_, &command_})
      *channel = rpc::NewDatanodeNamenode(arguments.namenode, fmt::format("simulated-{}", number), env);
    Begin();
  }

  void Restart() {
    lanes_.reset();
    Begin();
  }
  size_t replicas() const { return store_.replica_count(); }
  uint64_t ranges() const { return store_.ranges(); }
  bool registered() const { return lanes_->registered(); }
  size_t unacknowledged() const { return events_->kept(); }

 private:
  void Begin() {
    auto events = std::make_unique<datanode::EventLog>(&env_->clock());
    store_.SetEvents(events.get());
    events_ = std::move(events);
    datanode::NamenodeLanes::Options options;
    options.identity.datanode_uuid = DatanodeUuid(number_);
    options.identity.incarnation = Incarnation(env_->NewRandom().Next());
    options.registration.software_version = "simulated";
    v1::DatanodeInfo& info = options.registration.info;
    for (v1::Endpoint* endpoint : {info.mutable_transfer(), info.mutable_http(), info.mutable_admin()}) {
      endpoint->set_host("simulated");
      endpoint->set_port(static_cast<uint32_t>(1 + number_));
    }
    options.heartbeat.interval = arguments_.heartbeat;
    datanode::NamenodeLanes::Callbacks callbacks;
    callbacks.active_streams = [] { return 0u; };
    callbacks.transfer = [](const v1::CommandDown::Transfer&, datanode::CommandLane::TransferDone done) {
      done(absl::UnimplementedError("simulated"));
    };
    callbacks.keys = [](const std::vector<v1::BlockTokenKey>&) {};
    callbacks.shutdown = [](const std::string&) {};
    callbacks.refused = [](const absl::Status& status) { std::fprintf(stderr, "refused: %s\n", std::string(status.message()).c_str()); };
    callbacks.other_cluster = [](const absl::Status& status) {
      std::fprintf(stderr, "another cluster: %s\n", std::string(status.message()).c_str());
    };
    const datanode::NamenodeLanes::Channels channels{registration_.get(), heartbeat_.get(), report_.get(), command_.get()};
    lanes_ = std::make_unique<datanode::NamenodeLanes>(std::move(options), env_, channels, &store_, &store_, events_.get(),
                                                       std::move(callbacks));
    lanes_->Start();
  }

  const int number_;
  const Arguments arguments_;
  Env* const env_;
  RememberedStore store_;
  std::unique_ptr<datanode::EventLog> events_;
  std::unique_ptr<api::DatanodeNamenode> registration_, heartbeat_, report_, command_;
  std::unique_ptr<datanode::NamenodeLanes> lanes_;
};

std::string Stats(const std::vector<std::unique_ptr<Node>>& nodes) {
  uint64_t replicas = 0, ranges = 0, registered = 0, unacknowledged = 0;
  for (const std::unique_ptr<Node>& node : nodes) {
    replicas += node->replicas();
    ranges += node->ranges();
    registered += node->registered() ? 1 : 0;
    unacknowledged += node->unacknowledged();
  }
  return fmt::format(R"({{"replicas": {}, "ranges": {}, "registered": {}, "unacknowledged": {}}})", replicas, ranges, registered,
                     unacknowledged);
}

int Run(const Arguments& arguments, Env* env) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < kDatanodes; ++i) nodes.push_back(std::make_unique<Node>(i, arguments, env));
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "restart") nodes.front()->Restart();
    std::printf("%s\n", Stats(nodes).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  std::map<std::string, std::string> values;
  for (int i = 1; i + 1 < argc; i += 2) values[argv[i]] = argv[i + 1];
  const auto number = [&](const char* name) { return std::strtoull(values[name].c_str(), nullptr, 10); };
  const absl::StatusOr<cairn::HostPort> namenode = cairn::ParseHostPort(values["--namenode"]);
  if (argc != 13 || !namenode.ok() || number("--replicas") == 0 || number("--heartbeat-ms") == 0) {
    std::fprintf(stderr,
                 "usage: dn_simulator --namenode HOST:PORT --first-block ID --first-stamp S --replicas N --length L --heartbeat-ms M\n");
    return 255;
  }
  const std::unique_ptr<cairn::Env> env = cairn::NewRealEnv();
  const cairn::bench::Arguments arguments{.namenode = *namenode,
                                          .replicas = {.first = cairn::BlockId(number("--first-block")),
                                                       .first_stamp = cairn::GenerationStamp(number("--first-stamp")),
                                                       .count = number("--replicas"),
                                                       .length = number("--length")},
                                          .heartbeat = absl::Milliseconds(static_cast<int64_t>(number("--heartbeat-ms")))};
  return cairn::bench::Run(arguments, env.get());
}
