// Mode, owner, times and extended attributes: what they change, who may, and the words of each refusal.

#include "namenode/namespace/path_walk.h"
#include "namenode/namespace/records.h"
#include "namenode/namespace/xattrs.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::Xattr MakeXattr(v1::XattrNamespace name_space, const std::string& name, const std::string& value = "") {
  v1::Xattr xattr;
  xattr.set_name_space(name_space);
  xattr.set_name(name);
  xattr.set_value(value);
  return xattr;
}

// /d and /d/f are ada's, of group staff. eve is in "others". Names of mutations: what, of which path, by whom.
class AttributeOps : public ::testing::Test {
 protected:
  AttributeOps() {
    space_.Must(MkdirsMutation("/d"));
    space_.WriteFile("/d/f", {1});
  }

  v1::Mutation By(const std::string& user) {
    v1::Mutation mutation = MutationOf("");
    mutation.set_user(user);
    mutation.add_groups(user == "eve" ? "others" : "staff");
    if (user == "ada") mutation.add_groups("ops");
    mutation.set_superuser(user == "root");
    mutation.mutable_limits()->set_permissions_enabled(true);
    mutation.mutable_limits()->set_max_xattrs(3);
    mutation.mutable_limits()->set_max_xattr_bytes(16);
    return mutation;
  }
  v1::Mutation Chmod(const std::string& user, const std::string& path, uint32_t mode) {
    v1::Mutation mutation = By(user);
    mutation.mutable_set_permission()->set_path(path);
    mutation.mutable_set_permission()->set_mode(mode);
    return mutation;
  }
  v1::Mutation Chown(const std::string& user, const std::string& path, const std::string& owner, const std::string& group) {
    v1::Mutation mutation = By(user);
    mutation.mutable_set_owner()->set_path(path);
    mutation.mutable_set_owner()->set_owner(owner);
    mutation.mutable_set_owner()->set_group(group);
    return mutation;
  }
  v1::Mutation Times(const std::string& user, const std::string& path, std::optional<int64_t> modification, std::optional<int64_t> access) {
    v1::Mutation mutation = By(user);
    mutation.mutable_set_times()->set_path(path);
    if (modification) mutation.mutable_set_times()->set_modification_time_ms(*modification);
    if (access) mutation.mutable_set_times()->set_access_time_ms(*access);
    return mutation;
  }
  enum Flag { kEither, kCreate, kReplace };
  v1::Mutation Set(const std::string& user, const std::string& path, const v1::Xattr& xattr, Flag flag = kEither) {
    v1::Mutation mutation = By(user);
    v1::Mutation::SetXattr& op = *mutation.mutable_set_xattr();
    op.set_path(path);
    *op.mutable_xattr() = xattr;
    op.set_create(flag == kCreate);
    op.set_replace(flag == kReplace);
    return mutation;
  }
  v1::Mutation Remove(const std::string& user, const std::string& path, const v1::Xattr& xattr) {
    v1::Mutation mutation = By(user);
    mutation.mutable_remove_xattr()->set_path(path);
    *mutation.mutable_remove_xattr()->mutable_xattr() = xattr;
    return mutation;
  }
  // What a user sees: "user.a=1", sorted; the status of a refusal.
  absl::StatusOr<std::vector<std::string>> Get(const std::string& user, const std::string& path, const std::vector<v1::Xattr>& wanted = {},
                                               bool names_only = false) {
    const v1::Mutation who = By(user);
    const google::protobuf::RepeatedPtrField<v1::Xattr> list(wanted.begin(), wanted.end());
    const auto found = XattrsOfPath(space_.view(), path, list, names_only, Caller(who));
    RETURN_IF_ERROR(found.status());
    std::vector<std::string> texts;
    for (const v1::Xattr& xattr : *found) texts.push_back(XattrName(xattr) + "=" + xattr.value());
    return texts;
  }
  v1::FileStatus Status(const std::string& path) { return *StatusOfPath(space_.view(), path); }
  static std::string Words(const absl::Status& status) { return std::string(status.message()); }
  std::string WordsOf(const v1::Mutation& mutation) { return Words(space_.Apply(mutation).status()); }

