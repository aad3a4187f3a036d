// Quotas of names and space: what is charged, when it is refused and in which words, and that usage returns at once.

#include "namenode/namespace/quota.h"

#include <map>
#include <memory>
#include <optional>

#include "namenode/namespace/records.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::HasSubstr;

constexpr uint64_t kBlock = 1 << 20;  // Block size of the builders' files; on 3 replicas.
constexpr int64_t kReplicated = 3 << 20;

class Quota : public ::testing::Test {
 protected:
  static v1::Mutation SetQuotaMutation(const std::string& path, std::optional<int64_t> names, std::optional<int64_t> space) {
    v1::Mutation mutation = MutationOf("");
    mutation.set_superuser(true);
    mutation.mutable_set_quota()->set_path(path);
    if (names) mutation.mutable_set_quota()->set_namespace_quota(*names);
    if (space) mutation.mutable_set_quota()->set_space_quota_bytes(*space);
    return mutation;
  }
  void SetQuota(const std::string& path, std::optional<int64_t> names, std::optional<int64_t> space) {
    space_.Must(SetQuotaMutation(path, names, space));
  }
  v1::ContentSummary Summary(const std::string& path) { return *SummaryOfPath(space_.view(), path); }
  int64_t Charged(const std::string& path) { return static_cast<int64_t>(Summary(path).charged_bytes()); }
  std::string Words(const v1::Mutation& mutation) { return std::string(space_.Apply(mutation).status().message()); }

  TestNamespace space_;
};

TEST_F(Quota, IsSetChangedAndTakenAwayOneByOne) {
  space_.Must(MkdirsMutation("/d"));
  SetQuota("/d", 10, std::nullopt);
  EXPECT_EQ(Summary("/d").namespace_quota(), 10);
  EXPECT_FALSE(Summary("/d").has_space_quota_bytes());
  SetQuota("/d", std::nullopt, 1000);
  EXPECT_EQ(Summary("/d").namespace_quota(), 10);
  EXPECT_EQ(Summary("/d").space_quota_bytes(), 1000);
  SetQuota("/d", std::nullopt, 1000);
  EXPECT_EQ(space_.rows_written(), 0u);
  SetQuota("/d", -1, 7);
  EXPECT_FALSE(Summary("/d").has_namespace_quota());
  EXPECT_EQ(Summary("/d").space_quota_bytes(), 7);
  SetQuota("/d", std::nullopt, -1);
  EXPECT_FALSE(Summary("/d").has_space_quota_bytes());
  // It changes no time and no other figure.
  EXPECT_EQ(StatusOfPath(space_.view(), "/d")->modification_time_ms(), kTestStartMs);
}

TEST_F(Quota, SetQuotaRefusals) {
  space_.WriteFile("/f", {});
  const auto missing = space_.Apply(SetQuotaMutation("/no", 1, 1));
  EXPECT_THAT(missing, HasKind(ErrorKind::kNotFound));
  EXPECT_EQ(missing.status().message(), "Directory does not exist: /no");
  const auto file = space_.Apply(SetQuotaMutation("/f", 1, 1));
  EXPECT_THAT(file, HasKind(ErrorKind::kNotDirectory));
  EXPECT_EQ(file.status().message(), "/f: Is not a directory");
  EXPECT_THAT(space_.Apply(SetQuotaMutation("/", -2, std::nullopt)), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(space_.Apply(SetQuotaMutation("/", std::nullopt, -2)), HasKind(ErrorKind::kInvalidArgument));
  v1::Mutation other = SetQuotaMutation("/", 5, std::nullopt);
  other.set_superuser(false);
  other.mutable_limits()->set_permissions_enabled(true);
  const auto refused = space_.Apply(other);
  EXPECT_THAT(refused, HasKind(ErrorKind::kPermission));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("Access denied for user ada. Superuser privilege is required"));
}

