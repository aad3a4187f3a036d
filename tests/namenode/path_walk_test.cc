#include "namenode/namespace/path_walk.h"

#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using ::testing::ElementsAre;
using testing::HasKind;
using ::testing::HasSubstr;
using testing::IsOkAndHolds;
using std::string_literals::operator""s;

TEST(SplitPath, CollapsesSlashes) {
  EXPECT_THAT(SplitPath("/"), IsOkAndHolds(ElementsAre()));
  EXPECT_THAT(SplitPath("//a///b/"), IsOkAndHolds(ElementsAre("a", "b")));
  EXPECT_THAT(SplitPath("/ä b/..."), IsOkAndHolds(ElementsAre("ä b", "...")));
}

TEST(SplitPath, RefusesWhatIsNoPath) {
  for (const std::string& path :
       {""s, "a"s, "a/b"s, "/a/./b"s, "/.."s, "/a\0b"s, "/\xff"s, "/\xc0\xaf"s, "/\xed\xa0\x80"s, "/\xf4\x90\x80\x80"s, "/\xe2\x82"s})
    EXPECT_THAT(SplitPath(path), HasKind(ErrorKind::kInvalidPath)) << path;
}

TEST(WalkPath, NamesTheFirstMissingComponent) {
  testing::TestNamespace space;
  space.Must(testing::MkdirsMutation("/a"));
  const auto walk = WalkExisting(space.view(), "/a/b/c", Caller::Trusted());
  EXPECT_THAT(walk, HasKind(ErrorKind::kNotFound));
  EXPECT_EQ(ErrorOf(walk.status())->path, "/a/b");
}

TEST(WalkPath, AFileInTheMiddleIsNotADirectory) {
  testing::TestNamespace space;
  space.WriteFile("/a/f", {});
  const auto walk = WalkPath(space.view(), "/a/f/c", Caller::Trusted());
  EXPECT_THAT(walk, HasKind(ErrorKind::kNotDirectory));
  EXPECT_EQ(ErrorOf(walk.status())->path, "/a/f");
}

