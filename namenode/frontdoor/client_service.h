#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/api/client_namenode.h"
#include "common/block_token.h"
#include "common/env/executor.h"
#include "namenode/audit_log.h"
#include "namenode/frontdoor/call_limits.h"
#include "namenode/frontdoor/caller_resolver.h"
#include "namenode/frontdoor/live_value.h"
#include "namenode/frontdoor/storage_numbers.h"
#include "namenode/lease_monitor.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/namespace/path_walk.h"
#include "namenode/namespace_access.h"
#include "namenode/replicas/replica_plane.h"

namespace cairn::namenode {

// The native client's front door: checks requests, turns them into mutations or snapshot reads, and answers with locations and tokens.
//
// A call begins on the caller's thread, which must not wait for a disk: it reads what is in memory, and that is nearly always enough. When
// it is not, the call begins anew on one of the reader executors, which may block on a disk read. Mutations are answered where they came in
// (CallContext::home), or on a reader; the writer's executor does nothing of a call but apply it. A mutation's paths are resolved before it
// is queued, which warms the cache for the writer; nothing is refused on what the snapshot says, since a repeated call that has acted must
// get its kept answer. Targets are chosen before the mutation is queued.
//
// Thread-safe. Calls that come when a reader's queue is full are kRetriable. All that it points to, and the readers' queues, outlive the
// last call.
class ClientService : public api::ClientNamenode {
 public:
  struct Options {
    CallLimits limits;
    std::string superuser;                            // Who runs the NameNode. Empty: no user is one by his name.
    std::string supergroup = "supergroup";            // dfs.permissions.superusergroup.
    GroupMapping* groups = nullptr;                   // Outlives the service; null: nobody is in a group.
    uint64_t default_block_size_bytes = 128 << 20;    // dfs.blocksize.
    uint32_t default_replication = 3;                 // dfs.replication.
    uint32_t bytes_per_checksum = 512;                // dfs.bytes-per-checksum.
    absl::Duration token_lifetime = absl::Hours(10);  // cairn.block.token.lifetime.
    uint32_t list_limit = 1000;                       // dfs.ls.limit.
    absl::Duration trash_interval;                    // fs.trash.interval; 0: clients decide.
    size_t max_queued_per_reader = 8192;
  };
  // Called after each call with how long it took; from any thread. For metrics.
  using CallObserver = std::function<void(std::string_view call, absl::Duration took, const absl::Status& status)>;

  ClientService(Options options, ReplicaPlane::Identity identity, NamespaceAccess* space, ReplicaPlane* replicas, LeaseMonitor* leases,
                std::vector<Executor*> readers, const Clock* clock);

  void SetCallObserver(CallObserver observer) { observer_ = std::move(observer); }  // Before the first call.
  void SetAuditLog(AuditLog* log) { audit_ = log; }                                 // Before the first call; outlives this.

  // Who a caller is, as the calls see it.
  const CallerResolver& callers() const { return callers_; }

  // Takes the limits, defaults, rights and intervals of `options` for all calls that begin from now on. Thread-safe.
  void Reload(const Options& options);

#define CAIRN_DECLARE_CALL(Name) \
  void Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) override;
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL

 private:
  // One call on its way: the request without its header, and where to answer.
  template <class Request, class Response>
  struct Call {
    api::CallContext context;
    v1::RequestHeader header;
    Request request;
    std::optional<ResolvedCaller> who;  // Calls: set before a handler is.
    // Of handlers that begin in memory: the state they read, and how far anything else they ask may go.
    std::shared_ptr<const ReadView> view;
    Reach reach = Reach::kMemory;
    Executor* reader = nullptr;
    api::Done<Response> done;
    bool took_over = false;  // A lease that had run out was taken over for it: not again.
  };
  // A handler that begins in memory: reads the call's view and nothing else that may block. OK: it has answered, or what it submitted will.
  // Any other Status is the answer, except NotInMemory: then it is called again on a reader, with a view that may read the disk, and must
  // not have moved anything out of the call.
  template <class Request, class Response>
  using Try = absl::Status (ClientService::*)(Call<Request, Response>& call);
  struct DeleteProgress;

  // What of the options may change while calls are served: one value, replaced as a whole, so that a call sees one of them.
  struct Tunables {
    explicit Tunables(const Options& options)
        : limits(options.limits),
          mutation_limits(ToMutationLimits(options.limits)),
          default_block_size_bytes(options.default_block_size_bytes),
          default_replication(options.default_replication),
          list_limit(options.list_limit),
          trash_interval(options.trash_interval) {}
    const CallLimits limits;
    const v1::Mutation::Limits mutation_limits;
    const uint64_t default_block_size_bytes;
    const uint32_t default_replication;
    const uint32_t list_limit;
    const absl::Duration trash_interval;
  };
  static CallerResolver::Options CallersOf(const Options& options) {
    return {options.superuser, options.supergroup, options.limits.permissions_enabled};
  }
  std::shared_ptr<const Tunables> tunables() const { return tunables_.Get(); }

  // Checks. Nothing, after an answer, if the call must not go on.
  template <class Request, class Response>
  std::optional<Call<Request, Response>> Accept(const char* name, bool is_mutation, api::CallContext context, Request request,
                                                api::Done<Response> done);
  // Lets a handler that begins in memory reach the disk.
  template <class Request, class Response>
  void BeginOnReader(Call<Request, Response>& call) const;
  // Goes on with `run` on the call's reader, unless too many calls wait there.
  template <class Request, class Response, class Run>
  void PostToReader(const char* name, Call<Request, Response> call, Run run);

