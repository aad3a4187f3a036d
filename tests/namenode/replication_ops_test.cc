// SetReplication and the spreading of it over the rows of a long file, and concat.

#include <numeric>

#include "namenode/namespace/block_replication.h"
#include "namenode/namespace/ops/ops.h"
#include "namenode/namespace/records.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kBlock = 1 << 20;  // Block size of the builders' files.

class ReplicationOps : public ::testing::Test {
 protected:
  static v1::Mutation SetReplicationMutation(const std::string& path, uint32_t replication) {
    v1::Mutation mutation = MutationOf("");
    mutation.mutable_set_replication()->set_path(path);
    mutation.mutable_set_replication()->set_replication(replication);
    return mutation;
  }
  static v1::Mutation ConcatMutation(const std::string& target, std::vector<std::string> sources) {
    v1::Mutation mutation = MutationOf("");
    mutation.mutable_concat()->set_target(target);
    for (std::string& source : sources) mutation.mutable_concat()->add_sources(std::move(source));
    return mutation;
  }
  static v1::Mutation SpreadMutation(uint64_t work, uint32_t blocks) {
    v1::Mutation mutation;
    mutation.mutable_spread_replication()->set_work_id(work);
    mutation.mutable_spread_replication()->set_max_blocks(blocks);
    return mutation;
  }
  void SetSpaceQuota(const std::string& path, int64_t bytes) {
    v1::Mutation mutation = MutationOf("");
    mutation.set_superuser(true);
    mutation.mutable_set_quota()->set_path(path);
    mutation.mutable_set_quota()->set_space_quota_bytes(bytes);
    space_.Must(mutation);
  }
  v1::ContentSummary Summary(const std::string& path) { return *SummaryOfPath(space_.view(), path); }
  v1::INodeRecord Record(const std::string& path) { return ResolvePath(space_.view(), path)->record; }
  std::vector<v1::BlockRecord> Blocks(const std::string& path) {
    std::vector<v1::BlockRecord> blocks;
    const auto located = BlocksOfFile(space_.view(), Record(path), 0, UINT64_MAX, SIZE_MAX);
    for (const BlockOfFile& block : *located) blocks.push_back(block.record);
    return blocks;
  }
  // The blocks' rows add up to the file's record, and all have its replication.
  void ExpectSettled(const std::string& path) {
    const v1::INodeRecord file = Record(path);
    uint64_t charged = 0, length = 0, index = 0;
    for (const v1::BlockRecord& block : Blocks(path)) {
      EXPECT_EQ(block.replication(), file.replication());
      EXPECT_EQ(block.inode_id(), file.id());
      EXPECT_EQ(block.index(), index++);
      charged += block.charged_bytes();
      length += block.length_bytes();
    }
    EXPECT_EQ(charged, file.charged_bytes());
    EXPECT_EQ(length, file.length_bytes());
    EXPECT_EQ(index, file.block_count());
  }
  uint64_t OnlyWork() {
    const auto& rows = space_.view().rows(Family::kWork);
    EXPECT_EQ(rows.size(), 1u);
    return *ParseWorkKey(rows.begin()->first);
  }
  size_t Rows(Family family) { return space_.view().rows(family).size(); }
  static std::vector<uint64_t> Lengths(size_t count) {
    std::vector<uint64_t> lengths(count);
    std::iota(lengths.begin(), lengths.end(), 1);
    return lengths;
  }
  // Changes a mode behind everybody's back.
  void Mode(const std::string& path, uint32_t mode) {
    const ResolvedInode found = *ResolvePath(space_.view(), path);
    InodeAt inode{found.parent, found.name, found.record};
    inode.record.set_mode(mode);
    space_.state().rows(Family::kInode)[InodeKey(inode.parent, inode.name)] = inode.record.SerializeAsString();
  }
  // Who has the rights of others only.
  absl::Status TryAsEve(v1::Mutation mutation) {
    mutation.set_user("eve");
    mutation.mutable_limits()->set_permissions_enabled(true);
    return space_.Apply(mutation).status();
  }
  std::string Words(const v1::Mutation& mutation) { return std::string(space_.Apply(mutation).status().message()); }

