#pragma once

// A NameNode and DataNodes in this process, on real files, sockets and threads: for tests, and for people's own through
// `cairn minicluster`. How the parts reach the NameNode is exchanged: directly (no gRPC is linked, so the thread sanitizer can watch), or
// over gRPC (grpc_transport.h).

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/metrics.h"
#include "datanode/datanode.h"
#include "namenode/namenode.h"

namespace cairn::testing {

// Puts the NameNode where DataNodes and clients find it. Outlives the cluster.
class MiniClusterTransport {
 public:
  virtual ~MiniClusterTransport() = default;
  virtual absl::Status Serve(namenode::Namenode* namenode) = 0;
  virtual void Withdraw() = 0;  // Before the NameNode stops.
  virtual datanode::NamenodeChannels Channels() = 0;
  virtual datanode::DatanodePeers Peers() = 0;  // Of one DataNode.
};

// Calls the NameNode's api objects. It may not stop before the DataNodes and clients have.
std::unique_ptr<MiniClusterTransport> NewDirectTransport();

struct MiniClusterOptions {
  std::string directory;  // Emptied of nothing: the NameNode's part is formatted if it is not there.
  size_t datanodes = 3;
  std::function<void(namenode::NamenodeOptions*)> namenode;  // Changes to what would be used.
  std::function<void(size_t index, datanode::DatanodeOptions*)> datanode;
  bool check_namespace = true;  // At the end: every row and total of it; aborts if one is wrong.
};

// Not thread-safe: its owner's. Stops all in its destructor.
class MiniCluster {
 public:
  // Formats if need be, starts all, waits until every DataNode is registered. All pointers outlive it.
  static absl::StatusOr<std::unique_ptr<MiniCluster>> Start(MiniClusterOptions options, MiniClusterTransport* transport, Env* env);
  ~MiniCluster();
  MiniCluster(const MiniCluster&) = delete;
  MiniCluster& operator=(const MiniCluster&) = delete;

  namenode::Namenode* namenode() { return namenode_.get(); }
  datanode::Datanode* datanode(size_t index) { return nodes_[index].datanode.get(); }
  size_t datanode_count() const { return nodes_.size(); }
  metrics::Registry& namenode_metrics() { return *namenode_registry_; }
  metrics::Registry& datanode_metrics(size_t index) { return *nodes_[index].registry; }
  std::string data_directory(size_t index) const;

  absl::Status StartNamenode();
  void StopNamenode();
  absl::Status StartDatanode(size_t index);
  void StopDatanode(size_t index);
  // Until each running DataNode is registered and serves.
  absl::Status WaitReady(absl::Duration limit);

 private:
  struct Node {
    std::unique_ptr<metrics::Registry> registry;
    std::unique_ptr<datanode::Datanode> datanode;
  };
  MiniCluster(MiniClusterOptions options, MiniClusterTransport* transport, Env* env);
  void CheckNamespace() const;

  const MiniClusterOptions options_;
  MiniClusterTransport* const transport_;
  Env* const env_;
  std::unique_ptr<metrics::Registry> namenode_registry_;
  std::unique_ptr<namenode::Namenode> namenode_;
  std::vector<Node> nodes_;
};

}  // namespace cairn::testing