TEST_F(Quota, NamesCountTheDirectoryItselfAndFitExactly) {
  space_.Must(MkdirsMutation("/d"));
  SetQuota("/d", 5, std::nullopt);
  space_.Must(MkdirsMutation("/d/a/b"));
  space_.Must(CreateMutation("/d/f", "me"));
  space_.Must(CreateMutation("/d/g", "me"));
  const auto refused = space_.Apply(CreateMutation("/d/h", "me"));
  EXPECT_THAT(refused, HasKind(ErrorKind::kQuota));
  EXPECT_THAT(refused, HasReason("NAMESPACE_QUOTA"));
  EXPECT_EQ(refused.status().message(), "The NameSpace quota (directories and files) of directory /d is exceeded: quota=5 file count=6");
  EXPECT_EQ(ErrorOf(refused.status())->path, "/d");
  EXPECT_EQ(ErrorOf(refused.status())->limit, 5);
  EXPECT_THAT(space_.Apply(MkdirsMutation("/d/x")), HasReason("NAMESPACE_QUOTA"));
  EXPECT_FALSE(IsRetriable(refused.status()));
  // What is there may be opened, replaced, renamed within; what goes makes room at once.
  EXPECT_TRUE(space_.Must(MkdirsMutation("/d/a")).existed());
  v1::Mutation overwrite = CreateMutation("/d/f", "me");
  overwrite.mutable_create()->set_overwrite(true);
  EXPECT_THAT(space_.Apply(overwrite), IsOk());
  EXPECT_THAT(space_.Apply(RenameMutation("/d/g", "/d/a/b/g")), IsOk());
  space_.Must(DeleteMutation("/d/a", true));
  EXPECT_THAT(space_.Apply(MkdirsMutation("/d/x/y/z")), IsOk());
  EXPECT_THAT(space_.Apply(MkdirsMutation("/d/x/y/z/1")), HasReason("NAMESPACE_QUOTA"));
}

TEST_F(Quota, MissingParentsCountToo) {
  space_.Must(MkdirsMutation("/d"));
  SetQuota("/d", 4, std::nullopt);
  EXPECT_EQ(Words(MkdirsMutation("/d/1/2/3/4")),
            "The NameSpace quota (directories and files) of directory /d is exceeded: quota=4 file count=5");
  EXPECT_THAT(space_.Apply(CreateMutation("/d/1/2/3/f", "me")), HasReason("NAMESPACE_QUOTA"));
  EXPECT_THAT(space_.Apply(CreateMutation("/d/1/2/f", "me")), IsOk());
}

TEST_F(Quota, OfZeroOrOneKeepsADirectoryEmpty) {
  for (const int64_t quota : {0, 1}) {
    const std::string directory = "/q" + std::to_string(quota);
    space_.Must(MkdirsMutation(directory));
    SetQuota(directory, quota, std::nullopt);
    EXPECT_THAT(space_.Apply(MkdirsMutation(directory + "/x")), HasReason("NAMESPACE_QUOTA"));
  }
}

TEST_F(Quota, TheNearestDirectoryThatSaysNoIsNamed) {
  space_.Must(MkdirsMutation("/a/b/c"));
  SetQuota("/", 4, std::nullopt);
  SetQuota("/a/b", 2, std::nullopt);
  EXPECT_EQ(ErrorOf(space_.Apply(MkdirsMutation("/a/b/c/d")).status())->path, "/a/b");
  EXPECT_EQ(ErrorOf(space_.Apply(MkdirsMutation("/a/x")).status())->path, "/");
  EXPECT_EQ(ErrorOf(space_.Apply(MkdirsMutation("/x")).status())->path, "/");
}

TEST_F(Quota, MayBeSetBelowWhatIsUsed) {
  space_.Must(MkdirsMutation("/d/1/2/3"));
  SetQuota("/d", 2, std::nullopt);
  EXPECT_EQ(Words(MkdirsMutation("/d/x")), "The NameSpace quota (directories and files) of directory /d is exceeded: quota=2 file count=5");
  space_.Must(DeleteMutation("/d/1/2", true));
  EXPECT_THAT(space_.Apply(MkdirsMutation("/d/x")), HasReason("NAMESPACE_QUOTA"));
  space_.Must(DeleteMutation("/d/1", true));
  EXPECT_THAT(space_.Apply(MkdirsMutation("/d/x")), IsOk());
}

