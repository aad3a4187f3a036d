// chmod, chown, chgrp, touch, setfattr, getfattr: what they do and what they say.

#include "client/cli/dfs_attributes.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/dfs_list.h"
#include "common/error.h"
#include "tests/client/fake_file_system.h"

namespace cairn::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

class DfsAttributes : public ::testing::Test {
 protected:
  DfsAttributes() {
    shell_.files = &files_;
    shell_.out = &out_;
    shell_.err = &err_;
    shell_.user = "flink";
    shell_.now = [] { return kNow; };
    for (auto more : {ListVerbs(), AttributeVerbs()}) verbs_.insert(verbs_.end(), more.begin(), more.end());
    files_.AddDirectory("/d");
    files_.AddDirectory("/d/e");
    files_.AddFile("/d/e/f", "1");
    files_.AddFile("/d/g", "");
  }

  int Run(std::vector<std::string> words) {
    out_.str("");
    err_.str("");
    files_.changed.clear();
    return RunVerb("cairn dfs", verbs_, words, &shell_);
  }
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }
  void Deny(const std::string& path) { files_.fail_change[path] = MakeError(ErrorKind::kPermission, "Permission denied. user=flink ..."); }

  FakeFileSystem files_;
  std::ostringstream out_;
  std::ostringstream err_;
  Shell shell_;
  std::vector<Verb> verbs_;
};

TEST_F(DfsAttributes, ChmodChangesWhatIsNotSoAlready) {
  EXPECT_EQ(Run({"-chmod", "600", "/d/g", "/d/e/f"}), 0);
  EXPECT_THAT(files_.changed, ElementsAre("chmod 600 /d/g", "chmod 600 /d/e/f"));
  EXPECT_EQ(out() + err(), "");
  EXPECT_EQ(Run({"-chmod", "600", "/d/g"}), 0);
  EXPECT_THAT(files_.changed, IsEmpty());
  EXPECT_EQ(Run({"-chmod", "-w", "/d/g"}), 0);  // A mode, not a flag.
  EXPECT_THAT(files_.changed, ElementsAre("chmod 400 /d/g"));
  EXPECT_EQ(Run({"-chmod", "u+w,g=r", "/d/g"}), 0);
  EXPECT_EQ(files_.entries["/d/g"].mode, 0640u);
}

TEST_F(DfsAttributes, ChmodGoesDownFromAbove) {
  EXPECT_EQ(Run({"-chmod", "-R", "go-rx", "/d"}), 0);
  EXPECT_THAT(files_.changed, ElementsAre("chmod 700 /d", "chmod 700 /d/e", "chmod 600 /d/e/f", "chmod 600 /d/g"));
  Deny("/d/e");
  EXPECT_EQ(Run({"-chmod", "-R", "755", "/d"}), 1);
  EXPECT_THAT(files_.changed, ElementsAre("chmod 755 /d", "chmod 755 /d/g"));  // Not below what failed.
  EXPECT_EQ(err(), "chmod: changing permissions of '/d/e': Permission denied. user=flink ...\n");
}

TEST_F(DfsAttributes, ChmodRefusals) {
  EXPECT_EQ(Run({"-chmod", "999", "/d"}), 255);
  EXPECT_EQ(err(),
            "-chmod: chmod : mode '999' does not match the expected pattern.\n"
            "Usage: cairn dfs -chmod [-R] <MODE[,MODE]... | OCTALMODE> PATH...\n");
  EXPECT_EQ(Run({"-chmod", "755"}), 255);
  EXPECT_THAT(err(), HasSubstr("-chmod: Not enough arguments: expected 2 but got 1"));
  EXPECT_EQ(Run({"-chmod", "755", "/no", "/d/g"}), 1);
  EXPECT_EQ(err(), "chmod: `/no': No such file or directory\n");
  EXPECT_THAT(files_.changed, ElementsAre("chmod 755 /d/g"));
}

TEST_F(DfsAttributes, ChownAndChgrpAskForWhatChanges) {
  EXPECT_EQ(Run({"-chown", "ada:staff", "/d/g"}), 0);
  EXPECT_THAT(files_.changed, ElementsAre("chown ada:staff /d/g"));
  EXPECT_EQ(Run({"-chown", "ada", "/d/g"}), 0);
  EXPECT_THAT(files_.changed, IsEmpty());
  EXPECT_EQ(Run({"-chown", "ada:x", "/d/g"}), 0);
  EXPECT_THAT(files_.changed, ElementsAre("chown :x /d/g"));
  EXPECT_EQ(Run({"-chown", ":y", "/d/g"}), 0);
  EXPECT_THAT(files_.changed, ElementsAre("chown :y /d/g"));
  EXPECT_EQ(Run({"-chgrp", "-R", "ops", "/d/e"}), 0);
  EXPECT_THAT(files_.changed, ElementsAre("chown :ops /d/e", "chown :ops /d/e/f"));
  EXPECT_EQ(Run({"-chown", "a_b-c.d@x/y:g", "/d/g"}), 0);
}