  TestNamespace space_;
};

TEST_F(AttributeOps, TheOwnerSetsTheMode) {
  space_.now_ms += 5;
  space_.Must(Chmod("ada", "/d/f", 01640));
  EXPECT_EQ(Status("/d/f").mode(), 01640u);
  EXPECT_EQ(Status("/d/f").modification_time_ms(), kTestStartMs);  // Attributes are no modification.
  space_.Must(Chmod("ada", "/d/f", 01640));
  EXPECT_EQ(space_.rows_written(), 0u);
  space_.Must(Chmod("root", "/", 0777));
  EXPECT_EQ(Status("/").mode(), 0777u);
}

TEST_F(AttributeOps, OthersDoNotSetTheModeEvenWithPermissionsOff) {
  v1::Mutation chmod = Chmod("eve", "/d/f", 0777);
  EXPECT_THAT(space_.Apply(chmod), HasReason("NOT_OWNER"));
  EXPECT_EQ(WordsOf(chmod), "Permission denied. user=eve is not the owner of inode=/d/f");
  chmod.mutable_limits()->set_permissions_enabled(false);
  EXPECT_THAT(space_.Apply(chmod), HasKind(ErrorKind::kPermission));
}

TEST_F(AttributeOps, SetPermissionRefusals) {
  EXPECT_THAT(space_.Apply(Chmod("ada", "/d/none", 0)), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(space_.Apply(Chmod("ada", "/d/f/x", 0)), HasKind(ErrorKind::kNotDirectory));
  EXPECT_THAT(space_.Apply(Chmod("ada", "d", 0)), HasKind(ErrorKind::kInvalidPath));
  EXPECT_THAT(space_.Apply(Chmod("ada", "/d/f", 02000)), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(WordsOf(Chmod("ada", "/d/f", 04755)), "/d/f: mode 4755 is not within 0 to 1777");
  space_.Must(Chmod("ada", "/d", 0700));
  EXPECT_THAT(space_.Apply(Chmod("eve", "/d/f", 0)), HasReason("MISSING_RIGHT"));  // Not even to it.
}

TEST_F(AttributeOps, ASuperuserSetsOwnerAndGroup) {
  space_.Must(Chown("root", "/d/f", "bob", "men"));
  EXPECT_EQ(Status("/d/f").owner(), "bob");
  EXPECT_EQ(Status("/d/f").group(), "men");
  space_.Must(Chown("root", "/d/f", "", "women"));
  EXPECT_EQ(Status("/d/f").owner(), "bob");
  EXPECT_EQ(Status("/d/f").group(), "women");
  space_.Must(Chown("root", "/d/f", "", ""));
  EXPECT_EQ(space_.rows_written(), 0u);
}

TEST_F(AttributeOps, TheOwnerSetsAGroupOfHisOwn) {
  space_.Must(Chown("ada", "/d/f", "", "ops"));
  EXPECT_EQ(Status("/d/f").group(), "ops");
  space_.Must(Chown("ada", "/d/f", "ada", "staff"));  // Himself, as before.
  EXPECT_EQ(Status("/d/f").group(), "staff");
  EXPECT_EQ(WordsOf(Chown("ada", "/d/f", "", "wheel")), "User ada does not belong to wheel");
  EXPECT_EQ(WordsOf(Chown("ada", "/d/f", "bob", "")), "User ada is not a super user (non-super user cannot change owner).");
  EXPECT_EQ(WordsOf(Chown("eve", "/d/f", "", "others")), "Permission denied. user=eve is not the owner of inode=/d/f");
  EXPECT_THAT(space_.Apply(Chown("ada", "/d/f", "", "wheel")), HasReason("NOT_IN_GROUP"));
  EXPECT_THAT(space_.Apply(Chown("ada", "/d/f", "bob", "")), HasReason("NOT_SUPERUSER"));
  v1::Mutation off = Chown("ada", "/d/f", "bob", "");
  off.mutable_limits()->set_permissions_enabled(false);
  EXPECT_THAT(space_.Apply(off), HasKind(ErrorKind::kPermission));
}

TEST_F(AttributeOps, SetOwnerRefusals) {
  EXPECT_THAT(space_.Apply(Chown("root", "/none", "a", "")), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(space_.Apply(Chown("root", "/d/f", std::string(255, 'a'), "")), IsOk());
  EXPECT_THAT(space_.Apply(Chown("root", "/d/f", std::string(256, 'a'), "")), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_EQ(WordsOf(Chown("root", "/d/f", "", std::string(256, 'a'))), "/d/f: an owner or group of 256 bytes is too long (at most 255)");
}

TEST_F(AttributeOps, TimesAreSetByWhoMayWrite) {
  space_.Must(Times("ada", "/d/f", 1000, 2000));
  EXPECT_EQ(Status("/d/f").modification_time_ms(), 1000);
  EXPECT_EQ(Status("/d/f").access_time_ms(), 2000);
  space_.Must(Times("ada", "/d/f", std::nullopt, 0));
  EXPECT_EQ(Status("/d/f").modification_time_ms(), 1000);
  EXPECT_EQ(Status("/d/f").access_time_ms(), 0);
  space_.Must(Times("ada", "/d", 3000, std::nullopt));
  EXPECT_EQ(Status("/d").modification_time_ms(), 3000);
  EXPECT_EQ(WordsOf(Times("eve", "/d/f", 1, 1)), "Permission denied: user=eve, access=WRITE, inode=\"/d/f\":ada:staff:-rw-r--r--");
  space_.Must(Chmod("ada", "/d/f", 0466));
  space_.Must(Times("eve", "/d/f", 4000, std::nullopt));
  EXPECT_THAT(space_.Apply(Times("ada", "/d/f", 1, 1)), HasKind(ErrorKind::kPermission));  // The owner without w: as in HDFS.
  EXPECT_THAT(space_.Apply(Times("ada", "/d/none", 1, 1)), HasKind(ErrorKind::kNotFound));
  EXPECT_EQ(WordsOf(Times("root", "/d/f", -1, std::nullopt)), "/d/f: a time of -1 ms is before 1970");
}

TEST_F(AttributeOps, ADirectorySetIntoTheFutureStaysThere) {
  const int64_t later = kTestStartMs + 1'000'000;
  space_.Must(Times("ada", "/d", later, std::nullopt));
  space_.Must(MkdirsMutation("/d/new"));
  EXPECT_EQ(Status("/d").modification_time_ms(), later);
  space_.now_ms = later + 1;
  space_.Must(MkdirsMutation("/d/newer"));
  EXPECT_EQ(Status("/d").modification_time_ms(), later + 1);
}

TEST_F(AttributeOps, XattrsAreSetReplacedAndRemoved) {
  const auto b = MakeXattr(v1::XATTR_USER, "b", "1");
  space_.Must(Set("ada", "/d/f", b));
  space_.Must(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "c", ""), kCreate));
  space_.Must(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "a", "2")));
  EXPECT_THAT(*Get("ada", "/d/f"), ElementsAre("user.a=2", "user.b=1", "user.c="));  // By name, whatever the order they came in.
  space_.Must(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "b", "3"), kReplace));
  EXPECT_THAT(*Get("ada", "/d/f", {b}), ElementsAre("user.b=3"));
  space_.Must(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "b", "3")));
  EXPECT_EQ(space_.rows_written(), 0u);
  space_.Must(Remove("ada", "/d/f", b));
  EXPECT_THAT(*Get("ada", "/d/f"), ElementsAre("user.a=2", "user.c="));
  space_.Must(RenameMutation("/d/f", "/d/g"));
  EXPECT_THAT(*Get("ada", "/d/g"), ElementsAre("user.a=2", "user.c="));
  EXPECT_EQ(Status("/d/g").modification_time_ms(), kTestStartMs);
}

