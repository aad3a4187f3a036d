// Every refusal of append, truncate, recoverLease and of the rounds of block recovery, with its kind, its reason and its words.

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/records.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::HasSubstr;

constexpr uint64_t kBlockSize = 1 << 20;
constexpr uint64_t kStranger = 77;  // The id of a block of no file here.

class LeaseRefusals : public ::testing::Test {
 protected:
  // `{b}` stands for "recovery of block N", of /f's last.
  void Expect(const v1::Mutation& mutation, ErrorKind kind, const std::string& reason, std::string words) {
    const auto refused = space_.Apply(mutation);
    EXPECT_THAT(refused, HasKind(kind));
    EXPECT_THAT(refused, HasReason(reason));
    if (const size_t at = words.find("{b}"); at != std::string::npos)
      words.replace(at, 3, fmt::format("recovery of block {}", Last().id()));
    EXPECT_EQ(std::string(refused.status().message()), words);
  }
  v1::BlockRecord Row(uint64_t id) { return **FindBlock(space_.view(), BlockId(id)); }
  v1::Block Last() {
    const v1::INodeRecord file = ResolvePath(space_.view(), "/f")->record;
    const BlockId id = *BlockIdAt(space_.view(), file, file.block_count() - 1);
    return MakeBlock(id.value(), Row(id.value()).generation_stamp(), Row(id.value()).length_bytes());
  }

  // What a primary says of /f's last block.
  v1::Mutation Found(uint64_t length, const std::vector<uint32_t>& storages = {1, 2, 3}) {
    return RecoveredMutation(Last().id(), Row(Last().id()).recovery_id(), length, storages);
  }
  v1::Mutation Dropped(std::vector<uint32_t> empty) {
    v1::Mutation mutation = Found(0, {});
    mutation.mutable_commit_block_recovery()->set_drop(true);
    for (const uint32_t storage : empty) mutation.mutable_commit_block_recovery()->add_empty(storage);
    return mutation;
  }
  // /f, written by "writer" on 1, 2, 3, of which `synced` bytes are acknowledged, and taken from him.
  void TakenFromItsWriter(uint64_t synced) {
    const v1::MutationResult file = space_.Must(CreateMutation("/f", "writer", {1, 2, 3}));
    v1::Mutation fsync = MutationOf("writer");
    fsync.mutable_fsync()->set_inode_id(file.inode().id());
    *fsync.mutable_fsync()->mutable_last_block() = MakeBlock(file.block().id(), file.block().generation_stamp(), synced);
    if (synced > 0) space_.Must(fsync);
    space_.Must(RecoverLeaseMutation("/f"));
  }
  static v1::Mutation Enforced(v1::Mutation mutation) {
    mutation.set_user("eve");
    mutation.mutable_limits()->set_permissions_enabled(true);
    return mutation;
  }

  TestNamespace space_;
};

TEST_F(LeaseRefusals, OfANameThatNoClientCanHave) {
  space_.WriteFile("/f", {10});
  const std::string too_long(kMaxHolderBytes + 1, 'x');
  for (const std::string& name : {std::string(), too_long}) {
    Expect(AppendMutation("/f", name), ErrorKind::kInvalidArgument, "",
           fmt::format("/f: append needs a client name of 1 to {} bytes", kMaxHolderBytes));
    Expect(CreateMutation("/g", name), ErrorKind::kInvalidArgument, "",
           fmt::format("/g: create needs a client name of 1 to {} bytes", kMaxHolderBytes));
  }
  Expect(AppendMutation("/f", kRecoveryHolder), ErrorKind::kInvalidArgument, "",
         "/f: cairn-namenode-recovery is the NameNode's own name, not a client's");
  Expect(CreateMutation("/g", kRecoveryHolder), ErrorKind::kInvalidArgument, "",
         "/g: cairn-namenode-recovery is the NameNode's own name, not a client's");
}

TEST_F(LeaseRefusals, OfWhatIsNotThereOrNoFile) {
  space_.Must(MkdirsMutation("/d"));
  space_.WriteFile("/f", {10});
  Expect(AppendMutation("/none", "me"), ErrorKind::kNotFound, "", "Failed to append to non-existent file /none for client me");
  Expect(AppendMutation("/d", "me"), ErrorKind::kAlreadyExists, "IS_DIRECTORY",
         "Cannot append to directory /d; already exists as a directory");
  for (const v1::Mutation& call : {TruncateMutation("/none", 0), RecoverLeaseMutation("/none")}) {
    EXPECT_THAT(space_.Apply(call), HasKind(ErrorKind::kNotFound));
    EXPECT_THAT(std::string(space_.Apply(call).status().message()), HasSubstr("/none"));
  }
  for (const v1::Mutation& call : {TruncateMutation("/d", 0), RecoverLeaseMutation("/d")})
    Expect(call, ErrorKind::kIsDirectory, "", "Path is not a file: /d");
  for (const v1::Mutation& call : {AppendMutation("/f/x", "me"), TruncateMutation("/f/x", 0), RecoverLeaseMutation("/f/x")}) {
    EXPECT_THAT(space_.Apply(call), HasKind(ErrorKind::kNotDirectory));
    EXPECT_THAT(std::string(space_.Apply(call).status().message()), HasSubstr("/f"));
  }
}

