#include "namenode/frontdoor/client_service.h"

#include "common/block_token.h"
#include "namenode/frontdoor/client_call.h"
#include "namenode/namespace/retry_table.h"
#include "namenode/namespace_gateway.h"
#include "tests/namenode/front_door.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class ClientServiceTest : public ::testing::Test, protected FrontDoor {
 protected:
  ClientServiceTest() : FrontDoor(4) {}

  template <class Request>
  Request WithHeader(Request request) {
    return From("ada", "me", std::move(request));
  }
  template <class Request>
  Request WithSlot(Request request, uint64_t sequence) {
    return From("ada", "me", std::move(request), sequence);
  }
  absl::StatusOr<v1::CreateResponse> Create(const std::string& path, uint64_t sequence = 0) {
    v1::CreateRequest request;
    request.set_path(path);
    request.set_create_parent(true);
    request.set_umask(022);
    request.set_with_first_block(true);
    return Send(&ClientService::Create, WithSlot(request, sequence));
  }
  v1::CommittedBlock Committed(const v1::LocatedBlock& block, uint64_t length) {
    v1::CommittedBlock committed;
    *committed.mutable_block() = MakeBlock(block.block().id(), block.block().generation_stamp(), length);
    for (const auto& location : block.locations()) committed.add_acknowledged_storages(location.storage_uuid());
    return committed;
  }
  absl::StatusOr<v1::CompleteResponse> Complete(const v1::CreateResponse& file, uint64_t length) {
    v1::CompleteRequest request;
    request.set_path(file.status().path());
    request.set_inode_id(file.status().inode_id());
    *request.mutable_last() = Committed(file.first_block(), length);
    return Send(&ClientService::Complete, WithHeader(request));
  }
  absl::StatusOr<v1::GetBlockLocationsResponse> Locations(const std::string& path) {
    v1::GetBlockLocationsRequest request;
    request.set_path(path);
    request.set_length_bytes(UINT64_MAX);
    return Send(&ClientService::GetBlockLocations, WithHeader(request));
  }
  static std::vector<std::string> Storages(const v1::LocatedBlock& block) {
    std::vector<std::string> uuids;
    for (const auto& location : block.locations()) uuids.push_back(location.storage_uuid());
    return uuids;
  }
};

TEST_F(ClientServiceTest, CreateAnswersALocatedFirstBlockWithAToken) {
  const auto created = Create("/d/f");
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(created->status().path(), "/d/f");
  EXPECT_EQ(created->status().replication(), 3u);
  EXPECT_EQ(created->status().block_size_bytes(), 128u << 20);
  EXPECT_EQ(created->status().mode(), 0644u);
  EXPECT_EQ(created->status().owner(), "ada");
  EXPECT_TRUE(created->status().under_construction());
  EXPECT_EQ(created->header().namenode_time_ms(), absl::ToUnixMillis(process_->clock().WallNow()));
  const v1::LocatedBlock& block = created->first_block();
  EXPECT_THAT(Storages(block), ElementsAre("s1", "s2", "s3"));
  const auto keys = Identity().keys;
  const BlockId id(block.block().id());
  const GenerationStamp stamp(block.block().generation_stamp());
  const int64_t now_ms = absl::ToUnixMillis(process_->clock().WallNow());
  EXPECT_THAT(CheckBlockToken(block.token(), keys, kTestPoolId, id, stamp, TokenMode::kWrite, now_ms), IsOk());
  EXPECT_EQ(leases_.stats().holders, 1u);
}