TEST_F(AttributeOps, XattrFlags) {
  const auto a = MakeXattr(v1::XATTR_USER, "a", "1");
  EXPECT_EQ(WordsOf(Set("ada", "/d/f", a, kReplace)), "XAttr: user.a does not exist. The CREATE flag must be specified.");
  EXPECT_THAT(space_.Apply(Set("ada", "/d/f", a, kReplace)), HasReason("XATTR_NOT_FOUND"));
  space_.Must(Set("ada", "/d/f", a, kCreate));
  EXPECT_EQ(WordsOf(Set("ada", "/d/f", a, kCreate)), "XAttr: user.a already exists. The REPLACE flag must be specified.");
  EXPECT_THAT(space_.Apply(Set("ada", "/d/f", a, kCreate)), HasReason("XATTR_EXISTS"));
  v1::Mutation both = Set("ada", "/d/f", a, kCreate);
  both.mutable_set_xattr()->set_replace(true);
  EXPECT_THAT(space_.Apply(both), IsOk());
}

TEST_F(AttributeOps, XattrsThatAreMissing) {
  const auto a = MakeXattr(v1::XATTR_USER, "a");
  EXPECT_EQ(WordsOf(Remove("ada", "/d/f", a)), "No matching attributes found for remove operation");
  space_.Must(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "b", "1")));
  const auto got = Get("ada", "/d/f", {MakeXattr(v1::XATTR_USER, "b"), a});
  EXPECT_THAT(got, HasReason("XATTR_NOT_FOUND"));
  EXPECT_EQ(Words(got.status()), "At least one of the attributes provided was not found.");
  EXPECT_THAT(space_.Apply(Set("ada", "/none", a)), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(space_.Apply(Remove("ada", "/none", a)), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(Get("ada", "/none"), HasKind(ErrorKind::kNotFound));
}

TEST_F(AttributeOps, XattrLimits) {
  EXPECT_THAT(space_.Apply(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "abcdef", "0123456789"))), IsOk());
  const auto big = space_.Apply(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "abcdefg", "0123456789")));
  EXPECT_THAT(big, HasKind(ErrorKind::kQuota));
  EXPECT_EQ(Words(big.status()),
            "The XAttr is too big: 17 bytes of name and value (limit 16, raised by dfs.namenode.fs-limits.max-xattr-size)");
  EXPECT_EQ(ErrorOf(big.status())->key, "dfs.namenode.fs-limits.max-xattr-size");
  space_.Must(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "2")));
  space_.Must(Set("root", "/d/f", MakeXattr(v1::XATTR_TRUSTED, "3")));
  const auto many = space_.Apply(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "4")));
  EXPECT_THAT(many, HasKind(ErrorKind::kQuota));
  EXPECT_EQ(Words(many.status()),
            "/d/f: cannot add another XAttr to the inode (limit 3, raised by dfs.namenode.fs-limits.max-xattrs-per-inode)");
  EXPECT_THAT(space_.Apply(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "2", "new"))), IsOk());  // Not one more.
}

