// Append, truncate, the recovery and the release of leases through the front door.

#include "namenode/frontdoor/client_service.h"

#include "common/block_token.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/records.h"
#include "tests/namenode/front_door.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LeaseCalls : public ::testing::Test, protected FrontDoor {
 protected:
  LeaseCalls() : FrontDoor(4) {}

  template <class Request>
  Request From(const std::string& client, Request request, uint64_t sequence = 0) {
    return FrontDoor::From("ada", client, std::move(request), sequence);
  }
  absl::StatusOr<v1::CreateResponse> Create(const std::string& client, const std::string& path, bool overwrite = false) {
    v1::CreateRequest request;
    request.set_path(path);
    request.set_create_parent(true);
    request.set_overwrite(overwrite);
    request.set_with_first_block(true);
    return Send(&ClientService::Create, From(client, request));
  }
  absl::StatusOr<v1::AppendResponse> Append(const std::string& client, const std::string& path, uint64_t sequence = 0) {
    v1::AppendRequest request;
    request.set_path(path);
    return Send(&ClientService::Append, From(client, request, sequence));
  }
  absl::StatusOr<v1::TruncateResponse> Truncate(const std::string& path, uint64_t length) {
    v1::TruncateRequest request;
    request.set_path(path);
    request.set_new_length_bytes(length);
    return Send(&ClientService::Truncate, From("cutter", request));
  }
  absl::StatusOr<v1::RecoverLeaseResponse> Recover(const std::string& path) {
    v1::RecoverLeaseRequest request;
    request.set_path(path);
    return Send(&ClientService::RecoverLease, From("taker", request));
  }
  absl::StatusOr<v1::ReleaseLeaseResponse> Release(const std::string& client, uint64_t inode_id, uint64_t sequence = 0) {
    v1::ReleaseLeaseRequest request;
    request.set_inode_id(inode_id);
    return Send(&ClientService::ReleaseLease, From(client, request, sequence));
  }
  // What block recovery comes to.
  void Settle(const std::string& path, uint64_t length) {
    const v1::INodeRecord file = ResolvePath(space_.view(), path)->record;
    const BlockId block = *BlockIdAt(space_.view(), file, file.block_count() - 1);
    const v1::BlockRecord row = *GetBlock(space_.view(), block);
    v1::Mutation mutation;
    v1::Mutation::CommitBlockRecovery& op = *mutation.mutable_commit_block_recovery();
    op.set_recovery_id(row.recovery_id());
    *op.mutable_block() = MakeBlock(block.value(), row.recovery_id(), length);
    *op.mutable_storages() = row.expected_storages();
    *op.mutable_answered() = row.expected_storages();
    space_.Must(mutation);
  }
  std::string Holder(const std::string& path) { return ResolvePath(space_.view(), path)->record.lease_holder(); }
};

TEST_F(LeaseCalls, AppendAnswersTheLastBlockWithItsOldStampAndATokenForTheNew) {
  space_.WriteFile("/f", {1000});
  const auto opened = Append("me", "/f");
  ASSERT_THAT(opened, IsOk());
  EXPECT_TRUE(opened->status().under_construction());
  EXPECT_EQ(opened->status().length_bytes(), 1000u);
  const v1::LocatedBlock& block = opened->last_block();
  EXPECT_EQ(block.block().length_bytes(), 1000u);
  EXPECT_GT(block.block().generation_stamp(), opened->old_generation_stamp());
  EXPECT_EQ(block.locations_size(), 3);
  const int64_t now_ms = absl::ToUnixMillis(process_->clock().WallNow());
  EXPECT_THAT(CheckBlockToken(block.token(), Identity().keys, kTestPoolId, BlockId(block.block().id()),
                              GenerationStamp(block.block().generation_stamp()), TokenMode::kWrite, now_ms),
              IsOk());
  // Readers are told the stamp that the replicas have as yet.
  v1::GetBlockLocationsRequest locate;
  locate.set_path("/f");
  locate.set_length_bytes(UINT64_MAX);
  const auto located = Send(&ClientService::GetBlockLocations, From("reader", locate));
  ASSERT_THAT(located, IsOk());
  EXPECT_EQ(located->blocks(0).block().generation_stamp(), opened->old_generation_stamp());
  EXPECT_TRUE(located->blocks(0).under_construction());
}

