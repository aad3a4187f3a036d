#include "namenode/store/row_cache.h"

#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cairn/namespace.pb.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

constexpr size_t kMuch = 64 << 20;

std::string Find(RowCache& cache, const std::string& key, uint64_t index, Family family = Family::kInode) {
  return cache.Find(family, key, index).value_or("(none)");
}

TEST(RowCache, KeepsWhatWasReadAtTheNewestStateOnly) {
  RowCache cache(kMuch, 5);
  cache.Add(Family::kInode, "a", "1", 5);
  cache.Add(Family::kInode, "b", "old", 4);  // A reader of an older state: it may have been changed since.
  EXPECT_EQ(Find(cache, "a", 5), "1");
  EXPECT_EQ(Find(cache, "b", 5), "(none)");
  EXPECT_EQ(Find(cache, "a", 5, Family::kUsage), "(none)");
}

TEST(RowCache, AChangedRowIsKnownFromItsBatchOn) {
  RowCache cache(kMuch, 5);
  cache.Add(Family::kInode, "a", "1", 5);
  cache.Begin(6);
  cache.Put(Family::kInode, "a", "2");
  EXPECT_EQ(Find(cache, "a", 5), "(none)");  // The snapshot of 5 still knows.
  EXPECT_EQ(Find(cache, "a", 6), "2");
  EXPECT_EQ(Find(cache, "a", 7), "2");
}