TEST_F(DfsAttributes, ChownRefusals) {
  EXPECT_EQ(Run({"-chown", "a b", "/d"}), 255);
  EXPECT_EQ(err(),
            "-chown: 'a b' does not match expected pattern for [owner][:group].\n"
            "Usage: cairn dfs -chown [-R] [OWNER][:[GROUP]] PATH...\n");
  EXPECT_EQ(Run({"-chown", ":", "/d"}), 255);
  EXPECT_THAT(err(), HasSubstr("-chown: ':' does not specify owner or group.\n"));
  EXPECT_EQ(Run({"-chown", "a:b:c", "/d"}), 255);
  EXPECT_EQ(Run({"-chgrp", "a:b", "/d"}), 255);
  EXPECT_THAT(err(), HasSubstr("-chgrp: 'a:b' does not match expected pattern for group\n"));
  Deny("/d");
  EXPECT_EQ(Run({"-chgrp", "ops", "/d"}), 1);
  EXPECT_EQ(err(), "chgrp: changing ownership of '/d': Permission denied. user=flink ...\n");
}

TEST_F(DfsAttributes, TouchSetsTimesOrMakesAFile) {
  EXPECT_EQ(Run({"-touch", "/d/g"}), 0);
  EXPECT_EQ(files_.entries["/d/g"].modified, kNow);
  EXPECT_EQ(files_.entries["/d/g"].accessed, kNow);
  EXPECT_EQ(Run({"-touch", "-m", "-t", "20230102:030405", "/d/g"}), 0);
  const absl::Time then = absl::FromCivil(absl::CivilSecond(2023, 1, 2, 3, 4, 5), absl::UTCTimeZone());
  EXPECT_EQ(files_.entries["/d/g"].modified, then);
  EXPECT_EQ(files_.entries["/d/g"].accessed, kNow);
  EXPECT_EQ(Run({"-touch", "-a", "-t", "20230102:030405", "/d/e"}), 0);
  EXPECT_EQ(files_.entries["/d/e"].accessed, then);
  EXPECT_NE(files_.entries["/d/e"].modified, then);
  EXPECT_EQ(Run({"-touch", "/d/new"}), 0);
  EXPECT_TRUE(files_.entries.contains("/d/new"));
  EXPECT_THAT(files_.changed, IsEmpty());
  EXPECT_EQ(Run({"-touch", "-t", "20230102:030405", "/d/old"}), 0);
  EXPECT_EQ(files_.entries["/d/old"].modified, then);
  EXPECT_EQ(Run({"-touch", "-c", "/d/none"}), 0);
  EXPECT_FALSE(files_.entries.contains("/d/none"));
}

TEST_F(DfsAttributes, TouchRefusals) {
  EXPECT_EQ(Run({"-touch", "/no/f"}), 1);
  EXPECT_EQ(err(), "touch: `/no/f': No such file or directory\n");
  EXPECT_EQ(Run({"-touch", "-t", "yesterday", "/d/g"}), 255);
  EXPECT_THAT(err(), HasSubstr("-touch: Unable to parse the specified timestamp yesterday. The expected format is yyyyMMdd:HHmmss\n"));
  EXPECT_EQ(Run({"-touch", "-t"}), 255);
  EXPECT_THAT(err(), HasSubstr("-touch: option -t requires 1 argument.\n"));
  files_.fail_change["/d/g"] = MakeError(ErrorKind::kPermission, "Permission denied: user=flink, access=WRITE, inode=...");
  EXPECT_EQ(Run({"-touch", "/d/g"}), 1);
  EXPECT_EQ(err(), "touch: Permission denied: user=flink, access=WRITE, inode=...\n");
}

