// Leases, append, truncate and block recovery, applied to a namespace in memory.

#include "common/error.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/lease_rules.h"
#include "namenode/namespace/records.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kBlockSize = 1 << 20;
constexpr int64_t kSoftLimitMs = 60'000;

class LeaseOps : public ::testing::Test {
 protected:
  v1::BlockRecord BlockRow(uint64_t id) {
    const auto record = FindBlock(space_.view(), BlockId(id));
    return record.ok() && *record ? **record : v1::BlockRecord();
  }
  v1::INodeRecord Inode(const std::string& path) { return ResolvePath(space_.view(), path)->record; }
  v1::ContentSummary Root() { return *SummaryOfPath(space_.view(), "/"); }
  size_t Rows(Family family) { return space_.view().rows(family).size(); }
  std::vector<std::string> Holders() {
    std::vector<std::string> holders;
    for (const auto& [key, value] : space_.view().rows(Family::kLease)) holders.emplace_back(ParseLeaseKey(key)->holder);
    return holders;
  }
  std::string Words(const absl::StatusOr<v1::MutationResult>& refused) { return std::string(refused.status().message()); }

  static v1::Mutation WithLimits(v1::Mutation mutation) {
    mutation.mutable_limits()->set_lease_soft_limit_ms(kSoftLimitMs);
    return mutation;
  }
  static void See(v1::Mutation::LeaseSeen* seen, const std::string& holder, int64_t idle_ms) {
    seen->set_holder(holder);
    seen->set_idle_ms(idle_ms);
  }
  static v1::Mutation Append(const std::string& path, std::string_view client, const v1::Block& block = {},
                             const std::vector<uint32_t>& holding = {1, 2, 3}) {
    return WithLimits(AppendMutation(path, client, block, holding));
  }
  static v1::Mutation Truncate(const std::string& path, uint64_t length, const v1::Block& block = {},
                               const std::vector<uint32_t>& holding = {1, 2, 3}) {
    return WithLimits(TruncateMutation(path, length, block, holding));
  }
  static v1::Mutation Recover(const std::string& path, bool by_force = true) { return WithLimits(RecoverLeaseMutation(path, by_force)); }
  static v1::Mutation Expire(std::string_view holder, uint64_t inode_id) {
    v1::Mutation mutation;
    mutation.mutable_expire_lease()->set_holder(std::string(holder));
    mutation.mutable_expire_lease()->set_inode_id(inode_id);
    return mutation;
  }
  static v1::Mutation NextRound(uint64_t block) {
    v1::Mutation mutation;
    mutation.mutable_start_block_recovery()->set_block_id(block);
    return mutation;
  }
  // What a primary says under the block's present recovery id.
  v1::Mutation Recovered(uint64_t block, uint64_t length, const std::vector<uint32_t>& storages = {1, 2, 3}) {
    return RecoveredMutation(block, BlockRow(block).recovery_id(), length, storages);
  }
  v1::Mutation Dropped(uint64_t block, std::vector<uint32_t> empty) {
    v1::Mutation mutation = Recovered(block, 0, {});
    mutation.mutable_commit_block_recovery()->set_drop(true);
    for (const uint32_t storage : empty) {
      mutation.mutable_commit_block_recovery()->add_answered(storage);
      mutation.mutable_commit_block_recovery()->add_empty(storage);
    }
    return mutation;
  }
  v1::Mutation Fsync(const v1::MutationResult& file, uint64_t length, std::string_view client = "writer") {
    v1::Mutation mutation = MutationOf(client);
    mutation.mutable_fsync()->set_inode_id(file.inode().id());
    *mutation.mutable_fsync()->mutable_last_block() = MakeBlock(file.block().id(), file.block().generation_stamp(), length);
    return mutation;
  }
  v1::Mutation Complete(const v1::MutationResult& file, uint64_t length, std::string_view client = "writer") {
    v1::Mutation mutation = CompleteMutation(file, client);
    *mutation.mutable_complete()->mutable_last() = MakeCommit(file.block(), length, {1, 2, 3});
    return mutation;
  }
  // A file of "writer" with one block on 1, 2, 3 of which `synced` bytes are acknowledged.
  v1::MutationResult Open(const std::string& path, uint64_t synced = 0) {
    const v1::MutationResult file = space_.Must(CreateMutation(path, "writer", {1, 2, 3}));
    if (synced > 0) space_.Must(Fsync(file, synced));
    return file;
  }
  v1::Block LastBlock(const std::string& path) {
    const v1::INodeRecord file = Inode(path);
    const BlockId id = *BlockIdAt(space_.view(), file, file.block_count() - 1);
    return MakeBlock(id.value(), BlockRow(id.value()).generation_stamp(), BlockRow(id.value()).length_bytes());
  }

  TestNamespace space_;
};

