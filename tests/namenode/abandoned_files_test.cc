// Files that their writers do not close: deleted if they were created so, else marked, and found by who looks for them.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "namenode/namespace/checker.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/lease_rules.h"
#include "namenode/namespace/orphans.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kSoftLimitMs = 60'000;

class AbandonedFiles : public ::testing::Test {
 protected:
  v1::MutationResult Create(const std::string& path, bool vanishes, std::vector<uint32_t> targets = {}) {
    v1::Mutation create = CreateMutation(path, "writer", std::move(targets));
    create.mutable_create()->set_delete_if_abandoned(vanishes);
    return space_.Must(create);
  }
  v1::MutationResult Expire(const v1::MutationResult& file) {
    v1::Mutation mutation;
    mutation.mutable_expire_lease()->set_holder("writer");
    mutation.mutable_expire_lease()->set_inode_id(file.inode().id());
    return space_.Must(mutation);
  }
  static v1::Mutation Recover(const std::string& path, bool by_force, int64_t idle_ms = kSoftLimitMs) {
    v1::Mutation mutation = MutationOf("taker");
    mutation.mutable_limits()->set_lease_soft_limit_ms(kSoftLimitMs);
    v1::Mutation::RecoverLease& op = *mutation.mutable_recover_lease();
    op.set_path(path);
    op.set_by_force(by_force);
    op.mutable_lease_seen()->set_holder("writer");
    op.mutable_lease_seen()->set_idle_ms(idle_ms);
    return mutation;
  }
  static v1::Mutation Append(const std::string& path) {
    v1::Mutation append = MutationOf("writer");
    append.mutable_append()->set_path(path);
    return append;
  }
  bool Exists(const std::string& path) { return ResolvePath(space_.view(), path).ok(); }
  v1::INodeRecord Inode(const std::string& path) { return ResolvePath(space_.view(), path)->record; }
  v1::ContentSummary Root() { return *SummaryOfPath(space_.view(), "/"); }
  void ExpectSound() {
    const auto summary = CheckNamespace(space_.view(), [](const Violation& violation) { ADD_FAILURE() << ToString(violation); });
    ASSERT_THAT(summary, IsOk());
  }
  // "STATE path" of each, all pages together.
  std::vector<std::string> Orphans(OrphanQuery query) {
    std::vector<std::string> found;
    for (int pages = 0; pages < 1000; ++pages) {
      const absl::StatusOr<OrphanPage> page = FindOrphans(space_.view(), query);
      EXPECT_THAT(page, IsOk());
      if (!page.ok()) break;
      EXPECT_LE(page->files.size(), query.max_found);
      EXPECT_LE(page->seen, query.max_seen);
      for (const v1::OrphanFile& file : page->files) found.push_back(v1::OrphanFile::State_Name(file.state()) + " " + file.path());
      if (page->next.empty()) return found;
      query.start_after = page->next;
    }
    ADD_FAILURE() << "the walk does not end";
    return found;
  }
  std::vector<std::string> Orphans(const std::string& path) {
    OrphanQuery query;
    query.path = path;
    query.before_ms = space_.now_ms;
    return Orphans(query);
  }

  TestNamespace space_;
};

TEST_F(AbandonedFiles, AWriterThatFallsSilentLosesTheFileAndItsBytesAreFreed) {
  space_.Must(MkdirsMutation("/d"));
  const v1::MutationResult file = Create("/d/f", true, {1, 2, 3});
  ExpectSound();
  EXPECT_GT(Root().charged_bytes(), 0u);
  const v1::MutationResult expired = Expire(file);
  EXPECT_TRUE(expired.existed());
  EXPECT_TRUE(expired.done());
  EXPECT_TRUE(expired.deleted());
  EXPECT_EQ(expired.path(), "/d/f");
  EXPECT_FALSE(Exists("/d/f"));
  EXPECT_EQ(Root().charged_bytes(), 0u);
  EXPECT_EQ(Root().files(), 0u);
  EXPECT_TRUE(space_.view().rows(Family::kLease).empty());
  EXPECT_EQ(expired.freed_size(), 1);
  ExpectSound();
  EXPECT_FALSE(Expire(file).existed());
  // Its writer comes back.
  const auto late = space_.Apply(CompleteMutation(file, "writer"));
  EXPECT_THAT(late, HasKind(ErrorKind::kLeaseExpired));
  EXPECT_THAT(late, HasReason("FILE_GONE"));
}

