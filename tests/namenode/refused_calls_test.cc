// What the front door itself refuses, and in which words; with the refusals of reads. Headers and sizes of calls: call_limits_test.cc.

#include <optional>
#include <string>

#include <fmt/format.h>

#include "common/block_token.h"
#include "namenode/frontdoor/client_service.h"
#include "tests/testing/fake_replica_plane.h"
#include "tests/testing/matchers.h"
#include "tests/testing/memory_namespace.h"
#include "tests/testing/sim_world.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

class RefusedCalls : public ::testing::Test {
 protected:
  RefusedCalls() {
    v1::Mutation storages;
    storages.mutable_register_storages()->set_datanode_uuid("d");
    for (const char* uuid : {"s1", "s2", "s3"}) storages.mutable_register_storages()->add_storage_uuids(uuid);
    space_.Must(storages);
    space_.WriteFile("/d/f", {1});
    Restart(ClientService::Options());
  }

  // "kKind REASON: words" of the refusal.
  template <class Request, class Response>
  std::string Said(void (ClientService::*call)(api::CallContext, Request, api::Done<Response>), Request request,
                   absl::Duration deadline = absl::Hours(1)) {
    v1::RequestHeader& header = *request.mutable_header();
    header.set_client_id(std::string(kTestClientId));
    header.set_user("ada");
    if (!without_name_) header.set_client_name("me");
    if (header.sequence() != 0) header.set_slot_opened_ms(absl::ToUnixMillis(process_->clock().WallNow()));
    api::CallContext context;
    context.deadline = process_->clock().Now() + deadline;
    std::optional<absl::Status> answer;
    (service_.get()->*call)(context, std::move(request), [&](absl::StatusOr<Response> response) { answer = response.status(); });
    world_.RunUntil([&] { return answer.has_value(); }, absl::Seconds(10));
    if (!answer) return "not answered";
    const std::string reason = ReasonOf(*answer);
    return fmt::format("{}{}{}: {}", KindName(KindOf(*answer)), reason.empty() ? "" : " ", reason, std::string(answer->message()));
  }
  template <class Request, class Response>
  std::string SaidOf(const std::string& path, void (ClientService::*call)(api::CallContext, Request, api::Done<Response>)) {
    Request request;
    request.set_path(path);
    return Said(call, std::move(request));
  }
  static v1::CreateRequest Create(const std::string& path, uint64_t sequence) {
    v1::CreateRequest request;
    request.set_path(path);
    request.set_with_first_block(true);
    request.mutable_header()->set_sequence(sequence);
    return request;
  }
  void Restart(const ClientService::Options& options) {
    ReplicaPlane::Identity identity;
    identity.cluster_id = "cluster";
    identity.pool_id = std::string(kTestPoolId);
    identity.epoch = Epoch(1);
    identity.keys.push_back(NewBlockTokenKey(1, std::string(32, 'k'), INT64_MAX));
    service_ = std::make_unique<ClientService>(options, identity, &access_, &replicas_, &leases_, std::vector<Executor*>{reader_.get()},
                                               &process_->clock());
  }

  SimWorld world_{SimOptions{.seed = 1}};
  SimProcess* process_ = world_.AddMachine("nn")->StartProcess();
  std::unique_ptr<Executor> writer_ = process_->executors().NewExecutor("writer");
  std::unique_ptr<Executor> reader_ = process_->executors().NewExecutor("reader");
  TestNamespace space_;
  MemoryNamespace access_{&space_, writer_.get()};
  FakeReplicaPlane replicas_{3};
  LeaseMonitor leases_{LeaseMonitor::Options(), &access_, reader_.get()};
  std::unique_ptr<ClientService> service_;
  bool without_name_ = false;
};

TEST_F(RefusedCalls, ReadsOfWhatIsNotThere) {
  const std::string words = "kNotFound: File does not exist: /d/no/x (/d/no is missing)";
  EXPECT_EQ(SaidOf("/d/no/x", &ClientService::GetFileInfo), words);
  EXPECT_EQ(SaidOf("/d/no/x", &ClientService::List), words);
  EXPECT_EQ(SaidOf("/d/no/x", &ClientService::GetBlockLocations), words);
  EXPECT_EQ(SaidOf("/d/no/x", &ClientService::GetContentSummary), words);
  EXPECT_EQ(SaidOf("/d/no/x", &ClientService::GetXattrs), words);
  EXPECT_EQ(SaidOf("/d/no/x", &ClientService::CheckAccess), words);
  EXPECT_EQ(SaidOf("/d", &ClientService::GetBlockLocations), "kIsDirectory: Path is not a file: /d");
  EXPECT_EQ(SaidOf("/d/f/x", &ClientService::GetFileInfo), "kNotDirectory: /d/f/x: /d/f is a file, not a directory");
  EXPECT_EQ(SaidOf("d", &ClientService::List), "kInvalidPath: Invalid path name \"d\": it must begin with '/'");
}

