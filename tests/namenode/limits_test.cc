// Names and their limits, and what is said before a limit is reached.

#include "namenode/namespace/op_context.h"
#include "namenode/namespace/records.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::HasSubstr;

class LimitsTest : public ::testing::Test {
 protected:
  absl::Status Mkdirs(const std::string& path) { return space_.Apply(MkdirsMutation(path)).status(); }
  std::string Words(const std::string& path) { return std::string(Mkdirs(path).message()); }
  static std::string Repeat(const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  }
  TestNamespace space_;
};

TEST_F(LimitsTest, AnyNameThatIsUtf8CanBeMadeListedRenamedAndDeleted) {
  const std::vector<std::string> names = {"100%",     "%2F",   "a+b",        "a:b",    " ",          "a b ",
                                          "\\",       "*",     "?[x]",       "\xc3\xa4", "\xf0\x9f\x9a\x80", "...",
                                          ".hidden",  "-rf",   "new\nline",  "tab\t",  "\x01",       std::string(255, 'x'),
                                          ".reserved", "nul"};
  for (const std::string& name : names) {
    const std::string path = "/d/" + name;
    space_.WriteFile(path, {3});
    EXPECT_THAT(StatusOfPath(space_.view(), path), IsOk()) << name;
    space_.Must(RenameMutation(path, "/d/" + name.substr(0, 200) + "'"));
    space_.Must(RenameMutation("/d/" + name.substr(0, 200) + "'", path));
  }
  EXPECT_EQ(ListDirectory(space_.view(), "/d", "", 1000)->entries.size(), names.size());
  for (const std::string& name : names) EXPECT_TRUE(space_.Must(DeleteMutation("/d/" + name, false)).existed());
}

TEST_F(LimitsTest, ANameHasAtMost255Bytes) {
  EXPECT_THAT(Mkdirs("/" + std::string(255, 'a')), IsOk());
  const absl::Status ascii = Mkdirs("/" + std::string(256, 'a'));
  EXPECT_THAT(ascii, HasKind(ErrorKind::kQuota));
  EXPECT_THAT(ascii, HasReason("NAME_TOO_LONG"));
  EXPECT_EQ(ErrorOf(ascii)->limit, 255);
  EXPECT_EQ(ErrorOf(ascii)->key, "dfs.namenode.fs-limits.max-component-length");
  EXPECT_THAT(std::string(ascii.message()), HasSubstr("the maximum path component name limit is exceeded"));
  EXPECT_THAT(std::string(ascii.message()), HasSubstr("256 bytes"));
  EXPECT_THAT(Mkdirs("/" + Repeat("\xe2\x82\xac", 85)), IsOk());  // 255 bytes of three each.
  EXPECT_THAT(Mkdirs("/" + Repeat("\xe2\x82\xac", 86)), HasReason("NAME_TOO_LONG"));
  EXPECT_THAT(space_.Apply(CreateMutation("/" + std::string(256, 'a'), "me")), HasReason("NAME_TOO_LONG"));
  space_.WriteFile("/f", {});
  EXPECT_THAT(space_.Apply(RenameMutation("/f", "/" + std::string(256, 'a'))), HasReason("NAME_TOO_LONG"));
}

TEST_F(LimitsTest, APathHasAtMost8000BytesAndAThousandNames) {
  const std::string name = "/" + std::string(199, 'n');  // 200 bytes with its slash.
  const std::string longest = Repeat(name, 40);
  EXPECT_THAT(Mkdirs(longest), IsOk());
  const absl::Status too_long = Mkdirs(longest.substr(0, 7800) + "/" + std::string(200, 'n'));
  EXPECT_THAT(too_long, HasReason("PATH_TOO_LONG"));
  EXPECT_THAT(std::string(too_long.message()), HasSubstr("Pathname too long"));
  EXPECT_EQ(ErrorOf(too_long)->limit, 8000);
  EXPECT_THAT(Mkdirs(Repeat("/d", 1000)), IsOk());
  const absl::Status too_deep = Mkdirs(Repeat("/d", 1001));
  EXPECT_THAT(too_deep, HasReason("PATH_TOO_DEEP"));
  EXPECT_THAT(std::string(too_deep.message()), HasSubstr("1001 levels"));
}

TEST_F(LimitsTest, ARenameMayMakeLongerPathsBelowWhichStayInUse) {
  const std::string name = "/" + std::string(199, 'n');
  const std::string longest = Repeat(name, 40);
  ASSERT_THAT(Mkdirs(longest), IsOk());
  const std::string longer = "/" + std::string(255, 't') + "/" + std::string(255, 'u');
  space_.Must(MkdirsMutation(longer));
  space_.Must(RenameMutation(name, longer + "/name"));
  const std::string below = longer + "/name" + longest.substr(200);
  ASSERT_THAT(StatusOfPath(space_.view(), below), IsOk());
  EXPECT_GT(below.size(), 8000u);
  EXPECT_TRUE(space_.Must(DeleteMutation(below, false)).existed());
}