TEST_F(ClientServiceTest, AFileIsWrittenReadAndListed) {
  const auto created = Create("/d/f");
  ASSERT_THAT(created, IsOk());
  v1::AddBlockRequest add;
  add.set_inode_id(created->status().inode_id());
  *add.mutable_previous() = Committed(created->first_block(), 100);
  add.add_excluded()->set_datanode_uuid("d2");
  const auto second = Send(&ClientService::AddBlock, WithHeader(add));
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(Storages(second->block()), ElementsAre("s1", "s3", "s4"));
  EXPECT_EQ(second->block().offset_bytes(), 100u);

  auto located = Locations("/d/f");
  ASSERT_THAT(located, IsOk());
  ASSERT_EQ(located->blocks_size(), 2);
  EXPECT_FALSE(located->blocks(0).under_construction());
  EXPECT_TRUE(located->blocks(1).under_construction());
  EXPECT_THAT(Storages(located->blocks(1)), ElementsAre("s1", "s3", "s4"));

  v1::CompleteRequest complete;
  complete.set_inode_id(created->status().inode_id());
  *complete.mutable_last() = Committed(second->block(), 7);
  const auto completed = Send(&ClientService::Complete, WithHeader(complete));
  ASSERT_THAT(completed, IsOk());
  EXPECT_EQ(completed->status().length_bytes(), 107u);
  EXPECT_FALSE(completed->status().under_construction());
  located = Locations("/d/f");
  EXPECT_FALSE(located->blocks(1).under_construction());
  EXPECT_EQ(located->blocks(1).block().length_bytes(), 7u);
  EXPECT_THAT(located->blocks(1).token(), Not(IsEmpty()));

  v1::ListRequest list;
  list.set_path("/d");
  const auto listed = Send(&ClientService::List, WithHeader(list));
  ASSERT_THAT(listed, IsOk());
  ASSERT_EQ(listed->entries_size(), 1);
  EXPECT_EQ(listed->entries(0).path(), "f");
  v1::GetContentSummaryRequest summary;
  summary.set_path("/d");
  EXPECT_EQ(Send(&ClientService::GetContentSummary, WithHeader(summary))->summary().charged_bytes(), 321u);
}

TEST_F(ClientServiceTest, ARepeatedCreateAnswersTheSameAndChoosesNothing) {
  const auto first = Create("/f", 5);
  ASSERT_THAT(first, IsOk());
  replicas_.asked.clear();
  const auto again = Create("/f", 5);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->first_block().block().id(), first->first_block().block().id());
  EXPECT_THAT(replicas_.asked, IsEmpty());
  // Also when its DataNodes are not known any more: it must not be told that it failed.
  replicas_.live.clear();
  const auto absent = Create("/f", 5);
  EXPECT_THAT(absent, HasKind(ErrorKind::kRetriable));
  EXPECT_THAT(absent, HasReason("NOT_REGISTERED_YET"));
  EXPECT_THAT(Create("/g", 6), HasReason("NO_LIVE_DATANODES"));
}

TEST_F(ClientServiceTest, AnotherRequestUnderTheSameNumberIsRefused) {
  ASSERT_THAT(Create("/f", 5), IsOk());
  EXPECT_THAT(Create("/g", 5), HasReason("REQUEST_MISMATCH"));
}

TEST_F(ClientServiceTest, CompleteWorksBeforeTheDatanodesHaveRegisteredAgain) {
  const auto created = Create("/f");
  ASSERT_THAT(created, IsOk());
  replicas_.live.clear();
  EXPECT_THAT(Complete(*created, 9), IsOk());
  const auto located = Locations("/f");
  ASSERT_THAT(located, IsOk());
  EXPECT_TRUE(located->blocks(0).retry());
}

TEST_F(ClientServiceTest, StoragesThatNeverRegisteredAreRefused) {
  auto created = Create("/f");
  ASSERT_THAT(created, IsOk());
  created->mutable_first_block()->mutable_locations(0)->set_storage_uuid("unheard-of");
  EXPECT_THAT(Complete(*created, 9), HasReason("UNKNOWN_STORAGE"));
}