TEST_F(AttributeOps, XattrNamesAndNameSpaces) {
  EXPECT_EQ(WordsOf(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "", "x"))), "XAttr name cannot be empty.");
  EXPECT_EQ(WordsOf(Set("ada", "/d/f", MakeXattr(v1::XATTR_NAMESPACE_UNSPECIFIED, "a"))),
            "An XAttr name must be prefixed with user/trusted/security/system, followed by a '.'");
  for (const v1::XattrNamespace own : {v1::XATTR_SECURITY, v1::XATTR_SYSTEM}) {
    for (const char* user : {"ada", "root"}) {
      const auto xattr = MakeXattr(own, "a");
      EXPECT_THAT(space_.Apply(Set(user, "/d/f", xattr)), HasReason("XATTR_NAMESPACE"));
      EXPECT_THAT(space_.Apply(Remove(user, "/d/f", xattr)), HasReason("XATTR_NAMESPACE"));
      EXPECT_THAT(Get(user, "/d/f", {xattr}), HasReason("XATTR_NAMESPACE"));
    }
  }
  EXPECT_EQ(WordsOf(Set("ada", "/d/f", MakeXattr(v1::XATTR_SYSTEM, "a"))), "User doesn't have permission for xattr: system.a");
}

TEST_F(AttributeOps, TrustedXattrsAreSuperusers) {
  const auto xattr = MakeXattr(v1::XATTR_TRUSTED, "t", "1");
  EXPECT_EQ(WordsOf(Set("ada", "/d/f", xattr)), "User doesn't have permission for xattr: trusted.t");
  space_.Must(Set("root", "/d/f", xattr));
  space_.Must(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "u", "1")));
  EXPECT_THAT(*Get("root", "/d/f"), ElementsAre("user.u=1", "trusted.t=1"));
  EXPECT_THAT(*Get("ada", "/d/f"), ElementsAre("user.u=1"));
  EXPECT_THAT(Get("ada", "/d/f", {xattr}), HasReason("XATTR_NAMESPACE"));
  EXPECT_THAT(space_.Apply(Remove("ada", "/d/f", xattr)), HasReason("XATTR_NAMESPACE"));
  space_.Must(Remove("root", "/d/f", xattr));
  EXPECT_THAT(*Get("root", "/d/f"), ElementsAre("user.u=1"));
}

