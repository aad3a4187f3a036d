#include "namenode/store/keys.h"

#include <gmock/gmock.h>

namespace cairn::namenode {
namespace {

using std::string_literals::operator""s;

// Golden bytes: these are on disk.
TEST(Keys, BytesAreAsDocumented) {
  EXPECT_EQ(InodeKey(kRootInodeId, "a"),
            "\0\0\0\0\0\0\x40\x01"s
            "a"s);
  EXPECT_EQ(InodeKey(kRootParentId, ""), "\0\0\0\0\0\0\0\x01"s);
  EXPECT_EQ(InodeByIdKey(InodeId(0x0102030405060708)), "\x01\x02\x03\x04\x05\x06\x07\x08"s);
  EXPECT_EQ(FileBlockKey(InodeId(1), 2), "\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02"s);
  EXPECT_EQ(BlockKey(kFirstBlockId), "\0\0\0\0\x40\0\0\0"s);
  EXPECT_EQ(UsageKey(InodeId(16386)), "\0\0\0\0\0\0\x40\x02"s);
  EXPECT_EQ(LeaseKey("me", InodeId(3)), "\0\x02me\0\0\0\0\0\0\0\x03"s);
  EXPECT_EQ(WorkKey(4), "\0\0\0\0\0\0\0\x04"s);
  EXPECT_EQ(RetryKey("0123456789abcdef", 258), "0123456789abcdef\0\0\x01\x02"s);
  EXPECT_EQ(DatanodeKey(StorageNumber(5)), "\0\0\0\x05"s);
  EXPECT_EQ(EncodeU64(1001), "\0\0\0\0\0\0\x03\xe9"s);
}

TEST(Keys, ParsersReadWhatWasWritten) {
  const std::string inode = InodeKey(InodeId(7), "näme");
  ASSERT_TRUE(ParseInodeKey(inode));
  EXPECT_EQ(ParseInodeKey(inode)->parent, InodeId(7));
  EXPECT_EQ(ParseInodeKey(inode)->name, "näme");
  const std::string lease = LeaseKey("client_1", InodeId(9));
  ASSERT_TRUE(ParseLeaseKey(lease));
  EXPECT_EQ(ParseLeaseKey(lease)->holder, "client_1");
  EXPECT_EQ(ParseLeaseKey(lease)->id, InodeId(9));
  EXPECT_EQ(ParseBlockKey(BlockKey(BlockId(48))), BlockId(48));
  EXPECT_EQ(ParseWorkKey(WorkKey(11)), 11u);
  EXPECT_EQ(ParseDatanodeKey(DatanodeKey(StorageNumber(4294967295))), StorageNumber(4294967295));
}

TEST(Keys, ParsersRefuseOtherShapes) {
  EXPECT_FALSE(ParseInodeKey("1234567"));
  EXPECT_FALSE(ParseBlockKey("123456789"));
  EXPECT_FALSE(ParseDatanodeKey("12345"));
  EXPECT_FALSE(DecodeU64(""));
  EXPECT_FALSE(ParseLeaseKey("\0\x05me\0\0\0\0\0\0\0\x03"s));
  EXPECT_FALSE(ParseLeaseKey(""));
}

TEST(Keys, ADirectorysChildrenAreOneRange) {
  const std::string begin = ChildrenBegin(InodeId(255), ""), end = ChildrenEnd(InodeId(255));
  for (const std::string& name : std::vector<std::string>{"a", "\x7f", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_LT(begin, InodeKey(InodeId(255), name));
    EXPECT_GT(end, InodeKey(InodeId(255), name));
  }
  EXPECT_LE(end, InodeKey(InodeId(256), "a"));
  EXPECT_GT(begin, InodeKey(InodeId(254), "\xff\xff"));
}

TEST(Keys, ListingGoesOnRightAfterAName) {
  EXPECT_GT(ChildrenBegin(InodeId(1), "b"), InodeKey(InodeId(1), "b"));
  EXPECT_LE(ChildrenBegin(InodeId(1), "b"), InodeKey(InodeId(1), "b\x01"));
}

TEST(Keys, HoldersThatAreOneAnothersPrefixDoNotMix) {
  EXPECT_NE(LeaseKey("a", InodeId(0x6200000000000000)).substr(0, 3), LeaseKey("ab", InodeId(0)).substr(0, 3));
  EXPECT_EQ(ParseLeaseKey(LeaseKey("a\0b"s, InodeId(1)))->holder, "a\0b"s);
}

TEST(Keys, PrefixEndSkipsFullBytes) {
  EXPECT_EQ(PrefixEnd("a"), "b");
  EXPECT_EQ(PrefixEnd("a\xff"s), "b");
  EXPECT_EQ(PrefixEnd("\xff\xff"s), "");
}

}  // namespace
}  // namespace cairn::namenode
