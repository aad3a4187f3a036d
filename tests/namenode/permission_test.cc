// Who may do what: every operation that takes a path, every right it needs, and the words when one is missing.

#include "namenode/namespace/permission.h"

#include "namenode/namespace/path_walk.h"
#include "namenode/namespace/records.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

// The tree below is ada's, of group staff. bob is in staff, eve is in nothing.
class Permissions : public ::testing::Test {
 protected:
  Permissions() {
    Mode("/", 0777);
    space_.Must(MkdirsMutation("/d"));
    space_.WriteFile("/d/f", {1});
    space_.Must(MkdirsMutation("/d/sub/x"));
    space_.Must(MkdirsMutation("/d/empty"));
  }

  // As the front door sends it for a user who is no superuser.
  static v1::Mutation As(const std::string& user, v1::Mutation mutation) {
    mutation.set_user(user);
    if (user == "bob") mutation.add_groups("staff");
    mutation.mutable_limits()->set_permissions_enabled(true);
    return mutation;
  }
  absl::Status Try(const std::string& user, const v1::Mutation& mutation) { return space_.Apply(As(user, mutation)).status(); }

  // Changes a record behind everybody's back.
  void Mode(const std::string& path, uint32_t mode) {
    const PathWalk walk = *WalkExisting(space_.view(), path, Caller::Trusted());
    InodeAt inode = walk.last().Copy();
    inode.record.set_mode(mode);
    space_.state().rows(Family::kInode)[InodeKey(inode.parent, inode.name)] = inode.record.SerializeAsString();
  }
  void Owner(const std::string& path, const std::string& owner) {
    const PathWalk walk = *WalkExisting(space_.view(), path, Caller::Trusted());
    InodeAt inode = walk.last().Copy();
    inode.record.set_owner(owner);
    space_.state().rows(Family::kInode)[InodeKey(inode.parent, inode.name)] = inode.record.SerializeAsString();
  }
  static v1::Mutation Overwrite(const std::string& path) {
    v1::Mutation create = CreateMutation(path, "me");
    create.mutable_create()->set_overwrite(true);
    return create;
  }
  static std::string Words(const absl::Status& status) { return std::string(status.message()); }
  bool Exists(const std::string& path) { return StatusOfPath(space_.view(), path).ok(); }

  TestNamespace space_;
  const Caller::Groups none_;
  const Caller eve_{"eve", &none_, false, true};
};

TEST_F(Permissions, TheFirstClassThatFitsDecides) {
  Caller::Groups staff;
  *staff.Add() = "other";
  *staff.Add() = "staff";
  const Caller ada("ada", &staff, false, true);
  const Caller bob("bob", &staff, false, true);
  v1::INodeRecord record;
  record.set_owner("ada");
  record.set_group("staff");
  record.set_mode(0047);  // The owner has less than his group, which has less than the others.
  EXPECT_FALSE(ada.MayAccess(record, kReadRight));
  EXPECT_TRUE(bob.MayAccess(record, kReadRight));
  EXPECT_FALSE(bob.MayAccess(record, kReadRight | kWriteRight));
  EXPECT_TRUE(eve_.MayAccess(record, kAllRights));
  EXPECT_TRUE(ada.MayAccess(record, 0));
  EXPECT_TRUE(Caller::Trusted().MayAccess(record, kAllRights));
  EXPECT_TRUE(Caller("ada", nullptr, false, false).MayAccess(record, kAllRights));
}

TEST_F(Permissions, NobodyOwnsNothing) {
  v1::INodeRecord record;  // Without owner and group.
  record.set_mode(0700);
  EXPECT_FALSE(Caller("", nullptr, false, true).MayAccess(record, kReadRight));
}

TEST_F(Permissions, ModesAreWrittenAsLsDoes) {
  v1::INodeRecord record;
  record.set_type(v1::DIRECTORY);
  record.set_mode(01777);
  EXPECT_EQ(ModeText(record), "drwxrwxrwt");
  record.set_mode(01640);
  record.set_type(v1::FILE);
  EXPECT_EQ(ModeText(record), "-rw-r----T");
  record.set_mode(0);
  EXPECT_EQ(ModeText(record), "----------");
}

