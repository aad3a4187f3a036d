// Create, addBlock, abandonBlock, the pipeline's calls, fsync and complete, applied to a namespace in memory.

#include "namenode/namespace/records.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::ElementsAre;

constexpr uint64_t kBlockSize = 1 << 20;

class BlockOps : public ::testing::Test {
 protected:
  v1::BlockRecord BlockRow(uint64_t id) {
    const auto record = FindBlock(space_.view(), BlockId(id));
    return record.ok() && *record ? **record : v1::BlockRecord();
  }
  v1::INodeRecord Inode(const std::string& path) { return ResolvePath(space_.view(), path)->record; }
  v1::ContentSummary Root() { return *SummaryOfPath(space_.view(), "/"); }
  size_t Rows(Family family) { return space_.view().rows(family).size(); }

  v1::MutationResult file_;
  TestNamespace space_;

  // A file of "me" with its first block on 1, 2, 3.
  v1::Block Open(const std::string& path = "/d/f") {
    file_ = space_.Must(CreateMutation(path, "me", {1, 2, 3}));
    return file_.block();
  }
  v1::Mutation Add(std::vector<uint32_t> targets = {4, 5, 6}) { return AddBlockMutation(file_, "me", targets); }
  v1::Mutation AddAfter(const v1::Block& previous, uint64_t length) {
    v1::Mutation add = Add();
    *add.mutable_add_block()->mutable_previous() = MakeCommit(previous, length, {1, 2, 3});
    return add;
  }
  v1::Mutation Complete() { return CompleteMutation(file_, "me"); }
  v1::Mutation CompleteWith(const v1::Block& last, uint64_t length, std::vector<uint32_t> acknowledged = {1, 2, 3}) {
    v1::Mutation complete = Complete();
    *complete.mutable_complete()->mutable_last() = MakeCommit(last, length, acknowledged);
    return complete;
  }
  v1::Mutation FsyncOf(const v1::Block& last, uint64_t length) {
    v1::Mutation mutation = MutationOf("me");
    mutation.mutable_fsync()->set_inode_id(file_.inode().id());
    *mutation.mutable_fsync()->mutable_last_block() = MakeBlock(last.id(), last.generation_stamp(), length);
    return mutation;
  }
  v1::Mutation Abandon(const v1::Block& block) {
    v1::Mutation mutation = MutationOf("me");
    mutation.mutable_abandon_block()->set_inode_id(file_.inode().id());
    *mutation.mutable_abandon_block()->mutable_block() = block;
    return mutation;
  }
  v1::Mutation NewStamp(const v1::Block& block) {
    v1::Mutation mutation = MutationOf("me");
    mutation.mutable_update_block_for_pipeline()->set_inode_id(file_.inode().id());
    *mutation.mutable_update_block_for_pipeline()->mutable_block() = block;
    return mutation;
  }
  v1::Mutation NewPipeline(const v1::Block& old_block, const v1::Block& new_block, std::vector<uint32_t> storages) {
    v1::Mutation mutation = MutationOf("me");
    mutation.mutable_update_pipeline()->set_inode_id(file_.inode().id());
    *mutation.mutable_update_pipeline()->mutable_old_block() = old_block;
    *mutation.mutable_update_pipeline()->mutable_new_block() = new_block;
    for (const uint32_t storage : storages) mutation.mutable_update_pipeline()->add_storages(storage);
    return mutation;
  }
};

TEST_F(BlockOps, CreateAllocatesTheFirstBlock) {
  const v1::Block block = Open();
  EXPECT_EQ(block.id(), kFirstBlockId.value());
  EXPECT_EQ(block.generation_stamp(), kFirstGenerationStamp.value());
  const v1::BlockRecord row = BlockRow(block.id());
  EXPECT_EQ(row.state(), v1::UNDER_CONSTRUCTION);
  EXPECT_THAT(row.expected_storages(), ElementsAre(1, 2, 3));
  EXPECT_EQ(row.inode_id(), file_.inode().id());
  EXPECT_EQ(row.owners(), 1u);
  EXPECT_EQ(Root().charged_bytes(), 3 * kBlockSize);
  EXPECT_EQ(Rows(Family::kLease), 1u);
  EXPECT_EQ(file_.inode().owner(), "ada");
  EXPECT_EQ(file_.inode().group(), "staff");
  EXPECT_EQ(Inode("/d").mode(), 0755u);
  EXPECT_EQ(Inode("/d/f").mode(), 0644u);
}