TEST_F(DfsAttributes, AttributesInEveryEncoding) {
  EXPECT_EQ(Run({"-setfattr", "-n", "user.text", "-v", "plain", "/d/g"}), 0);
  EXPECT_EQ(Run({"-setfattr", "-n", "user.quoted", "-v", "\"a b\"", "/d/g"}), 0);
  EXPECT_EQ(Run({"-setfattr", "-n", "user.hex", "-v", "0x00fF", "/d/g"}), 0);
  EXPECT_EQ(Run({"-setfattr", "-n", "user.base64", "-v", "0sAQI=", "/d/g"}), 0);
  EXPECT_EQ(Run({"-setfattr", "-n", "user.empty", "/d/g"}), 0);
  EXPECT_EQ(files_.entries["/d/g"].xattrs["user.hex"], std::string("\0\xff", 2));
  EXPECT_EQ(files_.entries["/d/g"].xattrs["user.base64"], "\1\2");
  EXPECT_EQ(Run({"-getfattr", "-n", "user.quoted", "/d/g"}), 0);
  EXPECT_EQ(out(), "# file: /d/g\nuser.quoted=\"a b\"\n");
  EXPECT_EQ(Run({"-getfattr", "-n", "user.hex", "-e", "hex", "/d/g"}), 0);
  EXPECT_EQ(out(), "# file: /d/g\nuser.hex=0x00ff\n");
  EXPECT_EQ(Run({"-getfattr", "-n", "user.base64", "-e", "base64", "/d/g"}), 0);
  EXPECT_EQ(out(), "# file: /d/g\nuser.base64=0sAQI=\n");
  EXPECT_EQ(Run({"-setfattr", "-x", "user.hex", "/d/g"}), 0);
  EXPECT_EQ(Run({"-getfattr", "-R", "-d", "/d"}), 0);
  EXPECT_EQ(out(),
            "# file: /d\n# file: /d/e\n# file: /d/e/f\n# file: /d/g\n"
            "user.base64=\"\1\2\"\nuser.empty\nuser.quoted=\"a b\"\nuser.text=\"plain\"\n");
}

TEST_F(DfsAttributes, AttributeRefusals) {
  const auto says = [this](std::vector<std::string> words, const std::string& why) {
    EXPECT_EQ(Run(words), 255) << why;
    EXPECT_THAT(err(), HasSubstr(why + "\nUsage: cairn dfs -"));
  };
  says({"-setfattr", "/d"}, "-setfattr: Must specify '-n name' or '-x name' option.");
  says({"-setfattr", "-n", "user.a", "-x", "user.b", "/d"}, "-setfattr: Can not specify both '-n name' and '-x name' option.");
  says({"-setfattr", "-n", "user.a"}, "-setfattr: <path> is missing.");
  says({"-setfattr", "-n", "user.a", "-v", "0xf", "/d"}, "-setfattr: '0xf' is not hexadecimal");
  says({"-setfattr", "-n", "user.a", "-v", "0s?", "/d"}, "-setfattr: '0s?' is not base64");
  says({"-setfattr", "-n", "user.a", "/d", "/e"}, "-setfattr: Too many arguments: expected 1 but got 2");
  says({"-getfattr", "/d"}, "-getfattr: Must specify '-n name' or '-d' option.");
  says({"-getfattr", "-d", "-e", "octal", "/d"}, "-getfattr: Invalid/unsupported encoding option specified: octal");
  EXPECT_EQ(Run({"-getfattr", "-n", "user.no", "/d"}), 1);
  EXPECT_EQ(err(), "getfattr: `/d': At least one of the attributes provided was not found.\n");
  EXPECT_EQ(Run({"-setfattr", "-x", "user.no", "/d"}), 1);
  EXPECT_EQ(err(), "setfattr: `/d': No matching attributes found for remove operation\n");
  EXPECT_EQ(Run({"-setfattr", "-n", "user.a", "/none"}), 1);
  EXPECT_EQ(err(), "setfattr: `/none': No such file or directory\n");
}

TEST_F(DfsAttributes, TestAsksTheServerForRights) {
  files_.entries["/d/g"].mode = 0400;
  EXPECT_EQ(Run({"-test", "-r", "/d/g"}), 0);
  EXPECT_EQ(Run({"-test", "-w", "/d/g"}), 1);
  EXPECT_EQ(err(), "");
  EXPECT_EQ(Run({"-test", "-w", "/none"}), 1);
}

TEST_F(DfsAttributes, StatShowsModesAsHdfsDoes) {
  files_.entries["/d"].mode = 01777;
  EXPECT_EQ(Run({"-stat", "%a %A %u:%g", "/d", "/d/g"}), 0);
  EXPECT_EQ(out(), "1777 rwxrwxrwt flink:flink\n644 rw-r--r-- flink:flink\n");
}

}  // namespace
}  // namespace cairn::cli