TEST_F(Permissions, EveryDirectoryAboveHasToBePassedThrough) {
  Mode("/d", 0766);
  const absl::Status denied = StatusOfPath(space_.view(), "/d/f", eve_).status();
  EXPECT_THAT(denied, HasKind(ErrorKind::kPermission));
  EXPECT_THAT(denied, HasReason("MISSING_RIGHT"));
  EXPECT_EQ(Words(denied), "Permission denied: user=eve, access=EXECUTE, inode=\"/d\":ada:staff:drwxrw-rw-");
  EXPECT_EQ(ErrorOf(denied)->path, "/d");
  // Whether a thing below is there, or is a file, stays hidden.
  EXPECT_THAT(StatusOfPath(space_.view(), "/d/none", eve_), HasKind(ErrorKind::kPermission));
  EXPECT_THAT(StatusOfPath(space_.view(), "/d/f/x", eve_), HasKind(ErrorKind::kPermission));
  EXPECT_THAT(StatusOfPath(space_.view(), "/d", eve_), IsOk());
  for (const v1::Mutation& mutation : {CreateMutation("/d/new", "me"), MkdirsMutation("/d/new"), MkdirsMutation("/d/sub"),
                                       DeleteMutation("/d/f", false), RenameMutation("/d/f", "/g"), RenameMutation("/none", "/d/g")})
    EXPECT_THAT(Try("eve", mutation), HasKind(ErrorKind::kPermission)) << mutation.ShortDebugString();
  Mode("/", 0776);
  EXPECT_EQ(Words(StatusOfPath(space_.view(), "/d", eve_).status()),
            "Permission denied: user=eve, access=EXECUTE, inode=\"/\":root:staff:drwxrwxrw-");
  EXPECT_THAT(StatusOfPath(space_.view(), "/", eve_), IsOk());
}

TEST_F(Permissions, ListingNeedsReadAndExecuteOfTheDirectory) {
  for (const uint32_t mode : {0773u, 0774u, 0772u}) {
    Mode("/d", mode);
    const auto listing = ListDirectory(space_.view(), "/d", "", 10, eve_);
    EXPECT_THAT(listing, HasKind(ErrorKind::kPermission));
    EXPECT_NE(Words(listing.status()).find("access=READ_EXECUTE, inode=\"/d\""), std::string::npos);
    EXPECT_THAT(SummaryOfPath(space_.view(), "/d", eve_), HasKind(ErrorKind::kPermission));
  }
  Mode("/d", 0775);
  EXPECT_THAT(ListDirectory(space_.view(), "/d", "", 10, eve_), IsOk());
  EXPECT_THAT(SummaryOfPath(space_.view(), "/d", eve_), IsOk());
  Mode("/d/f", 0700);  // A file's entry is the directory's.
  EXPECT_THAT(ListDirectory(space_.view(), "/d/f", "", 10, eve_), IsOk());
  EXPECT_THAT(SummaryOfPath(space_.view(), "/d/f", eve_), IsOk());
}

TEST_F(Permissions, OpeningNeedsReadOfTheFile) {
  Mode("/d/f", 0640);
  EXPECT_THAT(ResolvePath(space_.view(), "/d/f", eve_), IsOk());
  const auto denied = ResolvePath(space_.view(), "/d/f", eve_, kReadRight);
  EXPECT_EQ(Words(denied.status()), "Permission denied: user=eve, access=READ, inode=\"/d/f\":ada:staff:-rw-r-----");
  Mode("/d/f", 0644);
  EXPECT_THAT(ResolvePath(space_.view(), "/d/f", eve_, kReadRight), IsOk());
}

TEST_F(Permissions, CreatingNeedsWriteOfTheNearestDirectory) {
  EXPECT_EQ(Words(Try("eve", CreateMutation("/d/new", "me"))),
            "Permission denied: user=eve, access=WRITE, inode=\"/d\":ada:staff:drwxr-xr-x");
  EXPECT_EQ(Words(Try("eve", CreateMutation("/d/a/b/new", "me"))),
            "Permission denied: user=eve, access=WRITE, inode=\"/d\":ada:staff:drwxr-xr-x");
  EXPECT_THAT(Try("ada", CreateMutation("/d/new", "me")), IsOk());
  Mode("/d", 0775);
  EXPECT_THAT(Try("bob", CreateMutation("/d/by-bob", "me")), IsOk());
  const auto status = StatusOfPath(space_.view(), "/d/by-bob");
  EXPECT_EQ(status->owner(), "bob");
  EXPECT_EQ(status->group(), "staff");                                                     // The directory's.
  EXPECT_THAT(Try("eve", CreateMutation("/d/f", "me")), HasKind(ErrorKind::kPermission));  // Before kAlreadyExists.
}

