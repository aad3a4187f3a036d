// The front door over the real store, journal and writer, on a simulated disk: what was answered survives a NameNode's end, and calls that
// are repeated across it act once.

#include "common/block_token.h"
#include "namenode/frontdoor/client_service.h"
#include "namenode/journal/local_journal.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace_gateway.h"
#include "namenode/reclaimer.h"
#include "tests/testing/builders.h"
#include "tests/testing/fake_replica_plane.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sim_world.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

// A NameNode of one process incarnation, without its replica plane.
class SmallNamenode {
 public:
  SmallNamenode(SimProcess* process, FakeReplicaPlane* replicas)
      : writer_executor_(process->executors().NewExecutor("writer")), reader_(process->executors().NewExecutor("reader")) {
    MetaStore::Options options;
    options.simulated = true;
    directory_ = NamenodeDirectory::Open("/nn", options, process).value();
    journal_ = std::make_unique<LocalJournal>(&directory_->store());
    writer_ = std::make_unique<NamespaceWriter>(NamespaceWriter::Options(), &directory_->store(), journal_.get(), writer_executor_.get(),
                                                &process->clock());
    space_ = std::make_unique<StoredNamespace>(&directory_->store(), writer_.get());
    reclaimer_ = std::make_unique<Reclaimer>(Reclaimer::Options(), space_.get(), reader_.get());
    writer_->SetObserver(ObserveCommits(replicas, [this] { reclaimer_->Kick(); }));
    leases_ = std::make_unique<LeaseMonitor>(LeaseMonitor::Options(), space_.get(), reader_.get());
    ReplicaPlane::Identity identity;
    identity.cluster_id = directory_->cluster_id();
    identity.pool_id = directory_->pool_id();
    identity.epoch = directory_->epoch();
    identity.keys.push_back(NewBlockTokenKey(1, std::string(32, 'k'), INT64_MAX));
    service_ = std::make_unique<ClientService>(ClientService::Options(), std::move(identity), space_.get(), replicas, leases_.get(),
                                               std::vector<Executor*>{reader_.get()}, &process->clock());
    reclaimer_->Start();
  }

  ClientService& service() { return *service_; }
  std::shared_ptr<const ReadView> Snapshot() { return space_->Snapshot(); }
  NamespaceAccess& space() { return *space_; }

 private:
  std::unique_ptr<NamenodeDirectory> directory_;
  std::unique_ptr<LocalJournal> journal_;
  std::unique_ptr<NamespaceWriter> writer_;
  std::unique_ptr<StoredNamespace> space_;
  std::unique_ptr<Reclaimer> reclaimer_;
  std::unique_ptr<LeaseMonitor> leases_;
  std::unique_ptr<ClientService> service_;
  // First to go: what they still hold points to the parts above.
  std::unique_ptr<Executor> writer_executor_;
  std::unique_ptr<Executor> reader_;
};

class Restart : public ::testing::TestWithParam<bool> {
 protected:
  Restart() {
    SimProcess* process = machine_->StartProcess();
    slot_opened_ms_ = absl::ToUnixMillis(process->clock().WallNow());
    EXPECT_THAT(NamenodeDirectory::Format("/nn", {}, process), IsOk());
    namenode_ = std::make_unique<SmallNamenode>(process, &replicas_);
    std::optional<absl::Status> registered;
    NamespaceGateway(&namenode_->space()).RegisterStorages("d", {"s1", "s2", "s3"}, [&](const auto& result) {
      registered = result.status();
    });
    world_.RunUntil([&] { return registered.has_value(); }, absl::Seconds(10));
  }

  // By kill -9, or by cutting the power of the machine.
  void RestartNamenode() {
    if (GetParam()) {
      machine_->PowerCut();
    } else {
      machine_->Kill();
    }
    world_.RunFor(absl::Seconds(1));
    namenode_.reset();
    namenode_ = std::make_unique<SmallNamenode>(machine_->StartProcess(), &replicas_);
  }

  template <class Response>
  using Answer = std::shared_ptr<std::optional<absl::StatusOr<Response>>>;

  // Makes a call; its answer may never come.
  template <class Request, class Response>
  Answer<Response> Send(void (ClientService::*call)(api::CallContext, Request, api::Done<Response>), Request request, uint64_t sequence) {
    v1::RequestHeader& header = *request.mutable_header();
    header.set_client_id(std::string(kTestClientId));
    header.set_user("ada");
    header.set_client_name("me");
    header.set_slot(2);
    header.set_sequence(sequence);
    header.set_slot_opened_ms(slot_opened_ms_);
    auto answer = std::make_shared<std::optional<absl::StatusOr<Response>>>();
    (namenode_->service().*call)(api::CallContext(), std::move(request),
                                 [answer](absl::StatusOr<Response> response) { *answer = response; });
    return answer;
  }
  template <class Request, class Response>
  absl::StatusOr<Response> Call(void (ClientService::*call)(api::CallContext, Request, api::Done<Response>), Request request,
                                uint64_t sequence) {
    const Answer<Response> answer = Send(call, std::move(request), sequence);
    world_.RunUntil([&] { return answer->has_value(); }, absl::Seconds(10));
    return answer->has_value() ? **answer : absl::DeadlineExceededError("not answered");
  }
  absl::StatusOr<v1::CreateResponse> Create(const std::string& path, uint64_t sequence) {
    v1::CreateRequest request;
    request.set_path(path);
    request.set_create_parent(true);
    request.set_with_first_block(true);
    return Call(&ClientService::Create, std::move(request), sequence);
  }

