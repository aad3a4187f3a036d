#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "cairn/namespace.pb.h"
#include "common/env/clock.h"
#include "common/mutex.h"
#include "namenode/replicas/datanode_registry.h"
#include "namenode/replicas/host_list.h"
#include "namenode/replicas/replica_plane.h"

namespace cairn::namenode {

// What operators want of each node, by a call or by the files of dfs.hosts and dfs.hosts.exclude: written down first, then told to the
// registry and to `on_changed`. A change is decided on the row that is there, and written only if it still is: nobody undoes what another
// has said meanwhile without having seen it.
//
// A call goes before the files. What a call has said stands until a call takes it back, or the end that it gave has come; the files change
// only nodes that they have spoken of, or nobody. A node that a file excludes is normal again when the file no longer does, or when there
// are no such files any more, or when a call says so (until the files are read again). A node that takes another's address inherits what
// was wanted there, in the batch in which the other's row goes.
//
// Thread-safe; no call blocks. `on_changed` may be called on the namespace's writer.
class NodeLife {
 public:
  using OnChanged = std::function<void(const std::string& uuid)>;
  // All outlive this but `weak` callbacks' own captures.
  NodeLife(DatanodeRegistry* registry, NamespaceForReplicas* space, const Clock* clock, OnChanged on_changed)
      : registry_(registry), space_(space), clock_(clock), on_changed_(std::move(on_changed)) {}

  // Takes over what the namespace has kept. Before any node registers.
  absl::Status Restore();

  // kNotFound for a node that nobody knows; kInvalidArgument for an action that makes no sense now.
  void Set(const v1::SetNodeAdminRequest& request, ReplicaPlane::Done<v1::SetNodeAdminResponse> done);
  // A drain has come to its end, or a maintenance: the one that began at `since_ms`. kStaleGeneration if something else is wanted by now.
  void Move(const std::string& uuid, v1::NodeAdminState from, int64_t since_ms, v1::NodeAdminState to,
            absl::AnyInvocable<void(absl::Status)> done) ABSL_LOCKS_EXCLUDED(mu_);
  // What the files say now; how many nodes that changes.
  uint32_t SetHosts(std::shared_ptr<const HostList> hosts) ABSL_LOCKS_EXCLUDED(mu_);
  void OnRegistered(const std::string& uuid, const std::vector<std::string>& replaced) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static constexpr int kTries = 5;  // When others change the same row at the same time.

  // What is written of a node: the row, and what it says.
  struct Kept {
    std::string row;
    v1::NodeAdminRecord record;
  };
  absl::StatusOr<Kept> KeptOf(const std::string& uuid) const;
  void TrySet(const v1::SetNodeAdminRequest& request, int tries, ReplicaPlane::Done<v1::SetNodeAdminResponse> done);
  void Write(const std::string& uuid, v1::NodeAdminRecord record, Kept before, std::vector<std::string> replaced,
             absl::AnyInvocable<void(absl::Status)> done) ABSL_LOCKS_EXCLUDED(mu_);
  // The registry is to say what is written: it may not, after a change of which nobody could say whether it was written, and it was.
  void FollowRow(const std::string& uuid, int64_t since_ms) ABSL_LOCKS_EXCLUDED(mu_);
  void FollowFilesNow(const std::string& uuid) ABSL_LOCKS_EXCLUDED(mu_);
  // True if it had to be changed.
  bool FollowFiles(const std::string& uuid, const std::shared_ptr<const HostList>& hosts, int tries);
  void TakeOver(const std::string& uuid, const std::vector<std::string>& replaced, int tries) ABSL_LOCKS_EXCLUDED(mu_);

  DatanodeRegistry* const registry_;
  NamespaceForReplicas* const space_;
  const Clock* const clock_;
  const OnChanged on_changed_;
  Mutex mu_;
  std::shared_ptr<const HostList> hosts_ ABSL_GUARDED_BY(mu_);
  // What a node took over and could not be written, by its uuid: whose places those were. Tried again when its drain would end.
  std::map<std::string, std::vector<std::string>> unwritten_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> taking_over_ ABSL_GUARDED_BY(mu_);  // Nodes of which what they took over is being written.
};

}  // namespace cairn::namenode