TEST_F(Permissions, OverwritingNeedsWriteOfTheFileToo) {
  Mode("/d", 0777);
  EXPECT_EQ(Words(Try("eve", Overwrite("/d/f"))), "Permission denied: user=eve, access=WRITE, inode=\"/d/f\":ada:staff:-rw-r--r--");
  Mode("/d/f", 0666);
  EXPECT_THAT(Try("eve", Overwrite("/d/f")), IsOk());
  EXPECT_EQ(StatusOfPath(space_.view(), "/d/f")->owner(), "eve");
}

TEST_F(Permissions, MakingDirectoriesNeedsWriteOfTheNearest) {
  EXPECT_EQ(Words(Try("eve", MkdirsMutation("/d/n/m"))), "Permission denied: user=eve, access=WRITE, inode=\"/d\":ada:staff:drwxr-xr-x");
  EXPECT_THAT(Try("eve", MkdirsMutation("/d/sub")), IsOk());  // It is there: nothing is made.
  EXPECT_THAT(Try("eve", MkdirsMutation("/e/n")), IsOk());
}

TEST_F(Permissions, DeletingNeedsWriteOfTheParentOnly) {
  EXPECT_EQ(Words(Try("eve", DeleteMutation("/d/f", false))),
            "Permission denied: user=eve, access=WRITE, inode=\"/d\":ada:staff:drwxr-xr-x");
  EXPECT_THAT(Try("eve", DeleteMutation("/d/none", false)), HasKind(ErrorKind::kPermission));
  EXPECT_THAT(Try("eve", DeleteMutation("/d/none/x", false)), IsOk());  // No parent: nothing to ask.
  Mode("/d", 0777);
  Mode("/d/f", 0400);
  EXPECT_THAT(Try("eve", DeleteMutation("/d/f", false)), IsOk());
  EXPECT_FALSE(Exists("/d/f"));
}

TEST_F(Permissions, DeletingWhatHoldsEntriesNeedsAllRightsOfIt) {
  Mode("/d", 0777);
  for (const uint32_t mode : {0776u, 0775u, 0773u}) {
    Mode("/d/sub", mode);
    EXPECT_THAT(Try("eve", DeleteMutation("/d/sub", true)), HasKind(ErrorKind::kPermission)) << mode;
    EXPECT_THAT(Try("eve", DeleteMutation("/d/sub", false)), HasKind(ErrorKind::kPermission)) << mode;
  }
  Mode("/d/sub", 0755);
  EXPECT_EQ(Words(Try("eve", DeleteMutation("/d/sub", true))),
            "Permission denied: user=eve, access=ALL, inode=\"/d/sub\":ada:staff:drwxr-xr-x");
  EXPECT_THAT(Try("eve", DeleteMutation("/d/empty", false)), IsOk());  // Whatever its mode.
  // Not what is further below: a delete costs the same, however large the tree is.
  Mode("/d/sub", 0777);
  Mode("/d/sub/x", 0700);
  EXPECT_THAT(Try("eve", DeleteMutation("/d/sub", true)), IsOk());
}

TEST_F(Permissions, DeleteManyAnswersACodeForEach) {
  Mode("/", 0777);
  space_.WriteFile("/mine", {});
  v1::Mutation many = MutationOf("");
  many.mutable_delete_many()->add_paths("/d/f");
  many.mutable_delete_many()->add_paths("/mine");
  const auto result = space_.Apply(As("eve", many));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->codes(), (std::string{static_cast<char>(ErrorKind::kPermission), '\0'}));
}

TEST_F(Permissions, TheStickyBitKeepsOthersEntries) {
  space_.Must(MkdirsMutation("/tmp"));
  Mode("/tmp", 01777);
  space_.WriteFile("/tmp/a", {});
  ASSERT_THAT(Try("eve", CreateMutation("/tmp/e", "me")), IsOk());
  const absl::Status denied = Try("eve", DeleteMutation("/tmp/a", false));
  EXPECT_THAT(denied, HasReason("STICKY_BIT"));
  EXPECT_EQ(Words(denied),
            "Permission denied by sticky bit: user=eve, path=\"/tmp/a\":ada:staff:-rw-r--r--, parent=\"/tmp\":ada:staff:drwxrwxrwt");
  EXPECT_THAT(Try("eve", RenameMutation("/tmp/a", "/tmp/b")), HasReason("STICKY_BIT"));
  EXPECT_THAT(Try("eve", RenameMutation("/tmp/e", "/tmp/a", true)), HasReason("STICKY_BIT"));  // It would go.
  EXPECT_THAT(Try("eve", DeleteMutation("/tmp/none", false)), IsOk());
  EXPECT_THAT(Try("eve", RenameMutation("/tmp/e", "/tmp/own")), IsOk());
  EXPECT_THAT(Try("ada", DeleteMutation("/tmp/own", false)), IsOk());  // The directory's owner.
  EXPECT_THAT(Try("ada", DeleteMutation("/tmp/a", false)), IsOk());
}