TEST_F(LeaseCalls, AppendOnlyGoesOnWhereTheBlockIsHeld) {
  space_.WriteFile("/f", {1000});
  replicas_.live = {2};
  const auto opened = Append("me", "/f");
  ASSERT_THAT(opened, IsOk());
  ASSERT_EQ(opened->last_block().locations_size(), 1);
  EXPECT_EQ(opened->last_block().locations(0).storage_uuid(), "s2");
  space_.WriteFile("/g", {1000});
  replicas_.live.clear();
  EXPECT_THAT(Append("me", "/g"), HasKind(ErrorKind::kNotReplicatedYet));
}

TEST_F(LeaseCalls, AnAppendThatIsRepeatedAnswersTheSame) {
  space_.WriteFile("/f", {1000});
  const auto first = Append("me", "/f", 3);
  ASSERT_THAT(first, IsOk());
  const auto again = Append("me", "/f", 3);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->last_block().block().generation_stamp(), first->last_block().block().generation_stamp());
  EXPECT_EQ(again->old_generation_stamp(), first->old_generation_stamp());
  EXPECT_THAT(Append("me", "/f", 4), HasReason("ALREADY_OPEN_BY_YOU"));
}

TEST_F(LeaseCalls, BeforeTheSoftLimitOthersAreRefusedAndToldHowLongTheHolderWasSilent) {
  ASSERT_THAT(Create("writer", "/f"), IsOk());
  world_.RunFor(absl::Seconds(59));
  for (const absl::Status& refused : {Append("other", "/f").status(), Truncate("/f", 0).status(), Create("other", "/f").status()}) {
    EXPECT_THAT(refused, HasReason("HELD_BY_OTHER"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("currently owned by writer, last heard of 59."));
  }
  EXPECT_EQ(Holder("/f"), "writer");
}

TEST_F(LeaseCalls, ARenewalKeepsTheFile) {
  ASSERT_THAT(Create("writer", "/f"), IsOk());
  for (int i = 0; i < 5; ++i) {
    world_.RunFor(absl::Seconds(40));
    ASSERT_THAT(Send(&ClientService::RenewLease, From("writer", v1::RenewLeaseRequest())), IsOk());
    EXPECT_THAT(Append("other", "/f"), HasReason("HELD_BY_OTHER"));
  }
}

TEST_F(LeaseCalls, AfterTheSoftLimitTheFirstWhoAsksStartsTheRecoveryAndGetsTheFileInTheEnd) {
  ASSERT_THAT(Create("writer", "/f"), IsOk());
  world_.RunFor(absl::Seconds(61));
  const auto refused = Append("other", "/f", 7);
  EXPECT_THAT(refused, HasKind(ErrorKind::kBeingWritten));
  EXPECT_THAT(refused, HasReason("RECOVERING"));
  EXPECT_EQ(std::string(refused.status().message()),
            "Failed to APPEND_FILE /f for other because lease recovery is in progress. Try again later");
  EXPECT_EQ(Holder("/f"), kRecoveryHolder);
  EXPECT_THAT(Append("third", "/f"), HasReason("RECOVERING"));
  Settle("/f", 500);
  const auto opened = Append("other", "/f", 7);  // The refusal was not kept.
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->last_block().block().length_bytes(), 500u);
  EXPECT_EQ(Holder("/f"), "other");
  const auto take_over = std::find_if(access_.submitted().begin(), access_.submitted().end(),
                                      [](const v1::Mutation& mutation) { return mutation.has_recover_lease(); });
  ASSERT_NE(take_over, access_.submitted().end());
  EXPECT_EQ(take_over->recover_lease().lease_seen().holder(), "writer");
  EXPECT_GE(take_over->recover_lease().lease_seen().idle_ms(), 61'000);
}

TEST_F(LeaseCalls, AFileThatNeedsNoRecoveryIsTakenOverInTheSameCall) {
  v1::CreateRequest request;
  request.set_path("/f");
  ASSERT_THAT(Send(&ClientService::Create, From("writer", request)), IsOk());  // Without a block.
  world_.RunFor(absl::Seconds(61));
  ASSERT_THAT(Append("other", "/f"), IsOk());
  EXPECT_EQ(Holder("/f"), "other");
  world_.RunFor(absl::Seconds(61));
  EXPECT_THAT(Create("third", "/f"), HasKind(ErrorKind::kAlreadyExists));  // Closed for it, and there.
  EXPECT_EQ(Holder("/f"), "");
}

TEST_F(LeaseCalls, AStrangerMayOverwriteAtAnyTime) {
  ASSERT_THAT(Create("writer", "/f"), IsOk());
  ASSERT_THAT(Create("other", "/f", /*overwrite=*/true), IsOk());
  EXPECT_EQ(Holder("/f"), "other");
}

TEST_F(LeaseCalls, TruncateTellsWhetherItIsDone) {
  space_.WriteFile("/f", {1 << 20, 1500});
  auto cut = Truncate("/f", (1 << 20) + 1000);
  ASSERT_THAT(cut, IsOk());
  EXPECT_FALSE(cut->done());
  EXPECT_THAT(Truncate("/f", 500), HasReason("BUSY"));
  Settle("/f", 1000);
  cut = Truncate("/f", 1 << 20);
  ASSERT_THAT(cut, IsOk());
  EXPECT_TRUE(cut->done());
  EXPECT_THAT(Truncate("/f", (1 << 20) + 1), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(Truncate("/none", 0), HasKind(ErrorKind::kNotFound));
}

TEST_F(LeaseCalls, RecoverLeaseDoesNotWaitForTheSoftLimit) {
  ASSERT_THAT(Create("writer", "/f"), IsOk());
  EXPECT_FALSE(Recover("/f")->closed());
  EXPECT_FALSE(Recover("/f")->closed());
  Settle("/f", 10);
  EXPECT_TRUE(Recover("/f")->closed());
  EXPECT_THAT(Recover("/none"), HasKind(ErrorKind::kNotFound));
}

TEST_F(LeaseCalls, AClientGivesUpOneFileOrAll) {
  const auto first = Create("me", "/1");
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(Create("me", "/2"), IsOk());
  v1::CreateRequest empty;
  empty.set_path("/3");
  ASSERT_THAT(Send(&ClientService::Create, From("me", empty)), IsOk());
  ASSERT_THAT(Create("other", "/4"), IsOk());
  const uint64_t inode = first->status().inode_id();
  auto released = Release("me", inode, 9);
  ASSERT_THAT(released, IsOk());
  EXPECT_EQ(released->left(), 1u);
  EXPECT_EQ(released->closed(), 0u);
  EXPECT_EQ(Holder("/1"), kRecoveryHolder);
  EXPECT_EQ(Holder("/2"), "me");
  EXPECT_EQ(Release("other", inode)->left(), 0u);  // None of its own.

  // The same call, late, after the client opened the file anew: it must not take it away again.
  Settle("/1", 10);
  ASSERT_THAT(Append("me", "/1"), IsOk());
  EXPECT_EQ(Release("me", inode, 9)->left(), 1u);
  EXPECT_EQ(Holder("/1"), "me");

  released = Release("me", 0);
  ASSERT_THAT(released, IsOk());
  EXPECT_EQ(released->left(), 2u);
  EXPECT_EQ(released->closed(), 1u);
  EXPECT_EQ(Holder("/4"), "other");
  EXPECT_EQ(Release("me", 0)->left(), 0u);
  EXPECT_THAT(Release("", 0), HasKind(ErrorKind::kInvalidArgument));
}

}  // namespace
}  // namespace cairn::namenode
