#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cairn/options.h"
#include "client/src/excluded_nodes.h"
#include "client/src/lease_renewer.h"
#include "client/src/namenode_caller.h"
#include "client/src/scope.h"
#include "client/src/uncertain_opens.h"
#include "common/api/client_namenode.h"
#include "common/env/env.h"
#include "common/task_group.h"

namespace cairn::client {

// What the streams of one FileSystem share: the way to the NameNode, io executors, lease renewal,
// nodes to avoid. Owned jointly by the FileSystem and its streams, so that a stream may outlive it.
// Thread-safe. The last owner lets go on a thread that may block, never on an executor; it waits a
// moment for the NameNode to hear which files are left unfinished.
class ClientCore {
 public:
  static constexpr size_t kIoExecutors = 2;

  // `env` and `namenode` outlive this. `owned` (may be null) is destroyed with it, after the last
  // call has ended.
  ClientCore(ClientOptions options, Env* env, api::ClientNamenode* namenode, std::shared_ptr<void> owned);
  ~ClientCore();
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  Env* env() { return env_; }
  const ClientOptions& options() const { return options_; }
  NamenodeCaller& namenode() { return *namenode_; }
  LeaseRenewer& leases() { return *leases_; }
  // While there may be files of which nobody here knows, all that this client holds is given up when
  // it goes.
  UncertainOpens& opens() { return *opens_; }
  ExcludedNodes& excluded() { return excluded_; }
  const std::string& host() const { return host_; }

  // The next executor in turn, for a new stream.
  Executor* NextExecutor();
  // For calls that belong to no stream.
  Scope CallScope();
  // On one of these executors, until the client goes.
  Scope LastingScope(Executor* executor);

 private:
  struct Io {
    std::unique_ptr<Executor> executor;
    std::unique_ptr<TaskGroup> group;
  };

  const ClientOptions options_;
  std::shared_ptr<void> owned_;  // Last to go.
  Env* const env_;
  const std::string host_;
  std::vector<Io> io_;
  std::atomic<size_t> next_{0};
  std::unique_ptr<NamenodeCaller> namenode_;
  std::unique_ptr<LeaseRenewer> leases_;
  std::unique_ptr<UncertainOpens> opens_;
  ExcludedNodes excluded_;
};

}  // namespace cairn::client