TEST_F(AttributeOps, UserXattrsNeedWriteToChangeAndReadToSee) {
  const auto xattr = MakeXattr(v1::XATTR_USER, "a", "1");
  EXPECT_EQ(WordsOf(Set("eve", "/d/f", xattr)), "Permission denied: user=eve, access=WRITE, inode=\"/d/f\":ada:staff:-rw-r--r--");
  EXPECT_THAT(space_.Apply(Remove("eve", "/d/f", xattr)), HasReason("MISSING_RIGHT"));
  space_.Must(Chmod("ada", "/d/f", 0602));
  space_.Must(Set("eve", "/d/f", xattr));
  EXPECT_EQ(Words(Get("eve", "/d/f").status()), "Permission denied: user=eve, access=READ, inode=\"/d/f\":ada:staff:-rw-----w-");
  EXPECT_THAT(*Get("eve", "/d/f", {}, /*names_only=*/true), ElementsAre("user.a="));  // To pass through the directory is enough.
  space_.Must(Chmod("ada", "/d", 0700));
  EXPECT_THAT(Get("eve", "/d/f", {}, true), HasReason("MISSING_RIGHT"));
}

TEST_F(AttributeOps, AStickyDirectorysXattrsAreItsOwners) {
  space_.Must(Chmod("ada", "/d", 01777));
  const auto xattr = MakeXattr(v1::XATTR_USER, "a", "1");
  EXPECT_THAT(space_.Apply(Set("eve", "/d", xattr)), HasReason("NOT_OWNER"));
  EXPECT_THAT(space_.Apply(Set("ada", "/d", xattr)), IsOk());
  EXPECT_THAT(space_.Apply(Remove("eve", "/d", xattr)), HasReason("NOT_OWNER"));
  v1::Mutation off = Remove("eve", "/d", xattr);
  off.mutable_limits()->set_permissions_enabled(false);
  EXPECT_THAT(space_.Apply(off), IsOk());
}

TEST_F(AttributeOps, AttributeChangesActOnce) {
  const v1::Mutation set = WithRetry(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "a", "1"), kCreate), 0, 1);
  space_.Must(set);
  EXPECT_THAT(space_.Apply(set), IsOk());  // The kept answer, not XATTR_EXISTS.
  const v1::Mutation chmod = WithRetry(Chmod("ada", "/d/f", 0600), 0, 2);
  space_.Must(chmod);
  space_.Must(Chmod("ada", "/d/f", 0644));
  space_.Must(chmod);
  EXPECT_EQ(Status("/d/f").mode(), 0644u);
}

TEST_F(AttributeOps, NoResultCarriesXattrs) {
  space_.Must(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "a", "1")));
  EXPECT_THAT(space_.Must(RenameMutation("/d/f", "/d/g")).inode().xattrs(), IsEmpty());
}

TEST_F(AttributeOps, AttributesOfADeletedFileAreGone) {
  space_.Must(Set("ada", "/d/f", MakeXattr(v1::XATTR_USER, "a", "1")));
  space_.Must(DeleteMutation("/d/f", false));
  space_.WriteFile("/d/f", {});
  EXPECT_THAT(*Get("ada", "/d/f"), IsEmpty());
}

}  // namespace
}  // namespace cairn::namenode