TEST_F(ClientServiceTest, APipelineIsRebuilt) {
  const auto created = Create("/f");
  ASSERT_THAT(created, IsOk());
  v1::UpdateBlockForPipelineRequest renew;
  renew.set_inode_id(created->status().inode_id());
  *renew.mutable_block() = created->first_block().block();
  const auto renewed = Send(&ClientService::UpdateBlockForPipeline, WithHeader(renew));
  ASSERT_THAT(renewed, IsOk());
  v1::UpdatePipelineRequest update;
  update.set_inode_id(created->status().inode_id());
  *update.mutable_old_block() = created->first_block().block();
  *update.mutable_new_block() = MakeBlock(created->first_block().block().id(), renewed->new_generation_stamp(), 10);
  update.add_storages("s3");
  update.add_storages("s1");
  ASSERT_THAT(Send(&ClientService::UpdatePipeline, WithHeader(update)), IsOk());
  EXPECT_THAT(Storages(Locations("/f")->blocks(0)), ElementsAre("s3", "s1"));

  v1::FsyncRequest fsync;
  fsync.set_inode_id(created->status().inode_id());
  *fsync.mutable_last_block() = MakeBlock(created->first_block().block().id(), renewed->new_generation_stamp(), 77);
  ASSERT_THAT(Send(&ClientService::Fsync, WithHeader(fsync)), IsOk());
  v1::GetFileInfoRequest info;
  info.set_path("/f");
  EXPECT_EQ(Send(&ClientService::GetFileInfo, WithHeader(info))->status().length_bytes(), 77u);
  v1::AbandonBlockRequest abandon;
  abandon.set_inode_id(created->status().inode_id());
  *abandon.mutable_block() = created->first_block().block();
  ASSERT_THAT(Send(&ClientService::AbandonBlock, WithHeader(abandon)), IsOk());
  EXPECT_EQ(Locations("/f")->blocks_size(), 0);
}

TEST_F(ClientServiceTest, HeadersAreChecked) {
  v1::MkdirsRequest request;
  request.set_path("/d");
  const v1::MkdirsRequest good = WithHeader(request);
  auto refused = [&](auto change) {
    v1::MkdirsRequest bad = good;
    change(*bad.mutable_header());
    EXPECT_THAT(Send(&ClientService::Mkdirs, bad), HasKind(ErrorKind::kInvalidArgument));
  };
  refused([](v1::RequestHeader& header) { header.set_client_id("short"); });
  refused([](v1::RequestHeader& header) { header.clear_client_id(); });
  refused([](v1::RequestHeader& header) { header.set_slot(kMaxSlots); });
  refused([](v1::RequestHeader& header) { header.clear_user(); });
  refused([](v1::RequestHeader& header) { header.set_user(std::string(256, 'u')); });
  refused([](v1::RequestHeader& header) { header.set_client_name(std::string(1025, 'n')); });
  EXPECT_THAT(access_.submitted(), IsEmpty());
  EXPECT_THAT(Send(&ClientService::Mkdirs, good), IsOk());
}