TEST_F(LeaseRefusals, OfWhoMayNotWriteTheFile) {
  space_.WriteFile("/f", {10});
  for (const v1::Mutation& call : {AppendMutation("/f", "me", Last()), TruncateMutation("/f", 0), RecoverLeaseMutation("/f")}) {
    const auto refused = space_.Apply(Enforced(call));
    EXPECT_THAT(refused, HasKind(ErrorKind::kPermission));
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("Permission denied: user=eve, access=WRITE, inode=\"/f\":ada:"));
  }
}

TEST_F(LeaseRefusals, OfABlockThatIsNotHeldEnoughOrHasChanged) {
  space_.WriteFile("/f", {1000});
  const v1::Block last = Last();
  const v1::Block older = MakeBlock(last.id(), last.generation_stamp() - 1, 0);
  const std::string changed = "/f: the file changed while its last block was looked for";
  for (const v1::Block& other : {older, MakeBlock(kStranger, last.generation_stamp(), 0)}) {
    Expect(AppendMutation("/f", "me", other), ErrorKind::kRetriable, "CHANGED_MEANWHILE", changed);
    Expect(TruncateMutation("/f", 10, other), ErrorKind::kRetriable, "CHANGED_MEANWHILE", changed);
  }
  const std::string words = fmt::format("/f: block {} of the file is not sufficiently replicated yet: ", last.id());
  const std::string asked = " replicas can be reached, dfs.namenode.replication.min asks for ";
  for (const v1::Mutation& call : {AppendMutation("/f", "me", last, {}), TruncateMutation("/f", 10, last, {})})
    Expect(call, ErrorKind::kNotReplicatedYet, "NOT_SUFFICIENTLY_REPLICATED", words + "0" + asked + "1");
  for (v1::Mutation call : {AppendMutation("/f", "me", last, {1, 1}), TruncateMutation("/f", 10, last, {1, 1})}) {
    call.mutable_limits()->set_min_replication(2);
    Expect(call, ErrorKind::kNotReplicatedYet, "NOT_SUFFICIENTLY_REPLICATED", words + "1" + asked + "2");
  }
}

TEST_F(LeaseRefusals, OfATruncateToMoreThanThereIs) {
  space_.WriteFile("/f", {1000});
  Expect(TruncateMutation("/f", 1001, Last()), ErrorKind::kInvalidArgument, "LARGER_THAN_FILE",
         "/f: Cannot truncate to a larger file size. Current size: 1000, truncate size: 1001.");
}