TEST_F(BlockOps, CreateRefusals) {
  space_.WriteFile("/d/closed", {1});
  Open("/d/open");
  auto with = [](std::string_view path, auto change) {
    v1::Mutation mutation = CreateMutation(path, "other");
    change(*mutation.mutable_create());
    return mutation;
  };
  auto plain = [](v1::Mutation::Create&) {};
  EXPECT_THAT(space_.Apply(with("/", plain)), HasKind(ErrorKind::kAlreadyExists));
  EXPECT_THAT(space_.Apply(with("/d", plain)), HasKind(ErrorKind::kAlreadyExists));
  EXPECT_THAT(space_.Apply(with("/d/closed", plain)), HasKind(ErrorKind::kAlreadyExists));
  EXPECT_THAT(space_.Apply(with("/d/open", plain)), HasKind(ErrorKind::kBeingWritten));
  EXPECT_THAT(space_.Apply(CreateMutation("/d/open", "me")), HasKind(ErrorKind::kBeingWritten));  // As HDFS: also its own.
  EXPECT_THAT(space_.Apply(with("/d/closed/x", plain)), HasKind(ErrorKind::kNotDirectory));
  EXPECT_THAT(space_.Apply(with("/no/x", [](auto& op) { op.set_create_parent(false); })), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(space_.Apply(with("/x", [](auto& op) { op.set_replication(0); })), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(space_.Apply(with("/x", [](auto& op) { op.set_replication(513); })), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(space_.Apply(with("/x", [](auto& op) { op.set_block_size_bytes(0); })), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(space_.Apply(with("/x", [](auto& op) { op.set_block_size_bytes((1 << 30) + 1); })), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(space_.Apply(with("/x", [](auto& op) { op.set_with_first_block(true); })), HasReason("NO_TARGETS"));
  EXPECT_THAT(space_.Apply(CreateMutation("/x", "")), HasKind(ErrorKind::kInvalidArgument));
}

TEST_F(BlockOps, LimitsNameTheirKeys) {
  const auto long_name = space_.Apply(CreateMutation("/" + std::string(256, 'x'), "me"));
  EXPECT_THAT(long_name, HasKind(ErrorKind::kQuota));
  EXPECT_EQ(ErrorOf(long_name.status())->key, "dfs.namenode.fs-limits.max-component-length");
  EXPECT_EQ(ErrorOf(long_name.status())->limit, 255);
  EXPECT_THAT(space_.Apply(CreateMutation("/" + std::string(255, 'x'), "me")), IsOk());

  v1::Mutation full = CreateMutation("/d/3", "me");
  full.mutable_limits()->set_max_directory_entries(2);
  space_.WriteFile("/d/1", {});
  space_.WriteFile("/d/2", {});
  const auto third = space_.Apply(full);
  EXPECT_THAT(third, HasKind(ErrorKind::kQuota));
  EXPECT_EQ(ErrorOf(third.status())->key, "dfs.namenode.fs-limits.max-directory-items");
  full.mutable_create()->set_path("/d/2");
  full.mutable_create()->set_overwrite(true);
  EXPECT_THAT(space_.Apply(full), IsOk());  // One goes as one comes.
}

TEST_F(BlockOps, OverwriteReplacesAFileAlsoWhileItIsWritten) {
  const v1::Block old_block = Open();
  v1::Mutation over = CreateMutation("/d/f", "other");
  over.mutable_create()->set_overwrite(true);
  const v1::MutationResult again = space_.Must(over);
  EXPECT_NE(again.inode().id(), file_.inode().id());
  EXPECT_EQ(Root().files(), 1u);
  EXPECT_EQ(Root().charged_bytes(), 0u);
  EXPECT_EQ(Rows(Family::kLease), 1u);
  EXPECT_EQ(again.freed_size(), 1);
  EXPECT_EQ(Rows(Family::kBlock), 0u);
  EXPECT_EQ(Rows(Family::kWork), 0u);
  const auto fenced = space_.Apply(AddAfter(old_block, 5));
  EXPECT_THAT(fenced, HasKind(ErrorKind::kLeaseExpired));
  EXPECT_THAT(fenced, HasReason("FILE_GONE"));
}

TEST_F(BlockOps, AddBlockCommitsThePreviousOne) {
  const v1::Block first = Open();
  const v1::MutationResult second = space_.Must(AddAfter(first, 1000));
  EXPECT_EQ(second.block().id(), first.id() + kBlockIdStep);
  EXPECT_EQ(second.block().generation_stamp(), first.generation_stamp() + 1);
  EXPECT_EQ(second.offset_bytes(), 1000u);
  EXPECT_THAT(second.storages(), ElementsAre(4, 5, 6));
  const v1::BlockRecord row = BlockRow(first.id());
  EXPECT_EQ(row.state(), v1::COMMITTED);
  EXPECT_EQ(row.length_bytes(), 1000u);
  EXPECT_EQ(row.charged_bytes(), 3000u);
  EXPECT_EQ(row.committed_ms(), kTestStartMs);
  EXPECT_EQ(Root().length_bytes(), 1000u);
  EXPECT_EQ(Root().charged_bytes(), 3000 + 3 * kBlockSize);
}

TEST_F(BlockOps, AddBlockAskedAgainAnswersTheSameBlock) {
  const v1::Block first = Open();
  EXPECT_EQ(space_.Must(Add()).block().id(), first.id());
  const v1::MutationResult second = space_.Must(AddAfter(first, 1000));
  const v1::MutationResult again = space_.Must(AddAfter(first, 1000));
  EXPECT_EQ(again.block().id(), second.block().id());
  EXPECT_EQ(again.offset_bytes(), 1000u);
  EXPECT_THAT(again.storages(), ElementsAre(4, 5, 6));
  EXPECT_EQ(space_.rows_written(), 0u);
  EXPECT_EQ(Inode("/d/f").block_count(), 2u);
  // Once bytes are known of it, it is not untouched any more.
  space_.Must(FsyncOf(second.block(), 1));
  EXPECT_THAT(space_.Apply(AddAfter(first, 1000)), HasReason("WRONG_BLOCK"));
}

TEST_F(BlockOps, AddBlockRefusals) {
  const v1::Block first = Open();
  v1::Mutation few = AddAfter(first, 10);
  few.mutable_add_block()->mutable_previous()->clear_acknowledged();
  EXPECT_THAT(space_.Apply(few), HasKind(ErrorKind::kNotReplicatedYet));
  few.mutable_limits()->set_min_replication(2);
  few.mutable_add_block()->mutable_previous()->add_acknowledged(1);
  few.mutable_add_block()->mutable_previous()->add_acknowledged(1);
  EXPECT_THAT(space_.Apply(few), HasKind(ErrorKind::kNotReplicatedYet));
  few.mutable_add_block()->mutable_previous()->set_acknowledged(1, 9);
  EXPECT_THAT(space_.Apply(few), HasReason("NOT_EXPECTED_STORAGE"));
  v1::Block stale = first;
  stale.set_generation_stamp(1000);
  EXPECT_THAT(space_.Apply(AddAfter(stale, 10)), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(space_.Apply(AddAfter(first, kBlockSize + 1)), HasReason("LONGER_THAN_BLOCK"));
  EXPECT_THAT(space_.Apply(AddAfter(MakeBlock(77, 1001, 0), 10)), HasReason("WRONG_BLOCK"));
  v1::Mutation stranger = AddAfter(first, 10);
  stranger.set_client_name("stranger");
  EXPECT_THAT(space_.Apply(stranger), HasReason("OTHER_HOLDER"));
  v1::Mutation crowded = AddAfter(first, 10);
  crowded.mutable_limits()->set_max_blocks_per_file(1);
  EXPECT_EQ(ErrorOf(space_.Apply(crowded).status())->key, "dfs.namenode.fs-limits.max-blocks-per-file");
  v1::Mutation nowhere = AddAfter(first, 10);
  nowhere.mutable_add_block()->clear_targets();
  EXPECT_THAT(space_.Apply(nowhere), HasReason("NO_TARGETS"));
  space_.Must(FsyncOf(first, 5));
  EXPECT_THAT(space_.Apply(Add()), HasReason("NOT_COMMITTED"));
  EXPECT_THAT(space_.Apply(AddAfter(first, 4)), HasReason("SHORTER_THAN_SYNCED"));
}

TEST_F(BlockOps, AReservedBlockIsNoPartOfTheFileUntilACommitNamesIt) {
  const v1::Block first = Open();
  v1::Mutation reserve = Add();
  reserve.mutable_add_block()->set_reserve(true);
  const v1::Block second = space_.Must(reserve).block();
  EXPECT_EQ(BlockRow(second.id()).state(), v1::RESERVED);
  EXPECT_EQ(Inode("/d/f").block_count(), 1u);
  EXPECT_EQ(Root().charged_bytes(), 6 * kBlockSize);
  EXPECT_EQ(space_.Must(reserve).block().id(), second.id());  // One at a time.

  v1::Mutation use = AddAfter(first, kBlockSize);
  use.mutable_add_block()->set_use_reserved_id(second.id());
  const v1::MutationResult taken = space_.Must(use);
  EXPECT_EQ(taken.block().id(), second.id());
  EXPECT_EQ(taken.offset_bytes(), kBlockSize);
  EXPECT_EQ(BlockRow(second.id()).state(), v1::UNDER_CONSTRUCTION);
  EXPECT_EQ(BlockRow(second.id()).index(), 1u);
  EXPECT_EQ(BlockRow(first.id()).state(), v1::COMMITTED);
  EXPECT_EQ(Inode("/d/f").block_count(), 2u);
  EXPECT_EQ(Inode("/d/f").reserved_block_id(), 0u);
  EXPECT_EQ(space_.Must(use).block().id(), second.id());  // Asked again.
  v1::Mutation without_previous = use;
  without_previous.mutable_add_block()->clear_previous();
  EXPECT_EQ(space_.Must(without_previous).block().id(), second.id());
  v1::Mutation after_another = use;
  after_another.mutable_add_block()->mutable_previous()->mutable_block()->set_length_bytes(5);
  EXPECT_THAT(space_.Apply(after_another), HasReason("WRONG_BLOCK"));
  EXPECT_EQ(Inode("/d/f").block_count(), 2u);
  space_.Must(CompleteWith(second, 3, {4, 6}));
  EXPECT_EQ(Inode("/d/f").length_bytes(), kBlockSize + 3);
  EXPECT_THAT(BlockRow(second.id()).expected_storages(), ElementsAre(4, 6));
  EXPECT_EQ(Root().charged_bytes(), 3 * (kBlockSize + 3));
}

TEST_F(BlockOps, FsyncAndCompleteTakeAReservedBlock) {
  const v1::Block first = Open();
  v1::Mutation reserve = Add();
  reserve.mutable_add_block()->set_reserve(true);
  const v1::Block second = space_.Must(reserve).block();
  EXPECT_THAT(space_.Apply(FsyncOf(second, 7)), HasReason("RESERVED"));
  v1::Mutation fsync = FsyncOf(second, 7);
  *fsync.mutable_fsync()->mutable_previous() = MakeCommit(first, kBlockSize, {3, 1});
  fsync.mutable_fsync()->set_use_reserved_id(second.id());
  space_.Must(fsync);
  EXPECT_THAT(BlockRow(first.id()).expected_storages(), ElementsAre(1, 3));
  EXPECT_EQ(Inode("/d/f").length_bytes(), kBlockSize + 7);

  const v1::Block third = space_.Must(reserve).block();
  v1::Mutation complete = CompleteWith(third, 9, {5});
  *complete.mutable_complete()->mutable_previous() = MakeCommit(second, kBlockSize, {4, 5});
  complete.mutable_complete()->set_use_reserved_id(third.id());
  space_.Must(complete);
  EXPECT_EQ(Inode("/d/f").length_bytes(), 2 * kBlockSize + 9);
  EXPECT_EQ(Inode("/d/f").lease_holder(), "");
  EXPECT_EQ(Root().length_bytes(), 2 * kBlockSize + 9);
}

TEST_F(BlockOps, CombinedCallsRefuseAsAWhole) {
  const v1::Block first = Open();
  v1::Mutation reserve = Add();
  reserve.mutable_add_block()->set_reserve(true);
  const v1::Block second = space_.Must(reserve).block();
  v1::Mutation complete = CompleteWith(second, 9, {9});  // Not an expected storage.
  *complete.mutable_complete()->mutable_previous() = MakeCommit(first, 100, {1});
  complete.mutable_complete()->set_use_reserved_id(second.id());
  EXPECT_THAT(space_.Apply(complete), HasReason("NOT_EXPECTED_STORAGE"));
  EXPECT_EQ(BlockRow(first.id()).state(), v1::UNDER_CONSTRUCTION);
  complete.mutable_complete()->set_use_reserved_id(second.id() + 16);
  EXPECT_THAT(space_.Apply(complete), HasReason("NOT_RESERVED"));
}

TEST_F(BlockOps, CompleteReturnsWhatWasReserved) {
  const v1::Block first = Open();
  v1::Mutation reserve = Add();
  reserve.mutable_add_block()->set_reserve(true);
  const v1::Block second = space_.Must(reserve).block();
  const v1::MutationResult done = space_.Must(CompleteWith(first, 10));
  ASSERT_EQ(done.freed_size(), 1);
  EXPECT_EQ(done.freed(0).block().id(), second.id());
  EXPECT_THAT(done.freed(0).expected_storages(), ElementsAre(4, 5, 6));
  EXPECT_EQ(Rows(Family::kBlock), 1u);
  EXPECT_EQ(Root().charged_bytes(), 30u);
}

TEST_F(BlockOps, CompleteClosesTheFile) {
  const v1::Block block = Open();
  space_.now_ms += 5;
  const v1::MutationResult done = space_.Must(CompleteWith(block, 511));
  EXPECT_EQ(done.inode().length_bytes(), 511u);
  EXPECT_EQ(done.inode().modification_time_ms(), kTestStartMs + 5);
  EXPECT_THAT(done.changed_blocks(), ElementsAre(block.id()));
  EXPECT_EQ(Rows(Family::kLease), 0u);
  EXPECT_EQ(Root().charged_bytes(), 3 * 511u);
}

TEST_F(BlockOps, CompleteOfAClosedFileIsOkOnlyIfItEndsSo) {
  const v1::Block block = Open();
  space_.Must(CompleteWith(block, 511));
  EXPECT_EQ(space_.Must(CompleteWith(block, 511)).inode().length_bytes(), 511u);
  EXPECT_EQ(space_.rows_written(), 0u);
  EXPECT_THAT(space_.Apply(CompleteWith(block, 512)), HasReason("FILE_CLOSED"));
  EXPECT_THAT(space_.Apply(Complete()), HasKind(ErrorKind::kLeaseExpired));
}

TEST_F(BlockOps, CompleteOfAnEmptyFile) {
  file_ = space_.Must(CreateMutation("/e", "me"));
  space_.Must(Complete());
  space_.Must(Complete());
  EXPECT_EQ(Inode("/e").lease_holder(), "");
}

TEST_F(BlockOps, CompleteRefusals) {
  const v1::Block block = Open();
  EXPECT_THAT(space_.Apply(Complete()), HasReason("NOT_COMMITTED"));
  EXPECT_THAT(space_.Apply(CompleteWith(block, 5, {})), HasKind(ErrorKind::kNotReplicatedYet));
  v1::Mutation stranger = CompleteWith(block, 5);
  stranger.set_client_name("stranger");
  EXPECT_THAT(space_.Apply(stranger), HasKind(ErrorKind::kLeaseExpired));
  space_.Must(DeleteMutation("/d", true));
  EXPECT_THAT(space_.Apply(CompleteWith(block, 5)), HasReason("FILE_GONE"));
}

TEST_F(BlockOps, AbandonReturnsTheBlockAndItsCharge) {
  const v1::Block first = Open();
  const v1::MutationResult gone = space_.Must(Abandon(first));
  ASSERT_EQ(gone.freed_size(), 1);
  EXPECT_EQ(gone.freed(0).block().id(), first.id());
  EXPECT_EQ(Root().charged_bytes(), 0u);
  EXPECT_EQ(Inode("/d/f").block_count(), 0u);
  EXPECT_FALSE(space_.Must(Abandon(first)).existed());  // Again: nothing to do.
  const v1::Block second = space_.Must(Add()).block();
  EXPECT_NE(second.id(), first.id());  // Ids are never reused.
  space_.Must(CompleteWith(second, 5, {4}));
}

TEST_F(BlockOps, AbandonRefusesBlocksThatAreNotTheWriters) {
  const v1::Block first = Open();
  const v1::Block second = space_.Must(AddAfter(first, 10)).block();
  EXPECT_THAT(space_.Apply(Abandon(first)), HasKind(ErrorKind::kLeaseExpired));
  const v1::MutationResult mine = file_;
  const v1::Block other = Open("/other");
  file_ = mine;
  EXPECT_THAT(space_.Apply(Abandon(other)), HasKind(ErrorKind::kLeaseExpired));
  space_.Must(Abandon(second));
  // The next one may follow the same block again.
  EXPECT_NE(space_.Must(AddAfter(first, 10)).block().id(), second.id());
}

TEST_F(BlockOps, ANewStampChangesTheBlockOnlyWithItsPipeline) {
  const v1::Block block = Open();
  const v1::Block next = space_.Must(NewStamp(block)).block();
  EXPECT_EQ(next.generation_stamp(), block.generation_stamp() + 1);
  EXPECT_EQ(BlockRow(block.id()).generation_stamp(), block.generation_stamp());
  // A client may throw the new stamp away and go on with the old one.
  EXPECT_THAT(space_.Apply(FsyncOf(block, 3)), IsOk());

  const v1::Block renewed = MakeBlock(block.id(), next.generation_stamp(), 100);
  space_.Must(NewPipeline(block, renewed, {2, 3}));
  EXPECT_EQ(BlockRow(block.id()).generation_stamp(), next.generation_stamp());
  EXPECT_EQ(BlockRow(block.id()).length_bytes(), 100u);
  EXPECT_THAT(BlockRow(block.id()).expected_storages(), ElementsAre(2, 3));
  EXPECT_EQ(Root().length_bytes(), 100u);
  space_.Must(NewPipeline(block, renewed, {2, 3}));  // Said again.
  EXPECT_THAT(space_.Apply(CompleteWith(block, 200, {2})), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(space_.Apply(CompleteWith(renewed, 200, {1})), HasReason("NOT_EXPECTED_STORAGE"));
  EXPECT_THAT(space_.Apply(CompleteWith(renewed, 99, {2})), HasReason("SHORTER_THAN_SYNCED"));
  space_.Must(CompleteWith(renewed, 200, {2, 3}));
}

TEST_F(BlockOps, UpdatePipelineRefusals) {
  const v1::Block block = Open();
  const uint64_t stamp = space_.Must(NewStamp(block)).block().generation_stamp();
  space_.Must(FsyncOf(block, 50));
  EXPECT_THAT(space_.Apply(NewPipeline(block, MakeBlock(block.id(), stamp, 49), {1})), HasReason("SHORTER_THAN_SYNCED"));
  EXPECT_THAT(space_.Apply(NewPipeline(block, MakeBlock(block.id(), stamp + 1, 50), {1})), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(space_.Apply(NewPipeline(block, MakeBlock(block.id(), stamp - 1, 50), {1})), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(space_.Apply(NewPipeline(block, MakeBlock(block.id(), stamp, 50), {})), HasReason("BAD_PIPELINE"));
  EXPECT_THAT(space_.Apply(NewPipeline(block, MakeBlock(block.id(), stamp, 50), {1, 1})), HasReason("BAD_PIPELINE"));
  EXPECT_THAT(space_.Apply(NewPipeline(block, MakeBlock(block.id() + 16, stamp, 50), {1})), HasReason("WRONG_BLOCK"));
  space_.Must(CompleteWith(block, 50));
  EXPECT_THAT(space_.Apply(NewPipeline(block, MakeBlock(block.id(), stamp, 50), {1})), HasReason("FILE_CLOSED"));
  EXPECT_THAT(space_.Apply(NewStamp(block)), HasReason("FILE_CLOSED"));
}

TEST_F(BlockOps, FsyncOnlyRaisesTheLength) {
  const v1::Block block = Open();
  space_.Must(FsyncOf(block, 50));
  space_.Must(FsyncOf(block, 20));
  EXPECT_EQ(Inode("/d/f").length_bytes(), 50u);
  EXPECT_EQ(Root().length_bytes(), 50u);
  EXPECT_EQ(Root().charged_bytes(), 3 * kBlockSize);
  EXPECT_THAT(space_.Apply(FsyncOf(block, kBlockSize + 1)), HasReason("LONGER_THAN_BLOCK"));
}

TEST_F(BlockOps, WhatIsSyncedIsKeptApartFromWhatIsOnlyAcknowledgedAndOnlyRises) {
  const v1::Block block = Open();
  v1::Mutation synced = FsyncOf(block, 30);
  synced.mutable_fsync()->set_synced(true);
  const auto row = [&] { return *GetBlock(space_.view(), BlockId(block.id())); };
  space_.Must(FsyncOf(block, 30));
  EXPECT_EQ(row().synced_length_bytes(), 0u);
  space_.Must(synced);  // The same length, and now it is on disk.
  EXPECT_EQ(row().synced_length_bytes(), 30u);
  space_.Must(synced);
  EXPECT_EQ(space_.rows_written(), 0u);
  space_.Must(FsyncOf(block, 50));
  EXPECT_EQ(row().length_bytes(), 50u);
  EXPECT_EQ(row().synced_length_bytes(), 30u);
  synced.mutable_fsync()->mutable_last_block()->set_length_bytes(20);  // An older word.
  space_.Must(synced);
  EXPECT_EQ(row().synced_length_bytes(), 30u);
  const v1::Block renewed = MakeBlock(block.id(), space_.Must(NewStamp(block)).block().generation_stamp(), 50);
  space_.Must(NewPipeline(block, renewed, {2, 3}));
  EXPECT_EQ(row().synced_length_bytes(), 30u);
  space_.Must(CompleteWith(renewed, 60, {2, 3}));  // Committed, it ends there whatever happens.
  EXPECT_EQ(row().synced_length_bytes(), 0u);
}

TEST_F(BlockOps, LongFilesMoveTheirIdsOutOfTheRecordAndBack) {
  v1::Block block = Open();
  for (int i = 1; i < 4; ++i) {
    v1::Mutation add = AddAfter(block, 10);
    if (i > 1)
      add.mutable_add_block()->mutable_previous()->set_acknowledged(0, 4),
          add.mutable_add_block()->mutable_previous()->set_acknowledged(1, 5),
          add.mutable_add_block()->mutable_previous()->set_acknowledged(2, 6);
    block = space_.Must(add).block();
  }
  EXPECT_EQ(Inode("/d/f").blocks_size(), 4);
  EXPECT_EQ(Rows(Family::kFileBlock), 0u);
  v1::Mutation add = Add();
  *add.mutable_add_block()->mutable_previous() = MakeCommit(block, 10, {4});
  const v1::Block fifth = space_.Must(add).block();
  EXPECT_EQ(Inode("/d/f").blocks_size(), 0);
  EXPECT_EQ(Inode("/d/f").block_count(), 5u);
  EXPECT_EQ(Rows(Family::kFileBlock), 5u);
  *add.mutable_add_block()->mutable_previous() = MakeCommit(fifth, 10, {4});
  const v1::Block sixth = space_.Must(add).block();
  EXPECT_EQ(Rows(Family::kFileBlock), 6u);
  EXPECT_EQ(*BlockIdAt(space_.view(), Inode("/d/f"), 5), BlockId(sixth.id()));
  space_.Must(Abandon(sixth));
  EXPECT_EQ(Rows(Family::kFileBlock), 5u);
  space_.Must(CompleteWith(fifth, 10, {4}));
  EXPECT_EQ(Inode("/d/f").length_bytes(), 50u);
}

TEST_F(BlockOps, AFileIsWrittenByItsIdAlsoAfterARename) {
  const v1::Block block = Open();
  space_.Must(RenameMutation("/d/f", "/g"));
  EXPECT_EQ(space_.Must(CompleteWith(block, 5)).path(), "/g");
  EXPECT_EQ(Rows(Family::kLease), 0u);
  EXPECT_EQ(SummaryOfPath(space_.view(), "/d")->charged_bytes(), 0u);
}

}  // namespace
}  // namespace cairn::namenode