TEST_F(ClientServiceTest, ARetryIdWhoseSlotHasNoAgeIsRefusedAlsoForTheFirstCall) {
  v1::MkdirsRequest request = WithHeader(v1::MkdirsRequest());
  request.set_path("/d");
  request.mutable_header()->set_sequence(1);
  const auto refused = Send(&ClientService::Mkdirs, request);
  EXPECT_THAT(refused, HasKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(ReasonOf(refused.status()), "SLOT_OPENED_MISSING");
  request.mutable_header()->set_slot_opened_ms(-1);
  EXPECT_THAT(Send(&ClientService::Mkdirs, request), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(access_.submitted(), IsEmpty());
  // What it should have done: any answer says what time it is.
  v1::GetServerDefaultsRequest defaults = WithHeader(v1::GetServerDefaultsRequest());
  const auto answer = Send(&ClientService::GetServerDefaults, defaults);
  ASSERT_THAT(answer, IsOk());
  request.mutable_header()->set_slot_opened_ms(answer->header().namenode_time_ms());
  EXPECT_THAT(Send(&ClientService::Mkdirs, request), IsOk());
}

TEST_F(ClientServiceTest, ACallWhoseDeadlineHasPassedIsNotBegun) {
  v1::MkdirsRequest request;
  request.set_path("/d");
  api::CallContext context;
  context.deadline = process_->clock().Now() - absl::Seconds(1);
  absl::Status answer;
  service_.Mkdirs(context, WithHeader(request), [&](const absl::StatusOr<v1::MkdirsResponse>& response) { answer = response.status(); });
  world_.RunFor(absl::Seconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer)) << answer;
  EXPECT_THAT(access_.submitted(), IsEmpty());
}

TEST_F(ClientServiceTest, RenameDeleteAndMkdirs) {
  v1::MkdirsRequest mkdirs;
  mkdirs.set_path("/a/b");
  mkdirs.set_create_parent(true);
  mkdirs.set_umask(027);
  ASSERT_THAT(Send(&ClientService::Mkdirs, WithHeader(mkdirs)), IsOk());
  v1::RenameRequest rename;
  rename.set_source("/a/b");
  rename.set_destination("/c");
  ASSERT_THAT(Send(&ClientService::Rename, WithSlot(rename, 1)), IsOk());
  ASSERT_THAT(Send(&ClientService::Rename, WithSlot(rename, 1)), IsOk());
  EXPECT_EQ(StatusOfPath(space_.view(), "/c")->mode(), 0750u);
  v1::DeleteRequest remove;
  remove.set_path("/c");
  EXPECT_TRUE(Send(&ClientService::Delete, WithSlot(remove, 2))->existed());
  EXPECT_TRUE(Send(&ClientService::Delete, WithSlot(remove, 2))->existed());
  EXPECT_FALSE(Send(&ClientService::Delete, WithSlot(remove, 3))->existed());
  const auto refused = Send(&ClientService::Rename, WithSlot(rename, 4));
  EXPECT_THAT(refused, HasKind(ErrorKind::kNotFound));
  EXPECT_EQ(ErrorOf(refused.status())->path, "/a/b");
}

TEST_F(ClientServiceTest, DeleteManyGoesInPartsAndOnAfterAFailure) {
  for (int i = 0; i < 600; ++i) space_.Must(MkdirsMutation("/d/" + std::to_string(i)));
  v1::DeleteManyRequest request;
  for (int i = 0; i < 600; ++i) request.add_paths("/d/" + std::to_string(i));
  request.add_paths("/d/0");
  std::string expected(600, '\0');
  expected.push_back(static_cast<char>(ErrorKind::kNotFound));

  // The second part's outcome is unknown to the client, which repeats the call.
  const v1::DeleteManyRequest call = WithSlot(request, 9);
  std::optional<absl::Status> first;
  service_.DeleteMany(api::CallContext(), call, [&](const absl::StatusOr<v1::DeleteManyResponse>& response) { first = response.status(); });
  world_.RunUntil([&] { return access_.submitted().size() == 1; }, absl::Seconds(10));
  access_.FailNext(absl::UnavailableError("cut"));
  world_.RunUntil([&] { return first.has_value(); }, absl::Seconds(10));
  EXPECT_TRUE(absl::IsUnavailable(*first)) << *first;
  EXPECT_EQ(StatusOfPath(space_.view(), "/d")->children(), 344u);
  space_.Must(MkdirsMutation("/d/1"));  // Somebody else's: not deleted by the repeat.
  const auto again = Send(&ClientService::DeleteMany, call);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->codes(), expected);
  EXPECT_EQ(StatusOfPath(space_.view(), "/d")->children(), 1u);

  // Without a retry id the codes are the same.
  for (int i = 0; i < 600; ++i) space_.Must(MkdirsMutation("/d/" + std::to_string(i)));
  EXPECT_EQ(Send(&ClientService::DeleteMany, WithHeader(request))->codes(), expected);
  EXPECT_THAT(Send(&ClientService::DeleteMany, WithHeader(v1::DeleteManyRequest()))->codes(), IsEmpty());
}

