// The front door's calls about quotas, replication, joined files and locations of many, and what it refuses of names before it queues.

#include "namenode/frontdoor/client_service.h"
#include "namenode/namespace_gateway.h"
#include "tests/namenode/front_door.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

class BlockCalls : public ::testing::Test, protected FrontDoor {
 protected:
  BlockCalls() : FrontDoor(3) {}

  // As root, who formatted the namespace.
  template <class Request, class Response>
  absl::StatusOr<Response> Call(void (ClientService::*call)(api::CallContext, Request, api::Done<Response>), Request request,
                                uint64_t sequence = 0) {
    return Send(call, From("root", "me", std::move(request), sequence));
  }
  absl::StatusOr<v1::SetReplicationResponse> SetReplication(const std::string& path, uint32_t replication, uint64_t sequence = 0) {
    v1::SetReplicationRequest request;
    request.set_path(path);
    request.set_replication(replication);
    return Call(&ClientService::SetReplication, request, sequence);
  }
  absl::Status Mkdirs(const std::string& path) {
    v1::MkdirsRequest request;
    request.set_path(path);
    request.set_create_parent(true);
    return Call(&ClientService::Mkdirs, request).status();
  }
  // Mutations that were queued.
  size_t Queued() const { return access_.submitted().size(); }
};

TEST_F(BlockCalls, QuotasAreSetAndShownByTheSummary) {
  ASSERT_THAT(Mkdirs("/d"), IsOk());
  v1::SetQuotaRequest request;
  request.set_path("/d");
  request.set_namespace_quota(2);
  request.set_space_quota_bytes(1 << 20);
  ASSERT_THAT(Call(&ClientService::SetQuota, request), IsOk());
  v1::GetContentSummaryRequest ask;
  ask.set_path("/d");
  const auto summary = Call(&ClientService::GetContentSummary, ask);
  ASSERT_THAT(summary, IsOk());
  EXPECT_EQ(summary->summary().namespace_quota(), 2);
  EXPECT_EQ(summary->summary().space_quota_bytes(), 1 << 20);
  EXPECT_THAT(Mkdirs("/d/a"), IsOk());
  EXPECT_THAT(Mkdirs("/d/b"), HasReason("NAMESPACE_QUOTA"));
  v1::SetQuotaRequest clear;
  clear.set_path("/d");
  clear.set_namespace_quota(-1);
  ASSERT_THAT(Call(&ClientService::SetQuota, clear), IsOk());
  EXPECT_THAT(Mkdirs("/d/b"), IsOk());
}