TEST_F(Quota, ABlockIsChargedWholeUntilItIsCommitted) {
  space_.Must(MkdirsMutation("/d"));
  SetQuota("/d", std::nullopt, kReplicated);
  const v1::MutationResult file = space_.Must(CreateMutation("/d/f", "me", {1, 2, 3}));
  EXPECT_EQ(Charged("/d"), kReplicated);
  v1::Mutation add = AddBlockMutation(file, "me", {1, 2, 3});
  // One byte is written: three are charged, and a whole next block does not fit.
  *add.mutable_add_block()->mutable_previous() = MakeCommit(file.block(), 1, {1, 2, 3});
  const auto refused = space_.Apply(add);
  EXPECT_THAT(refused, HasKind(ErrorKind::kQuota));
  EXPECT_THAT(refused, HasReason("SPACE_QUOTA"));
  EXPECT_EQ(refused.status().message(),
            "The DiskSpace quota of /d is exceeded: quota = 3145728 B = 3 MB but diskspace consumed = 3145731 B = 3 MB");
  // The file stays as it was, and can be closed with what it has.
  EXPECT_EQ(Charged("/d"), kReplicated);
  v1::Mutation complete = CompleteMutation(file, "me");
  *complete.mutable_complete()->mutable_last() = MakeCommit(file.block(), 1, {1, 2, 3});
  EXPECT_THAT(space_.Apply(complete), IsOk());
  EXPECT_EQ(Charged("/d"), 3);
  EXPECT_THAT(space_.Apply(CreateMutation("/d/g", "me", {1})), HasReason("SPACE_QUOTA"));
  space_.Must(DeleteMutation("/d/f", false));
  EXPECT_EQ(Charged("/d"), 0);
  EXPECT_THAT(space_.Apply(CreateMutation("/d/g", "me", {1})), IsOk());
}

TEST_F(Quota, AReservedBlockIsChargedAndItsReturnMakesRoom) {
  space_.Must(MkdirsMutation("/d"));
  SetQuota("/d", std::nullopt, 2 * kReplicated);
  const v1::MutationResult file = space_.Must(CreateMutation("/d/f", "me", {1, 2, 3}));
  v1::Mutation reserve = AddBlockMutation(file, "me", {1, 2, 3});
  reserve.mutable_add_block()->set_reserve(true);
  space_.Must(reserve);
  EXPECT_EQ(Charged("/d"), 2 * kReplicated);
  // A writer that asks for a block anew gives the reserved one back, in the same mutation.
  v1::Mutation add = AddBlockMutation(file, "me", {1, 2, 3});
  *add.mutable_add_block()->mutable_previous() = MakeCommit(file.block(), kBlock, {1, 2, 3});
  const v1::MutationResult second = space_.Must(add);
  EXPECT_EQ(Charged("/d"), 2 * kReplicated);
  EXPECT_THAT(space_.Apply(reserve), HasReason("SPACE_QUOTA"));
  v1::Mutation abandon = MutationOf("me");
  abandon.mutable_abandon_block()->set_inode_id(file.inode().id());
  *abandon.mutable_abandon_block()->mutable_block() = second.block();
  space_.Must(abandon);
  EXPECT_EQ(Charged("/d"), kReplicated);
  EXPECT_THAT(space_.Apply(reserve), IsOk());
}

TEST_F(Quota, OverwriteIsChargedForTheDifference) {
  space_.WriteFile("/d/f", {kBlock});
  SetQuota("/d", 2, kReplicated);
  v1::Mutation overwrite = CreateMutation("/d/f", "me", {1, 2, 3});
  overwrite.mutable_create()->set_overwrite(true);
  EXPECT_THAT(space_.Apply(overwrite), IsOk());
  EXPECT_EQ(Charged("/d"), kReplicated);
  overwrite.mutable_create()->set_replication(4);
  EXPECT_THAT(space_.Apply(overwrite), HasReason("SPACE_QUOTA"));
}

TEST_F(Quota, RenameChargesOnlyTheDirectoriesItComesInto) {
  space_.WriteFile("/a/x/f", {100});
  space_.Must(MkdirsMutation("/a/y"));
  space_.Must(MkdirsMutation("/b"));
  SetQuota("/a", 4, 300);  // Just full.
  SetQuota("/b", 2, 299);
  EXPECT_THAT(space_.Apply(RenameMutation("/a/x", "/a/y/x")), IsOk());
  EXPECT_THAT(space_.Apply(RenameMutation("/a/y/x", "/b/x")), HasReason("NAMESPACE_QUOTA"));
  EXPECT_EQ(Words(RenameMutation("/a/y/x/f", "/b/f")),
            "The DiskSpace quota of /b is exceeded: quota = 299 B = 299 B but diskspace consumed = 300 B = 300 B");
  SetQuota("/b", 3, 300);
  EXPECT_THAT(space_.Apply(RenameMutation("/a/y/x", "/b/x")), IsOk());
  EXPECT_EQ(Charged("/a"), 0);
  EXPECT_EQ(Charged("/b"), 300);
  EXPECT_THAT(space_.Apply(MkdirsMutation("/a/1/2")), IsOk());
}