TEST_F(LimitsTest, ReservedNamesCannotBeMade) {
  space_.WriteFile("/d/f", {});
  for (const char* path : {"/.reserved", "/.reserved/x", "/.snapshot", "/d/.snapshot", "/d/.snapshot/s"}) {
    const absl::Status refused = Mkdirs(path);
    EXPECT_THAT(refused, HasKind(ErrorKind::kInvalidArgument)) << path;
    EXPECT_THAT(refused, HasReason("RESERVED_NAME")) << path;
    EXPECT_THAT(space_.Apply(CreateMutation(path, "me")), HasReason("RESERVED_NAME")) << path;
  }
  EXPECT_EQ(Words("/.reserved"), "/.reserved: \".reserved\" is a reserved name and cannot be created");
  EXPECT_THAT(space_.Apply(RenameMutation("/d/f", "/.reserved")), HasReason("RESERVED_NAME"));
  EXPECT_THAT(space_.Apply(RenameMutation("/d/f", "/d/.snapshot")), HasReason("RESERVED_NAME"));
  EXPECT_THAT(StatusOfPath(space_.view(), "/.reserved"), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(Mkdirs("/d/.reserved"), IsOk());
}

TEST_F(LimitsTest, AnOperatorMayForbidCharacters) {
  const auto mkdirs = [&](const std::string& path) {
    v1::Mutation mutation = MkdirsMutation(path);
    mutation.mutable_limits()->set_forbidden_characters(":\xc3\xa4\n");
    return space_.Apply(mutation).status();
  };
  ASSERT_THAT(Mkdirs("/a:b"), IsOk());
  const absl::Status refused = mkdirs("/x/a:c");
  EXPECT_THAT(refused, HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(refused, HasReason("FORBIDDEN_CHARACTER"));
  EXPECT_EQ(refused.message(), "/x/a:c: \":\" may not be in a name (set by cairn.namenode.fs-limits.forbidden-characters)");
  EXPECT_THAT(mkdirs("/\xc3\xa4"), HasReason("FORBIDDEN_CHARACTER"));
  EXPECT_THAT(mkdirs("/line\nline"), HasReason("FORBIDDEN_CHARACTER"));
  EXPECT_THAT(mkdirs("/\xc3\xb6"), IsOk());      // Another letter that begins with the same byte.
  EXPECT_THAT(mkdirs("/a:b/below"), IsOk());  // What is there stays in use.
}

TEST_F(LimitsTest, AFullDirectoryNamesItselfAndItsKey) {
  v1::Mutation one = MkdirsMutation("/d/1");
  space_.Must(one);
  v1::Mutation two = MkdirsMutation("/d/2");
  two.mutable_limits()->set_max_directory_entries(1);
  const auto refused = space_.Apply(two);
  EXPECT_THAT(refused, HasReason("DIRECTORY_FULL"));
  EXPECT_EQ(ErrorOf(refused.status())->path, "/d");
  EXPECT_EQ(refused.status().message(),
            "The directory item limit of /d is exceeded: items=1 (limit 1, raised by dfs.namenode.fs-limits.max-directory-items)");
  two.mutable_mkdirs()->set_path("/x");
  EXPECT_EQ(ErrorOf(space_.Apply(two).status())->path, "/");
}

TEST_F(LimitsTest, EightyPercentOfADirectoryIsNotedAndEachStepAfter) {
  space_.Must(MkdirsMutation("/d"));
  std::vector<uint64_t> noted;
  for (int i = 0; i < 1000; ++i) {
    v1::Mutation mkdir = MkdirsMutation("/d/" + std::to_string(i));
    mkdir.mutable_limits()->set_max_directory_entries(1000);
    const v1::MutationResult made = space_.Must(mkdir);
    for (const v1::NearLimit& near : made.near_limits()) {
      EXPECT_EQ(near.path(), "/d");
      EXPECT_EQ(near.limit(), 1000u);
      EXPECT_EQ(near.key(), kMaxDirectoryItemsKey);
      noted.push_back(near.count());
    }
  }
  ASSERT_EQ(noted.size(), 21u);  // Each hundredth from 800 to 1,000.
  EXPECT_EQ(noted.front(), 800u);
  EXPECT_EQ(noted[1], 810u);
  // A directory that shrinks is not noted, nor what replaces an entry.
  v1::Mutation rename = RenameMutation("/d/1", "/d/x");
  rename.mutable_limits()->set_max_directory_entries(1000);
  EXPECT_EQ(space_.Must(rename).near_limits_size(), 0);
  EXPECT_EQ(space_.Must(DeleteMutation("/d/2", false)).near_limits_size(), 0);
}

TEST_F(LimitsTest, EightyPercentOfAFilesBlocksIsNoted) {
  const v1::MutationResult file = space_.Must(CreateMutation("/f", "me"));
  v1::Mutation add = AddBlockMutation(file, "me", {1});
  add.mutable_limits()->set_max_blocks_per_file(5);
  std::vector<int> noted;
  for (int i = 0; i < 5; ++i) {
    const v1::MutationResult added = space_.Must(add);
    noted.push_back(added.near_limits_size());
    *add.mutable_add_block()->mutable_previous() = MakeCommit(added.block(), 1, {1});
  }
  EXPECT_EQ(noted, (std::vector<int>{0, 0, 0, 1, 1}));
  const auto refused = space_.Apply(add);
  EXPECT_THAT(refused, HasReason("TOO_MANY_BLOCKS"));
  EXPECT_EQ(refused.status().message(),
            "/f: File has reached the limit on maximum number of blocks: it has 5 (limit 5, raised by "
            "dfs.namenode.fs-limits.max-blocks-per-file)");
}

}  // namespace
}  // namespace cairn::namenode
