#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/api/admin.h"
#include "common/api/client_namenode.h"
#include "common/api/datanode_namenode.h"
#include "common/env/env.h"
#include "common/metrics.h"
#include "namenode/namenode_options.h"

namespace cairn {
class Reconfiguration;
}
namespace cairn::ipc {
class Handler;
}

namespace cairn::namenode {

// A NameNode without its front doors: owns all parts of both planes, and is the one place that says in which order they start and stop.
// main() puts gRPC, Hadoop IPC and HTTP before it; a simulation calls the api objects directly. They are thread-safe and valid until Stop.
class Namenode {
 public:
  // Opens the directory (formatted before) and starts all parts. Blocks; the error says what is wrong with which directory.
  // `env` and `metrics` outlive this.
  static absl::StatusOr<std::unique_ptr<Namenode>> Start(NamenodeOptions options, Env* env, metrics::Registry* metrics);
  ~Namenode();  // Stops.
  Namenode(const Namenode&) = delete;
  Namenode& operator=(const Namenode&) = delete;

  api::ClientNamenode* client_api();
  api::DatanodeNamenode* datanode_api();
  api::NamenodeAdmin* admin_api();
  ipc::Handler* hadoop_api();  // What stock HDFS clients ask.

  // Takes changes of the configuration over from now on. Before the first call; outlives Stop.
  void UseReconfiguration(Reconfiguration* reconfiguration);
  // Reads the configuration anew, as `dfsadmin -reconfig namenode ... start`; does not wait for it.
  void Reconfigure();

  // OK while changes are taken.
  absl::Status Ready() const;
  const std::string& cluster_id() const;
  // Answers what is queued, then ends all parts. Blocks; idempotent. No api call may come afterwards.
  void Stop();

 private:
  struct Parts;
  explicit Namenode(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace cairn::namenode