TEST_F(AbandonedFiles, ACloseKeepsTheFileForGood) {
  const v1::MutationResult file = Create("/f", true);
  space_.Must(CompleteMutation(file, "writer"));
  EXPECT_FALSE(Inode("/f").delete_if_abandoned());
  EXPECT_FALSE(Inode("/f").never_closed());
  EXPECT_FALSE(Expire(file).existed());
  EXPECT_TRUE(Exists("/f"));
  ExpectSound();
}

TEST_F(AbandonedFiles, ARepeatedCreateKeepsItsAnswerWhenTheFileHasGone) {
  v1::Mutation create = WithRetry(CreateMutation("/f", "writer"), 1, 1);
  create.mutable_create()->set_delete_if_abandoned(true);
  const v1::MutationResult file = space_.Must(create);
  Expire(file);
  const v1::MutationResult again = space_.Must(create);
  EXPECT_EQ(again.inode().id(), file.inode().id());
  EXPECT_FALSE(Exists("/f"));  // It has acted, once.
  EXPECT_THAT(space_.Apply(CompleteMutation(again, "writer")), HasReason("FILE_GONE"));
}

TEST_F(AbandonedFiles, ARepeatedReleaseKeepsItsAnswer) {
  const v1::MutationResult file = Create("/f", true);
  v1::Mutation release = WithRetry(MutationOf("writer"), 1, 1);
  release.mutable_expire_lease()->set_holder("writer");
  release.mutable_expire_lease()->set_inode_id(file.inode().id());
  EXPECT_TRUE(space_.Must(release).deleted());
  EXPECT_TRUE(space_.Must(release).deleted());
}

TEST_F(AbandonedFiles, WhoTakesItOverAfterTheSoftLimitFindsItGone) {
  Create("/f", true);
  EXPECT_THAT(space_.Apply(Recover("/f", false, kSoftLimitMs - 1)), HasKind(ErrorKind::kBeingWritten));
  const v1::MutationResult taken = space_.Must(Recover("/f", false));
  EXPECT_TRUE(taken.done());
  EXPECT_TRUE(taken.deleted());
  EXPECT_FALSE(Exists("/f"));
  ExpectSound();
}

TEST_F(AbandonedFiles, WhoForcesItsRecoveryGetsTheFile) {
  Create("/empty", true);
  const v1::MutationResult forced = space_.Must(Recover("/empty", true, 0));
  EXPECT_TRUE(forced.done());
  EXPECT_FALSE(forced.deleted());
  EXPECT_TRUE(Exists("/empty"));
  Create("/f", true, {1, 2, 3});
  EXPECT_FALSE(space_.Must(Recover("/f", true, 0)).done());
  EXPECT_EQ(Inode("/f").lease_holder(), kRecoveryHolder);
  EXPECT_FALSE(Inode("/f").delete_if_abandoned());  // It is closed when its block is settled.
  ExpectSound();
}

TEST_F(AbandonedFiles, ARenameOfTheOpenFileTakesTheWishAlong) {
  const v1::MutationResult file = Create("/f", true);
  space_.Must(RenameMutation("/f", "/g"));
  ExpectSound();
  EXPECT_EQ(Expire(file).path(), "/g");
  EXPECT_FALSE(Exists("/g"));
}

TEST_F(AbandonedFiles, AFileThatNoWriterHasClosedIsMarkedUntilOneDoesOrItIsRenamed) {
  const v1::MutationResult file = Create("/f", false);
  EXPECT_TRUE(Inode("/f").never_closed());  // From the start.
  Expire(file);
  EXPECT_TRUE(Inode("/f").never_closed());
  const v1::MutationResult opened = space_.Must(Append("/f"));
  EXPECT_TRUE(Inode("/f").never_closed());
  space_.Must(CompleteMutation(opened, "writer"));
  EXPECT_FALSE(Inode("/f").never_closed());

  Expire(Create("/g", false));
  space_.Must(RenameMutation("/g", "/h"));
  EXPECT_FALSE(Inode("/h").never_closed());

  // One that is still open may yet be left where it is put.
  const v1::MutationResult open = Create("/i", false);
  space_.Must(RenameMutation("/i", "/j"));
  EXPECT_TRUE(Inode("/j").never_closed());
  Expire(open);
  EXPECT_TRUE(Inode("/j").never_closed());
  ExpectSound();
}

