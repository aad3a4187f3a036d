// Mkdirs, rename, delete, deleteMany and the reclaim of what they detach, applied to a namespace in memory.

#include <set>

#include "namenode/namespace/records.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

v1::Mutation ReclaimMutation(uint64_t work_id, uint32_t max_entries) {
  v1::Mutation mutation;
  mutation.mutable_reclaim_step()->set_work_id(work_id);
  mutation.mutable_reclaim_step()->set_max_entries(max_entries);
  return mutation;
}

v1::Mutation DeleteManyMutation(const std::vector<std::string>& paths, bool recursive) {
  v1::Mutation mutation = MutationOf("");
  for (const std::string& path : paths) mutation.mutable_delete_many()->add_paths(path);
  mutation.mutable_delete_many()->set_recursive(recursive);
  return mutation;
}

class TreeOps : public ::testing::Test {
 protected:
  bool Exists(const std::string& path) { return StatusOfPath(space_.view(), path).ok(); }
  v1::ContentSummary Summary(const std::string& path) { return *SummaryOfPath(space_.view(), path); }
  size_t Rows(Family family) { return space_.view().rows(family).size(); }
  // Reclaims all, and returns the blocks freed; checks that each step keeps its bound.
  std::vector<v1::FreedBlock> ReclaimAll(uint32_t max_entries) {
    std::vector<v1::FreedBlock> freed;
    while (Rows(Family::kWork) > 0) {
      const uint64_t work = *ParseWorkKey(space_.view().rows(Family::kWork).begin()->first);
      const v1::MutationResult result = space_.Must(ReclaimMutation(work, max_entries));
      EXPECT_LE(result.next(), max_entries + 1);
      EXPECT_GT(result.next() + (result.done() ? 1 : 0), 0u);
      freed.insert(freed.end(), result.freed().begin(), result.freed().end());
    }
    return freed;
  }
  void ExpectOnlyTheRootIsLeft() {
    EXPECT_EQ(Rows(Family::kInode), 1u);
    EXPECT_EQ(Rows(Family::kInodeById), 1u);
    EXPECT_EQ(Rows(Family::kUsage), 1u);
    EXPECT_EQ(Rows(Family::kBlock), 0u);
    EXPECT_EQ(Rows(Family::kFileBlock), 0u);
    EXPECT_EQ(Rows(Family::kLease), 0u);
    EXPECT_EQ(Rows(Family::kWork), 0u);
  }

  TestNamespace space_;
};

TEST_F(TreeOps, MkdirsMakesParentsWithTheirOwnMode) {
  space_.now_ms += 10;
  space_.Must(MkdirsMutation("/a//b/c/"));
  EXPECT_EQ(StatusOfPath(space_.view(), "/a")->mode(), 0711u);
  EXPECT_EQ(StatusOfPath(space_.view(), "/a/b/c")->mode(), 0755u);
  EXPECT_EQ(StatusOfPath(space_.view(), "/")->modification_time_ms(), kTestStartMs + 10);
  EXPECT_EQ(Summary("/").directories(), 4u);
  EXPECT_TRUE(space_.Must(MkdirsMutation("/a/b")).existed());
  EXPECT_EQ(space_.rows_written(), 0u);
}

TEST_F(TreeOps, MkdirsRefusals) {
  space_.WriteFile("/f", {});
  EXPECT_THAT(space_.Apply(MkdirsMutation("/f")), HasKind(ErrorKind::kAlreadyExists));
  EXPECT_THAT(space_.Apply(MkdirsMutation("/f/d")), HasKind(ErrorKind::kNotDirectory));
  v1::Mutation alone = MkdirsMutation("/x/y");
  alone.mutable_mkdirs()->set_create_parent(false);
  EXPECT_THAT(space_.Apply(alone), HasKind(ErrorKind::kNotFound));
  v1::Mutation deep = MkdirsMutation("/1/2/3");
  deep.mutable_limits()->set_max_depth(2);
  EXPECT_THAT(space_.Apply(deep), HasKind(ErrorKind::kQuota));
  deep.mutable_limits()->set_max_depth(0);
  deep.mutable_limits()->set_max_path_bytes(5);
  EXPECT_THAT(space_.Apply(deep), HasKind(ErrorKind::kQuota));
}