  TestNamespace space_;
};

TEST_F(ReplicationOps, AShortFileIsDoneAtOnceAndTheReplicaPlaneIsTold) {
  space_.WriteFile("/d/f", {100, 50});
  const v1::MutationResult result = space_.Must(SetReplicationMutation("/d/f", 5));
  EXPECT_EQ(result.inode().replication(), 5u);
  EXPECT_EQ(result.changed_blocks_size(), 2);
  EXPECT_EQ(Rows(Family::kWork), 0u);
  EXPECT_EQ(Summary("/").charged_bytes(), 750u);
  ExpectSettled("/d/f");
  space_.Must(SetReplicationMutation("/d/f", 1));
  EXPECT_EQ(Summary("/d").charged_bytes(), 150u);
  ExpectSettled("/d/f");
  // What is so already changes nothing; nor has a directory a replication.
  space_.Must(SetReplicationMutation("/d/f", 1));
  EXPECT_EQ(space_.rows_written(), 0u);
  EXPECT_EQ(space_.Must(SetReplicationMutation("/d", 7)).inode().type(), v1::DIRECTORY);
  EXPECT_EQ(space_.rows_written(), 0u);
  EXPECT_EQ(StatusOfPath(space_.view(), "/d/f")->modification_time_ms(), kTestStartMs);
}

