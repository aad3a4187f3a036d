// What the front door itself refuses of the calls about leases, blocks and pipelines, in its words.

#include <optional>
#include <string>

#include "common/block_token.h"
#include "namenode/frontdoor/client_service.h"
#include "tests/namenode/background_fixture.h"
#include "tests/testing/builders.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

class FrontdoorRefusals : public Background {
 protected:
  FrontdoorRefusals() {
    v1::Mutation storages;
    storages.mutable_register_storages()->set_datanode_uuid("d");
    for (const char* uuid : {"s1", "s2", "s3", "s4"}) storages.mutable_register_storages()->add_storage_uuids(uuid);
    space_.Must(storages);
  }
  static ReplicaPlane::Identity Identity() {
    ReplicaPlane::Identity identity;
    identity.keys.push_back(NewBlockTokenKey(1, std::string(32, 'k'), INT64_MAX));
    return identity;
  }
  static LeaseMonitor::Options FewHolders() {
    LeaseMonitor::Options options;
    options.max_holders = 2;
    return options;
  }
  template <class Request>
  Request From(const std::string& client, Request request, uint64_t sequence = 0) {
    v1::RequestHeader& header = *request.mutable_header();
    header.set_client_id(std::string(kTestClientId));
    header.set_user("ada");
    header.set_client_name(client);
    header.set_sequence(sequence);
    if (sequence != 0) header.set_slot_opened_ms(absl::ToUnixMillis(process_->clock().WallNow()));
    return request;
  }
  template <class Request, class Response>
  absl::StatusOr<Response> Call(void (ClientService::*call)(api::CallContext, Request, api::Done<Response>), Request request) {
    std::optional<absl::StatusOr<Response>> answer;
    (service_.*call)(api::CallContext(), std::move(request), [&](absl::StatusOr<Response> response) { answer = std::move(response); });
    RunUntil([&] { return answer.has_value(); });
    return *answer;
  }
  template <class Request, class Response>
  void Expect(void (ClientService::*call)(api::CallContext, Request, api::Done<Response>), Request request, ErrorKind kind,
              const std::string& reason, const std::string& words) {
    const absl::StatusOr<Response> answer = Call(call, std::move(request));
    EXPECT_THAT(answer, HasKind(kind));
    EXPECT_THAT(answer, HasReason(reason));
    EXPECT_EQ(std::string(answer.status().message()), words);
  }
  absl::StatusOr<v1::CreateResponse> Create(const std::string& path, uint64_t sequence = 0) {
    v1::CreateRequest request;
    request.set_path(path);
    request.set_with_first_block(true);
    return Call(&ClientService::Create, From("me", request, sequence));
  }

  LeaseMonitor leases_{FewHolders(), &access_, executor_.get()};
  ClientService service_{ClientService::Options(), Identity(), &access_, &replicas_, &leases_, {executor_.get()}, &process_->clock()};
};

TEST_F(FrontdoorRefusals, OfStoragesThatNeverRegistered) {
  const auto created = Create("/f");
  ASSERT_THAT(created, IsOk());
  v1::CommittedBlock committed;
  *committed.mutable_block() = created->first_block().block();
  committed.add_acknowledged_storages("unheard-of");
  v1::AddBlockRequest add;
  v1::CompleteRequest complete;
  v1::FsyncRequest fsync;
  v1::UpdatePipelineRequest pipeline;
  add.set_path("/f");
  complete.set_path("/f");
  fsync.set_path("/f");
  pipeline.set_path("/f");
  *add.mutable_previous() = committed;
  *complete.mutable_last() = committed;
  *fsync.mutable_previous() = committed;
  pipeline.add_storages("unheard-of");
  const std::string words = " /f: no storage unheard-of has ever registered";
  const ErrorKind kind = ErrorKind::kInvalidArgument;
  Expect(&ClientService::AddBlock, From("me", add), kind, "UNKNOWN_STORAGE", "addBlock" + words);
  Expect(&ClientService::Complete, From("me", complete), kind, "UNKNOWN_STORAGE", "complete" + words);
  Expect(&ClientService::Fsync, From("me", fsync), kind, "UNKNOWN_STORAGE", "fsync" + words);
  Expect(&ClientService::UpdatePipeline, From("me", pipeline), kind, "UNKNOWN_STORAGE", "updatePipeline" + words);
  complete.clear_last();
  *complete.mutable_previous() = committed;
  Expect(&ClientService::Complete, From("me", complete), kind, "UNKNOWN_STORAGE", "complete" + words);
}

TEST_F(FrontdoorRefusals, OfABlockForWhichThereIsNoDatanode) {
  const auto created = Create("/f");
  ASSERT_THAT(created, IsOk());
  replicas_.live.clear();
  v1::CreateRequest create;
  create.set_path("/g");
  create.set_with_first_block(true);
  Expect(&ClientService::Create, From("me", create), ErrorKind::kNoTargets, "NO_LIVE_DATANODES",
         "create /g: no DataNode can take the block");
  v1::AddBlockRequest add;
  add.set_path("/f");
  Expect(&ClientService::AddBlock, From("me", add), ErrorKind::kNoTargets, "NO_LIVE_DATANODES",
         "addBlock /f: no DataNode can take the block");
}

TEST_F(FrontdoorRefusals, OfRenewals) {
  const std::string too_long(1025, 'c');
  Expect(&ClientService::RenewLease, From("", v1::RenewLeaseRequest()), ErrorKind::kInvalidArgument, "",
         "renewLease: the client name is missing");
  Expect(&ClientService::RenewLease, From(too_long, v1::RenewLeaseRequest()), ErrorKind::kInvalidArgument, "",
         "header: a client name of 1025 bytes is too long (at most 1024)");
  for (const char* name : {"a", "b", "a"}) EXPECT_THAT(Call(&ClientService::RenewLease, From(name, v1::RenewLeaseRequest())), IsOk());
  Expect(&ClientService::RenewLease, From("c", v1::RenewLeaseRequest()), ErrorKind::kBusy, "",
         "renewLease: 2 clients hold leases on this NameNode, as many as it keeps; try again later");
}

TEST_F(FrontdoorRefusals, OfAReleaseByNobody) {
  Expect(&ClientService::ReleaseLease, From("", v1::ReleaseLeaseRequest()), ErrorKind::kInvalidArgument, "",
         "releaseLease: the client name is missing");
}

}  // namespace
}  // namespace cairn::namenode