TEST_F(TreeOps, RenameMovesASubtreeWithItsTotals) {
  space_.WriteFile("/a/b/f", {10, 20});
  space_.Must(MkdirsMutation("/t"));
  space_.now_ms += 7;
  space_.Must(RenameMutation("/a/b", "/t/c"));
  EXPECT_FALSE(Exists("/a/b"));
  EXPECT_EQ(StatusOfPath(space_.view(), "/t/c/f")->length_bytes(), 30u);
  EXPECT_EQ(Summary("/a").files(), 0u);
  EXPECT_EQ(Summary("/t").files(), 1u);
  EXPECT_EQ(Summary("/t").directories(), 2u);
  EXPECT_EQ(Summary("/").charged_bytes(), 90u);
  EXPECT_EQ(StatusOfPath(space_.view(), "/a")->children(), 0u);
  EXPECT_EQ(StatusOfPath(space_.view(), "/a")->modification_time_ms(), kTestStartMs + 7);
  EXPECT_EQ(StatusOfPath(space_.view(), "/t")->modification_time_ms(), kTestStartMs + 7);
  EXPECT_EQ(StatusOfPath(space_.view(), "/t/c")->modification_time_ms(), kTestStartMs);
}

TEST_F(TreeOps, RenameRefusals) {
  space_.WriteFile("/a/f", {1});
  space_.WriteFile("/g", {1});
  space_.Must(MkdirsMutation("/full/x"));
  space_.Must(MkdirsMutation("/empty"));
  auto kind = [&](const std::string& from, const std::string& to, bool overwrite) {
    return KindOf(space_.Apply(RenameMutation(from, to, overwrite)).status());
  };
  EXPECT_EQ(kind("/no", "/x", false), ErrorKind::kNotFound);
  EXPECT_EQ(kind("/g", "/no/x", false), ErrorKind::kNotFound);
  EXPECT_EQ(kind("/g", "/a/f/x", false), ErrorKind::kNotDirectory);
  EXPECT_EQ(kind("/", "/x", false), ErrorKind::kInvalidPath);
  EXPECT_EQ(kind("/g", "/", true), ErrorKind::kInvalidPath);
  EXPECT_EQ(kind("/a", "/a/b", false), ErrorKind::kInvalidPath);
  EXPECT_EQ(kind("/full", "/full/x/y", true), ErrorKind::kInvalidPath);
  EXPECT_EQ(kind("/g", "/a/f", false), ErrorKind::kAlreadyExists);
  EXPECT_EQ(kind("/g", "/empty", false), ErrorKind::kAlreadyExists);  // Never into it: that is the caller's business.
  EXPECT_EQ(kind("/g", "/g", false), ErrorKind::kAlreadyExists);
  EXPECT_EQ(kind("/g", "/empty", true), ErrorKind::kIsDirectory);
  EXPECT_EQ(kind("/a", "/g", true), ErrorKind::kNotDirectory);
  EXPECT_EQ(kind("/a", "/full", true), ErrorKind::kNotEmpty);
  EXPECT_EQ(kind("/full/x", "/full", true), ErrorKind::kNotEmpty);
  EXPECT_EQ(kind("/g", "/g", true), ErrorKind::kNone);
  EXPECT_EQ(space_.rows_written(), 0u);
}

TEST_F(TreeOps, RenameOverwriteReplacesAFileOrAnEmptyDirectory) {
  space_.WriteFile("/tmp", {5});
  space_.WriteFile("/target", {100});
  EXPECT_EQ(space_.Must(RenameMutation("/tmp", "/target", true)).freed_size(), 1);
  EXPECT_EQ(StatusOfPath(space_.view(), "/target")->length_bytes(), 5u);
  EXPECT_EQ(Summary("/").files(), 1u);
  EXPECT_EQ(Summary("/").length_bytes(), 5u);
  EXPECT_THAT(ReclaimAll(10), ::testing::IsEmpty());

  space_.Must(MkdirsMutation("/x/y"));
  space_.Must(MkdirsMutation("/e"));
  space_.Must(RenameMutation("/x", "/e", true));
  EXPECT_TRUE(Exists("/e/y"));
  EXPECT_EQ(Summary("/").directories(), 3u);
}

TEST_F(TreeOps, RenameWithinAFullDirectoryNeedsNoRoom) {
  space_.Must(MkdirsMutation("/d/a"));
  v1::Mutation rename = RenameMutation("/d/a", "/d/b");
  rename.mutable_limits()->set_max_directory_entries(1);
  EXPECT_THAT(space_.Apply(rename), IsOk());
  space_.Must(MkdirsMutation("/c"));
  rename = RenameMutation("/c", "/d/c");
  rename.mutable_limits()->set_max_directory_entries(1);
  EXPECT_THAT(space_.Apply(rename), HasKind(ErrorKind::kQuota));
}