TEST(Queries, IdsKnowTheirPathUntilTheyAreDeleted) {
  testing::TestNamespace space;
  const InodeId id(space.WriteFile("/a/b/f", {10}).inode().id());
  EXPECT_THAT(PathOf(space.view(), id), IsOkAndHolds(std::string("/a/b/f")));
  EXPECT_THAT(PathOf(space.view(), kRootInodeId), IsOkAndHolds(std::string("/")));
  space.Must(testing::RenameMutation("/a/b", "/c"));
  EXPECT_THAT(PathOf(space.view(), id), IsOkAndHolds(std::string("/c/f")));
  EXPECT_EQ(ResolveId(space.view(), id)->name, "f");
  space.Must(testing::DeleteMutation("/c", true));
  EXPECT_THAT(PathOf(space.view(), id), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(ResolveId(space.view(), id), HasKind(ErrorKind::kNotFound));
  EXPECT_THAT(ResolveId(space.view(), InodeId(1234567)), HasKind(ErrorKind::kNotFound));
}

TEST(Queries, ListingIsPagedInByteOrder) {
  testing::TestNamespace space;
  for (const char* name : {"/d/b", "/d/a", "/d/a0", "/d/\xc3\xa4", "/d/B"}) space.Must(testing::MkdirsMutation(name));
  space.Must(testing::MkdirsMutation("/d/a/x"));
  auto names = [](const Listing& listing) {
    std::vector<std::string> out;
    for (const auto& entry : listing.entries) out.push_back(entry.path());
    return out;
  };
  const auto first = ListDirectory(space.view(), "/d", "", 2);
  ASSERT_THAT(first, testing::IsOk());
  EXPECT_THAT(names(*first), ElementsAre("B", "a"));
  EXPECT_TRUE(first->has_more);
  EXPECT_EQ(first->entries[1].children(), 1u);
  const auto second = ListDirectory(space.view(), "/d", "a", 3);
  EXPECT_THAT(names(*second), ElementsAre("a0", "b", "\xc3\xa4"));
  EXPECT_FALSE(second->has_more);
  // The name given need not exist any more.
  EXPECT_THAT(names(*ListDirectory(space.view(), "/d", "a5", 10)), ElementsAre("b", "\xc3\xa4"));
  EXPECT_THAT(ListDirectory(space.view(), "/nowhere", "", 1), HasKind(ErrorKind::kNotFound));
}

TEST(Queries, AFileIsListedAsItself) {
  testing::TestNamespace space;
  space.WriteFile("/d/f", {7});
  const auto listing = ListDirectory(space.view(), "/d/f", "", 10);
  ASSERT_THAT(listing, testing::IsOk());
  ASSERT_EQ(listing->entries.size(), 1u);
  EXPECT_EQ(listing->entries[0].path(), "f");
  EXPECT_EQ(listing->entries[0].length_bytes(), 7u);
}

TEST(Queries, BlocksThatOverlapARange) {
  testing::TestNamespace space;
  const auto file = space.WriteFile("/f", {100, 50, 1 << 20, 1, 30, 20});
  auto offsets = [&](uint64_t offset, uint64_t length, size_t limit = 100) {
    std::vector<uint64_t> out;
    const auto blocks = BlocksOfFile(space.view(), file.inode(), offset, length, limit);
    EXPECT_THAT(blocks, testing::IsOk());
    for (const auto& block : *blocks) out.push_back(block.offset_bytes);
    return out;
  };
  const uint64_t third = 150 + (1 << 20);
  EXPECT_THAT(offsets(0, UINT64_MAX), ElementsAre(0, 100, 150, third, third + 1, third + 31));
  EXPECT_THAT(offsets(99, 1), ElementsAre(0));
  EXPECT_THAT(offsets(99, 2), ElementsAre(0, 100));
  EXPECT_THAT(offsets(100, 1), ElementsAre(100));
  EXPECT_THAT(offsets(third, 1), ElementsAre(third));
  EXPECT_THAT(offsets(third + 51, 1), ElementsAre());
  EXPECT_THAT(offsets(0, 0), ElementsAre());
  EXPECT_THAT(offsets(0, UINT64_MAX, 2), ElementsAre(0, 100));
}

TEST(Queries, SummaryCountsTheWholeSubtree) {
  testing::TestNamespace space;
  space.WriteFile("/a/b/f", {10, 20});
  space.WriteFile("/a/g", {5});
  const auto summary = SummaryOfPath(space.view(), "/a");
  ASSERT_THAT(summary, testing::IsOk());
  EXPECT_EQ(summary->directories(), 2u);
  EXPECT_EQ(summary->files(), 2u);
  EXPECT_EQ(summary->length_bytes(), 35u);
  EXPECT_EQ(summary->charged_bytes(), 105u);
  EXPECT_EQ(SummaryOfPath(space.view(), "/a/g")->files(), 1u);
  EXPECT_EQ(SummaryOfPath(space.view(), "/a/g")->directories(), 0u);
}

TEST(Queries, CountersOfAnEmptyNamespace) {
  testing::TestNamespace space;
  const auto counters = ReadCounters(space.view());
  ASSERT_THAT(counters, testing::IsOk());
  EXPECT_EQ(counters->next_block_id, kFirstBlockId);
  EXPECT_EQ(counters->next_generation_stamp, kFirstGenerationStamp);
  EXPECT_EQ(counters->next_inode_id.value(), kRootInodeId.value() + 1);
  EXPECT_EQ(counters->pool_id, testing::kTestPoolId);
}

TEST(Queries, ARowThatDoesNotParseIsNamed) {
  testing::TestNamespace space;
  space.Must(testing::MkdirsMutation("/a"));
  space.state().rows(Family::kInode)[InodeKey(kRootInodeId, "a")] = "\xff";
  const auto status = StatusOfPath(space.view(), "/a");
  EXPECT_THAT(status, HasKind(ErrorKind::kCorruptMetadata));
  EXPECT_THAT(std::string(status.status().message()), HasSubstr("family inode, key 0x000000000000400161"));
}

}  // namespace
}  // namespace cairn::namenode
