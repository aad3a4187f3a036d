// Paths before they are sent, and the calls that carry many of them.

#include "client/src/path.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/errors.h"
#include "common/error.h"
#include "tests/client/client_cluster.h"

namespace cairn::client {
namespace {

using ::testing::HasSubstr;
using std::string_literals::operator""s;

std::string Cleaned(const std::string& path) { return CleanPath(path).value_or("refused"); }
std::string Refusal(const std::string& path) {
  const absl::Status status = CleanPath(path).status();
  EXPECT_EQ(KindOf(status), ErrorKind::kInvalidPath) << path;
  return std::string(status.message());
}

TEST(CleanPath, ResolvesWhatStandsForOtherNames) {
  EXPECT_EQ(Cleaned("/"), "/");
  EXPECT_EQ(Cleaned("//a///b/"), "/a/b");
  EXPECT_EQ(Cleaned("/a/./b/."), "/a/b");
  EXPECT_EQ(Cleaned("/a/b/../c"), "/a/c");
  EXPECT_EQ(Cleaned("/a/.."), "/");
  EXPECT_EQ(Cleaned("/.../..a/a.."), "/.../..a/a..");  // Names with dots.
}

TEST(CleanPath, LeavesEveryOtherNameAsItIs) {
  for (const std::string& name : {"100%"s, "a%20b"s, "a+b"s, "a:b"s, " a b "s, "\xf0\x9f\x9a\x80"s, "\xc3\xa4"s, "*?[x]"s, "back\\slash"s,
                                  "new\nline"s, std::string(255, 'x')})
    EXPECT_EQ(Cleaned("/d/" + name), "/d/" + name);
}

TEST(CleanPath, SaysWhatIsWrong) {
  EXPECT_EQ(Refusal(""), "Can not create a Path from an empty string");
  EXPECT_EQ(Refusal("a/b"), "invalid path \"a/b\": it must begin with '/'");
  EXPECT_EQ(Refusal("/a/../../b"), "invalid path \"/a/../../b\": it goes above the root");
  EXPECT_EQ(Refusal("/a\xff"), "invalid path \"/a\\xff\": names are UTF-8, this is not");
  EXPECT_EQ(Refusal("/\xed\xa0\x80"), "invalid path \"/\\xed\\xa0\\x80\": names are UTF-8, this is not");
  EXPECT_EQ(Refusal("/a\0b"s), "invalid path \"/a\\x00b\": it holds a NUL");
  EXPECT_EQ(Refusal("foo://x/y"), "No FileSystem for scheme \"foo\"");
}

TEST(PathsOfCalls, AreCheckedBeforeAnythingIsSent) {
  ClientCluster cluster;
  FileSystem& files = cluster.files();
  const std::string bad = "/\xff";
  const auto refused = [](const absl::Status& status) { return errors::IsInvalidPath(status); };
  EXPECT_TRUE(refused(files.Create(bad).status()));
  EXPECT_TRUE(refused(files.Open(bad).status()));
  EXPECT_TRUE(refused(files.GetFileStatus(bad).status()));
  EXPECT_TRUE(refused(files.List(bad).status()));
  EXPECT_TRUE(refused(files.MakeDirectories(bad)));
  EXPECT_TRUE(refused(files.Rename(bad, "/a")));
  EXPECT_TRUE(refused(files.Rename("/a", bad)));
  EXPECT_TRUE(refused(files.Delete(bad, true).status()));
  EXPECT_TRUE(refused(files.GetContentSummary(bad).status()));
  EXPECT_TRUE(refused(files.GetBlockLocations(bad, 0, 1).status()));
  EXPECT_TRUE(refused(files.SetQuota(bad, 1, 1)));
  EXPECT_TRUE(refused(files.SetReplication(bad, 1).status()));
  EXPECT_TRUE(refused(files.Concat(bad, {"/a"})));
  EXPECT_TRUE(refused(files.Concat("/a", {"/b", bad})));
  EXPECT_TRUE(cluster.namenode().calls.empty());
  ASSERT_TRUE(cluster.Put("/d/x/../f", "data").ok());
  EXPECT_TRUE(cluster.namenode().files.contains("/d/f"));
  EXPECT_EQ(files.GetFileStatus("//d/./f")->path, "/d/f");
}

TEST(PathsOfCalls, OneBadPathAmongManyHarmsNoOther) {
  ClientCluster cluster;
  ASSERT_TRUE(cluster.Put("/a", "1").ok());
  ASSERT_TRUE(cluster.Put("/b", "2").ok());
  const auto located = cluster.files().GetLocationsMany({"/a", "/\xff", "/none", "/b"});
  ASSERT_TRUE(located.ok()) << located.status();
  ASSERT_EQ(located->size(), 4u);
  EXPECT_EQ((*located)[0]->status.path, "/a");
  EXPECT_EQ((*located)[0]->blocks[0].hosts.size(), 3u);
  EXPECT_TRUE(errors::IsInvalidPath((*located)[1].status()));
  EXPECT_TRUE(errors::IsNotFound((*located)[2].status()));
  EXPECT_EQ((*located)[3]->status.length_bytes, 1u);
  const auto deleted = cluster.files().DeleteMany({"/\xff", "/a", "/none", "/b"});
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(errors::IsInvalidPath((*deleted)[0]));
  EXPECT_TRUE((*deleted)[1].ok());
  EXPECT_TRUE(errors::IsNotFound((*deleted)[2]));
  EXPECT_TRUE((*deleted)[3].ok());
  EXPECT_TRUE(cluster.namenode().files.empty());
  EXPECT_TRUE(cluster.files().DeleteMany({"/\xff"}).ok());
  EXPECT_TRUE(cluster.files().GetLocationsMany({})->empty());
}

TEST(PathsOfCalls, LocationsBeyondOneAnswerAreAskedForAlone) {
  ClientCluster cluster;
  cluster.namenode().block_size = 64 << 10;
  ASSERT_TRUE(cluster.Put("/long", Pattern(5 * (64 << 10) + 3)).ok());
  const auto located = cluster.files().GetLocationsMany({"/long"});
  ASSERT_TRUE(located.ok() && (*located)[0].ok());
  const std::vector<BlockLocation>& blocks = (*located)[0]->blocks;
  ASSERT_EQ(blocks.size(), 6u);
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(blocks[i].offset_bytes, i * (64 << 10));
  EXPECT_EQ(blocks.back().length_bytes, 3u);
}

TEST(PathsOfCalls, ThousandsOfPathsTakeAFewCalls) {
  ClientCluster cluster;
  std::vector<std::string> paths;
  for (int i = 0; i < 2500; ++i) paths.push_back("/" + std::to_string(i));
  const auto located = cluster.files().GetLocationsMany(paths);
  ASSERT_TRUE(located.ok());
  EXPECT_EQ(located->size(), 2500u);
  for (const auto& file : *located) EXPECT_TRUE(errors::IsNotFound(file.status()));
  EXPECT_EQ(cluster.namenode().calls["GetLocationsMany"], 3);
}

}  // namespace
}  // namespace cairn::client