TEST_F(ReplicationOps, SetReplicationRefusals) {
  space_.WriteFile("/f", {1});
  EXPECT_THAT(space_.Apply(SetReplicationMutation("/no", 2)), HasKind(ErrorKind::kNotFound));
  v1::Mutation low = SetReplicationMutation("/f", 1);
  low.mutable_limits()->set_min_replication(2);
  EXPECT_THAT(space_.Apply(low), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(Words(low),
            "Requested replication factor of 1 is less than the required minimum of 2 for /f (set by dfs.namenode.replication.min)");
  EXPECT_EQ(Words(SetReplicationMutation("/f", 513)),
            "Requested replication factor of 513 exceeds maximum of 512 for /f (set by dfs.replication.max)");
  EXPECT_THAT(space_.Apply(SetReplicationMutation("/f", 0)), HasReason("REPLICATION_OUT_OF_RANGE"));
  EXPECT_THAT(space_.Apply(SetReplicationMutation("/f", 512)), IsOk());
}

TEST_F(ReplicationOps, RightsAreNeededOnEachFile) {
  space_.WriteFile("/d/t", {1});
  space_.WriteFile("/d/s", {1});
  const v1::Mutation concat = ConcatMutation("/d/t", {"/d/s"});
  EXPECT_THAT(TryAsEve(SetReplicationMutation("/d/t", 2)), HasKind(ErrorKind::kPermission));
  EXPECT_EQ(ErrorOf(TryAsEve(concat))->path, "/d/t");  // It is changed.
  Mode("/d/t", 0666);
  EXPECT_THAT(TryAsEve(SetReplicationMutation("/d/t", 2)), IsOk());
  Mode("/d/s", 0);
  EXPECT_EQ(ErrorOf(TryAsEve(concat))->path, "/d/s");  // It is read.
  Mode("/d/s", 0444);
  EXPECT_EQ(ErrorOf(TryAsEve(concat))->path, "/d");  // The source goes from it.
  Mode("/d", 0);
  EXPECT_EQ(ErrorOf(TryAsEve(concat))->path, "/d");  // Nobody passes.
  Mode("/d", 0777);
  EXPECT_THAT(TryAsEve(concat), IsOk());
}

TEST_F(ReplicationOps, TheDifferenceIsChargedAtOnce) {
  space_.WriteFile("/d/f", {100});
  SetSpaceQuota("/d", 399);
  const auto refused = space_.Apply(SetReplicationMutation("/d/f", 4));
  EXPECT_THAT(refused, HasReason("SPACE_QUOTA"));
  EXPECT_EQ(refused.status().message(),
            "The DiskSpace quota of /d is exceeded: quota = 399 B = 399 B but diskspace consumed = 400 B = 400 B");
  SetSpaceQuota("/d", 400);
  EXPECT_THAT(space_.Apply(SetReplicationMutation("/d/f", 4)), IsOk());
  SetSpaceQuota("/d", 1);
  EXPECT_THAT(space_.Apply(SetReplicationMutation("/d/f", 1)), IsOk());  // Less is always allowed.
  EXPECT_EQ(Summary("/d").charged_bytes(), 100u);
}

TEST_F(ReplicationOps, ALongFileIsSpreadInSteps) {
  space_.WriteFile("/d/f", Lengths(150));
  const uint64_t length = Record("/d/f").length_bytes();
  space_.Must(SetReplicationMutation("/d/f", 2));
  EXPECT_LT(space_.rows_written(), 10u);
  EXPECT_EQ(Summary("/d").charged_bytes(), 2 * length);
  EXPECT_EQ(Blocks("/d/f")[0].replication(), 3u);
  const uint64_t work = OnlyWork();
  for (int step = 0; step < 3; ++step) {
    const v1::MutationResult result = space_.Must(SpreadMutation(work, 50));
    EXPECT_EQ(result.next(), 50u);
    EXPECT_EQ(result.changed_blocks_size(), 50);
    EXPECT_EQ(result.done(), step == 2);
  }
  ExpectSettled("/d/f");
  EXPECT_EQ(Rows(Family::kWork), 0u);
  EXPECT_TRUE(space_.Must(SpreadMutation(work, 50)).done());
  EXPECT_EQ(space_.rows_written(), 0u);
}

TEST_F(ReplicationOps, TwoChangesOneAfterAnotherEndInTheLast) {
  space_.WriteFile("/f", Lengths(100));
  space_.Must(SetReplicationMutation("/f", 7));
  const uint64_t first = OnlyWork();
  space_.Must(SpreadMutation(first, 60));
  space_.Must(SetReplicationMutation("/f", 2));
  space_.Must(SpreadMutation(first, 60));
  space_.Must(SpreadMutation(OnlyWork(), 100));
  ExpectSettled("/f");
  EXPECT_EQ(Record("/f").replication(), 2u);
}

TEST_F(ReplicationOps, WorkOfAFileThatIsGoneEnds) {
  space_.WriteFile("/d/f", Lengths(100));
  space_.Must(SetReplicationMutation("/d/f", 7));
  const uint64_t work = OnlyWork();
  space_.Must(DeleteMutation("/d", true));
  const v1::MutationResult result = space_.Must(SpreadMutation(work, 10));
  EXPECT_TRUE(result.done());
  EXPECT_THAT(result.changed_blocks(), IsEmpty());
  EXPECT_EQ(Rows(Family::kWork), 1u);  // The delete's.
}

TEST_F(ReplicationOps, AnOpenFileIsChargedRightWhateverTheOrder) {
  // Long enough that its rows lag behind.
  const v1::MutationResult file = space_.Must(CreateMutation("/d/f", "me"));
  v1::Mutation add = AddBlockMutation(file, "me", {1, 2, 3});
  v1::Block last;
  for (int i = 0; i < 70; ++i) {
    last = space_.Must(add).block();
    *add.mutable_add_block()->mutable_previous() = MakeCommit(last, 10, {1, 2, 3});
  }
  v1::Mutation reserve = AddBlockMutation(file, "me", {1, 2, 3});
  reserve.mutable_add_block()->set_reserve(true);
  const v1::Block reserved = space_.Must(reserve).block();
  space_.Must(SetReplicationMutation("/d/f", 2));
  EXPECT_EQ(Summary("/d").charged_bytes(), 2 * (69 * 10 + 2 * kBlock));

  // The writer goes on: the last block's row is behind, and so is the reserved one's.
  v1::Mutation complete = CompleteMutation(file, "me");
  *complete.mutable_complete()->mutable_previous() = MakeCommit(last, 20, {1, 2, 3});
  complete.mutable_complete()->set_use_reserved_id(reserved.id());
  *complete.mutable_complete()->mutable_last() = MakeCommit(reserved, 30, {1, 2, 3});
  space_.Must(complete);
  EXPECT_EQ(Summary("/d").charged_bytes(), 2u * (690 + 20 + 30));
  space_.Must(SpreadMutation(OnlyWork(), 1000));
  ExpectSettled("/d/f");
}

TEST_F(ReplicationOps, ConcatMovesBlocksInOrderAndRemovesTheSources) {
  space_.WriteFile("/d/t", {kBlock, 7});
  space_.WriteFile("/d/a", Lengths(6));
  space_.WriteFile("/d/b", {kBlock});
  space_.now_ms += 5;
  space_.Must(ConcatMutation("/d/t", {"/d/b", "/d/a"}));
  std::vector<uint64_t> lengths;
  for (const v1::BlockRecord& block : Blocks("/d/t")) lengths.push_back(block.length_bytes());
  EXPECT_THAT(lengths, ElementsAre(kBlock, 7, kBlock, 1, 2, 3, 4, 5, 6));
  ExpectSettled("/d/t");
  EXPECT_EQ(StatusOfPath(space_.view(), "/d/t")->modification_time_ms(), kTestStartMs + 5);
  EXPECT_EQ(StatusOfPath(space_.view(), "/d")->modification_time_ms(), kTestStartMs + 5);
  EXPECT_EQ(StatusOfPath(space_.view(), "/d")->children(), 1u);
  EXPECT_EQ(Summary("/").files(), 1u);
  EXPECT_EQ(Summary("/").length_bytes(), 2 * kBlock + 7 + 21);
  EXPECT_EQ(Summary("/").charged_bytes(), 3 * (2 * kBlock + 7 + 21));
  EXPECT_THAT(StatusOfPath(space_.view(), "/d/a"), HasKind(ErrorKind::kNotFound));
  EXPECT_EQ(Rows(Family::kInode), 3u);
  EXPECT_EQ(Rows(Family::kInodeById), 3u);
  EXPECT_EQ(Rows(Family::kFileBlock), 9u);
  EXPECT_EQ(Rows(Family::kWork), 0u);
}

TEST_F(ReplicationOps, ConcatToAnEmptyTargetTakesItsReplication) {
  v1::Mutation create = CreateMutation("/t", "me");
  create.mutable_create()->set_replication(2);
  space_.Must(CompleteMutation(space_.Must(create), "me"));
  space_.WriteFile("/a", {10});
  const v1::MutationResult result = space_.Must(ConcatMutation("/t", {"/a"}));
  EXPECT_EQ(result.changed_blocks_size(), 1);  // Which wants fewer replicas now.
  EXPECT_EQ(Summary("/").charged_bytes(), 20u);
  ExpectSettled("/t");
}

TEST_F(ReplicationOps, ConcatChargesWhatItsReplicationAdds) {
  v1::Mutation create = CreateMutation("/d/t", "me");
  create.mutable_create()->set_replication(5);
  space_.Must(CompleteMutation(space_.Must(create), "me"));
  space_.WriteFile("/d/a", {10});
  SetSpaceQuota("/d", 49);
  EXPECT_THAT(space_.Apply(ConcatMutation("/d/t", {"/d/a"})), HasReason("SPACE_QUOTA"));
  SetSpaceQuota("/d", 50);
  EXPECT_THAT(space_.Apply(ConcatMutation("/d/t", {"/d/a"})), IsOk());
}

TEST_F(ReplicationOps, ConcatRefusals) {
  space_.WriteFile("/d/t", {10});
  space_.WriteFile("/d/a", {10});
  space_.WriteFile("/d/empty", {});
  space_.WriteFile("/d/sub/f", {10});
  const auto refused = [&](const std::string& target, std::vector<std::string> sources) {
    const absl::Status status = space_.Apply(ConcatMutation(target, std::move(sources))).status();
    return std::string(KindName(KindOf(status))) + " " + ReasonOf(status) + ": " + std::string(status.message());
  };
  EXPECT_EQ(refused("/d/t", {}), "kInvalidArgument NO_SOURCES: concat to /d/t: No sources given");
  EXPECT_EQ(refused("/d/no", {"/d/a"}), "kNotFound : File does not exist: /d/no");
  EXPECT_EQ(refused("/d/t", {"/d/no"}), "kNotFound : File does not exist: /d/no");
  EXPECT_EQ(refused("/d", {"/d/a"}), "kIsDirectory : concat: Path is not a file: /d");
  EXPECT_EQ(refused("/", {"/d/a"}), "kIsDirectory : concat: Path is not a file: /");
  EXPECT_EQ(refused("/d/t", {"/d/sub"}), "kIsDirectory : concat: Path is not a file: /d/sub");
  EXPECT_EQ(refused("/d/t", {"/d/sub/f"}),
            "kInvalidArgument OTHER_DIRECTORY: Source file /d/sub/f is not in the same directory with the target /d/t");
  EXPECT_EQ(refused("/d/t", {"/d/t"}), "kInvalidArgument IS_TARGET: concat: the src file /d/t is the same with the target file /d/t");
  EXPECT_EQ(refused("/d/t", {"/d/a", "/d//a"}),
            "kInvalidArgument SAME_SOURCE_TWICE: concat: at least two of the source files are the same");
  EXPECT_EQ(refused("/d/t", {"/d/empty"}),
            "kInvalidArgument SOURCE_EMPTY: concat: source file /d/empty is invalid or empty or underConstruction");
  v1::Mutation large = CreateMutation("/d/large", "me");
  large.mutable_create()->set_block_size_bytes(2 * kBlock);
  const v1::MutationResult file = space_.Must(large);
  const v1::Block block = space_.Must(AddBlockMutation(file, "me", {1})).block();
  EXPECT_EQ(refused("/d/t", {"/d/large"}),
            "kInvalidArgument SOURCE_OPEN: concat: source file /d/large is invalid or empty or underConstruction");
  EXPECT_EQ(refused("/d/large", {"/d/a"}), "kInvalidArgument TARGET_OPEN: concat: target file /d/large is under construction");
  v1::Mutation complete = CompleteMutation(file, "me");
  *complete.mutable_complete()->mutable_last() = MakeCommit(block, 5, {1});
  space_.Must(complete);
  EXPECT_EQ(refused("/d/t", {"/d/large"}),
            "kInvalidArgument BLOCK_SIZE: concat: source file /d/large has preferred block size 2097152 which is greater than the target "
            "file's preferred block size 1048576");
  EXPECT_THAT(space_.Apply(ConcatMutation("/d/large", {"/d/a", "/d/t"})), IsOk());  // The other way round.
}

TEST_F(ReplicationOps, ConcatIsBounded) {
  space_.WriteFile("/t", {1});
  EXPECT_THAT(space_.Apply(ConcatMutation("/t", std::vector<std::string>(1001, "/a"))), HasReason("TOO_MANY_SOURCES"));
  std::vector<std::string> sources;
  for (int i = 0; i < kMaxSourcesOfConcat; ++i) {
    sources.push_back("/s" + std::to_string(i));
    space_.WriteFile(sources.back(), {1});
  }
  v1::Mutation few_blocks = ConcatMutation("/t", sources);
  few_blocks.mutable_limits()->set_max_blocks_per_file(1000);
  EXPECT_THAT(space_.Apply(few_blocks), HasReason("TOO_MANY_BLOCKS"));
  EXPECT_THAT(std::string(space_.Apply(few_blocks).status().message()), HasSubstr("dfs.namenode.fs-limits.max-blocks-per-file"));
  few_blocks.mutable_limits()->set_max_blocks_per_file(1001);
  EXPECT_THAT(space_.Apply(few_blocks), IsOk());
  ExpectSettled("/t");
  EXPECT_EQ(Record("/t").block_count(), 1001u);
}

TEST_F(ReplicationOps, ConcatOfAFileThatIsStillBeingSpread) {
  space_.WriteFile("/t", Lengths(3));
  space_.WriteFile("/s", Lengths(80));
  space_.Must(SetReplicationMutation("/s", 9));
  const uint64_t work = OnlyWork();
  space_.Must(ConcatMutation("/t", {"/s"}));
  ExpectSettled("/t");
  EXPECT_EQ(Summary("/").charged_bytes(), Record("/t").charged_bytes());
  EXPECT_TRUE(space_.Must(SpreadMutation(work, 10)).done());
  ExpectSettled("/t");
}

}  // namespace
}  // namespace cairn::namenode