  SimWorld world_{SimOptions{.seed = 3}};
  SimMachine* machine_ = world_.AddMachine("nn");
  FakeReplicaPlane replicas_{3};
  int64_t slot_opened_ms_ = 0;
  std::unique_ptr<SmallNamenode> namenode_;
};

TEST_P(Restart, RepeatedCallsActOnceAcrossIt) {
  const auto created = Create("/d/f", 1);
  ASSERT_THAT(created, IsOk());
  RestartNamenode();
  const auto again = Create("/d/f", 1);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->status().inode_id(), created->status().inode_id());
  EXPECT_EQ(again->first_block().block().id(), created->first_block().block().id());

  v1::CompleteRequest complete;
  complete.set_inode_id(created->status().inode_id());
  *complete.mutable_last()->mutable_block() = created->first_block().block();
  complete.mutable_last()->mutable_block()->set_length_bytes(11);
  complete.mutable_last()->add_acknowledged_storages("s3");
  ASSERT_THAT(Call(&ClientService::Complete, complete, 2), IsOk());
  RestartNamenode();
  EXPECT_EQ(Call(&ClientService::Complete, complete, 2)->status().length_bytes(), 11u);

  v1::RenameRequest rename;
  rename.set_source("/d/f");
  rename.set_destination("/g");
  ASSERT_THAT(Call(&ClientService::Rename, rename, 3), IsOk());
  bool made = false;  // Somebody else makes another one meanwhile.
  namenode_->space().Submit(CreateMutation("/d/f", "other"), [&](const auto& result) { made = result.ok(); });
  ASSERT_TRUE(world_.RunUntil([&] { return made; }, absl::Seconds(10)));
  RestartNamenode();
  EXPECT_THAT(Call(&ClientService::Rename, rename, 3), IsOk());
  EXPECT_THAT(StatusOfPath(*namenode_->Snapshot(), "/d/f"), IsOk());

  v1::DeleteRequest remove;
  remove.set_path("/g");
  EXPECT_TRUE(Call(&ClientService::Delete, remove, 5)->existed());
  RestartNamenode();
  EXPECT_TRUE(Call(&ClientService::Delete, remove, 5)->existed());
  EXPECT_FALSE(Call(&ClientService::Delete, remove, 6)->existed());
}

TEST_P(Restart, ADeleteOfManyThatWasHalfDoneGoesOnWhereItStood) {
  v1::DeleteManyRequest request;
  for (int i = 0; i < 600; ++i) {
    const std::string path = "/d/" + std::to_string(i);
    ASSERT_THAT(Create(path, static_cast<uint64_t>(i) + 1), IsOk());
    request.add_paths(path);
  }
  request.add_paths("/d/599");
  // The NameNode ends after the first part.
  const auto left = [&] { return StatusOfPath(*namenode_->Snapshot(), "/d")->children(); };
  Send(&ClientService::DeleteMany, request, 1000);
  ASSERT_TRUE(world_.RunUntil([&] { return left() < 600; }, absl::Seconds(10)));
  ASSERT_EQ(left(), 600u - 256);
  RestartNamenode();
  EXPECT_EQ(left(), 600u - 256);
  bool made = false;  // Somebody else makes one again that was deleted: it is not the call's business any more.
  namenode_->space().Submit(CreateMutation("/d/0", "other"), [&](const auto& result) { made = result.ok(); });
  ASSERT_TRUE(world_.RunUntil([&] { return made; }, absl::Seconds(10)));

  v1::DeleteManyRequest other = request;
  other.mutable_paths()->RemoveLast();
  EXPECT_THAT(Call(&ClientService::DeleteMany, other, 1000), HasReason("REQUEST_MISMATCH"));
  std::string expected(600, '\0');
  expected.push_back(static_cast<char>(ErrorKind::kNotFound));
  for (int round = 0; round < 2; ++round) {
    const auto answer = Call(&ClientService::DeleteMany, request, 1000);
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->codes(), expected) << round;
    EXPECT_EQ(left(), 1u);
    EXPECT_THAT(StatusOfPath(*namenode_->Snapshot(), "/d/0"), IsOk());
    RestartNamenode();
  }
}

TEST_P(Restart, ReclaimGoesOnAfterIt) {
  for (uint64_t i = 0; i < 700; ++i) ASSERT_THAT(Create("/d/" + std::to_string(i), i + 1), IsOk());
  v1::DeleteRequest remove;
  remove.set_path("/d");
  remove.set_recursive(true);
  ASSERT_TRUE(Call(&ClientService::Delete, remove, 1000)->existed());
  // In the middle of it.
  world_.RunUntil([&] { return !replicas_.freed.empty(); }, absl::Seconds(10));
  ASSERT_LT(replicas_.freed.size(), 700u);
  RestartNamenode();
  const auto works = [&] { return namenode_->Snapshot()->Scan(Family::kWork, "", "")->Valid(); };
  EXPECT_TRUE(works());
  EXPECT_TRUE(world_.RunUntil([&] { return !works(); }, absl::Minutes(1)));
  EXPECT_FALSE(namenode_->Snapshot()->Scan(Family::kBlock, "", "")->Valid());
  // A step whose outcome was unknown at the end may have told of its blocks or not; all others did.
  EXPECT_GE(replicas_.freed.size(), 700u - 4 * 128);
}

INSTANTIATE_TEST_SUITE_P(By, Restart, ::testing::Bool(), [](const auto& by) { return by.param ? "PowerCut" : "Kill"; });

}  // namespace
}  // namespace cairn::namenode