// --- who holds the lease

TEST_F(LeaseOps, AFileThatIsWrittenRefusesOthersAndSaysWhoHasItAndForHowLongHeWasSilent) {
  Open("/f");
  v1::Mutation append = Append("/f", "other");
  See(append.mutable_append()->mutable_lease_seen(), "writer", 12'300);
  auto refused = space_.Apply(append);
  EXPECT_THAT(refused, HasKind(ErrorKind::kBeingWritten));
  EXPECT_THAT(refused, HasReason("HELD_BY_OTHER"));
  EXPECT_EQ(Words(refused),
            "Failed to APPEND_FILE /f for other because this file lease is currently owned by writer, last heard of 12.3 s ago; it may be "
            "taken over after 60 s (cairn.namenode.lease-soft-limit)");
  EXPECT_EQ(HadoopClassOf(KindOf(refused.status())), "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException");

  v1::Mutation truncate = Truncate("/f", 0);
  See(truncate.mutable_truncate()->mutable_lease_seen(), "writer", 1000);
  refused = space_.Apply(truncate);
  EXPECT_THAT(refused, HasReason("HELD_BY_OTHER"));
  EXPECT_THAT(Words(refused), HasSubstr("Failed to TRUNCATE_FILE /f for cutter because this file lease is currently owned by writer"));

  v1::Mutation create = WithLimits(CreateMutation("/f", "other"));
  See(create.mutable_create()->mutable_lease_seen(), "writer", 1000);
  refused = space_.Apply(create);
  EXPECT_THAT(refused, HasReason("HELD_BY_OTHER"));
  EXPECT_THAT(Words(refused), HasSubstr("Failed to CREATE_FILE /f for other because this file lease is currently owned by writer"));

  v1::Mutation recover = Recover("/f", /*by_force=*/false);
  See(recover.mutable_recover_lease()->mutable_lease_seen(), "writer", kSoftLimitMs - 1);
  refused = space_.Apply(recover);
  EXPECT_THAT(refused, HasReason("HELD_BY_OTHER"));
  EXPECT_THAT(Words(refused), HasSubstr("Failed to RECOVER_LEASE /f for taker"));
}

TEST_F(LeaseOps, TheHolderItselfIsToldThatItHasTheFileOpen) {
  Open("/f");
  for (const v1::Mutation& mutation : {Append("/f", "writer"), WithLimits(CreateMutation("/f", "writer"))}) {
    const auto refused = space_.Apply(mutation);
    EXPECT_THAT(refused, HasKind(ErrorKind::kBeingWritten));
    EXPECT_THAT(refused, HasReason("ALREADY_OPEN_BY_YOU"));
    EXPECT_THAT(Words(refused), HasSubstr("for writer because writer is already the current lease holder"));
  }
}

TEST_F(LeaseOps, AfterTheSoftLimitTheFileMayBeTakenOver) {
  const v1::MutationResult file = Open("/f", 100);
  v1::Mutation append = Append("/f", "other");
  See(append.mutable_append()->mutable_lease_seen(), "writer", kSoftLimitMs);
  EXPECT_THAT(space_.Apply(append), HasReason("MAY_BE_TAKEN_OVER"));
  v1::Mutation recover = Recover("/f", /*by_force=*/false);
  See(recover.mutable_recover_lease()->mutable_lease_seen(), "writer", kSoftLimitMs);
  EXPECT_FALSE(space_.Must(recover).done());
  EXPECT_EQ(BlockRow(file.block().id()).state(), v1::UNDER_RECOVERY);
  EXPECT_THAT(Holders(), ElementsAre(kRecoveryHolder));
  // Asked again meanwhile.
  const auto refused = space_.Apply(append);
  EXPECT_THAT(refused, HasReason("RECOVERING"));
  EXPECT_EQ(Words(refused), "Failed to APPEND_FILE /f for other because lease recovery is in progress. Try again later");
  EXPECT_FALSE(space_.Must(recover).done());
  EXPECT_EQ(space_.rows_written(), 0u);
}

TEST_F(LeaseOps, AnAgeThatWasSeenOfAnEarlierHolderCountsForNothing) {
  Open("/f");
  v1::Mutation recover = Recover("/f", /*by_force=*/false);
  See(recover.mutable_recover_lease()->mutable_lease_seen(), "somebody before", 3'600'000);
  EXPECT_THAT(space_.Apply(recover), HasReason("HELD_BY_OTHER"));
  EXPECT_EQ(Inode("/f").lease_holder(), "writer");
}

TEST_F(LeaseOps, AWriterWhoseFileWasTakenCanChangeNothing) {
  const v1::MutationResult file = Open("/f", 100);
  space_.Must(Recover("/f"));
  EXPECT_THAT(space_.Apply(Fsync(file, 200)), HasReason("OTHER_HOLDER"));
  EXPECT_THAT(space_.Apply(Complete(file, 200)), HasReason("OTHER_HOLDER"));
  EXPECT_THAT(space_.Apply(AddBlockMutation(file, "writer", {4})), HasKind(ErrorKind::kLeaseExpired));
  v1::Mutation abandon = MutationOf("writer");
  abandon.mutable_abandon_block()->set_inode_id(file.inode().id());
  *abandon.mutable_abandon_block()->mutable_block() = file.block();
  EXPECT_THAT(space_.Apply(abandon), HasKind(ErrorKind::kLeaseExpired));
  // Nor can anybody take the NameNode's name.
  EXPECT_THAT(space_.Apply(CreateMutation("/g", kRecoveryHolder)), HasKind(ErrorKind::kInvalidArgument));
  space_.WriteFile("/closed", {});
  EXPECT_THAT(space_.Apply(Append("/closed", kRecoveryHolder)), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(space_.Apply(Append("/closed", "")), HasKind(ErrorKind::kInvalidArgument));
}

TEST_F(LeaseOps, RecoverLeaseClosesAtOnceWhatNeedsNoRecovery) {
  space_.WriteFile("/closed", {5});
  v1::MutationResult done = space_.Must(Recover("/closed"));
  EXPECT_TRUE(done.done());
  EXPECT_FALSE(done.existed());
  EXPECT_EQ(space_.rows_written(), 0u);
  space_.Must(CreateMutation("/empty", "writer"));
  done = space_.Must(Recover("/empty"));
  EXPECT_TRUE(done.done());
  EXPECT_TRUE(done.existed());
  EXPECT_EQ(Inode("/empty").lease_holder(), "");
  EXPECT_THAT(Holders(), IsEmpty());
}

TEST_F(LeaseOps, RecoverLeaseRefusesWhatIsNoFile) {
  space_.Must(MkdirsMutation("/d"));
  EXPECT_THAT(space_.Apply(Recover("/none")), HasKind(ErrorKind::kNotFound));
  const auto directory = space_.Apply(Recover("/d"));
  EXPECT_THAT(directory, HasKind(ErrorKind::kIsDirectory));
  EXPECT_EQ(Words(directory), "Path is not a file: /d");
}

TEST_F(LeaseOps, TakingAFileReturnsWhatWasReserved) {
  const v1::MutationResult file = Open("/f", 100);
  v1::Mutation reserve = AddBlockMutation(file, "writer", {4, 5, 6});
  reserve.mutable_add_block()->set_reserve(true);
  const uint64_t reserved = space_.Must(reserve).block().id();
  const v1::MutationResult taken = space_.Must(Expire("writer", file.inode().id()));
  ASSERT_EQ(taken.freed_size(), 1);
  EXPECT_EQ(taken.freed(0).block().id(), reserved);
  EXPECT_EQ(Root().charged_bytes(), 3 * kBlockSize);
}

TEST_F(LeaseOps, ADeletedFileTakesItsRecoveryWithIt) {
  const v1::MutationResult file = Open("/f", 100);
  space_.Must(Recover("/f"));
  const v1::Mutation late = Recovered(file.block().id(), 100);
  space_.Must(DeleteMutation("/f", false));
  EXPECT_THAT(Holders(), IsEmpty());
  EXPECT_THAT(space_.Apply(late), HasReason("BLOCK_GONE"));
}

// --- append

TEST_F(LeaseOps, AppendGoesOnInAPartialBlockUnderANewStamp) {
  space_.WriteFile("/f", {kBlockSize, 1000});
  const v1::Block last = LastBlock("/f");
  const v1::MutationResult opened = space_.Must(Append("/f", "writer", last, {3, 1}));
  EXPECT_EQ(opened.block().id(), last.id());
  EXPECT_GT(opened.block().generation_stamp(), last.generation_stamp());
  EXPECT_EQ(opened.block().length_bytes(), 1000u);
  EXPECT_EQ(opened.old_generation_stamp(), last.generation_stamp());
  EXPECT_EQ(opened.offset_bytes(), kBlockSize);
  EXPECT_THAT(opened.storages(), ElementsAre(3, 1));
  const v1::BlockRecord row = BlockRow(last.id());
  EXPECT_EQ(row.state(), v1::UNDER_CONSTRUCTION);
  EXPECT_EQ(row.closed_length_bytes(), 1000u);
  EXPECT_EQ(row.append_from_stamp(), last.generation_stamp());
  EXPECT_EQ(Root().charged_bytes(), 6 * kBlockSize);  // The rest of the block is charged again.
  EXPECT_EQ(Root().length_bytes(), kBlockSize + 1000);
  EXPECT_EQ(Inode("/f").lease_holder(), "writer");
  EXPECT_THAT(Holders(), ElementsAre("writer"));

  space_.Must(Fsync(opened, 1500));
  EXPECT_EQ(BlockRow(last.id()).append_from_stamp(), 0u);
  EXPECT_EQ(Inode("/f").length_bytes(), kBlockSize + 1500);
  EXPECT_THAT(space_.Apply(Complete(opened, 1400)), HasReason("SHORTER_THAN_SYNCED"));
  v1::Mutation complete = CompleteMutation(opened, "writer");
  *complete.mutable_complete()->mutable_last() = MakeCommit(opened.block(), 2000, {1});
  space_.Must(complete);
  EXPECT_EQ(Root().length_bytes(), kBlockSize + 2000);
  EXPECT_EQ(Root().charged_bytes(), 3 * (kBlockSize + 2000));
  EXPECT_EQ(BlockRow(last.id()).closed_length_bytes(), 0u);
  EXPECT_THAT(Holders(), IsEmpty());
}

TEST_F(LeaseOps, AppendBeginsABlockWhereTheLastIsFullOrWhereAskedTo) {
  space_.WriteFile("/full", {kBlockSize});
  v1::MutationResult opened = space_.Must(Append("/full", "writer", {}, {}));
  EXPECT_FALSE(opened.has_block());
  EXPECT_EQ(Inode("/full").lease_holder(), "writer");
  EXPECT_EQ(Root().charged_bytes(), 3 * kBlockSize);
  EXPECT_TRUE(space_.Must(AddBlockMutation(opened, "writer", {1, 2})).has_block());

  space_.WriteFile("/short", {1000});
  v1::Mutation append = Append("/short", "writer", {}, {});
  append.mutable_append()->set_new_block(true);
  opened = space_.Must(append);
  EXPECT_FALSE(opened.has_block());
  EXPECT_EQ(LastBlock("/short").length_bytes(), 1000u);
  const v1::MutationResult second = space_.Must(AddBlockMutation(opened, "writer", {1, 2, 3}));
  EXPECT_EQ(second.offset_bytes(), 1000u);
  v1::Mutation complete = CompleteMutation(opened, "writer");
  *complete.mutable_complete()->mutable_last() = MakeCommit(second.block(), 1000, {1, 2, 3});
  space_.Must(complete);
  EXPECT_EQ(Inode("/short").length_bytes(), 2000u);

  space_.WriteFile("/empty", {});
  opened = space_.Must(Append("/empty", "writer", {}, {}));
  EXPECT_FALSE(opened.has_block());
  space_.Must(CompleteMutation(opened, "writer"));  // Nothing was added.
  EXPECT_EQ(Inode("/empty").length_bytes(), 0u);
}

TEST_F(LeaseOps, AppendRefusals) {
  space_.WriteFile("/f", {1000});
  const v1::Block last = LastBlock("/f");
  auto refused = space_.Apply(Append("/none", "writer"));
  EXPECT_THAT(refused, HasKind(ErrorKind::kNotFound));
  EXPECT_EQ(Words(refused), "Failed to append to non-existent file /none for client writer");
  space_.Must(MkdirsMutation("/d"));
  refused = space_.Apply(Append("/d", "writer"));
  EXPECT_THAT(refused, HasKind(ErrorKind::kAlreadyExists));
  EXPECT_EQ(Words(refused), "Cannot append to directory /d; already exists as a directory");
  refused = space_.Apply(Append("/f", "writer", last, {}));
  EXPECT_THAT(refused, HasKind(ErrorKind::kNotReplicatedYet));
  EXPECT_THAT(Words(refused), HasSubstr("is not sufficiently replicated yet"));
  refused = space_.Apply(Append("/f", "writer", MakeBlock(last.id(), last.generation_stamp() - 1, 0)));
  EXPECT_THAT(refused, HasReason("CHANGED_MEANWHILE"));
  EXPECT_TRUE(IsRetriable(refused.status()));
  EXPECT_THAT(space_.Apply(Append("/f/x", "writer")), HasKind(ErrorKind::kNotDirectory));
  EXPECT_EQ(Inode("/f").lease_holder(), "");
}

TEST_F(LeaseOps, AppendAsksTheSpaceQuotaForTheRestOfTheBlock) {
  space_.WriteFile("/d/f", {1000});
  v1::Mutation quota = MutationOf("");
  quota.set_superuser(true);
  quota.mutable_set_quota()->set_path("/d");
  quota.mutable_set_quota()->set_space_quota_bytes(3 * static_cast<int64_t>(kBlockSize) - 1);
  space_.Must(quota);
  EXPECT_THAT(space_.Apply(Append("/d/f", "writer", LastBlock("/d/f"))), HasKind(ErrorKind::kQuota));
  EXPECT_EQ(Inode("/d/f").lease_holder(), "");
  quota.mutable_set_quota()->set_space_quota_bytes(3 * static_cast<int64_t>(kBlockSize));
  space_.Must(quota);
  space_.Must(Append("/d/f", "writer", LastBlock("/d/f")));
}

TEST_F(LeaseOps, ARepeatedAppendGetsItsFirstAnswer) {
  space_.WriteFile("/f", {1000});
  const v1::Mutation append = WithRetry(Append("/f", "writer", LastBlock("/f")), 0, 1);
  const v1::MutationResult first = space_.Must(append);
  const v1::MutationResult again = space_.Must(append);
  EXPECT_EQ(again.block().generation_stamp(), first.block().generation_stamp());
  EXPECT_EQ(again.old_generation_stamp(), first.old_generation_stamp());
  EXPECT_EQ(space_.rows_written(), 0u);
}

TEST_F(LeaseOps, AnAppendedBlockCannotBeAbandoned) {
  space_.WriteFile("/f", {1000});
  const v1::MutationResult opened = space_.Must(Append("/f", "writer", LastBlock("/f")));
  v1::Mutation abandon = MutationOf("writer");
  abandon.mutable_abandon_block()->set_inode_id(opened.inode().id());
  *abandon.mutable_abandon_block()->mutable_block() = opened.block();
  EXPECT_THAT(space_.Apply(abandon), HasReason("APPENDED"));
  EXPECT_EQ(Inode("/f").length_bytes(), 1000u);
}

TEST_F(LeaseOps, AbandonOfAFileThatIsGoneIsNoError) {
  const v1::MutationResult file = Open("/f");
  space_.Must(DeleteMutation("/f", false));
  v1::Mutation abandon = MutationOf("writer");
  abandon.mutable_abandon_block()->set_inode_id(file.inode().id());
  *abandon.mutable_abandon_block()->mutable_block() = file.block();
  space_.Must(abandon);
  EXPECT_EQ(space_.rows_written(), 0u);
  EXPECT_THAT(space_.Apply(AddBlockMutation(file, "writer", {1})), HasReason("FILE_GONE"));
}

// --- truncate

TEST_F(LeaseOps, TruncateAtABorderActsAtOnce) {
  space_.WriteFile("/f", {kBlockSize, kBlockSize, 1000, 5});
  space_.now_ms += 7;
  v1::MutationResult cut = space_.Must(Truncate("/f", 2 * kBlockSize, {}, {}));
  EXPECT_TRUE(cut.done());
  EXPECT_EQ(cut.freed_size(), 2);
  EXPECT_EQ(Inode("/f").length_bytes(), 2 * kBlockSize);
  EXPECT_EQ(Inode("/f").block_count(), 2u);
  EXPECT_EQ(Inode("/f").modification_time_ms(), kTestStartMs + 7);
  EXPECT_EQ(Inode("/f").lease_holder(), "");
  EXPECT_EQ(Root().charged_bytes(), 6 * kBlockSize);
  EXPECT_EQ(Root().length_bytes(), 2 * kBlockSize);
  EXPECT_TRUE(space_.Must(Truncate("/f", 2 * kBlockSize, {}, {})).done());  // To the length it has.
  EXPECT_EQ(space_.rows_written(), 0u);
  EXPECT_TRUE(space_.Must(Truncate("/f", 0, {}, {})).done());
  EXPECT_EQ(Inode("/f").block_count(), 0u);
  EXPECT_EQ(Root().charged_bytes(), 0u);
  EXPECT_EQ(Rows(Family::kBlock), 0u);
}

TEST_F(LeaseOps, TruncateLetsABlockGoThatOthersOwnAndFreesItOnlyWithTheLast) {
  const v1::MutationResult file = space_.WriteFile("/f", {10, 20});
  const BlockId shared = *BlockIdAt(space_.view(), Inode("/f"), 1);
  v1::BlockRecord record = BlockRow(shared.value());
  record.set_owners(2);
  space_.state().rows(Family::kBlock)[BlockKey(shared)] = record.SerializeAsString();
  EXPECT_EQ(space_.Must(Truncate("/f", 10, {}, {})).freed_size(), 0);
  EXPECT_EQ(BlockRow(shared.value()).owners(), 1u);
  EXPECT_EQ(Inode("/f").block_count(), 1u);
  EXPECT_EQ(Root().charged_bytes(), 30u);
  EXPECT_EQ(space_.Must(Truncate("/f", 0, {}, {})).freed_size(), 1);
  EXPECT_EQ(file.inode().block_count(), 2u);
}

TEST_F(LeaseOps, TruncateOfALongFileShortensItsListOfBlocks) {
  space_.WriteFile("/f", {10, 10, 10, 10, 10, 10, 10});
  EXPECT_EQ(Rows(Family::kFileBlock), 7u);
  EXPECT_EQ(space_.Must(Truncate("/f", 50, {}, {})).freed_size(), 2);
  EXPECT_EQ(Rows(Family::kFileBlock), 5u);
  EXPECT_EQ(space_.Must(Truncate("/f", 20, {}, {})).freed_size(), 3);
  EXPECT_EQ(Rows(Family::kFileBlock), 0u);
  EXPECT_EQ(Inode("/f").blocks_size(), 2);
  EXPECT_EQ(LastBlock("/f").length_bytes(), 10u);
}

TEST_F(LeaseOps, TruncateInsideABlockRecoversItToTheNewLength) {
  const v1::MutationResult file = space_.WriteFile("/f", {kBlockSize, 1500, 20});
  const BlockId second = *BlockIdAt(space_.view(), Inode("/f"), 1);
  const v1::Block cut_block = MakeBlock(second.value(), BlockRow(second.value()).generation_stamp(), 0);
  const v1::MutationResult cut = space_.Must(Truncate("/f", kBlockSize + 1000, cut_block, {2, 3}));
  EXPECT_FALSE(cut.done());
  EXPECT_EQ(cut.freed_size(), 1);
  v1::BlockRecord row = BlockRow(second.value());
  EXPECT_EQ(row.state(), v1::UNDER_RECOVERY);
  EXPECT_EQ(row.truncate_to_bytes(), 1000u);
  EXPECT_GT(row.recovery_id(), row.generation_stamp());
  EXPECT_THAT(row.expected_storages(), ElementsAre(2, 3));
  EXPECT_TRUE(StatusOfPath(space_.view(), "/f")->under_construction());
  EXPECT_EQ(Inode("/f").length_bytes(), kBlockSize + 1500);  // Settled when it is recovered.
  EXPECT_EQ(Root().charged_bytes(), 3 * (kBlockSize + 1500));

  EXPECT_THAT(space_.Apply(Recovered(second.value(), 1500, {2})), HasReason("WRONG_LENGTH"));
  EXPECT_THAT(space_.Apply(Dropped(second.value(), {2, 3})), HasReason("DATA_LOST"));
  space_.Must(Recovered(second.value(), 1000, {2, 3}));
  row = BlockRow(second.value());
  EXPECT_EQ(row.state(), v1::COMMITTED);
  EXPECT_FALSE(row.has_truncate_to_bytes());
  EXPECT_EQ(Inode("/f").length_bytes(), kBlockSize + 1000);
  EXPECT_EQ(Inode("/f").lease_holder(), "");
  EXPECT_EQ(Root().charged_bytes(), 3 * (kBlockSize + 1000));
  EXPECT_EQ(Root().length_bytes(), kBlockSize + 1000);
  EXPECT_EQ(file.inode().id(), Inode("/f").id());
}

TEST_F(LeaseOps, AFileThatIsBeingTruncatedIsBusy) {
  space_.WriteFile("/f", {1500});
  const v1::Block block = LastBlock("/f");
  space_.Must(Truncate("/f", 1000, block));
  const auto again = space_.Apply(Truncate("/f", 500, block));
  EXPECT_THAT(again, HasKind(ErrorKind::kBeingWritten));
  EXPECT_THAT(again, HasReason("BUSY"));
  EXPECT_THAT(Words(again), HasSubstr("Failed to TRUNCATE_FILE /f for cutter because it is being truncated, and block recovery is in "
                                      "progress. Try again later"));
  EXPECT_THAT(space_.Apply(Append("/f", "writer", block)), HasReason("BUSY"));
  EXPECT_FALSE(space_.Must(Recover("/f")).done());
  EXPECT_EQ(BlockRow(block.id()).truncate_to_bytes(), 1000u);
  space_.Must(Recovered(block.id(), 1000));
  EXPECT_FALSE(space_.Must(Truncate("/f", 500, LastBlock("/f"))).done());
  space_.Must(Recovered(block.id(), 500));
  EXPECT_EQ(Inode("/f").length_bytes(), 500u);
}

TEST_F(LeaseOps, TruncateRefusals) {
  space_.WriteFile("/f", {1500});
  const v1::Block block = LastBlock("/f");
  auto refused = space_.Apply(Truncate("/f", 1501));
  EXPECT_THAT(refused, HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(Words(refused), HasSubstr("Cannot truncate to a larger file size. Current size: 1500, truncate size: 1501."));
  EXPECT_THAT(space_.Apply(Truncate("/none", 0)), HasKind(ErrorKind::kNotFound));
  space_.Must(MkdirsMutation("/d"));
  refused = space_.Apply(Truncate("/d", 0));
  EXPECT_THAT(refused, HasKind(ErrorKind::kIsDirectory));
  EXPECT_EQ(Words(refused), "Path is not a file: /d");
  EXPECT_THAT(space_.Apply(Truncate("/f", 10, block, {})), HasKind(ErrorKind::kNotReplicatedYet));
  EXPECT_THAT(space_.Apply(Truncate("/f", 10, MakeBlock(7, 1001, 0))), HasReason("CHANGED_MEANWHILE"));
  EXPECT_EQ(Inode("/f").lease_holder(), "");
}

// --- block recovery

TEST_F(LeaseOps, RecoveryClosesTheFileWithWhatWasFound) {
  const v1::MutationResult file = Open("/f", 100);
  space_.Must(Expire("writer", file.inode().id()));
  space_.now_ms += 9;
  const uint64_t recovery_id = BlockRow(file.block().id()).recovery_id();
  const v1::Mutation found = Recovered(file.block().id(), 150, {3, 1});
  const v1::MutationResult done = space_.Must(found);
  EXPECT_THAT(done.changed_blocks(), ElementsAre(file.block().id()));
  const v1::BlockRecord row = BlockRow(file.block().id());
  EXPECT_EQ(row.state(), v1::COMMITTED);
  EXPECT_EQ(row.generation_stamp(), recovery_id);
  EXPECT_EQ(row.recovery_id(), 0u);
  EXPECT_EQ(row.committed_ms(), kTestStartMs + 9);
  EXPECT_THAT(row.expected_storages(), ElementsAre(3, 1));
  EXPECT_EQ(Inode("/f").length_bytes(), 150u);
  EXPECT_EQ(Inode("/f").modification_time_ms(), kTestStartMs + 9);
  EXPECT_EQ(Root().charged_bytes(), 450u);
  EXPECT_THAT(Holders(), IsEmpty());
  EXPECT_TRUE(space_.Must(found).done());  // Said again.
  EXPECT_EQ(space_.rows_written(), 0u);
}

TEST_F(LeaseOps, OnlyTheNewestRoundCommits) {
  const v1::MutationResult file = Open("/f", 100);
  const uint64_t id = file.block().id();
  EXPECT_THAT(space_.Apply(NextRound(id)), HasReason("NOT_UNDER_RECOVERY"));
  space_.Must(Expire("writer", file.inode().id()));
  const v1::Mutation first = Recovered(id, 100);
  const v1::MutationResult begun = space_.Must(NextRound(id));
  EXPECT_EQ(begun.block_record().recovery_id(), first.commit_block_recovery().recovery_id() + 1);
  EXPECT_EQ(begun.block_record().generation_stamp(), file.block().generation_stamp());
  const auto late = space_.Apply(first);
  EXPECT_THAT(late, HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(late, HasReason("RECOVERY_ID"));
  v1::Mutation wrong_stamp = Recovered(id, 100);
  wrong_stamp.mutable_commit_block_recovery()->mutable_block()->set_generation_stamp(1001);
  EXPECT_THAT(space_.Apply(wrong_stamp), HasReason("STAMP"));
  space_.Must(Recovered(id, 100));
  EXPECT_THAT(space_.Apply(first), HasKind(ErrorKind::kStaleGeneration));
  EXPECT_THAT(space_.Apply(NextRound(id)), HasReason("NOT_UNDER_RECOVERY"));
  EXPECT_THAT(space_.Apply(NextRound(id + 16)), HasReason("NOT_UNDER_RECOVERY"));
  v1::Mutation unknown;
  unknown.mutable_commit_block_recovery()->mutable_block()->set_id(id + 16);
  EXPECT_THAT(space_.Apply(unknown), HasReason("BLOCK_GONE"));
}

TEST_F(LeaseOps, AcknowledgedBytesAreCutOnlyWhenNobodyElseCanHaveThem) {
  const v1::MutationResult file = Open("/f", 100);
  space_.Must(Expire("writer", file.inode().id()));
  EXPECT_THAT(space_.Apply(Recovered(file.block().id(), 99, {1, 2})), HasReason("SHORTER_THAN_SYNCED"));
  EXPECT_EQ(BlockRow(file.block().id()).state(), v1::UNDER_RECOVERY);
  v1::Mutation all = Recovered(file.block().id(), 99, {1, 2});
  all.mutable_commit_block_recovery()->add_answered(3);
  space_.Must(all);
  EXPECT_EQ(Inode("/f").length_bytes(), 99u);
}

TEST_F(LeaseOps, BytesOfAnEarlierCloseAreNeverCut) {
  space_.WriteFile("/f", {1000});
  const v1::MutationResult opened = space_.Must(Append("/f", "writer", LastBlock("/f")));
  space_.Must(Recover("/f"));
  EXPECT_THAT(space_.Apply(Recovered(opened.block().id(), 999)), HasReason("DATA_LOST"));
  EXPECT_THAT(space_.Apply(Dropped(opened.block().id(), {1, 2, 3})), HasReason("DATA_LOST"));
  space_.Must(Recovered(opened.block().id(), 1000, {2}));
  EXPECT_EQ(Inode("/f").length_bytes(), 1000u);
  EXPECT_EQ(BlockRow(opened.block().id()).closed_length_bytes(), 0u);
}

TEST_F(LeaseOps, SyncedBytesAreNeverCutWhoeverHasAnswered) {
  const v1::MutationResult file = Open("/f", 100);
  v1::Mutation sync = Fsync(file, 90);
  sync.mutable_fsync()->set_synced(true);
  for (const v1::Mutation& step : {sync, Expire("writer", file.inode().id())}) space_.Must(step);
  const auto cut = space_.Apply(Recovered(file.block().id(), 89));
  EXPECT_THAT(cut, HasReason("DATA_LOST"));
  EXPECT_THAT(Words(cut), HasSubstr("89 bytes were found, 90 had been synced"));
  const auto dropped = space_.Apply(Dropped(file.block().id(), {1, 2, 3}));
  EXPECT_THAT(dropped, HasReason("DATA_LOST"));
  EXPECT_THAT(Words(dropped), HasSubstr("cannot be dropped: 90 bytes of it had been synced"));
  EXPECT_EQ(BlockRow(file.block().id()).state(), v1::UNDER_RECOVERY);
  EXPECT_EQ(BlockRow(space_.Must(NextRound(file.block().id())).block().id()).synced_length_bytes(), 90u);
  v1::Mutation all = Recovered(file.block().id(), 90, {1});
  for (const uint32_t storage : {2u, 3u}) all.mutable_commit_block_recovery()->add_answered(storage);
  space_.Must(all);  // What was only flushed may go, when all have answered.
  EXPECT_EQ(Inode("/f").length_bytes(), 90u);
  EXPECT_EQ(BlockRow(file.block().id()).synced_length_bytes(), 0u);
}

TEST_F(LeaseOps, AnAppendThatSyncsRaisesWhatIsKeptAboveWhatWasClosed) {
  space_.WriteFile("/f", {1000});
  const v1::MutationResult opened = space_.Must(Append("/f", "writer", LastBlock("/f")));
  v1::Mutation sync = Fsync(opened, 1200);
  sync.mutable_fsync()->set_synced(true);
  space_.Must(sync);
  space_.Must(Recover("/f"));
  EXPECT_THAT(space_.Apply(Recovered(opened.block().id(), 1199)), HasReason("DATA_LOST"));
  space_.Must(Recovered(opened.block().id(), 1200, {2}));
  EXPECT_EQ(Inode("/f").length_bytes(), 1200u);
}

TEST_F(LeaseOps, ABlockIsDroppedOnlyWhenAllItsStoragesSaidThatTheyHaveNothing) {
  const v1::MutationResult file = Open("/f");
  space_.Must(Expire("writer", file.inode().id()));
  EXPECT_THAT(space_.Apply(Dropped(file.block().id(), {1, 3})), HasReason("NOT_ALL_ANSWERED"));
  EXPECT_EQ(space_.Must(Dropped(file.block().id(), {3, 2, 1})).freed_size(), 1);
  EXPECT_EQ(Inode("/f").block_count(), 0u);
  EXPECT_EQ(Inode("/f").lease_holder(), "");
  EXPECT_EQ(Root().charged_bytes(), 0u);
}

TEST_F(LeaseOps, RecoveryEndsOnStoragesOfThePipelineAndWithinABlock) {
  const v1::MutationResult file = Open("/f", 100);
  space_.Must(Expire("writer", file.inode().id()));
  EXPECT_THAT(space_.Apply(Recovered(file.block().id(), 100, {4})), HasReason("NOT_EXPECTED_STORAGE"));
  EXPECT_THAT(space_.Apply(Recovered(file.block().id(), 100, {})), HasReason("NOT_EXPECTED_STORAGE"));
  EXPECT_THAT(space_.Apply(Recovered(file.block().id(), kBlockSize + 1)), HasReason("LONGER_THAN_BLOCK"));
  space_.Must(Recovered(file.block().id(), kBlockSize));
}

TEST_F(LeaseOps, ARenamedFileIsRecoveredWhereItIs) {
  const v1::MutationResult file = Open("/d/f", 100);
  space_.Must(Expire("writer", file.inode().id()));
  space_.Must(RenameMutation("/d/f", "/g"));
  EXPECT_EQ(space_.Must(Recovered(file.block().id(), 100)).path(), "/g");
  EXPECT_EQ(SummaryOfPath(space_.view(), "/d")->charged_bytes(), 0u);
  EXPECT_EQ(Root().charged_bytes(), 300u);
}

}  // namespace
}  // namespace cairn::namenode