TEST_F(LeaseRefusals, OfAnAppendBeyondTheSpaceQuota) {
  space_.WriteFile("/d/f", {1000});
  v1::Mutation quota = MutationOf("");
  quota.set_superuser(true);
  quota.mutable_set_quota()->set_path("/d");
  quota.mutable_set_quota()->set_space_quota_bytes(3 * static_cast<int64_t>(kBlockSize) - 1);
  space_.Must(quota);
  const v1::INodeRecord file = ResolvePath(space_.view(), "/d/f")->record;
  const BlockId id = *BlockIdAt(space_.view(), file, 0);
  const auto refused = space_.Apply(AppendMutation("/d/f", "me", MakeBlock(id.value(), Row(id.value()).generation_stamp(), 1000)));
  EXPECT_THAT(refused, HasKind(ErrorKind::kQuota));
  EXPECT_THAT(refused, HasReason("SPACE_QUOTA"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("The DiskSpace quota of /d is exceeded"));
}

// --- rounds of block recovery

TEST_F(LeaseRefusals, OfARoundThatIsOver) {
  v1::Mutation next;
  next.mutable_start_block_recovery()->set_block_id(kStranger);
  next.mutable_start_block_recovery()->set_inode_id(5);
  Expect(next, ErrorKind::kStaleGeneration, "NOT_UNDER_RECOVERY", "inode 5: recovery of block 77: there is nothing to do");
  space_.WriteFile("/f", {10});
  next.mutable_start_block_recovery()->set_block_id(Last().id());
  Expect(next, ErrorKind::kStaleGeneration, "NOT_UNDER_RECOVERY", "inode 5: {b}: there is nothing to do");

  v1::Mutation gone;
  gone.mutable_commit_block_recovery()->mutable_block()->set_id(kStranger);
  Expect(gone, ErrorKind::kLeaseExpired, "BLOCK_GONE", "recovery of block 77: there is no such block any more");

  space_.Must(DeleteMutation("/f", false));
  TakenFromItsWriter(100);
  const uint64_t inode = ResolvePath(space_.view(), "/f")->record.id();
  const v1::Mutation first = Found(100);
  next.mutable_start_block_recovery()->set_block_id(Last().id());
  const uint64_t second_id = space_.Must(next).block_record().recovery_id();
  const uint64_t first_id = first.commit_block_recovery().recovery_id();
  Expect(first, ErrorKind::kStaleGeneration, "RECOVERY_ID",
         fmt::format("inode {}: {{b}}: a round under id {} is over; the block is at stamp {}, recovery id {}", inode, first_id,
                     Last().generation_stamp(), second_id));
}

TEST_F(LeaseRefusals, OfAnOutcomeThatCannotBe) {
  TakenFromItsWriter(100);
  v1::Mutation stamp = Found(100);
  const uint64_t id = stamp.commit_block_recovery().recovery_id();
  stamp.mutable_commit_block_recovery()->mutable_block()->set_generation_stamp(1001);
  Expect(stamp, ErrorKind::kInvalidArgument, "STAMP", fmt::format("/f: {{b}}: stamp 1001 is not the recovery id {}", id));
  for (const std::vector<uint32_t>& storages : {std::vector<uint32_t>{}, std::vector<uint32_t>{1, 4}})
    Expect(Found(100, storages), ErrorKind::kInvalidArgument, "NOT_EXPECTED_STORAGE",
           "/f: {b}: it has to end on storages of its pipeline, at least one");
  Expect(Found(kBlockSize + 1), ErrorKind::kInvalidArgument, "LONGER_THAN_BLOCK",
         "/f: {b}: 1048577 bytes were named, a block holds 1048576");
  Expect(Found(99, {1, 2}), ErrorKind::kInvalidArgument, "SHORTER_THAN_SYNCED",
         "/f: {b}: 99 bytes were found, 100 are acknowledged, and not all storages have been asked");
  Expect(Dropped({1, 3}), ErrorKind::kInvalidArgument, "NOT_ALL_ANSWERED",
         "/f: {b}: it cannot be dropped: 2 of 3 storages said that they hold no byte of it");
  space_.Must(Found(100));
}

TEST_F(LeaseRefusals, OfAnOutcomeThatLosesWhatWasClosed) {
  space_.WriteFile("/f", {1000});
  space_.Must(AppendMutation("/f", "writer", Last()));
  space_.Must(RecoverLeaseMutation("/f"));
  Expect(Found(999), ErrorKind::kInvalidArgument, "DATA_LOST", "/f: {b}: 999 bytes were found, 1000 had been closed");
  Expect(Dropped({1, 2, 3}), ErrorKind::kInvalidArgument, "DATA_LOST", "/f: {b}: it cannot be dropped: it was part of a closed file");
  space_.Must(Found(1000));
}

TEST_F(LeaseRefusals, OfATruncateThatEndsElsewhere) {
  space_.WriteFile("/f", {1000});
  space_.Must(TruncateMutation("/f", 400, Last()));
  for (const uint64_t length : {uint64_t{399}, uint64_t{401}})
    Expect(Found(length), ErrorKind::kInvalidArgument, "WRONG_LENGTH",
           fmt::format("/f: {{b}}: it is to be cut to 400 bytes, not to {}", length));
  Expect(Dropped({1, 2, 3}), ErrorKind::kInvalidArgument, "DATA_LOST", "/f: {b}: it cannot be dropped: it was part of a closed file");
  space_.Must(Found(400));
}

// What a damaged namespace shows of itself.
TEST_F(LeaseRefusals, OfABlockUnderRecoveryThatIsNotTheLast) {
  space_.WriteFile("/f", {kBlockSize, 5});
  const v1::INodeRecord file = ResolvePath(space_.view(), "/f")->record;
  const BlockId first = *BlockIdAt(space_.view(), file, 0);
  v1::BlockRecord row = Row(first.value());
  row.set_state(v1::UNDER_RECOVERY);
  row.set_recovery_id(9);
  MemoryTransaction txn(&space_.state());
  PutBlock(txn, first, row);
  txn.Commit();
  v1::Mutation found;
  found.mutable_commit_block_recovery()->set_recovery_id(9);
  *found.mutable_commit_block_recovery()->mutable_block() = MakeBlock(first.value(), 9, 5);
  Expect(found, ErrorKind::kCorruptMetadata, "", fmt::format("/f: block {} is under recovery but not the last", first.value()));
}

}  // namespace
}  // namespace cairn::namenode