TEST_F(ClientServiceTest, DeleteManyIsBounded) {
  v1::DeleteManyRequest many;
  for (int i = 0; i < kMaxDeletePaths + 1; ++i) many.add_paths("/x");
  EXPECT_THAT(Send(&ClientService::DeleteMany, WithHeader(many)), HasKind(ErrorKind::kInvalidArgument));
  v1::DeleteManyRequest large;
  large.add_paths(std::string(kMaxDeletePathBytes + 1, '/'));
  EXPECT_THAT(Send(&ClientService::DeleteMany, WithHeader(large)), HasKind(ErrorKind::kInvalidArgument));
}

TEST_F(ClientServiceTest, ListPagesAreBounded) {
  for (int i = 0; i < 1001; ++i) space_.Must(MkdirsMutation("/d/" + std::to_string(i)));
  v1::ListRequest list;
  list.set_path("/d");
  list.set_limit(5000);
  const auto page = Send(&ClientService::List, WithHeader(list));
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(page->entries_size(), 1000);
  EXPECT_TRUE(page->has_more());
  list.set_start_after(page->entries(999).path());
  EXPECT_EQ(Send(&ClientService::List, WithHeader(list))->entries_size(), 1);
}

TEST_F(ClientServiceTest, ListPagesOfEverySizeAndTheirEdges) {
  for (const int entries : {0, 1, 2, 3, 999, 1000, 1001, 2000}) {
    const std::string directory = "/of" + std::to_string(entries);
    space_.Must(MkdirsMutation(directory));
    for (int i = 0; i < entries; ++i) space_.Must(MkdirsMutation(directory + "/" + std::to_string(i)));
    std::vector<std::string> names;
    v1::ListRequest list;
    list.set_path(directory);
    int pages = 0;
    for (bool more = true; more; ++pages) {
      const auto page = Send(&ClientService::List, WithHeader(list));
      ASSERT_THAT(page, IsOk());
      for (const v1::FileStatus& entry : page->entries()) names.push_back(entry.path());
      more = page->has_more();
      ASSERT_TRUE(!more || page->entries_size() == 1000);
      if (more) list.set_start_after(names.back());
    }
    EXPECT_EQ(pages, std::max(1, (entries + 999) / 1000)) << entries;
    EXPECT_EQ(names.size(), static_cast<size_t>(entries));
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  }
}

TEST_F(ClientServiceTest, TheListLimitIsConfiguration) {
  for (int i = 0; i < 10; ++i) space_.Must(MkdirsMutation("/d/" + std::to_string(i)));
  ClientService::Options options;
  options.list_limit = 4;
  ClientService service(options, Identity(), &access_, &replicas_, &leases_, {reader_.get()}, &process_->clock());
  for (const auto& [asked, answered] : {std::pair{0u, 4}, {3u, 3}, {4u, 4}, {5u, 4}, {UINT32_MAX, 4}}) {
    v1::ListRequest list;
    list.set_path("/d");
    list.set_limit(asked);
    std::optional<absl::StatusOr<v1::ListResponse>> page;
    service.List({}, WithHeader(list), [&](absl::StatusOr<v1::ListResponse> response) { page = std::move(response); });
    world_.RunUntil([&] { return page.has_value(); }, absl::Seconds(10));
    ASSERT_TRUE(page && page->ok());
    EXPECT_EQ((*page)->entries_size(), answered) << asked;
    EXPECT_TRUE((*page)->has_more());
  }
}