TEST_F(RefusedCalls, LocationsOfManyAnswerInTheSameWords) {
  v1::GetLocationsManyRequest request;
  for (const char* path : {"/d/no", "/d", "x"}) request.add_paths(path);
  request.mutable_header()->set_user("ada");
  std::vector<std::string> said;
  service_->GetLocationsMany({}, request, [&](const absl::StatusOr<v1::GetLocationsManyResponse>& response) {
    for (const auto& entry : response->entries()) said.push_back(entry.error().message());
  });
  world_.RunUntil([&] { return !said.empty(); }, absl::Seconds(10));
  EXPECT_THAT(said, ::testing::ElementsAre("File does not exist: /d/no", "Path is not a file: /d",
                                           "Invalid path name \"x\": it must begin with '/'"));
}

TEST_F(RefusedCalls, NumbersOutOfRange) {
  v1::CheckAccessRequest access;
  access.set_path("/d");
  access.set_rights(8);
  EXPECT_EQ(Said(&ClientService::CheckAccess, access), "kInvalidArgument: checkAccess: 8 is no set of rights");
  v1::ReportBadReplicasRequest report;
  for (int i = 0; i <= kMaxBadReplicas; ++i) report.add_replicas();
  EXPECT_EQ(Said(&ClientService::ReportBadReplicas, report),
            "kInvalidArgument: 1001 bad replicas in one report are too many (at most 1000)");
  EXPECT_TRUE(replicas_.bad.empty());
  v1::SetXattrRequest xattr;
  xattr.set_path("/d");
  xattr.mutable_xattr()->set_name_space(v1::XATTR_USER);
  EXPECT_EQ(Said(&ClientService::SetXattr, xattr), "kInvalidArgument: XAttr name cannot be empty.");
  EXPECT_TRUE(access_.submitted().empty());
}

TEST_F(RefusedCalls, LeasesNeedAName) {
  without_name_ = true;
  EXPECT_EQ(Said(&ClientService::RenewLease, v1::RenewLeaseRequest()), "kInvalidArgument: renewLease: the client name is missing");
  EXPECT_EQ(Said(&ClientService::Create, Create("/d/n", 0)), "kInvalidArgument: /d/n: create needs a client name of 1 to 65535 bytes");
}

TEST_F(RefusedCalls, StoragesAndDatanodesThatAreUnknown) {
  v1::CompleteRequest complete;
  complete.set_path("/d/f");
  complete.mutable_last()->add_acknowledged_storages("unheard-of");
  EXPECT_EQ(Said(&ClientService::Complete, complete),
            "kInvalidArgument UNKNOWN_STORAGE: complete /d/f: no storage unheard-of has ever registered");
  v1::UpdatePipelineRequest update;
  update.set_path("/d/f");
  update.add_storages("unheard-of");
  EXPECT_EQ(Said(&ClientService::UpdatePipeline, update),
            "kInvalidArgument UNKNOWN_STORAGE: updatePipeline /d/f: no storage unheard-of has ever registered");

  ASSERT_EQ(Said(&ClientService::Create, Create("/d/n", 5)), "kNone: ");
  const uint64_t block = ResolvePath(space_.view(), "/d/n")->record.blocks(0);
  replicas_.live.clear();
  EXPECT_EQ(
      Said(&ClientService::Create, Create("/d/n", 5)),
      fmt::format("kRetriable NOT_REGISTERED_YET: /d/n: none of the 3 DataNodes of block {} has registered with this NameNode yet", block));
  EXPECT_EQ(Said(&ClientService::Create, Create("/d/m", 6)), "kNoTargets NO_LIVE_DATANODES: create /d/m: no DataNode can take the block");
}

TEST_F(RefusedCalls, CallsThatComeTooLateOrAreTooMany) {
  v1::SetPermissionRequest chmod;
  chmod.set_path("/d");
  EXPECT_EQ(Said(&ClientService::SetPermission, chmod, -absl::Seconds(1)),
            "kNone: the call's deadline passed before it was begun; it has not acted");
  v1::MkdirsRequest mkdirs;
  mkdirs.set_path("/d/n");
  EXPECT_EQ(Said(&ClientService::Mkdirs, mkdirs, -absl::Seconds(1)),
            "kNone: the call's deadline passed before it was begun; it has not acted");
  ClientService::Options options;
  options.max_queued_per_reader = 0;
  Restart(options);
  EXPECT_EQ(Said(&ClientService::SetPermission, chmod), "kRetriable: SetPermission: 0 calls are waiting already");
  EXPECT_TRUE(access_.submitted().empty());
}

}  // namespace
}  // namespace cairn::namenode