TEST_F(BlockCalls, SetReplicationSaysWhetherItIsAFileAndActsOnce) {
  space_.WriteFile("/d/f", {10});
  access_.SetObserver(ObserveCommits(&replicas_, nullptr));
  const auto file = SetReplication("/d/f", 2, 7);
  ASSERT_THAT(file, IsOk());
  EXPECT_TRUE(file->is_file());
  EXPECT_EQ(replicas_.changed.size(), 1u);
  EXPECT_TRUE(SetReplication("/d/f", 2, 7)->is_file());  // Repeated: the kept answer.
  EXPECT_EQ(replicas_.changed.size(), 1u);
  EXPECT_FALSE(SetReplication("/d", 2)->is_file());
  EXPECT_THAT(SetReplication("/no", 2), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(SetReplication("/d/f", 1000), HasReason("REPLICATION_OUT_OF_RANGE"));
}

TEST_F(BlockCalls, ConcatJoinsAndARepeatedCallAgrees) {
  for (const char* path : {"/d/t", "/d/a", "/d/b"}) space_.WriteFile(path, {10});
  v1::ConcatRequest request;
  request.set_target("/d/t");
  request.add_sources("/d/a");
  request.add_sources("/d/b");
  ASSERT_THAT(Call(&ClientService::Concat, request, 3), IsOk());
  EXPECT_THAT(Call(&ClientService::Concat, request, 3), IsOk());
  EXPECT_EQ(StatusOfPath(space_.view(), "/d/t")->length_bytes(), 30u);
  EXPECT_THAT(Call(&ClientService::Concat, request, 4), HasKind(ErrorKind::kNotFound));
}

TEST_F(BlockCalls, LocationsOfManyAnswerEachPathForItself) {
  space_.WriteFile("/d/a", {10, 20});
  space_.WriteFile("/d/empty", {});
  v1::GetLocationsManyRequest request;
  for (const char* path : {"/d/a", "/none", "/d", "/d/empty", "bad"}) request.add_paths(path);
  const auto answer = Call(&ClientService::GetLocationsMany, request);
  ASSERT_THAT(answer, IsOk());
  ASSERT_EQ(answer->entries_size(), 5);
  const auto& file = answer->entries(0);
  EXPECT_EQ(file.status().path(), "/d/a");
  EXPECT_EQ(file.status().length_bytes(), 30u);
  ASSERT_EQ(file.blocks_size(), 2);
  EXPECT_EQ(file.blocks(1).offset_bytes(), 10u);
  EXPECT_EQ(file.blocks(1).locations_size(), 3);
  EXPECT_FALSE(file.blocks(1).token().empty());
  EXPECT_FALSE(file.has_more());
  EXPECT_EQ(answer->entries(1).error().kind(), "kNotFound");
  EXPECT_EQ(answer->entries(2).error().kind(), "kIsDirectory");
  EXPECT_FALSE(answer->entries(3).has_error());
  EXPECT_FALSE(answer->entries(3).has_more());
  EXPECT_EQ(answer->entries(4).error().kind(), "kInvalidPath");
}

TEST_F(BlockCalls, LocationsOfManyAreBounded) {
  v1::GetLocationsManyRequest request;
  for (int i = 0; i < 1001; ++i) request.add_paths("/x");
  EXPECT_THAT(Call(&ClientService::GetLocationsMany, request), HasKind(ErrorKind::kInvalidArgument));
  request.clear_paths();
  for (int i = 0; i < 3; ++i) request.add_paths("/" + std::string(400'000, 'x'));
  EXPECT_THAT(Call(&ClientService::GetLocationsMany, request), HasKind(ErrorKind::kInvalidArgument));
  // 4,000 blocks fill an answer; what it has no room for is marked.
  space_.WriteFile("/long", std::vector<uint64_t>(1100, 1));
  request.clear_paths();
  for (int i = 0; i < 5; ++i) request.add_paths("/long");
  const auto answer = Call(&ClientService::GetLocationsMany, request);
  ASSERT_THAT(answer, IsOk());
  std::vector<int> blocks;
  for (const auto& entry : answer->entries()) {
    blocks.push_back(entry.blocks_size());
    EXPECT_TRUE(entry.has_more());
  }
  EXPECT_EQ(blocks, (std::vector<int>{1000, 1000, 1000, 1000, 0}));
}

TEST_F(BlockCalls, NamesThatCannotBeMadeAreRefusedBeforeTheyAreQueued) {
  const std::string too_long = "/" + std::string(256, 'x');
  EXPECT_THAT(Mkdirs(too_long), HasReason("NAME_TOO_LONG"));
  EXPECT_THAT(Mkdirs("/a/.."), HasKind(ErrorKind::kInvalidPath));
  EXPECT_THAT(Mkdirs("/.reserved"), HasReason("RESERVED_NAME"));
  v1::CreateRequest create;
  create.set_path(too_long);
  EXPECT_THAT(Call(&ClientService::Create, create), HasReason("NAME_TOO_LONG"));
  space_.WriteFile("/f", {});
  v1::RenameRequest rename;
  rename.set_source("/f");
  rename.set_destination(too_long);
  EXPECT_THAT(Call(&ClientService::Rename, rename), HasReason("NAME_TOO_LONG"));
  std::string deep;
  for (int i = 0; i < 1001; ++i) deep += "/d";
  EXPECT_THAT(Mkdirs(deep), HasReason("PATH_TOO_DEEP"));
  EXPECT_EQ(Queued(), 0u);
  // What stands there already stays in use, whatever the limit is now.
  v1::Mutation old = MkdirsMutation(too_long + "/old");
  old.mutable_limits()->set_max_component_bytes(0);
  space_.Must(old);
  EXPECT_THAT(Mkdirs(too_long + "/new"), IsOk());
}

}  // namespace
}  // namespace cairn::namenode