// Entries come, go and are renamed between pages. Whatever is there all the time is listed once; nothing is listed twice.
TEST_F(ClientServiceTest, PagesStayRightWhileTheDirectoryChanges) {
  for (const uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
    Random random(seed);
    const std::string directory = "/d" + std::to_string(seed) + "/";
    std::set<std::string> stays;
    std::set<std::string> ever;
    std::vector<std::string> others;
    const auto name = [&](uint64_t i) { return std::to_string(i * 7919 % 1000); };
    for (uint64_t i = 0; i < 200; ++i) {
      const std::string made = name(i);
      space_.Must(MkdirsMutation(directory + made));
      ever.insert(made);
      if (i % 2 == 0) stays.insert(made);
      if (i % 2 == 1) others.push_back(made);
    }
    std::vector<std::string> listed;
    v1::ListRequest list;
    list.set_path(directory);
    list.set_limit(7);
    for (bool more = true; more;) {
      const auto page = Send(&ClientService::List, WithHeader(list));
      ASSERT_THAT(page, IsOk());
      for (const v1::FileStatus& entry : page->entries()) listed.push_back(entry.path());
      more = page->has_more();
      if (more) list.set_start_after(page->entries().rbegin()->path());
      for (int i = 0; i < 10 && !others.empty(); ++i) {
        std::string& other = others[random.Below(others.size())];
        if (random.OneIn(3)) {
          const std::string fresh = std::to_string(1000 + random.Below(9000));
          if (!ever.insert(fresh).second) continue;
          space_.Must(RenameMutation(directory + other, directory + fresh));
          other = fresh;
        } else if (random.OneIn(2)) {
          const std::string fresh = std::to_string(10'000 + random.Below(90'000));
          if (!ever.insert(fresh).second) continue;
          space_.Must(MkdirsMutation(directory + fresh));
          others.push_back(fresh);
        } else {
          space_.Must(DeleteMutation(directory + other, true));
          other = others.back();
          others.pop_back();
        }
      }
      // The last name of the page goes, too: the next one begins behind where it stood.
      if (more && !stays.contains(list.start_after()))
        IgnoreError(space_.Apply(DeleteMutation(directory + list.start_after(), true)).status(), "");
      std::erase(others, list.start_after());
    }
    const std::set<std::string> once(listed.begin(), listed.end());
    EXPECT_EQ(once.size(), listed.size()) << seed;
    EXPECT_TRUE(std::includes(once.begin(), once.end(), stays.begin(), stays.end())) << seed;
    EXPECT_TRUE(std::includes(ever.begin(), ever.end(), once.begin(), once.end())) << seed;
  }
}

TEST_F(ClientServiceTest, ADirectoryThatGoesBetweenPagesIsNotFound) {
  for (int i = 0; i < 5; ++i) space_.Must(MkdirsMutation("/d/" + std::to_string(i)));
  v1::ListRequest list;
  list.set_path("/d");
  list.set_limit(2);
  ASSERT_TRUE(Send(&ClientService::List, WithHeader(list))->has_more());
  list.set_start_after("1");
  // The rest goes: the next page is empty and the last. Then the directory itself.
  for (const char* path : {"/d/2", "/d/3", "/d/4"}) space_.Must(DeleteMutation(path, true));
  const auto empty = Send(&ClientService::List, WithHeader(list));
  EXPECT_EQ(empty->entries_size(), 0);
  EXPECT_FALSE(empty->has_more());
  space_.Must(DeleteMutation("/d", true));
  EXPECT_THAT(Send(&ClientService::List, WithHeader(list)), HasKind(ErrorKind::kNotFound));
}