TEST_F(AbandonedFiles, AFileThatItsWriterClosedIsNoOrphanWhenALaterAppendIsGivenUp) {
  space_.Must(CompleteMutation(Create("/f", false), "writer"));
  Expire(space_.Must(Append("/f")));
  EXPECT_FALSE(Inode("/f").never_closed());
  space_.Must(Append("/f"));
  EXPECT_TRUE(space_.Must(Recover("/f", /*by_force=*/true, 0)).done());
  EXPECT_FALSE(Inode("/f").never_closed());
  EXPECT_THAT(Orphans("/"), IsEmpty());
  ExpectSound();
}

TEST_F(AbandonedFiles, TheCheckerNoticesALeaseThatDiffersFromItsFile) {
  const v1::MutationResult file = Create("/f", true);
  v1::LeaseRecord lease;
  lease.set_since_ms(space_.now_ms);
  MemoryTransaction txn(&space_.state());
  PutRecord(txn, Family::kLease, LeaseKey("writer", InodeId(file.inode().id())), lease);
  txn.Commit();
  std::vector<std::string> found;
  ASSERT_THAT(CheckNamespace(space_.view(), [&](const Violation& violation) { found.push_back(violation.what); }), IsOk());
  EXPECT_THAT(found, ElementsAre(fmt::format("it and inode {} differ on what becomes of the file", file.inode().id())));
}

TEST_F(AbandonedFiles, OrphansAreThoseThatNoWriterHasClosed) {
  space_.WriteFile("/job/shared/good", {100});
  Create("/job/shared/open", false);
  Expire(Create("/job/shared/left", false));
  Expire(Create("/job/shared/stuck", false, {1, 2, 3}));  // Its block is under recovery.
  Create("/job/a/open", false);
  Create("/other", false);
  EXPECT_THAT(Orphans("/job"),
              ElementsAre("WRITING /job/a/open", "ABANDONED /job/shared/left", "WRITING /job/shared/open", "SILENT /job/shared/stuck"));
  EXPECT_THAT(Orphans("/other"), ElementsAre("WRITING /other"));
  EXPECT_EQ(Orphans("/").size(), 5u);
  EXPECT_THAT(Orphans("/job/shared/good"), IsEmpty());
  OrphanQuery query;
  query.path = "/none";
  EXPECT_THAT(FindOrphans(space_.view(), query), HasKind(ErrorKind::kNotFound));
}

TEST_F(AbandonedFiles, OnlyThoseAreNamedThatAreSoForLongEnough) {
  Create("/old", false);
  const int64_t then = space_.now_ms;
  space_.now_ms += 60'000;
  Create("/new", false);
  Expire(Create("/closed-just-now", false));
  OrphanQuery query;
  query.path = "/";
  query.before_ms = then;
  EXPECT_THAT(Orphans(query), ElementsAre("WRITING /old"));
  query.before_ms = then - 1;
  EXPECT_THAT(Orphans(query), IsEmpty());
}

TEST_F(AbandonedFiles, PagesOfEverySizeNameEachOnce) {
  std::vector<std::string> expected;
  for (const char* directory : {"/a", "/a/b", "/a/b/c", "/a/d", "/e"}) {
    for (int i = 0; i < 4; ++i) {
      const std::string path = fmt::format("{}/f{}", directory, i);
      if (i == 2) {
        space_.WriteFile(path, {10});
        continue;
      }
      Create(path, false);
      expected.push_back("WRITING " + path);
    }
    space_.Must(MkdirsMutation(fmt::format("{}/empty", directory)));
  }
  std::sort(expected.begin(), expected.end());
  for (size_t seen = 1; seen < 12; ++seen) {
    OrphanQuery query;
    query.path = "/";
    query.before_ms = space_.now_ms;
    query.max_seen = seen;
    std::vector<std::string> found = Orphans(query);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected) << seen;
    query.max_seen = 1000;
    query.max_found = seen;
    found = Orphans(query);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected) << seen;
  }
}

TEST_F(AbandonedFiles, AWalkGoesOnWhereItsDirectoryHasGone) {
  for (const char* path : {"/a/1", "/a/2", "/b/1", "/c"}) Create(path, false);
  OrphanQuery query;
  query.path = "/";
  query.before_ms = space_.now_ms;
  query.max_found = 1;
  const absl::StatusOr<OrphanPage> first = FindOrphans(space_.view(), query);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->files.at(0).path(), "/a/1");
  space_.Must(DeleteMutation("/a", true));
  query.start_after = first->next;
  EXPECT_THAT(Orphans(query), ElementsAre("WRITING /b/1", "WRITING /c"));
  query.start_after = "no path";
  EXPECT_THAT(FindOrphans(space_.view(), query), HasKind(ErrorKind::kInvalidPath));
}

}  // namespace
}  // namespace cairn::namenode