TEST(RowCache, ADeletedRowIsGone) {
  RowCache cache(kMuch, 5);
  cache.Add(Family::kInode, "a", "1", 5);
  cache.Begin(6);
  cache.Delete(Family::kInode, "a");
  EXPECT_EQ(Find(cache, "a", 5), "(none)");
  EXPECT_EQ(Find(cache, "a", 6), "(none)");
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(RowCache, ARangeOfChildrenGoesAndNothingElse) {
  RowCache cache(kMuch, 1);
  for (uint64_t parent = 100; parent < 300; ++parent)
    for (const char* name : {"x", "y", "z"}) cache.Add(Family::kInode, InodeKey(InodeId(parent), name), "row", 1);
  cache.Begin(2);
  cache.DeleteRange(Family::kInode, ChildrenBegin(InodeId(200), "x"), ChildrenEnd(InodeId(200)));
  for (uint64_t parent = 100; parent < 300; ++parent)
    for (const char* name : {"x", "y", "z"})
      EXPECT_EQ(Find(cache, InodeKey(InodeId(parent), name), 2), parent == 200 && *name != 'x' ? "(none)" : "row") << parent << name;
}

TEST(RowCache, AWideRangeReachesEveryShard) {
  RowCache cache(kMuch, 1);
  for (uint64_t id = 0; id < 500; ++id) cache.Add(Family::kBlock, EncodeU64(id), "row", 1);
  cache.Begin(2);
  cache.DeleteRange(Family::kBlock, EncodeU64(100), EncodeU64(400));
  for (uint64_t id = 0; id < 500; ++id)
    EXPECT_EQ(Find(cache, EncodeU64(id), 2, Family::kBlock), id >= 100 && id < 400 ? "(none)" : "row") << id;
  cache.DeleteRange(Family::kBlock, "", "");
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(RowCache, RangesEndAtTheLastNumber) {
  RowCache cache(kMuch, 1);
  cache.Add(Family::kInode, InodeKey(InodeId(UINT64_MAX), "x"), "row", 1);
  cache.Begin(2);
  cache.DeleteRange(Family::kInode, ChildrenBegin(InodeId(UINT64_MAX), ""), ChildrenEnd(InodeId(UINT64_MAX)));
  EXPECT_EQ(Find(cache, InodeKey(InodeId(UINT64_MAX), "x"), 2), "(none)");
}

TEST(RowCache, StaysWithinItsBytesAndKeepsWhatIsAskedFor) {
  constexpr size_t kBytes = 1 << 20;
  RowCache cache(kBytes, 1);
  const std::string wanted = InodeKey(InodeId(7), "wanted");
  cache.Add(Family::kInode, wanted, "here", 1);
  for (uint64_t i = 0; i < 100'000; ++i) {
    cache.Add(Family::kInode, InodeKey(InodeId(i % 5000), fmt::format("f{}", i)), "row", 1);
    ASSERT_LE(cache.bytes(), kBytes);
    ASSERT_EQ(Find(cache, wanted, 1), "here") << i;
  }
  EXPECT_GT(cache.bytes(), kBytes / 4);
}

TEST(RowCache, ARowOfTheOldGenerationIsChangedInPlace) {
  RowCache cache(64 * 2 * 300, 1);  // Two or three rows a generation.
  cache.Add(Family::kInode, "key00000-a", "1", 1);
  for (const char* filler : {"key00000-b", "key00000-c", "key00000-d"}) cache.Add(Family::kInode, filler, "1", 1);
  cache.Begin(2);
  cache.Put(Family::kInode, "key00000-a", "2");
  EXPECT_EQ(Find(cache, "key00000-a", 2), "2");
  cache.Begin(3);
  cache.Delete(Family::kInode, "key00000-a");
  EXPECT_EQ(Find(cache, "key00000-a", 3), "(none)");
}

std::shared_ptr<const RowGroup> GroupOf(const std::string& key) {
  auto group = std::make_shared<RowGroup>();
  group->rows.emplace_back(key, std::make_shared<v1::INodeRecord>());
  return group;
}

// Of one directory, read as of batch 1; and of its neighbour.
struct Groups {
  Groups() {
    cache.AddGroup(EncodeU64(7), GroupOf(InodeKey(InodeId(7), "a")), 100, 1);
    cache.AddGroup(EncodeU64(8), GroupOf(InodeKey(InodeId(8), "a")), 100, 1);
  }
  bool Has(uint64_t number, uint64_t index) { return cache.FindGroup(EncodeU64(number), index) != nullptr; }

  RowCache cache{kMuch, 1};
};

TEST(RowCache, AGroupIsThereUntilOneOfItsRowsChanges) {
  Groups put;
  EXPECT_TRUE(put.Has(7, 1));
  EXPECT_FALSE(put.Has(7, 0));  // A state before it was read.
  EXPECT_FALSE(put.Has(9, 1));
  put.cache.Begin(2);
  put.cache.Put(Family::kInode, InodeKey(InodeId(7), "b"), "row");
  EXPECT_FALSE(put.Has(7, 1));
  EXPECT_FALSE(put.Has(7, 2));
  EXPECT_TRUE(put.Has(8, 2));

  Groups put_message;
  put_message.cache.Begin(2);
  put_message.cache.PutMessage(Family::kInode, InodeKey(InodeId(7), "a"), std::make_shared<v1::INodeRecord>(), 10);
  EXPECT_FALSE(put_message.Has(7, 2));
  EXPECT_TRUE(put_message.Has(8, 2));

  Groups removed;
  removed.cache.Begin(2);
  removed.cache.Delete(Family::kInode, InodeKey(InodeId(7), "a"));
  EXPECT_FALSE(removed.Has(7, 2));
  EXPECT_TRUE(removed.Has(8, 2));

  Groups range;
  range.cache.Begin(2);
  range.cache.DeleteRange(Family::kInode, ChildrenBegin(InodeId(7), ""), ChildrenEnd(InodeId(7)));
  EXPECT_FALSE(range.Has(7, 2));
  EXPECT_TRUE(range.Has(8, 2));

  Groups wide;
  wide.cache.Begin(2);
  wide.cache.DeleteRange(Family::kInode, InodeKey(InodeId(7), "k"), "");
  EXPECT_FALSE(wide.Has(7, 2));
  EXPECT_FALSE(wide.Has(8, 2));

  Groups other_family;
  other_family.cache.Begin(2);
  other_family.cache.Put(Family::kUsage, UsageKey(InodeId(7)), "row");
  EXPECT_TRUE(other_family.Has(7, 2));
}

TEST(RowCache, AGroupThatWasReadBeforeAChangeIsNotTaken) {
  RowCache cache(kMuch, 1);
  cache.Begin(2);
  cache.AddGroup(EncodeU64(7), GroupOf(InodeKey(InodeId(7), "a")), 100, 1);
  EXPECT_EQ(cache.FindGroup(EncodeU64(7), 2), nullptr);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(RowCache, GroupsAreCountedAndMakeRoom) {
  RowCache cache(1 << 20, 1);
  for (uint64_t number = 0; number < 10'000; ++number) {
    cache.AddGroup(EncodeU64(number), GroupOf(InodeKey(InodeId(number), "a")), 500, 1);
    ASSERT_LE(cache.bytes(), size_t{1 << 20} + 64 * 2000);
    if (number % 10 == 0) {
      ASSERT_NE(cache.FindGroup(EncodeU64(0), 1), nullptr) << number;
    }
  }
  EXPECT_EQ(cache.FindGroup(EncodeU64(1), 1), nullptr);
  cache.Begin(2);
  cache.DeleteRange(Family::kInode, InodeKey(InodeId(0), ""), "");
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(RowCache, SomeFamiliesAreNotKept) {
  RowCache cache(kMuch, 1);
  cache.Begin(2);
  cache.Put(Family::kMeta, "a", "1");
  cache.Put(Family::kWork, "a", "1");
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace cairn::namenode