  // Checks, and goes on in `handle` on a reader, with the caller resolved.
  template <class Request, class Response>
  void Dispatch(const char* name, bool is_mutation, api::CallContext context, Request request, api::Done<Response> done,
                void (ClientService::*handle)(Call<Request, Response>));
#define CAIRN_DECLARE_HANDLER(Name) void On##Name(Call<v1::Name##Request, v1::Name##Response> call);
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_DECLARE_HANDLER)
#undef CAIRN_DECLARE_HANDLER

  // Checks, and goes on in `handle` here, in memory; on a reader if that does not do.
  template <class Request, class Response>
  void DispatchInMemory(const char* name, bool is_mutation, api::CallContext context, Request request, api::Done<Response> done,
                        Try<Request, Response> handle);
#define CAIRN_DECLARE_HANDLER(Name) absl::Status Try##Name(Call<v1::Name##Request, v1::Name##Response>& call);
  CAIRN_DECLARE_HANDLER(GetFileInfo)
  CAIRN_DECLARE_HANDLER(List)
  CAIRN_DECLARE_HANDLER(GetBlockLocations)
  CAIRN_DECLARE_HANDLER(GetContentSummary)
  CAIRN_DECLARE_HANDLER(Create)
  CAIRN_DECLARE_HANDLER(AddBlock)
  CAIRN_DECLARE_HANDLER(AbandonBlock)
  CAIRN_DECLARE_HANDLER(UpdateBlockForPipeline)
  CAIRN_DECLARE_HANDLER(UpdatePipeline)
  CAIRN_DECLARE_HANDLER(Fsync)
  CAIRN_DECLARE_HANDLER(Complete)
  CAIRN_DECLARE_HANDLER(Mkdirs)
  CAIRN_DECLARE_HANDLER(Rename)
  CAIRN_DECLARE_HANDLER(Delete)
#undef CAIRN_DECLARE_HANDLER

  // A mutation without its operation.
  template <class Request, class Response>
  v1::Mutation NewMutation(const Call<Request, Response>& call) const;
  // Queues it and goes on in `then` (Call&, const StatusOr<MutationResult>&), which must not read the disk, where the call came in.
  template <class Request, class Response, class Then>
  void SubmitThen(Call<Request, Response> call, v1::Mutation mutation, Then then);
  // Makes the response of the result.
  template <class Response>
  using Fill = absl::AnyInvocable<absl::Status(const v1::MutationResult&, Response&)>;
  template <class Request, class Response>
  void AnswerWith(Call<Request, Response>& call, const absl::StatusOr<v1::MutationResult>& result, Fill<Response>& fill);
  template <class Request, class Response>
  void Submit(Call<Request, Response> call, v1::Mutation mutation, Fill<Response> fill);
  template <class Request, class Response>
  void Answer(Call<Request, Response>& call, Response response);

  // True if the call of this header acted before: its answer is in the snapshot, and it needs nothing chosen.
  absl::StatusOr<bool> HasActed(const ReadView& view, const v1::RequestHeader& header) const;
  // What is to be said of the lease that stands in the way of `caller` at the end of `walk`; nothing of his own.
  // Who opens a file lives. The soft limit to tell it; 0 if it has no name, which Apply refuses.
  absl::StatusOr<int64_t> RenewFor(const std::string& client_name) const;
  void SeeLease(const absl::StatusOr<PathWalk>& walk, const std::string& caller, v1::Mutation::LeaseSeen* seen) const;
  // Submit; but if a lease that has run out stands in the way it is taken over first, and `again` makes the call anew once that has closed
  // the file. Else the caller is told that it is being recovered.
  template <class Request, class Response>
  void SubmitOverLease(std::string_view operation, Call<Request, Response> call, v1::Mutation mutation,
                       void (ClientService::*again)(Call<Request, Response>), Fill<Response> fill);
  // The mutation that takes a file over which `mutation`, a create, append or truncate, found held.
  static v1::Mutation::RecoverLease TakeOverOf(const v1::Mutation& mutation);
  template <class Request, class Response>
  void TakeOver(std::string_view operation, Call<Request, Response> call, v1::Mutation::RecoverLease recover,
                void (ClientService::*again)(Call<Request, Response>));
  // The block of `file` in which the byte before `end` lies, and where it is held now.
  template <class Operation>
  absl::Status FindHeld(const ReadView& view, const v1::INodeRecord& file, uint64_t end, Operation* operation);
  void ReleaseAll(Call<v1::ReleaseLeaseRequest, v1::ReleaseLeaseResponse> call);
  absl::StatusOr<v1::Mutation::Commit> ToCommit(const v1::CommittedBlock& block, const ReadView& view);
  absl::StatusOr<v1::LocatedBlock> Locate(const v1::MutationResult& result);
  // A block with its replicas, nearest to `host` first, and a token to read them.
  absl::StatusOr<v1::LocatedBlock> LocateForReader(const BlockOfFile& block, const std::string& host, Reach reach);
  std::string Token(const v1::Block& block, uint8_t modes) const;
  void DeleteNext(std::shared_ptr<DeleteProgress> progress);
  void StampHeader(v1::ResponseHeader* header) const;

  const Options options_;
  const ReplicaPlane::Identity identity_;
  const BlockTokenSealer sealer_;
  CallerResolver callers_;
  NamespaceAccess* const space_;
  ReplicaPlane* const replicas_;
  LeaseMonitor* const leases_;
  const std::vector<Executor*> readers_;
  const Clock* const clock_;
  StorageNumbers storage_numbers_;
  CallObserver observer_;      // Set before the first call, as audit_.
  AuditLog* audit_ = nullptr;  // Set before the first call; null: none.
  std::atomic<size_t> next_reader_{0};
  LiveValue<Tunables> tunables_;
};

}  // namespace cairn::namenode
