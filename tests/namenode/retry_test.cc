// Retry slots, mutation time, and the mutations of the NameNode itself.

#include "common/fault_points.h"
#include "namenode/namespace/records.h"
#include "namenode/namespace/retry_table.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::ElementsAre;

constexpr int64_t kMinuteMs = 60'000;

TEST(Retry, ARepeatedCallActsOnceAndAnswersTheSame) {
  TestNamespace space;
  const v1::Mutation create = WithRetry(CreateMutation("/f", "me", {1, 2}), 3, 1);
  const v1::MutationResult first = space.Must(create);
  const MemoryState after = space.view();
  space.now_ms += kMinuteMs;
  v1::MutationResult again = space.Must(create);
  EXPECT_TRUE(space.view() == after);
  again.mutable_changed_blocks()->CopyFrom(first.changed_blocks());  // Only for the replica plane, so not kept.
  EXPECT_EQ(again.SerializeAsString(), first.SerializeAsString());
}

TEST(Retry, WithoutTheTableARepeatedCallWouldAct) {
  TestNamespace space;
  const v1::Mutation rename = RenameMutation("/a", "/b");
  space.Must(MkdirsMutation("/a"));
  space.Must(WithRetry(rename, 0, 1));
  EXPECT_THAT(space.Apply(rename), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(space.Apply(WithRetry(rename, 0, 1)), IsOk());
  // Somebody makes another /a: the repeated call does not touch it.
  space.Must(MkdirsMutation("/a"));
  EXPECT_THAT(space.Apply(WithRetry(rename, 0, 1)), IsOk());
  EXPECT_THAT(StatusOfPath(space.view(), "/a"), IsOk());
}

TEST(Retry, TheSwitchMakesARepeatedCallActAgain) {
  TestNamespace space;
  const v1::Mutation create = WithRetry(CreateMutation("/f", "me"), 0, 1);
  space.Must(create);
  EnableFaultPoints();
  ASSERT_THAT(ArmFault("namespace.retry_ignored", "error"), IsOk());
  EXPECT_THAT(space.Apply(create), HasKind(ErrorKind::kBeingWritten));
  DisarmAllFaults();
  EXPECT_THAT(space.Apply(create), IsOk());
}

TEST(Retry, SlotsAndClientsAreApart) {
  TestNamespace space;
  space.Must(WithRetry(MkdirsMutation("/a"), 0, 5));
  space.Must(WithRetry(MkdirsMutation("/b"), 1, 5));
  v1::Mutation other = WithRetry(MkdirsMutation("/c"), 0, 5);
  other.set_client_id("fedcba9876543210");
  space.Must(other);
  EXPECT_EQ(space.view().rows(Family::kRetry).size(), 3u);
  EXPECT_EQ(StatusOfPath(space.view(), "/")->children(), 3u);
}

TEST(Retry, OldNumbersAndOtherRequestsAreRefused) {
  TestNamespace space;
  space.Must(WithRetry(MkdirsMutation("/a"), 0, 5, 111));
  EXPECT_THAT(space.Apply(WithRetry(MkdirsMutation("/b"), 0, 5, 222)), HasReason("REQUEST_MISMATCH"));
  EXPECT_THAT(space.Apply(WithRetry(MkdirsMutation("/b"), 0, 4, 111)), HasReason("OLD_SEQUENCE"));
  EXPECT_THAT(space.Apply(WithRetry(MkdirsMutation("/b"), 0, 6, 222)), IsOk());
  EXPECT_EQ(space.view().rows(Family::kRetry).size(), 1u);
}

TEST(Retry, BadIdsAreRefused) {
  TestNamespace space;
  v1::Mutation mutation = WithRetry(MkdirsMutation("/a"), kMaxSlots, 1);
  EXPECT_THAT(space.Apply(mutation), HasKind(ErrorKind::kInvalidArgument));
  mutation.set_slot(kMaxSlots - 1);
  EXPECT_THAT(space.Apply(mutation), IsOk());
  mutation.set_client_id("short");
  EXPECT_THAT(space.Apply(mutation), HasKind(ErrorKind::kInvalidArgument));
}

TEST(Retry, ASlotWithoutARowExpiresAfterNineMinutes) {
  TestNamespace space;
  v1::Mutation mutation = WithRetry(MkdirsMutation("/a"), 0, 1);
  mutation.set_slot_opened_ms(kTestStartMs);
  space.now_ms = kTestStartMs + 9 * kMinuteMs + 1;
  EXPECT_THAT(space.Apply(mutation), HasKind(ErrorKind::kSlotExpired));
  EXPECT_THAT(space.Apply(mutation), HasReason("SLOT_EXPIRED"));
  space.now_ms = kTestStartMs + 9 * kMinuteMs;
  EXPECT_THAT(space.Apply(mutation), IsOk());
  // With a row it lives on.
  space.now_ms = kTestStartMs + 20 * kMinuteMs;
  EXPECT_THAT(space.Apply(mutation), IsOk());
  mutation = WithRetry(MkdirsMutation("/b"), 0, 2);
  mutation.set_slot_opened_ms(kTestStartMs);
  EXPECT_THAT(space.Apply(mutation), IsOk());
}

TEST(Retry, RefusalsAreNotKept) {
  TestNamespace space;
  const v1::Mutation rename = WithRetry(RenameMutation("/a", "/b"), 0, 1);
  EXPECT_THAT(space.Apply(rename), HasKind(ErrorKind::kNotFound));
  space.Must(MkdirsMutation("/a"));
  EXPECT_THAT(space.Apply(rename), IsOk());
}

TEST(Retry, SweepDropsUnusedRowsInBoundedSteps) {
  TestNamespace space;
  for (uint32_t slot = 0; slot < 10; ++slot) {
    space.now_ms = kTestStartMs + slot * kMinuteMs;
    space.Must(WithRetry(MkdirsMutation("/" + std::to_string(slot)), slot, 1));
  }
  v1::Mutation sweep;
  sweep.mutable_sweep_retries()->set_unused_since_ms(kTestStartMs + 5 * kMinuteMs);
  sweep.mutable_sweep_retries()->set_max_rows(4);
  v1::MutationResult result = space.Must(sweep);
  EXPECT_EQ(result.next(), 4u);
  EXPECT_FALSE(result.done());
  sweep.mutable_sweep_retries()->set_start_after(result.cursor());
  result = space.Must(sweep);
  EXPECT_EQ(result.next(), 1u);
  sweep.mutable_sweep_retries()->set_start_after(result.cursor());
  EXPECT_TRUE(space.Must(sweep).done());
  EXPECT_EQ(space.view().rows(Family::kRetry).size(), 5u);
}

TEST(MutationTime, NeverRunsBackwards) {
  TestNamespace space;
  space.now_ms = kTestStartMs + 100;
  space.Must(MkdirsMutation("/a"));
  space.now_ms = kTestStartMs - 1'000'000;
  space.Must(MkdirsMutation("/b"));
  EXPECT_EQ(StatusOfPath(space.view(), "/b")->modification_time_ms(), kTestStartMs + 100);
  EXPECT_EQ(ReadCounters(space.view())->last_mutation_time_ms, kTestStartMs + 100);
}

TEST(Upkeep, StorageNumbersAreKeptForEver) {
  TestNamespace space;
  v1::Mutation mutation;
  v1::Mutation::RegisterStorages& op = *mutation.mutable_register_storages();
  op.set_datanode_uuid("node-1");
  op.add_storage_uuids("s1");
  op.add_storage_uuids("s2");
  EXPECT_THAT(space.Must(mutation).storage_numbers(), ElementsAre(1, 2));
  EXPECT_THAT(space.Must(mutation).storage_numbers(), ElementsAre(1, 2));
  EXPECT_EQ(space.rows_written(), 0u);
  op.set_datanode_uuid("node-2");  // The disk s2 was moved there.
  op.set_storage_uuids(0, "s3");
  op.add_storage_uuids("s3");
  EXPECT_THAT(space.Must(mutation).storage_numbers(), ElementsAre(3, 2, 3));
  const auto row = FindRecord<v1::DatanodeRecord>(space.view(), Family::kDatanode, DatanodeKey(StorageNumber(2)));
  EXPECT_EQ((*row)->datanode_uuid(), "node-2");
  op.add_storage_uuids("");
  EXPECT_THAT(space.Apply(mutation), HasKind(ErrorKind::kInvalidArgument));
}

TEST(Upkeep, CountersAreOnlyRaised) {
  TestNamespace space;
  v1::Mutation mutation;
  mutation.mutable_set_meta()->set_at_least_block_id(kFirstBlockId.value() + 100);
  mutation.mutable_set_meta()->set_at_least_generation_stamp(5000);
  space.Must(mutation);
  EXPECT_EQ(ReadCounters(space.view())->next_block_id.value(), kFirstBlockId.value() + 112);
  EXPECT_EQ(ReadCounters(space.view())->next_generation_stamp.value(), 5000u);
  mutation.mutable_set_meta()->set_at_least_block_id(16);
  mutation.mutable_set_meta()->set_at_least_generation_stamp(16);
  space.Must(mutation);
  EXPECT_EQ(ReadCounters(space.view())->next_block_id.value(), kFirstBlockId.value() + 112);
  mutation.mutable_set_meta()->set_at_least_block_id(kEndBlockId.value());
  EXPECT_THAT(space.Apply(mutation), HasKind(ErrorKind::kInvalidArgument));
  mutation.mutable_set_meta()->clear_at_least_block_id();
  mutation.mutable_set_meta()->set_name("next_block_id");
  EXPECT_THAT(space.Apply(mutation), HasKind(ErrorKind::kInvalidArgument));
  mutation.mutable_set_meta()->set_name("epoch");
  mutation.mutable_set_meta()->set_value(EncodeU64(3));
  space.Must(mutation);
  EXPECT_EQ(ReadCounters(space.view())->epoch, Epoch(3));
}

v1::Mutation Expire(std::string_view holder, uint64_t inode_id) {
  v1::Mutation mutation;
  mutation.mutable_expire_lease()->set_holder(std::string(holder));
  mutation.mutable_expire_lease()->set_inode_id(inode_id);
  mutation.mutable_expire_lease()->set_observed_idle_ms(1'200'000);
  return mutation;
}

TEST(ExpireLease, ClosesAFileWithoutBlocksOrWithCommittedOnes) {
  TestNamespace space;
  const v1::MutationResult empty = space.Must(CreateMutation("/e", "me"));
  EXPECT_TRUE(space.Must(Expire("me", empty.inode().id())).done());
  EXPECT_FALSE(StatusOfPath(space.view(), "/e")->under_construction());

  const v1::MutationResult file = space.Must(CreateMutation("/f", "me", {1}));
  v1::Mutation add = AddBlockMutation(file, "me", {2});
  *add.mutable_add_block()->mutable_previous() = MakeCommit(file.block(), 10, {1});
  const v1::MutationResult second = space.Must(add);
  v1::Mutation abandon = MutationOf("me");
  abandon.mutable_abandon_block()->set_inode_id(file.inode().id());
  *abandon.mutable_abandon_block()->mutable_block() = second.block();
  space.Must(abandon);
  EXPECT_TRUE(space.Must(Expire("me", file.inode().id())).done());
  EXPECT_EQ(StatusOfPath(space.view(), "/f")->length_bytes(), 10u);
  EXPECT_EQ(space.view().rows(Family::kLease).size(), 0u);
}

TEST(ExpireLease, HasALastBlockThatMayHoldBytesRecoveredFirst) {
  TestNamespace space;
  const v1::MutationResult file = space.Must(CreateMutation("/f", "me", {1, 2}));
  const v1::MutationResult taken = space.Must(Expire("me", file.inode().id()));
  EXPECT_FALSE(taken.done());
  EXPECT_THAT(taken.changed_blocks(), ElementsAre(file.block().id()));
  EXPECT_TRUE(StatusOfPath(space.view(), "/f")->under_construction());
  EXPECT_EQ(GetBlock(space.view(), BlockId(file.block().id()))->state(), v1::UNDER_RECOVERY);
  EXPECT_FALSE(space.Must(Expire("me", file.inode().id())).existed());  // It is the NameNode's now.
}

TEST(ExpireLease, DropsALastBlockThatWasNeverSetUp) {
  TestNamespace space;
  const v1::MutationResult file = space.Must(CreateMutation("/f", "me", {1}));
  v1::BlockRecord row = *GetBlock(space.view(), BlockId(file.block().id()));
  row.clear_expected_storages();
  space.state().rows(Family::kBlock)[BlockKey(BlockId(file.block().id()))] = row.SerializeAsString();
  const v1::MutationResult result = space.Must(Expire("me", file.inode().id()));
  EXPECT_TRUE(result.done());
  EXPECT_EQ(result.freed_size(), 1);
  EXPECT_EQ(SummaryOfPath(space.view(), "/")->charged_bytes(), 0u);
}

TEST(ExpireLease, DropsLeasesThatLeadNowhere) {
  TestNamespace space;
  const v1::MutationResult file = space.Must(CreateMutation("/d/f", "me", {1}));
  space.Must(DeleteMutation("/d", true));
  EXPECT_EQ(space.view().rows(Family::kLease).size(), 1u);  // Below a directory: the reclaimer has not come to it.
  space.Must(Expire("me", file.inode().id()));
  EXPECT_EQ(space.view().rows(Family::kLease).size(), 0u);
  EXPECT_FALSE(space.Must(Expire("me", file.inode().id())).existed());
  EXPECT_FALSE(space.Must(Expire("nobody", 4)).existed());
}

}  // namespace
}  // namespace cairn::namenode