TEST_F(Quota, RenameOverAFileCountsWhatItReplaces) {
  space_.WriteFile("/b/old", {100});
  space_.WriteFile("/new", {100});
  SetQuota("/b", 2, 300);
  EXPECT_THAT(space_.Apply(RenameMutation("/new", "/b/old", true)), IsOk());
  space_.WriteFile("/larger", {101});
  EXPECT_THAT(space_.Apply(RenameMutation("/larger", "/b/old", true)), HasReason("SPACE_QUOTA"));
  EXPECT_EQ(Charged("/b"), 300);
}

TEST_F(Quota, TravelsWithItsDirectoryAndEndsWithIt) {
  space_.Must(MkdirsMutation("/a/q"));
  SetQuota("/a/q", 1, std::nullopt);
  space_.Must(RenameMutation("/a/q", "/p"));
  EXPECT_EQ(ErrorOf(space_.Apply(MkdirsMutation("/p/x")).status())->path, "/p");
  space_.Must(DeleteMutation("/p", true));
  space_.Must(MkdirsMutation("/p/x"));
}

// Counts reads.
class CountingTransaction : public MemoryTransaction {
 public:
  using MemoryTransaction::MemoryTransaction;
  absl::StatusOr<std::optional<std::string>> Get(Family family, std::string_view key) const override {
    ++gets[family];
    return MemoryTransaction::Get(family, key);
  }
  std::unique_ptr<Cursor> Scan(Family family, std::string_view begin, std::string_view end) const override {
    ++scans;
    return MemoryTransaction::Scan(family, begin, end);
  }
  mutable std::map<Family, int> gets;
  mutable int scans = 0;
};

TEST_F(Quota, CountingATreeReadsItsTotalsHoweverLargeItIs) {
  for (const int files : {10, 3000}) {
    const std::string directory = "/tree" + std::to_string(files);
    for (int i = 0; i < files; ++i) space_.Must(CreateMutation(directory + "/" + std::to_string(i % 7) + "/" + std::to_string(i), "me"));
    CountingTransaction view(&space_.state());
    EXPECT_EQ(SummaryOfPath(view, directory)->files(), static_cast<uint64_t>(files));
    EXPECT_EQ(view.gets[Family::kInode], 2);
    EXPECT_EQ(view.gets[Family::kUsage], 1);
    EXPECT_EQ(view.scans, 0);
  }
}

TEST_F(Quota, CostsNoReadOfItsOwn) {
  space_.Must(MkdirsMutation("/a/b"));
  v1::Mutation create = CreateMutation("/a/b/f", "me", {1, 2, 3});
  create.set_time_ms(space_.now_ms);
  CountingTransaction create_txn(&space_.state());
  const auto file = Apply(create, create_txn);
  ASSERT_THAT(file, IsOk());
  create_txn.Commit();
  EXPECT_EQ(create_txn.gets[Family::kUsage], 3);  // Each directory above, for its totals, once.

  v1::Mutation add = AddBlockMutation(*file, "me", {1, 2, 3});
  *add.mutable_add_block()->mutable_previous() = MakeCommit(file->block(), 5, {1, 2, 3});
  add.set_time_ms(space_.now_ms);
  CountingTransaction add_txn(&space_.state());
  ASSERT_THAT(Apply(add, add_txn), IsOk());
  EXPECT_EQ(add_txn.gets[Family::kUsage], 3);
  EXPECT_EQ(add_txn.gets[Family::kInode], 4);  // Those of the path, which are in memory.
  EXPECT_EQ(add_txn.gets[Family::kInodeById], 0);
}

TEST_F(Quota, ManyDeletesInOneMutationFreeAllTheyHeld) {
  for (int i = 0; i < 5; ++i) space_.WriteFile("/d/" + std::to_string(i), {10});
  SetQuota("/d", 6, 150);
  EXPECT_THAT(space_.Apply(MkdirsMutation("/d/x")), HasReason("NAMESPACE_QUOTA"));
  v1::Mutation many = MutationOf("");
  for (int i = 0; i < 5; ++i) many.mutable_delete_many()->add_paths("/d/" + std::to_string(i));
  space_.Must(many);
  EXPECT_EQ(Charged("/d"), 0);
  EXPECT_THAT(space_.Apply(MkdirsMutation("/d/1/2/3/4/5")), IsOk());
}

}  // namespace
}  // namespace cairn::namenode
