#include "client/cli/shell.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/cli_options.h"
#include "client/cli/dfs_blocks.h"
#include "client/cli/dfs_change.h"
#include "client/cli/dfs_list.h"
#include "client/cli/dfs_remove.h"
#include "client/cli/dfs_transfer.h"
#include "client/cli/dfs_usage.h"
#include "client/cli/dfsadmin_quota.h"
#include "client/cli/dfsadmin_reclaim.h"
#include "common/error.h"
#include "tests/client/fake_file_system.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// `cairn dfs` over a file system in memory and a local directory of the test's own.
class ShellTest : public ::testing::Test {
 protected:
  ShellTest() {
    shell_.files = &files_;
    shell_.out = &out_;
    shell_.err = &err_;
    shell_.user = "flink";
    shell_.address = "cairn://nn:8021";
    shell_.interrupted = &interrupted_;
    shell_.read_input = [this](std::span<char> into) {
      return static_cast<long>(input_.readsome(into.data(), static_cast<long>(into.size())));
    };
    for (auto more : {ListVerbs(), ChangeVerbs(), RemoveVerbs(), TransferVerbs(), UsageVerbs(), BlockVerbs(), QuotaVerbs()})
      verbs_.insert(verbs_.end(), more.begin(), more.end());
  }

  int Run(std::vector<std::string> words) {
    out_.str("");
    err_.str("");
    return RunVerb("cairn dfs", verbs_, words, &shell_);
  }
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }
  std::string Local(const std::string& name) const { return local_.path() + "/" + name; }
  void WriteLocal(const std::string& name, const std::string& data) { std::ofstream(Local(name), std::ios::binary) << data; }
  std::string ReadLocal(const std::string& name) {
    std::ifstream file(Local(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  FakeFileSystem files_;
  std::ostringstream out_;
  std::ostringstream err_;
  std::istringstream input_;
  std::atomic<bool> interrupted_{false};
  Shell shell_;
  std::vector<Verb> verbs_;
  const testing::TemporaryDirectory local_;
};

TEST_F(ShellTest, UsageErrorsExitWith255) {
  EXPECT_EQ(Run({}), 255);
  EXPECT_EQ(Run({"-frobnicate"}), 255);
  EXPECT_THAT(err(), HasSubstr("-frobnicate: Unknown command"));
  EXPECT_EQ(Run({"ls"}), 255);
  EXPECT_EQ(Run({"-mkdir"}), 255);
  EXPECT_EQ(err(), "-mkdir: Not enough arguments: expected 1 but got 0\nUsage: cairn dfs -mkdir [-p] <path> ...\n");
  EXPECT_EQ(Run({"-ls", "-x", "/"}), 255);
  EXPECT_THAT(err(), HasSubstr("-ls: Illegal option -x"));
  EXPECT_EQ(Run({"-rm", "-r", ""}), 255);
  EXPECT_THAT(err(), HasSubstr("-rm: An empty argument names no path"));
  EXPECT_EQ(Run({"-test", "-e", "/", "/"}), 255);
  EXPECT_EQ(Run({"-test", "/"}), 255);
}

TEST_F(ShellTest, APathIsNamedOnceInAMessage) {
  for (const char* text : {"no DataNode", "create /x._COPYING_: no DataNode", "/x: no DataNode", "x: no DataNode"}) {
    Complain(&shell_, "put", "/x", MakeError(ErrorKind::kNoTargets, text));
    EXPECT_EQ(err(), std::string_view(text).starts_with("x") ? "put: `/x': x: no DataNode\n" : "put: `/x': no DataNode\n");
    err_.str("");
  }
  Complain(&shell_, "put", "x", MakeError(ErrorKind::kNoTargets, "create /user/flink/x: no DataNode"));
  EXPECT_EQ(err(), "put: `x': no DataNode\n");
}

TEST_F(ShellTest, HelpAndDoubleDashes) {
  EXPECT_EQ(Run({"-help"}), 0);
  EXPECT_THAT(out(), HasSubstr("[-put [-f] <localsrc> ... <dst>]"));
  EXPECT_EQ(Run({"-help", "rm"}), 0);
  EXPECT_THAT(out(), HasSubstr("Deletes files"));
  EXPECT_EQ(Run({"-usage", "-rm"}), 0);
  EXPECT_EQ(out(), "Usage: cairn dfs -rm [-f] [-r|-R] [-skipTrash] <src> ...\n");
  EXPECT_EQ(Run({"--mkdir", "/d"}), 0);
  EXPECT_TRUE(files_.entries.contains("/d"));
}

TEST_F(ShellTest, LsOfADirectoryAFileAndNothing) {
  files_.AddDirectory("/d");
  files_.AddFile("/d/a", "12345");
  files_.AddFile("/d/b", "");
  EXPECT_EQ(Run({"-ls", "/d/"}), 0);
  EXPECT_EQ(out(),
            "Found 2 items\n"
            "-rw-r--r--   3 flink flink          5 2023-11-14 22:13 /d/a\n"
            "-rw-r--r--   3 flink flink          0 2023-11-14 22:13 /d/b\n");
  EXPECT_EQ(Run({"-ls", "/d/a"}), 0);
  EXPECT_EQ(out(), "-rw-r--r--   3 flink flink          5 2023-11-14 22:13 /d/a\n");
  EXPECT_EQ(Run({"-ls", "-d", "/d"}), 0);
  EXPECT_EQ(out(), "drwxr-xr-x   - flink flink          0 2023-11-14 22:13 /d\n");
  EXPECT_EQ(Run({"-ls", "/x"}), 1);
  EXPECT_EQ(err(), "ls: `/x': No such file or directory\n");
  EXPECT_EQ(Run({"-ls", "/x", "/d/b"}), 1);  // Goes on with the others.
  EXPECT_THAT(out(), HasSubstr("/d/b"));
}

TEST_F(ShellTest, LsGoesDownAndShowsNoCount) {
  files_.AddDirectory("/d");
  files_.AddDirectory("/d/e");
  files_.AddFile("/d/e/f", "1");
  EXPECT_EQ(Run({"-ls", "-R", "/"}), 0);
  EXPECT_EQ(out(),
            "drwxr-xr-x   - flink flink          0 2023-11-14 22:13 /d\n"
            "drwxr-xr-x   - flink flink          0 2023-11-14 22:13 /d/e\n"
            "-rw-r--r--   3 flink flink          1 2023-11-14 22:13 /d/e/f\n");
}

TEST_F(ShellTest, RelativePathsAndSchemes) {
  files_.AddDirectory("/user");
  files_.AddDirectory("/user/flink");
  files_.AddFile("/user/flink/a", "1");
  EXPECT_EQ(Run({"-ls"}), 0);
  EXPECT_THAT(out(), HasSubstr(" a\n"));  // As HDFS: by its name alone.
  EXPECT_EQ(Run({"-ls", "../flink/./"}), 0);
  EXPECT_THAT(out(), HasSubstr(" ../flink/./a\n"));
  EXPECT_EQ(Run({"-cat", "a"}), 0);
  EXPECT_EQ(out(), "1");
  EXPECT_EQ(Run({"-cat", "cairn://nn:8021/user/flink/a"}), 0);
  EXPECT_EQ(out(), "1");
}

TEST_F(ShellTest, AnUnknownSchemeIsNamed) {
  EXPECT_EQ(Run({"-ls", "foo://x"}), 1);
  EXPECT_EQ(err(), "ls: `foo://x': No FileSystem for scheme \"foo\"\n");
  EXPECT_EQ(Run({"-du", "-s", "s3a://bucket/a*"}), 1);
  EXPECT_THAT(err(), HasSubstr("No FileSystem for scheme \"s3a\""));
  files_.AddFile("/a:b", "1");  // A colon alone makes no scheme.
  EXPECT_EQ(Run({"-cat", "/a:b"}), 0);
}

TEST_F(ShellTest, AnyNameCanBeTyped) {
  for (const std::string name : {"100%", "a+b", "a:b", "a b", "\xF0\x9F\x9A\x80", "\xC3\xA4", "a%20b", "it's", "#1", "-x"}) {
    files_.AddFile("/" + name, name);
    EXPECT_EQ(Run({"-cat", "/" + name}), 0) << name;
    EXPECT_EQ(out(), name);
  }
}

TEST_F(ShellTest, CountAndDuWithHeadersAndQuotas) {
  files_.AddDirectory("/d");
  files_.AddFile("/d/a", std::string(2048, 'x'));
  files_.entries["/d"].namespace_quota = 5;
  EXPECT_EQ(Run({"-count", "-q", "-v", "-h", "/d"}), 0);
  EXPECT_EQ(out(),
            "       QUOTA       REM_QUOTA     SPACE_QUOTA REM_SPACE_QUOTA    DIR_COUNT   FILE_COUNT       CONTENT_SIZE PATHNAME\n"
            "           5               3            none             inf            1            1                2 K /d\n");
  EXPECT_EQ(Run({"-count", "-u", "/d"}), 0);
  EXPECT_EQ(out(), "           5               3            none             inf /d\n");
  EXPECT_EQ(Run({"-du", "-v", "/d"}), 0);
  EXPECT_EQ(out(), "SIZE  DISK_SPACE_CONSUMED_WITH_ALL_REPLICAS  FULL_PATH_NAME\n2048  6144                                   /d/a\n");
  EXPECT_EQ(Run({"-count", "/x"}), 1);
  EXPECT_EQ(err(), "count: `/x': No such file or directory\n");
}

TEST_F(ShellTest, QuotasAreSetAndCleared) {
  files_.AddDirectory("/d1");
  files_.AddDirectory("/d2");
  EXPECT_EQ(Run({"-setQuota", "10", "/d1", "/d2"}), 0);
  EXPECT_EQ(out() + err(), "");
  EXPECT_EQ(files_.entries["/d2"].namespace_quota, 10);
  EXPECT_EQ(Run({"-setSpaceQuota", "6m", "/d*"}), 0);
  EXPECT_EQ(files_.entries["/d1"].space_quota_bytes, 6 << 20);
  EXPECT_EQ(Run({"-clrQuota", "/d1"}), 0);
  EXPECT_FALSE(files_.entries["/d1"].namespace_quota.has_value());
  EXPECT_TRUE(files_.entries["/d1"].space_quota_bytes.has_value());
  EXPECT_EQ(Run({"-clrSpaceQuota", "/d1"}), 0);
  EXPECT_FALSE(files_.entries["/d1"].space_quota_bytes.has_value());
  EXPECT_EQ(Run({"-setQuota", "10", "/no", "/d1"}), 1);  // Goes on with the others.
  EXPECT_EQ(err(), "setQuota: Directory does not exist: /no\n");
  EXPECT_EQ(files_.entries["/d1"].namespace_quota, 10);
  EXPECT_EQ(Run({"-setQuota", "1k", "/d1"}), 255);
  EXPECT_THAT(err(), HasSubstr("setQuota: \"1k\" is not a valid value for a quota."));
  EXPECT_EQ(Run({"-setSpaceQuota", "5"}), 255);
}

TEST_F(ShellTest, SetrepGoesDownAndWaits) {
  files_.AddDirectory("/d");
  files_.AddDirectory("/d/e");
  files_.AddFile("/d/a", "1");
  files_.AddFile("/d/e/b", "1");
  EXPECT_EQ(Run({"-setrep", "2", "/d"}), 0);
  EXPECT_EQ(out(), "Replication 2 set: /d/a\nReplication 2 set: /d/e/b\n");
  EXPECT_EQ(files_.entries["/d/e/b"].replication, 2u);
  files_.entries["/d/a"].hosts = {2, 1, 4};
  int waits = 0;
  shell_.wait = [&waits](absl::Duration) { ++waits; };
  EXPECT_EQ(Run({"-setrep", "-R", "-w", "4", "/d/a"}), 0);
  EXPECT_EQ(out(), "Replication 4 set: /d/a\nWaiting for /d/a ..... done\n");
  EXPECT_EQ(waits, 2);
  // Three copies, one of them on a node that is drained: the third that stays is still to come.
  files_.entries["/d/a"].hosts = {3, 4};
  files_.entries["/d/a"].leaving = 1;
  waits = 0;
  EXPECT_EQ(Run({"-setrep", "-w", "3", "/d/a"}), 0);
  EXPECT_EQ(waits, 1);
  files_.entries["/d/a"].leaving = 0;
  files_.entries["/d/a"].hosts = {4, 1};
  EXPECT_EQ(Run({"-setrep", "-w", "1", "/d/a"}), 0);
  EXPECT_THAT(out(), HasSubstr("...\nWARNING: the waiting time may be long for DECREASING the number of replications.\n. done\n"));
}

TEST_F(ShellTest, SetrepRefusals) {
  files_.AddFile("/a", "1");
  EXPECT_EQ(Run({"-setrep", "x", "/a"}), 255);
  EXPECT_THAT(err(), StartsWith("setrep: Illegal replication, a positive integer expected\nUsage: "));
  EXPECT_EQ(Run({"-setrep", "0", "/a"}), 255);
  EXPECT_THAT(err(), StartsWith("-setrep: replication must be >= 1\nUsage: "));
  EXPECT_EQ(Run({"-setrep", "600", "/a"}), 1);
  EXPECT_EQ(err(), "setrep: `/a': Requested replication factor of 600 exceeds maximum of 512\n");
  EXPECT_EQ(Run({"-setrep", "2", "/no"}), 1);
  EXPECT_EQ(err(), "setrep: `/no': No such file or directory\n");
}

TEST_F(ShellTest, ConcatJoinsFiles) {
  files_.AddFile("/a", "A");
  files_.AddFile("/b", "B");
  files_.AddFile("/c", "C");
  EXPECT_EQ(Run({"-concat", "/a", "/b", "/c"}), 0);
  EXPECT_EQ(files_.entries["/a"].data, "ABC");
  EXPECT_FALSE(files_.entries.contains("/b"));
  EXPECT_EQ(Run({"-concat", "/a", "/b"}), 1);
  EXPECT_EQ(err(), "concat: `/b': No such file or directory\n");
  EXPECT_EQ(Run({"-concat", "/", "/a"}), 1);
  EXPECT_EQ(err(), "concat: `/': Is a directory\n");
  EXPECT_EQ(Run({"-concat", "/a"}), 255);
}

TEST_F(ShellTest, PutToATrailingSlashNeedsADirectory) {
  WriteLocal("x", "hello");
  EXPECT_EQ(Run({"-put", Local("x"), "/n/"}), 1);
  EXPECT_EQ(err(), "put: `/n/': Is not a directory\n");
  EXPECT_EQ(files_.entries.size(), 1u);
  files_.AddDirectory("/n");
  EXPECT_EQ(Run({"-put", Local("x"), "/n/"}), 0);
  EXPECT_TRUE(files_.entries.contains("/n/x"));
}

TEST_F(ShellTest, PatternsMatchInAnyComponent) {
  for (const char* d : {"/j1", "/j2", "/k"}) {
    files_.AddDirectory(d);
    files_.AddFile(std::string(d) + "/chk-1", d);
  }
  EXPECT_EQ(Run({"-cat", "/j*/chk-[0-9]"}), 0);
  EXPECT_EQ(out(), "/j1/j2");
  EXPECT_EQ(Run({"-cat", "/j?/none"}), 1);
  EXPECT_EQ(err(), "cat: `/j?/none': No such file or directory\n");
  EXPECT_EQ(Run({"-rm", "/j*/chk-1"}), 0);
  EXPECT_EQ(out(), "Deleted /j1/chk-1\nDeleted /j2/chk-1\n");
}

TEST_F(ShellTest, MkdirWithAndWithoutParents) {
  EXPECT_EQ(Run({"-mkdir", "/a/b"}), 1);
  EXPECT_EQ(err(), "mkdir: `/a': No such file or directory\n");
  EXPECT_EQ(Run({"-mkdir", "-p", "/a/b"}), 0);
  EXPECT_EQ(Run({"-mkdir", "/a/b"}), 1);
  EXPECT_EQ(err(), "mkdir: `/a/b': File exists\n");
  EXPECT_EQ(Run({"-mkdir", "-p", "/a/b"}), 0);
}

TEST_F(ShellTest, RmWordsAndForce) {
  files_.AddDirectory("/d");
  files_.AddFile("/d/a", "");
  EXPECT_EQ(Run({"-rm", "/d"}), 1);
  EXPECT_EQ(err(), "rm: `/d': Is a directory\n");
  EXPECT_EQ(Run({"-rm", "/x"}), 1);
  EXPECT_EQ(err(), "rm: `/x': No such file or directory\n");
  EXPECT_EQ(Run({"-rm", "-f", "/x", "/y*"}), 0);
  EXPECT_EQ(err(), "");
  EXPECT_EQ(Run({"-rm", "-r", "-skipTrash", "/d"}), 0);
  EXPECT_EQ(out(), "Deleted /d\n");
  EXPECT_FALSE(files_.entries.contains("/d/a"));
}

TEST_F(ShellTest, RmMovesToTheTrashIfThereIsOne) {
  files_.trash_interval = absl::Minutes(60);
  files_.AddDirectory("/d");
  files_.AddFile("/d/a", "A");
  EXPECT_EQ(Run({"-rm", "/d/a"}), 0);
  EXPECT_EQ(out(), "Moved: 'cairn://nn:8021/d/a' to trash at: cairn://nn:8021/user/flink/.Trash/Current/d/a\n");
  EXPECT_EQ(files_.entries["/user/flink/.Trash/Current/d/a"].data, "A");
  EXPECT_EQ(Run({"-rm", "/d"}), 1);
  EXPECT_EQ(err(), "rm: `/d': Is a directory\n");
  EXPECT_EQ(Run({"-rm", "-r", "/user"}), 1);
  EXPECT_EQ(err(), "rm: Cannot move \"/user\" to the trash, as it contains the trash. Consider using -skipTrash option\n");
  EXPECT_EQ(Run({"-rm", "-r", "-skipTrash", "/d"}), 0);
  EXPECT_EQ(out(), "Deleted /d\n");
  EXPECT_EQ(Run({"-rm", "-r", "/user/flink/.Trash/Current/d"}), 0);  // In the trash: gone.
  EXPECT_EQ(out(), "Deleted /user/flink/.Trash/Current/d\n");
  EXPECT_EQ(Run({"-rm", "/none"}), 1);
  EXPECT_EQ(err(), "rm: `/none': No such file or directory\n");
}

TEST_F(ShellTest, WhatCannotGoToTheTrashStays) {
  files_.trash_interval = absl::Minutes(60);
  files_.AddFile("/a", "A");
  files_.fail_rename = MakeError(ErrorKind::kPermission, "Permission denied: user=flink");
  EXPECT_EQ(Run({"-rm", "/a"}), 1);
  EXPECT_EQ(err(), "rm: Permission denied: user=flink. Consider using -skipTrash option\n");
  EXPECT_TRUE(files_.entries.contains("/a"));
}

TEST_F(ShellTest, ExpungeSaysWhatItDid) {
  files_.trash_interval = absl::Minutes(60);
  files_.AddFile("/a", "");
  EXPECT_EQ(Run({"-rm", "/a"}), 0);
  EXPECT_EQ(Run({"-expunge"}), 0);
  EXPECT_EQ(out(), "Created trash checkpoint: /user/flink/.Trash/231114221320\n");
  EXPECT_EQ(Run({"-expunge"}), 0);
  EXPECT_EQ(out(), "");
  files_.now += absl::Minutes(61);
  EXPECT_EQ(Run({"-expunge"}), 0);
  EXPECT_EQ(out(), "Deleted trash checkpoint: /user/flink/.Trash/231114221320\n");
  files_.AddFile("/a", "");
  EXPECT_EQ(Run({"-rm", "/a"}), 0);
  EXPECT_EQ(Run({"-expunge", "-immediate"}), 0);
  EXPECT_EQ(out(),
            "Created trash checkpoint: /user/flink/.Trash/231114231420\n"
            "Deleted trash checkpoint: /user/flink/.Trash/231114231420\n");
  EXPECT_EQ(Run({"-expunge", "/x"}), 255);
}

TEST_F(ShellTest, RmOfManyPathsIsOneCallAndOfATreeToo) {
  files_.AddDirectory("/d");
  for (int i = 0; i < 1'500; ++i) files_.AddFile("/d/" + std::to_string(i), "");
  files_.AddDirectory("/d/sub");
  EXPECT_EQ(Run({"-rm", "/d/*", "/none"}), 1);
  EXPECT_EQ(err(), "rm: `/d/sub': Is a directory\nrm: `/none': No such file or directory\n");
  EXPECT_EQ(files_.deleted_together, (std::vector<size_t>{1'000, 500}));
  EXPECT_EQ(files_.deleted_alone, 0);
  EXPECT_THAT(out(), HasSubstr("Deleted /d/1499\n"));
  EXPECT_FALSE(files_.entries.contains("/d/0"));
  EXPECT_TRUE(files_.entries.contains("/d/sub"));
  for (int i = 0; i < 100; ++i) files_.AddFile("/d/sub/" + std::to_string(i), "");
  EXPECT_EQ(Run({"-rm", "-r", "/d"}), 0);
  EXPECT_EQ(out(), "Deleted /d\n");
  EXPECT_EQ(files_.deleted_alone, 1);
}

TEST_F(ShellTest, MvRenamesOrMovesInto) {
  files_.AddDirectory("/d");
  files_.AddFile("/a", "A");
  files_.AddFile("/b", "B");
  EXPECT_EQ(Run({"-mv", "/a", "/c"}), 0);
  EXPECT_EQ(files_.entries["/c"].data, "A");
  EXPECT_EQ(Run({"-mv", "/c", "/b"}), 1);
  EXPECT_EQ(err(), "mv: `/b': File exists\n");
  EXPECT_EQ(Run({"-mv", "/b", "/c", "/d"}), 0);
  EXPECT_EQ(files_.entries["/d/b"].data, "B");
  EXPECT_EQ(Run({"-mv", "/x", "/y"}), 1);
  EXPECT_EQ(err(), "mv: `/x': No such file or directory\n");
  EXPECT_EQ(Run({"-mv", "/d/b", "/no/b"}), 1);
  EXPECT_EQ(err(), "mv: `/no/b': No such file or directory\n");
}

TEST_F(ShellTest, TouchzMakesEmptyFilesOnly) {
  EXPECT_EQ(Run({"-touchz", "/e"}), 0);
  EXPECT_TRUE(files_.entries.contains("/e"));
  files_.AddFile("/f", "x");
  EXPECT_EQ(Run({"-touchz", "/f"}), 1);
  EXPECT_EQ(err(), "touchz: `/f': Not a zero-length file\n");
  EXPECT_EQ(Run({"-touchz", "/no/f"}), 1);
}

TEST_F(ShellTest, TestAnswersByExitCode) {
  files_.AddFile("/full", "x");
  files_.AddFile("/empty", "");
  EXPECT_EQ(Run({"-test", "-e", "/full"}), 0);
  EXPECT_EQ(Run({"-test", "-e", "/none"}), 1);
  EXPECT_EQ(err(), "");
  EXPECT_EQ(Run({"-test", "-d", "/"}), 0);
  EXPECT_EQ(Run({"-test", "-d", "/full"}), 1);
  EXPECT_EQ(Run({"-test", "-f", "/full"}), 0);
  EXPECT_EQ(Run({"-test", "-s", "/full"}), 0);
  EXPECT_EQ(Run({"-test", "-s", "/empty"}), 1);
  EXPECT_EQ(Run({"-test", "-z", "/empty"}), 0);
  EXPECT_EQ(Run({"-test", "-w", "/full"}), 0);
  files_.entries["/full"].owner = "other";
  EXPECT_EQ(Run({"-test", "-w", "/full"}), 1);
  EXPECT_EQ(Run({"-test", "-r", "/full"}), 0);
}

TEST_F(ShellTest, DuCountAndStat) {
  files_.AddDirectory("/d");
  files_.AddDirectory("/d/e");
  files_.AddFile("/d/a", std::string(2048, 'x'));
  EXPECT_EQ(Run({"-du", "/d"}), 0);
  EXPECT_EQ(out(), "2048  6144  /d/a\n0     0     /d/e\n");
  EXPECT_EQ(Run({"-du", "-s", "-h", "/d"}), 0);
  EXPECT_EQ(out(), "2 K  6 K  /d\n");
  EXPECT_EQ(Run({"-count", "-v", "/d"}), 0);
  EXPECT_EQ(out(), "   DIR_COUNT   FILE_COUNT       CONTENT_SIZE PATHNAME\n           2            1               2048 /d\n");
  EXPECT_EQ(Run({"-stat", "%n %b", "/d/a"}), 0);
  EXPECT_EQ(out(), "a 2048\n");
  EXPECT_EQ(Run({"-stat", "/d/a"}), 0);
  EXPECT_EQ(out(), "2023-11-14 22:13:20\n");
}

TEST_F(ShellTest, PutGoesThroughATemporaryName) {
  WriteLocal("a", "hello");
  EXPECT_EQ(Run({"-put", Local("a"), "/a"}), 0);
  EXPECT_EQ(files_.entries["/a"].data, "hello");
  EXPECT_FALSE(files_.entries.contains("/a._COPYING_"));
  EXPECT_EQ(Run({"-put", Local("a"), "/a"}), 1);
  EXPECT_EQ(err(), "put: `/a': File exists\n");
  WriteLocal("a", "again");
  EXPECT_EQ(Run({"-put", "-f", Local("a"), "/a"}), 0);
  EXPECT_EQ(files_.entries["/a"].data, "again");
  EXPECT_EQ(Run({"-put", Local("a"), "/"}), 1);  // Into the directory, where it is already.
  EXPECT_EQ(Run({"-put", Local("none"), "/b"}), 1);
  EXPECT_EQ(err(), "put: `" + Local("none") + "': No such file or directory\n");
  EXPECT_EQ(Run({"-put", Local("a"), "/no/b"}), 1);
  EXPECT_EQ(err(), "put: `/no/b': No such file or directory\n");
}

TEST_F(ShellTest, PutFromStandardInput) {
  input_.str(std::string(3'000'000, 'z'));
  EXPECT_EQ(Run({"-put", "-", "/z"}), 0);
  EXPECT_EQ(files_.entries["/z"].data, std::string(3'000'000, 'z'));
}

TEST_F(ShellTest, PutThatFailsOrIsInterruptedLeavesNothing) {
  WriteLocal("a", "hello");
  files_.fail_append = MakeError(ErrorKind::kDiskFull, "no space");
  EXPECT_EQ(Run({"-put", Local("a"), "/a"}), 1);
  EXPECT_EQ(err(), "put: `/a': no space\n");
  EXPECT_EQ(files_.entries.size(), 1u);
  files_.fail_append = absl::OkStatus();
  shell_.read_input = [this](std::span<char>) {
    interrupted_ = true;
    return -1L;
  };
  EXPECT_EQ(Run({"-put", "-", "/a"}), 1);
  EXPECT_EQ(files_.entries.size(), 1u);
  EXPECT_EQ(files_.aborted, 2);
}

TEST_F(ShellTest, PutAndGetOfDirectories) {
  std::filesystem::create_directories(Local("d/e"));
  WriteLocal("d/a", "A");
  WriteLocal("d/e/b", "B");
  EXPECT_EQ(Run({"-put", Local("d"), "/"}), 0);
  EXPECT_EQ(files_.entries["/d/e/b"].data, "B");
  EXPECT_EQ(Run({"-get", "/d", Local("copy")}), 0);
  EXPECT_EQ(ReadLocal("copy/a"), "A");
  EXPECT_EQ(ReadLocal("copy/e/b"), "B");
}

TEST_F(ShellTest, GetWritesWholeFilesOnly) {
  files_.AddFile("/a", "hello");
  EXPECT_EQ(Run({"-get", "/a", Local("a")}), 0);
  EXPECT_EQ(ReadLocal("a"), "hello");
  EXPECT_FALSE(std::filesystem::exists(Local("a._COPYING_")));
  EXPECT_EQ(Run({"-get", "/a", Local("a")}), 1);
  EXPECT_EQ(err(), "get: `" + Local("a") + "': File exists\n");
  EXPECT_EQ(Run({"-get", "-f", "/a", Local("a")}), 0);
  EXPECT_EQ(Run({"-get", "/a", "-"}), 0);
  EXPECT_EQ(out(), "hello");
  EXPECT_EQ(Run({"-get", "/none", Local("b")}), 1);
  EXPECT_FALSE(std::filesystem::exists(Local("b")));
}

TEST_F(ShellTest, CatOfADirectoryIsRefused) {
  EXPECT_EQ(Run({"-cat", "/"}), 1);
  EXPECT_EQ(err(), "cat: `/': Is a directory\n");
}

TEST_F(ShellTest, AdminReclaimSaysHowItGoesAndIsABrake) {
  v1::ReclaimResponse answer;
  std::vector<v1::ReclaimRequest> asked;
  absl::Status fail;
  verbs_ = {ReclaimVerb([&](v1::ReclaimRequest request) -> absl::StatusOr<v1::ReclaimResponse> {
    asked.push_back(request);
    if (!fail.ok()) return fail;
    return answer;
  })};
  answer.set_works(2);
  answer.set_left_inodes(1'000'001);
  answer.set_left_bytes(3 << 20);
  answer.set_oldest_age_ms(61'500);
  answer.set_entries_per_second(1234.4);
  answer.set_entries_freed(10);
  answer.set_blocks_freed(4);
  const std::string expected =
      "Reclaim: running\n"
      "Pace: unlimited\n"
      "Deleted trees to free: 2\n"
      "Files and directories left: 1000001\n"
      "Bytes left: 3145728 (3.00 MB)\n"
      "Oldest: 61.5 s\n"
      "Freed per second: 1234 entries\n"
      "Freed since start: 10 entries, 4 blocks\n";
  EXPECT_EQ(Run({"-reclaim"}), 0);
  EXPECT_EQ(out(), expected);
  EXPECT_EQ(Run({"-reclaim", "status"}), 0);
  EXPECT_EQ(out(), expected);
  answer.set_paused(true);
  EXPECT_EQ(Run({"-reclaim", "pause"}), 0);
  EXPECT_EQ(out(), "Reclaim is paused\n");
  EXPECT_EQ(asked.back().action(), v1::ReclaimRequest::PAUSE);
  answer.set_paused(false);
  EXPECT_EQ(Run({"-reclaim", "resume"}), 0);
  EXPECT_EQ(out(), "Reclaim is resumed\n");
  EXPECT_EQ(asked.back().action(), v1::ReclaimRequest::RESUME);
  answer.set_pace(500);
  EXPECT_EQ(Run({"-reclaim", "pace", "500"}), 0);
  EXPECT_EQ(out(), "Reclaim pace is 500 entries per second\n");
  EXPECT_EQ(asked.back().entries_per_second(), 500u);
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{{"-reclaim", "pace"},
                                                                                     {"-reclaim", "pace", "fast"},
                                                                                     {"-reclaim", "pace", "-1"},
                                                                                     {"-reclaim", "stop"},
                                                                                     {"-reclaim", "pause", "now"}})
    EXPECT_EQ(Run(wrong), 255) << wrong.back();
  EXPECT_EQ(asked.size(), 5u);
  fail = MakeError(ErrorKind::kPermission, "Access denied for user ada. Superuser privilege is required");
  EXPECT_EQ(Run({"-reclaim", "pause"}), 1);
  EXPECT_EQ(err(), "reclaim: Access denied for user ada. Superuser privilege is required\n");
}

TEST(CliOptions, GenericOptionsComeBeforeTheVerb) {
  const CommandLine line =
      ParseCommandLine({"-fs", "cairn://a", "dfs", "-D", "dfs.replication=2", "-put", "-fs", "x"}, ConfigSources()).value();
  EXPECT_EQ(line.address, "cairn://a");
  EXPECT_EQ(line.words, (std::vector<std::string>{"dfs", "-put", "-fs", "x"}));
  ASSERT_EQ(line.config.overrides.size(), 1u);
  EXPECT_EQ(line.config.overrides[0].second, "2");
  EXPECT_FALSE(ParseCommandLine({"dfs", "-fs"}, ConfigSources()).ok());
  for (const std::vector<std::string>& words : {std::vector<std::string>{"-fs", "dfs", "-ls", "/"}, {"dfs", "-fs", "-ls", "/"}}) {
    const auto line_without_value = ParseCommandLine(words, ConfigSources());
    EXPECT_EQ(std::string(line_without_value.status().message()), "-fs needs a value");
  }
  EXPECT_EQ(ParseCommandLine({"-fs", "dfs", "dfs", "-ls"}, ConfigSources())->address, "dfs");  // A host of that name.
  EXPECT_FALSE(ParseCommandLine({"-D", "novalue", "dfs"}, ConfigSources()).ok());
}

TEST(CliOptions, NamenodeAddressFromFlagThenDefaultThenKey) {
  Config config;
  EXPECT_EQ(NamenodeAddress("", config)->ToString(), "localhost:8021");
  ASSERT_TRUE(config.Set("fs.defaultFS", "hdfs://nn:8020", "test").ok());
  EXPECT_EQ(NamenodeAddress("", config)->ToString(), "nn:8021");
  ASSERT_TRUE(config.Set("cairn.namenode.grpc-address", "nn:9999", "test").ok());
  EXPECT_EQ(NamenodeAddress("", config)->ToString(), "nn:9999");
  EXPECT_EQ(NamenodeAddress("cairn://other:1", config)->ToString(), "other:1");
  EXPECT_FALSE(NamenodeAddress("cairn://other:0", config).ok());
  EXPECT_FALSE(NamenodeAddress("http://other", config).ok());
}

}  // namespace
}  // namespace cairn::cli