TEST_F(TreeOps, DeleteAnswersWhetherThereWasSomething) {
  space_.WriteFile("/a/f", {1});
  EXPECT_FALSE(space_.Must(DeleteMutation("/no", true)).existed());
  EXPECT_FALSE(space_.Must(DeleteMutation("/no/where", true)).existed());
  EXPECT_THAT(space_.Apply(DeleteMutation("/", true)), HasKind(ErrorKind::kInvalidPath));
  EXPECT_THAT(space_.Apply(DeleteMutation("/a/f/x", true)), HasKind(ErrorKind::kNotDirectory));
  EXPECT_THAT(space_.Apply(DeleteMutation("/a", false)), HasKind(ErrorKind::kNotEmpty));
  EXPECT_TRUE(space_.Must(DeleteMutation("/a/f", false)).existed());
  EXPECT_TRUE(space_.Must(DeleteMutation("/a", false)).existed());
  EXPECT_EQ(Summary("/").directories(), 1u);
  EXPECT_EQ(Summary("/").length_bytes(), 0u);
}

TEST_F(TreeOps, DeleteWritesTheSameRowsForTenFilesAndForAHundredThousand) {
  std::vector<size_t> rows;
  for (const int files : {10, 100'000}) {
    const std::string directory = "/dir" + std::to_string(files);
    // Loaded through Apply, as one would with real files.
    for (int i = 0; i < files; ++i) {
      v1::Mutation create = CreateMutation(directory + "/" + std::to_string(i), "me", {1, 2, 3});
      space_.Must(create);
    }
    space_.Must(DeleteMutation(directory, true));
    rows.push_back(space_.rows_written());
  }
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_EQ(Summary("/").files(), 0u);
  EXPECT_EQ(Summary("/").charged_bytes(), 0u);
  EXPECT_EQ(ReclaimAll(256).size(), 100'010u);
  ExpectOnlyTheRootIsLeft();
}

TEST_F(TreeOps, ASingleFileLosesItsLeaseAtOnce) {
  space_.Must(CreateMutation("/f", "me", {1}));
  space_.Must(DeleteMutation("/f", false));
  EXPECT_EQ(Rows(Family::kLease), 0u);
}

TEST_F(TreeOps, ReclaimGoesOnWhereItStoppedWhateverTheBound) {
  for (const uint32_t bound : {1u, 2u, 3u, 7u, 1000u}) {
    space_.WriteFile("/t/f", {1, 2, 3, 4, 5, 6, 7});
    space_.WriteFile("/t/a/b/f", {8});
    space_.WriteFile("/t/a/g", {});
    space_.WriteFile("/t/z", {9, 10, 11, 12, 13});
    space_.Must(MkdirsMutation("/t/m/n/o"));
    space_.Must(CreateMutation("/t/open", "me", {4}));
    space_.Must(DeleteMutation("/t", true));
    space_.WriteFile("/single", {1, 2, 3, 4, 5, 6});
    space_.Must(DeleteMutation("/single", false));
    std::vector<v1::FreedBlock> freed = ReclaimAll(bound);
    std::set<uint64_t> ids;
    for (const v1::FreedBlock& block : freed) ids.insert(block.block().id());
    EXPECT_EQ(freed.size(), 20u) << bound;
    EXPECT_EQ(ids.size(), 20u) << bound;
    ExpectOnlyTheRootIsLeft();
  }
}

TEST_F(TreeOps, ReclaimFreesTheReservedBlockToo) {
  for (const char* deleted : {"/d", "/d/f"}) {  // By the reclaimer, and by the delete itself.
    const v1::MutationResult file = space_.Must(CreateMutation("/d/f", "me", {1}));
    v1::Mutation reserve = AddBlockMutation(file, "me", {2});
    reserve.mutable_add_block()->set_reserve(true);
    space_.Must(reserve);
    const v1::MutationResult result = space_.Must(DeleteMutation(deleted, true));
    EXPECT_EQ(Summary("/").charged_bytes(), 0u);
    EXPECT_EQ(static_cast<size_t>(result.freed_size()) + ReclaimAll(1).size(), 2u);
    EXPECT_EQ(Rows(Family::kBlock), 0u);
  }
  space_.Must(DeleteMutation("/d", true));
  ReclaimAll(1);
  ExpectOnlyTheRootIsLeft();
}

TEST_F(TreeOps, ADeleteFreesAFileOfFewBlocksAndLeavesALongerOneToTheReclaimer) {
  space_.WriteFile("/four", {1, 2, 3, 4});
  const v1::MutationResult four = space_.Must(DeleteMutation("/four", false));
  EXPECT_EQ(four.freed_size(), 4);
  // Its inode, its link and its blocks; the totals and the time of its directory, the time of the last change.
  EXPECT_LE(space_.rows_written(), 2u + 4 + 3);
  EXPECT_EQ(Rows(Family::kWork), 0u);
  ExpectOnlyTheRootIsLeft();
  space_.WriteFile("/five", {1, 2, 3, 4, 5});
  EXPECT_EQ(space_.Must(DeleteMutation("/five", false)).freed_size(), 0);
  EXPECT_EQ(Rows(Family::kWork), 1u);
  EXPECT_EQ(ReclaimAll(2).size(), 5u);
  ExpectOnlyTheRootIsLeft();
}

TEST_F(TreeOps, ReclaimKeepsBlocksThatOthersOwn) {
  const v1::MutationResult file = space_.WriteFile("/f", {5});
  const BlockId id(file.inode().blocks(0));
  v1::BlockRecord record = *GetBlock(space_.view(), id);
  record.set_owners(2);
  space_.state().rows(Family::kBlock)[BlockKey(id)] = record.SerializeAsString();
  space_.Must(DeleteMutation("/f", false));
  EXPECT_TRUE(ReclaimAll(10).empty());
  EXPECT_EQ(GetBlock(space_.view(), id)->owners(), 1u);
}

TEST_F(TreeOps, ReclaimOfFinishedWorkIsDone) {
  EXPECT_TRUE(space_.Must(ReclaimMutation(99, 10)).done());
  EXPECT_EQ(space_.rows_written(), 0u);
}

// Directories so large that the rows of their entries go as one range: with directories and files of many blocks among the entries, one
// inside the other, whatever the steps' bound.
TEST_F(TreeOps, ReclaimOfLargeDirectoriesWhateverTheBound) {
  for (const uint32_t bound : {3u, 7u, 256u, 1000u, 1024u}) {
    for (int i = 0; i < 1'300; ++i) space_.Must(MkdirsMutation("/t/" + std::to_string(i)));
    for (int i = 0; i < 1'100; ++i) space_.Must(CreateMutation("/t/500/" + std::to_string(i), "me", {1}));
    space_.WriteFile("/t/aa", {1, 2, 3, 4, 5, 6, 7, 8, 9});
    space_.WriteFile("/t/zz", {1, 2, 3, 4, 5, 6, 7, 8, 9});
    space_.WriteFile("/t/500/sub/f", {1});
    space_.Must(DeleteMutation("/t", true));
    EXPECT_EQ(ReclaimAll(bound).size(), 1'100u + 18 + 1) << bound;
    ExpectOnlyTheRootIsLeft();
  }
}

TEST_F(TreeOps, ALargeDirectorysRowsAreNotDeletedOneByOne) {
  for (int i = 0; i < 2'000; ++i) space_.Must(CreateMutation("/t/" + std::to_string(i), "me", {1}));
  space_.Must(DeleteMutation("/t", true));
  size_t rows = 0;
  size_t steps = 0;
  while (Rows(Family::kWork) > 0) {
    space_.Must(ReclaimMutation(1, 1024));
    rows += space_.rows_written();
    ++steps;
  }
  // Link, block and lease of each file; in each step the work row and the time of the last mutation.
  EXPECT_LE(rows, 3 * 2'000 + 3 * steps + 5);
  ExpectOnlyTheRootIsLeft();
}

TEST_F(TreeOps, AStepGoesOnWithTheNextWork) {
  for (int i = 0; i < 4; ++i) {
    space_.WriteFile("/f" + std::to_string(i), {100, 200, 300, 400, 500});
    space_.Must(DeleteMutation("/f" + std::to_string(i), false));
  }
  v1::Mutation step = ReclaimMutation(1, 14);
  for (const uint64_t id : {2u, 99u, 3u, 4u}) step.mutable_reclaim_step()->add_more_work_ids(id);
  const v1::MutationResult result = space_.Must(step);  // Six entries each: the third is only begun.
  EXPECT_FALSE(result.done());
  EXPECT_EQ(result.next(), 14u);
  EXPECT_EQ(result.freed_size(), 12);
  ASSERT_EQ(result.reclaimed_size(), 4);
  EXPECT_TRUE(result.reclaimed(0).done());
  EXPECT_TRUE(result.reclaimed(1).done());
  EXPECT_TRUE(result.reclaimed(2).done());  // There is no such work.
  EXPECT_EQ(result.reclaimed(3).work_id(), 3u);
  EXPECT_FALSE(result.reclaimed(3).done());
  EXPECT_EQ(result.reclaimed(3).left_inodes(), 1u);
  EXPECT_EQ(result.reclaimed(3).left_bytes(), 600u);
  EXPECT_EQ(Rows(Family::kWork), 2u);
  ReclaimAll(1);
  EXPECT_EQ(Rows(Family::kBlock), 0u);
}

TEST_F(TreeOps, DeleteManyOfPathsInsideOneAnotherAndTwice) {
  space_.WriteFile("/a/b/f", {1});
  space_.WriteFile("/c/d/f", {1});
  auto code = [](ErrorKind kind) { return static_cast<char>(kind); };
  const std::string expected = {code(ErrorKind::kNone), code(ErrorKind::kNotFound), code(ErrorKind::kNone),
                                code(ErrorKind::kNone), code(ErrorKind::kNone),     code(ErrorKind::kNotFound)};
  // The outer first, then the inner; the inner first, then the outer; and again.
  const v1::MutationResult result = space_.Must(DeleteManyMutation({"/a", "/a/b", "/c/d/f", "/c/d", "/c", "/c"}, true));
  EXPECT_EQ(result.codes(), expected);
  EXPECT_EQ(result.freed_size(), 1);
  EXPECT_EQ(Summary("/").files(), 0u);
  EXPECT_EQ(Summary("/").directories(), 1u);
  EXPECT_EQ(Summary("/").charged_bytes(), 0u);
  EXPECT_EQ(ReclaimAll(2).size(), 1u);
  ExpectOnlyTheRootIsLeft();
}

TEST_F(TreeOps, DeleteManyGivesACodeForEachPath) {
  space_.WriteFile("/a/f", {1});
  space_.WriteFile("/a/g", {1});
  space_.WriteFile("/b/f", {1});
  const v1::MutationResult result = space_.Must(DeleteManyMutation({"/a/f", "/no", "/a/f", "/a", "bad", "/a/g", "/a", "/b", "/"}, false));
  auto code = [](ErrorKind kind) { return static_cast<char>(kind); };
  const std::string expected = {code(ErrorKind::kNone),     code(ErrorKind::kNotFound),    code(ErrorKind::kNotFound),
                                code(ErrorKind::kNotEmpty), code(ErrorKind::kInvalidPath), code(ErrorKind::kNone),
                                code(ErrorKind::kNone),     code(ErrorKind::kNotEmpty),    code(ErrorKind::kInvalidPath)};
  EXPECT_EQ(result.codes(), expected);
  EXPECT_EQ(result.next(), 9u);
  EXPECT_EQ(Summary("/").files(), 1u);
  EXPECT_EQ(Summary("/").directories(), 2u);
  EXPECT_EQ(result.freed_size(), 2);
  EXPECT_THAT(ReclaimAll(5), ::testing::IsEmpty());
}

TEST_F(TreeOps, DeleteManyRefusesMoreThanAMutationHolds) {
  EXPECT_THAT(space_.Apply(DeleteManyMutation(std::vector<std::string>(257, "/a"), false)), HasKind(ErrorKind::kInvalidArgument));
}

TEST_F(TreeOps, DeleteManyGoesOnFromWhereItsRowStands) {
  for (int i = 0; i < 4; ++i) space_.WriteFile("/f" + std::to_string(i), {});
  const v1::Mutation first = WithRetry(DeleteManyMutation({"/f0", "/f1"}, false), 0, 7);
  v1::Mutation second = WithRetry(DeleteManyMutation({"/no", "/f3"}, false), 0, 7);
  second.mutable_delete_many()->set_from(2);
  EXPECT_THAT(space_.Apply(second), HasReason("NO_EARLIER_PART"));
  EXPECT_EQ(space_.Must(first).codes(), std::string(2, '\0'));
  space_.WriteFile("/f0", {});
  EXPECT_EQ(space_.Must(first).next(), 2u);  // Repeated: nothing is deleted again.
  EXPECT_TRUE(Exists("/f0"));
  const std::string all = {'\0', '\0', static_cast<char>(ErrorKind::kNotFound), '\0'};
  EXPECT_EQ(space_.Must(second).codes(), all);
  EXPECT_EQ(space_.Must(second).codes(), all);
  EXPECT_EQ(space_.rows_written(), 0u);
  // A repeat from the start learns how far it had come.
  EXPECT_EQ(space_.Must(first).next(), 4u);
  EXPECT_EQ(space_.Must(first).codes(), all);
  v1::Mutation gap = second;
  gap.mutable_delete_many()->set_from(5);
  EXPECT_THAT(space_.Apply(gap), HasReason("NO_EARLIER_PART"));
}

}  // namespace
}  // namespace cairn::namenode