TEST_F(ClientServiceTest, ReadsOfWhatIsNotThere) {
  EXPECT_THAT(Locations("/no"), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(Locations("/"), HasKind(ErrorKind::kIsDirectory));
  v1::GetFileInfoRequest info;
  info.set_path("no");
  EXPECT_THAT(Send(&ClientService::GetFileInfo, WithHeader(info)), HasKind(ErrorKind::kInvalidPath));
}

TEST_F(ClientServiceTest, RenewalsAndDefaultsAndBadReplicas) {
  EXPECT_THAT(Send(&ClientService::RenewLease, WithHeader(v1::RenewLeaseRequest())), IsOk());
  EXPECT_THAT(Send(&ClientService::RenewLease, v1::RenewLeaseRequest()), HasKind(ErrorKind::kInvalidArgument));
  const auto defaults = Send(&ClientService::GetServerDefaults, v1::GetServerDefaultsRequest());
  ASSERT_THAT(defaults, IsOk());
  EXPECT_EQ(defaults->pool_id(), kTestPoolId);
  EXPECT_EQ(defaults->replication(), 3u);
  EXPECT_GT(defaults->header().namenode_time_ms(), 0);
  v1::ReportBadReplicasRequest report;
  report.add_replicas()->set_storage_uuid("s2");
  report.mutable_replicas(0)->mutable_block()->set_id(48);
  ASSERT_THAT(Send(&ClientService::ReportBadReplicas, WithHeader(report)), IsOk());
  EXPECT_THAT(replicas_.bad, ElementsAre("48@s2"));
}

TEST_F(ClientServiceTest, TheCallersHostIsTakenFromItsAddress) {
  EXPECT_EQ(HostOfCaller("me", "ipv4:10.0.0.1:4711"), "me");
  EXPECT_EQ(HostOfCaller("", "ipv4:10.0.0.1:4711"), "10.0.0.1");
  EXPECT_EQ(HostOfCaller("", "10.0.0.1:4711"), "10.0.0.1");
  EXPECT_EQ(HostOfCaller("", "ipv6:[::1]:4711"), "::1");
  EXPECT_EQ(HostOfCaller("", "ipv6:%5B::1%5D:4711"), "::1");
  EXPECT_EQ(HostOfCaller("", "::1"), "::1");
  EXPECT_EQ(HostOfCaller("", ""), "");
}

TEST_F(ClientServiceTest, TheObserverHearsOfEachCall) {
  std::vector<std::string> heard;
  service_.SetCallObserver([&](std::string_view call, absl::Duration, const absl::Status& status) {
    heard.push_back(std::string(call) + (status.ok() ? "" : " failed"));
  });
  IgnoreError(Create("/f").status(), "only the observer matters");
  IgnoreError(Create("/f").status(), "only the observer matters");
  EXPECT_THAT(heard, ElementsAre("Create", "Create failed"));
}

TEST_F(ClientServiceTest, TheReplicaPlaneHearsWhatCommitsDid) {
  bool detached = false;
  access_.SetObserver(ObserveCommits(&replicas_, [&] { detached = true; }));
  const auto created = Create("/f");
  EXPECT_THAT(replicas_.changed, IsEmpty());  // Nobody has a replica of a new block.
  ASSERT_THAT(Complete(*created, 5), IsOk());
  EXPECT_THAT(replicas_.changed, ElementsAre(BlockId(created->first_block().block().id())));
  EXPECT_FALSE(detached);
  v1::DeleteRequest remove;
  remove.set_path("/f");
  ASSERT_THAT(Send(&ClientService::Delete, WithHeader(remove)), IsOk());
  EXPECT_TRUE(detached);
}

TEST_F(ClientServiceTest, TheGatewayNumbersStoragesAndKeepsARollBackInMind) {
  NamespaceGateway gateway(&access_);
  std::vector<StorageNumber> numbers;
  gateway.RegisterStorages("d9", {"s2", "new"}, [&](absl::StatusOr<std::vector<StorageNumber>> result) { numbers = *std::move(result); });
  gateway.OnRolledBack(kFirstBlockId.value() + 160, 2000);
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(numbers, ElementsAre(StorageNumber(2), StorageNumber(5)));
  EXPECT_EQ(ReadCounters(*gateway.Snapshot())->next_generation_stamp, GenerationStamp(2000));
  EXPECT_THAT(KeepsUnknownReplicas(*gateway.Snapshot()), IsOkAndHolds(true));
}

}  // namespace
}  // namespace cairn::namenode