TEST_F(Permissions, RenamingNeedsWriteOnBothSides) {
  space_.Must(MkdirsMutation("/to"));
  EXPECT_EQ(Words(Try("eve", RenameMutation("/d/f", "/g"))),
            "Permission denied: user=eve, access=WRITE, inode=\"/d\":ada:staff:drwxr-xr-x");
  EXPECT_THAT(Try("eve", RenameMutation("/d/none", "/g")), HasKind(ErrorKind::kPermission));
  Mode("/d", 0777);
  EXPECT_EQ(Words(Try("eve", RenameMutation("/d/f", "/to/g"))),
            "Permission denied: user=eve, access=WRITE, inode=\"/to\":ada:staff:drwxr-xr-x");
  Mode("/to", 0777);
  Mode("/d/f", 0);  // What moves is not asked.
  EXPECT_THAT(Try("eve", RenameMutation("/d/f", "/to/g")), IsOk());
  EXPECT_THAT(Try("eve", RenameMutation("/d/none", "/to/h")), HasKind(ErrorKind::kNotFound));
}

TEST_F(Permissions, GroupsCount) {
  Mode("/d", 0570);
  EXPECT_THAT(Try("bob", DeleteMutation("/d/f", false)), IsOk());
  EXPECT_THAT(Try("ada", DeleteMutation("/d/empty", false)), HasKind(ErrorKind::kPermission));  // The owner may not write.
  EXPECT_THAT(Try("eve", DeleteMutation("/d/empty", false)), HasKind(ErrorKind::kPermission));
}

TEST_F(Permissions, ASuperuserMayAllAndWithTheSwitchOffEverybody) {
  Mode("/d", 0);
  v1::Mutation mutation = As("eve", DeleteMutation("/d/f", false));
  mutation.set_superuser(true);
  EXPECT_THAT(space_.Apply(mutation), IsOk());
  mutation = As("eve", DeleteMutation("/d/sub", true));
  mutation.mutable_limits()->set_permissions_enabled(false);
  EXPECT_THAT(space_.Apply(mutation), IsOk());
}

TEST_F(Permissions, WorkUnderALeaseIsNotChecked) {
  const v1::MutationResult file = space_.Must(CreateMutation("/d/open", "me"));
  Owner("/d/open", "ada");
  Mode("/d", 0);
  EXPECT_THAT(Try("eve", AddBlockMutation(file, "me", {1, 2, 3})), IsOk());
  v1::Mutation fsync = MutationOf("me");
  fsync.mutable_fsync()->set_inode_id(file.inode().id());
  EXPECT_THAT(KindOf(Try("eve", fsync)), ::testing::Ne(ErrorKind::kPermission));
}

TEST_F(Permissions, ARefusalThatIsRepeatedIsDecidedAgain) {
  const v1::Mutation create = WithRetry(CreateMutation("/d/new", "me"), 0, 1);
  EXPECT_THAT(Try("eve", create), HasKind(ErrorKind::kPermission));
  Mode("/d", 0777);
  EXPECT_THAT(Try("eve", create), IsOk());
  Mode("/d", 0755);
  EXPECT_THAT(Try("eve", create), IsOk());  // It has acted: the kept answer.
}

TEST_F(Permissions, OwnersAndSuperusers) {
  const PathWalk walk = *WalkExisting(space_.view(), "/d", Caller::Trusted());
  EXPECT_THAT(Caller("ada", nullptr, false, true).CheckOwner(walk), IsOk());
  EXPECT_THAT(Caller("eve", nullptr, true, true).CheckOwner(walk), IsOk());
  const absl::Status not_owner = Caller("eve", nullptr, false, /*enforced=*/false).CheckOwner(walk);
  EXPECT_THAT(not_owner, HasReason("NOT_OWNER"));
  EXPECT_EQ(Words(not_owner), "Permission denied. user=eve is not the owner of inode=/d");
  EXPECT_THAT(Caller("ada", nullptr, true, true).CheckSuperuser(), IsOk());
  EXPECT_THAT(Caller("ada", nullptr, false, false).CheckSuperuser(), IsOk());
  EXPECT_THAT(eve_.CheckSuperuser(), HasReason("NOT_SUPERUSER"));
  EXPECT_EQ(Words(eve_.CheckSuperuser()), "Access denied for user eve. Superuser privilege is required");
}

}  // namespace
}  // namespace cairn::namenode
