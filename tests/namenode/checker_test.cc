#include "namenode/namespace/checker.h"

#include <functional>
#include <string>

#include <fmt/format.h>

#include "namenode/namespace/ops/ops.h"
#include "namenode/namespace/records.h"
#include "namenode/namespace/row_text.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"
#include "tests/testing/namespace_check.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kBlockSize = 1 << 20;

// Directories, closed files of few and of many blocks, one being written with a block ahead, something half reclaimed, a retry row.
class CheckerTest : public ::testing::Test {
 protected:
  CheckerTest() {
    space_.Must(WithRetry(MkdirsMutation("/a/b"), 3, 1));
    small_ = space_.WriteFile("/a/small", {10, 20}).inode().id();
    long_ = space_.WriteFile("/a/b/long", {1, 2, 3, 4, 5, 6}).inode().id();
    const v1::MutationResult file = space_.Must(CreateMutation("/a/open", "me"));
    open_ = file.inode().id();
    v1::Mutation add = AddBlockMutation(file, "me", {1, 2, 3});
    open_block_ = space_.Must(add).block().id();
    add.mutable_add_block()->set_reserve(true);
    reserved_block_ = space_.Must(add).block().id();

    space_.Must(MkdirsMutation("/gone/deep"));
    space_.WriteFile("/gone/deep/x", {7, 8, 9});
    space_.WriteFile("/gone/y", {7});
    space_.Must(CreateMutation("/gone/z", "other"));
    gone_ = StatusOfPath(space_.view(), "/gone")->inode_id();
    space_.Must(DeleteMutation("/gone", true));
    Reclaim(2);
  }
  void Reclaim(uint32_t entries) {
    v1::Mutation step;
    step.mutable_reclaim_step()->set_work_id(*ParseWorkKey(space_.view().rows(Family::kWork).begin()->first));
    step.mutable_reclaim_step()->set_max_entries(entries);
    space_.Must(step);
  }

  template <class Message>
  void Change(Family family, const std::string& key, const std::function<void(Message*)>& change) {
    auto row = space_.state().rows(family).find(key);
    ASSERT_NE(row, space_.state().rows(family).end());
    Message message;
    ASSERT_TRUE(message.ParseFromString(row->second));
    change(&message);
    row->second = message.SerializeAsString();
  }
  std::string KeyOf(uint64_t inode) {
    const auto found = FindInodeAnywhere(space_.view(), InodeId(inode));
    return InodeKey((*found)->parent, (*found)->name);
  }
  void ChangeInode(uint64_t inode, const std::function<void(v1::INodeRecord*)>& change) {
    Change<v1::INodeRecord>(Family::kInode, KeyOf(inode), change);
  }
  void ChangeBlock(uint64_t block, const std::function<void(v1::BlockRecord*)>& change) {
    Change<v1::BlockRecord>(Family::kBlock, BlockKey(BlockId(block)), change);
  }
  void Erase(Family family, const std::string& key) { ASSERT_EQ(space_.state().rows(family).erase(key), 1u); }
  uint64_t DirectoryId(const std::string& path) { return StatusOfPath(space_.view(), path)->inode_id(); }
  void ExpectFound(const std::string& words) { EXPECT_THAT(ViolationsOf(space_.view()), Contains(HasSubstr(words))); }

  TestNamespace space_;
  uint64_t small_ = 0, long_ = 0, open_ = 0, open_block_ = 0, reserved_block_ = 0, gone_ = 0;
};

TEST_F(CheckerTest, FindsNothingInASoundNamespace) {
  EXPECT_THAT(ViolationsOf(space_.view()), IsEmpty());
  const auto summary = CheckNamespace(space_.view(), [](const Violation&) {});
  ASSERT_THAT(summary, IsOk());
  EXPECT_EQ(summary->violations, 0u);
  EXPECT_EQ(summary->leases, 2u);  // The deleted file's goes when it is reclaimed.
  EXPECT_EQ(summary->works, 1u);
  EXPECT_EQ(summary->retries, 1u);
  EXPECT_GE(summary->directories, 4u);
  while (!space_.view().rows(Family::kWork).empty()) Reclaim(1);
  EXPECT_THAT(ViolationsOf(space_.view()), IsEmpty());
  EXPECT_EQ(CheckNamespace(space_.view(), [](const Violation&) {})->directories, 3u);
}

// The rows of a large directory stay until all that they stood for is freed.
TEST_F(CheckerTest, FindsNothingWhileALargeDirectoryIsFreed) {
  while (!space_.view().rows(Family::kWork).empty()) Reclaim(100);
  constexpr uint64_t kFiles = kSweptEntries + 10;
  for (uint64_t i = 0; i < kFiles; ++i) space_.Must(CreateMutation(fmt::format("/gone/large/{:04}", i), "writer"));
  // Another of that kind in its middle, and a small one.
  for (uint64_t i = 0; i < kFiles; ++i) space_.Must(CreateMutation(fmt::format("/gone/large/0500-d/{:04}", i), "writer"));
  space_.WriteFile("/gone/large/0600-d/x", {1, 2, 3});
  const uint64_t kept = DirectoryId("/a");
  space_.Must(DeleteMutation("/gone", true));
  int steps = 0;
  for (; !space_.view().rows(Family::kWork).empty(); ++steps) {
    Reclaim(97);
    ASSERT_THAT(ViolationsOf(space_.view()), IsEmpty()) << "after step " << steps;
  }
  EXPECT_GT(steps, 20);
  EXPECT_EQ(DirectoryId("/a"), kept);
}

TEST_F(CheckerTest, FindsLinksBehindTheCursorThatFreesALargeDirectory) {
  while (!space_.view().rows(Family::kWork).empty()) Reclaim(100);
  for (uint64_t i = 0; i < kSweptEntries; ++i) space_.Must(CreateMutation(fmt::format("/gone/{:04}", i), "writer"));
  const std::string first = InodeKey(InodeId(DirectoryId("/gone")), "0000");
  v1::INodeRecord record;
  ASSERT_TRUE(record.ParseFromString(space_.view().rows(Family::kInode).at(first)));
  const std::string link_key = InodeByIdKey(InodeId(record.id()));
  const std::string link = space_.view().rows(Family::kInodeById).at(link_key);
  space_.Must(DeleteMutation("/gone", true));
  Reclaim(10);
  ASSERT_THAT(ViolationsOf(space_.view()), IsEmpty());
  space_.state().rows(Family::kInodeById)[link_key] = link;
  ExpectFound(fmt::format("inode {} lies behind the cursor that frees it, and is still linked", record.id()));
  // And what is missing before the cursor is missing.
  const std::string last = InodeKey(ParseInodeKey(first)->parent, fmt::format("{:04}", kSweptEntries - 1));
  ASSERT_TRUE(record.ParseFromString(space_.view().rows(Family::kInode).at(last)));
  Erase(Family::kInodeById, InodeByIdKey(InodeId(record.id())));
  ExpectFound(fmt::format("inode {} has no link", record.id()));
}

TEST_F(CheckerTest, FindsBlocksWhoseFieldsDoNotFitTheirState) {
  ChangeBlock(open_block_, [](v1::BlockRecord* block) { block->set_recovery_id(5); });
  ExpectFound(fmt::format("its block {} has the id of a recovery", open_block_));
  ChangeBlock(open_block_, [](v1::BlockRecord* block) { block->set_closed_length_bytes(5); });
  ExpectFound(fmt::format("its block {} has 5 bytes of an earlier close, of 0", open_block_));
  ChangeBlock(open_block_, [](v1::BlockRecord* block) { block->set_append_from_stamp(block->generation_stamp()); });
  ExpectFound("was appended to at stamp");
  ChangeBlock(open_block_, [](v1::BlockRecord* block) { block->set_truncate_to_bytes(1); });
  ExpectFound(fmt::format("its block {} is to be cut to 1 bytes, it has 0", open_block_));
  ChangeBlock(open_block_, [](v1::BlockRecord* block) {
    block->set_state(v1::UNDER_RECOVERY);
    block->clear_recovery_id();
  });
  ExpectFound(fmt::format("its block {} is under recovery without an id of it", open_block_));
  ExpectFound(fmt::format("its block {} is UNDER_RECOVERY, and the file is written by me", open_block_));
  const uint64_t first = (*BlockIdAt(space_.view(), (*FindInodeAnywhere(space_.view(), InodeId(small_)))->record, 0)).value();
  ChangeBlock(first, [](v1::BlockRecord* block) { block->clear_expected_storages(); });
  ExpectFound(fmt::format("its block {} is committed on no storage", first));
  ChangeBlock(first, [](v1::BlockRecord* block) { block->set_replication(2); });
  ExpectFound(fmt::format("its block {} is to have 2 replicas, the file 3", first));
}

TEST_F(CheckerTest, FindsBrokenLinksBothWays) {
  Erase(Family::kInodeById, InodeByIdKey(InodeId(small_)));
  ExpectFound(fmt::format("inode {} has no link", small_));
  ExpectFound("file " + std::to_string(small_) + " is not there");
}

TEST_F(CheckerTest, FindsALinkToNothing) {
  Erase(Family::kInode, KeyOf(small_));
  ExpectFound(fmt::format("inode_by_id {}: no inode {} stands at", small_, small_));
  ExpectFound("the rows say 2 children");
}

TEST_F(CheckerTest, FindsALinkToAnotherPlace) {
  Change<v1::INodeLink>(Family::kInodeById, InodeByIdKey(InodeId(small_)), [](v1::INodeLink* link) { link->set_name("other"); });
  ExpectFound(fmt::format("inode {} is linked to", small_));
}

TEST_F(CheckerTest, FindsInodesThatCannotBeReached) {
  const uint64_t b = DirectoryId("/a/b");
  const std::string row = space_.state().rows(Family::kInode).at(KeyOf(b));
  Erase(Family::kInode, KeyOf(b));
  // Below itself: a cycle.
  space_.state().rows(Family::kInode)[InodeKey(InodeId(b), "b")] = row;
  Change<v1::INodeLink>(Family::kInodeById, InodeByIdKey(InodeId(b)), [b](v1::INodeLink* link) { link->set_parent_id(b); });
  ExpectFound(fmt::format("inode {} cannot be reached from the root", b));
  ExpectFound(fmt::format("inode {} cannot be reached from the root", long_));
}

TEST_F(CheckerTest, FindsWrongTotals) {
  Change<v1::UsageRecord>(Family::kUsage, UsageKey(InodeId(DirectoryId("/a"))),
                          [](v1::UsageRecord* usage) { usage->set_length_bytes(usage->length_bytes() + 1); });
  ExpectFound(fmt::format("usage {}: says 3 children", DirectoryId("/a")));
  ExpectFound("usage 16385");  // Its parent sums it up otherwise.
}

TEST_F(CheckerTest, FindsWrongChildrenAndMissingUsage) {
  Change<v1::UsageRecord>(Family::kUsage, UsageKey(InodeId(DirectoryId("/a/b"))), [](v1::UsageRecord* usage) { usage->set_children(0); });
  ExpectFound("says 0 children");
  const uint64_t a = DirectoryId("/a");
  Erase(Family::kUsage, UsageKey(InodeId(a)));
  ExpectFound(fmt::format("usage {}: is missing", a));
}

TEST_F(CheckerTest, FindsUsageOfNoDirectory) {
  space_.state().rows(Family::kUsage)[UsageKey(InodeId(small_))] = v1::UsageRecord().SerializeAsString();
  ExpectFound(fmt::format("usage {}: is of no directory", small_));
}

TEST_F(CheckerTest, FindsBlocksThatDoNotFitTheirFile) {
  const uint64_t first = (*BlockIdAt(space_.view(), (*FindInodeAnywhere(space_.view(), InodeId(small_)))->record, 0)).value();
  ChangeBlock(first, [](v1::BlockRecord* block) { block->set_length_bytes(11); });
  ExpectFound("it has 30 bytes, its blocks 31");
  ExpectFound("charges 30 bytes, expected 33");
  ChangeBlock(first, [](v1::BlockRecord* block) { block->set_index(1); });
  ExpectFound("has index 1, expected 0");
  ExpectFound(fmt::format("block {}: file {} does not name it at 1", first, small_));
  ChangeBlock(first, [](v1::BlockRecord* block) { block->set_state(v1::UNDER_CONSTRUCTION); });
  ExpectFound("is UNDER_CONSTRUCTION as number 0 of 2 of a closed file");
  ChangeBlock(first, [this](v1::BlockRecord* block) { block->set_inode_id(open_); });
  ExpectFound(fmt::format("its block {} belongs to inode {}", first, open_));
  Erase(Family::kBlock, BlockKey(BlockId(first)));
  ExpectFound(fmt::format("its block {} is missing", first));
}

TEST_F(CheckerTest, FindsWrongSumsOfAFile) {
  ChangeInode(open_, [](v1::INodeRecord* file) { file->set_charged_bytes(file->charged_bytes() - 1); });
  ExpectFound(fmt::format("it charges {} bytes, its blocks {}", 2 * 3 * kBlockSize - 1, 2 * 3 * kBlockSize));
}

TEST_F(CheckerTest, FindsGapsInLongFiles) {
  Erase(Family::kFileBlock, FileBlockKey(InodeId(long_), 2));
  ExpectFound(fmt::format("file_block ({}, 3): is not the block that follows", long_));
  ExpectFound(fmt::format("file {} does not name it at 2", long_));
}

TEST_F(CheckerTest, FindsFileBlocksOfNobody) {
  space_.state().rows(Family::kFileBlock)[FileBlockKey(InodeId(small_), 0)] = EncodeU64(1 << 30);
  space_.state().rows(Family::kFileBlock)[FileBlockKey(InodeId(long_), 6)] = EncodeU64(1 << 30);
  ExpectFound(fmt::format("file_block ({}, 0): inode {} has no such block", small_, small_));
  ExpectFound(fmt::format("file_block ({}, 6): inode {} has no such block", long_, long_));
}

TEST_F(CheckerTest, FindsLeasesWithoutWritersAndWritersWithoutLeases) {
  Erase(Family::kLease, LeaseKey("me", InodeId(open_)));
  ExpectFound("it is written by me, who has no lease");
  space_.state().rows(Family::kLease)[LeaseKey("me", InodeId(small_))] = v1::LeaseRecord().SerializeAsString();
  ExpectFound(fmt::format("lease (\"me\", {}): inode {} is not written by me", small_, small_));
}

TEST_F(CheckerTest, FindsReservedBlocksInTheWrongState) {
  ChangeBlock(reserved_block_, [](v1::BlockRecord* block) { block->set_state(v1::UNDER_CONSTRUCTION); });
  ExpectFound(fmt::format("its reserved block {} is UNDER_CONSTRUCTION", reserved_block_));
  ChangeBlock(open_block_, [](v1::BlockRecord* block) { block->set_state(v1::RESERVED); });
  ExpectFound(fmt::format("its block {} is RESERVED as number 0 of 1", open_block_));
}

TEST_F(CheckerTest, FindsDetachedTreesThatNothingReclaims) {
  space_.state().rows(Family::kWork).clear();
  ExpectFound(fmt::format("inode {} was deleted, but nothing is there to reclaim it", gone_));
}

TEST_F(CheckerTest, FindsWorkThatLeadsNowhere) {
  Change<v1::WorkRecord>(Family::kWork, space_.view().rows(Family::kWork).begin()->first,
                         [this](v1::WorkRecord* work) { work->mutable_reclaim()->set_root_inode_id(small_); });
  ExpectFound(fmt::format("inode {} does not stand below parent 0", small_));
}

TEST_F(CheckerTest, FindsNumbersThatWereNeverGivenOut) {
  for (const std::string_view name : {kMetaNextInodeId, kMetaNextBlockId, kMetaNextGenerationStamp, kMetaNextWorkId})
    space_.state().rows(Family::kMeta)[std::string(name)] = EncodeU64(1);
  const std::vector<std::string> lines = ViolationsOf(space_.view());
  EXPECT_THAT(lines, Contains(HasSubstr(fmt::format("id {} is not below the counter, 1", small_))));
  EXPECT_THAT(lines, Contains(HasSubstr(fmt::format("block {}: is not below the counter, 1", open_block_))));
  EXPECT_THAT(lines, Contains(HasSubstr("was never given out")));
  EXPECT_THAT(lines, Contains(HasSubstr("work 1: is not below the counter, 1")));
  Erase(Family::kMeta, std::string(kMetaEpoch));
  ExpectFound("meta \"epoch\": is missing");
}

TEST_F(CheckerTest, FindsAttributesOutOfOrderAndNegativeQuotas) {
  ChangeInode(small_, [](v1::INodeRecord* file) {
    for (const char* name : {"b", "a"}) {
      v1::Xattr* xattr = file->add_xattrs();
      xattr->set_name_space(v1::XATTR_USER);
      xattr->set_name(name);
    }
  });
  ExpectFound("its extended attributes are not in order");
  Change<v1::UsageRecord>(Family::kUsage, UsageKey(InodeId(DirectoryId("/a"))),
                          [](v1::UsageRecord* usage) { usage->set_space_quota_bytes(-1); });
  ExpectFound("has a negative quota");
}

TEST_F(CheckerTest, FindsRowsThatDoNotParse) {
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const auto family = static_cast<Family>(i);
    if (family == Family::kMeta) continue;
    TestNamespace damaged = space_;
    damaged.state().rows(family)["x"] = "\xff\xff\xff";
    EXPECT_THAT(ViolationsOf(damaged.view()), Contains(HasSubstr(fmt::format("{} 0x78: does not parse", FamilyName(family)))))
        << FamilyName(family);
  }
}

TEST_F(CheckerTest, FindsUnknownStorages) {
  v1::Mutation mutation;
  mutation.mutable_register_storages()->set_datanode_uuid("d");
  mutation.mutable_register_storages()->add_storage_uuids("s1");
  space_.Must(mutation);  // Number 1; blocks are on 1, 2 and 3.
  ExpectFound("storage 2 is unknown");
}

TEST(RowText, IsOneLineOfJson) {
  v1::LeaseRecord lease;
  lease.set_since_ms(5);
  EXPECT_EQ(RowJson(Family::kLease, LeaseKey("me\n", InodeId(7)), lease.SerializeAsString()),
            R"x({"family": "lease", "key": "(\"me\\u000a\", 7)", "value": {"since_ms":"5"}})x");
  EXPECT_EQ(RowJson(Family::kFileBlock, FileBlockKey(InodeId(7), 1), EncodeU64(16)),
            R"x({"family": "file_block", "key": "(7, 1)", "value": 16})x");
  EXPECT_EQ(RowJson(Family::kMeta, "x", "\x01"), R"x({"family": "meta", "key": "\"x\"", "value": "0x01"})x");
  EXPECT_EQ(RowJson(Family::kMeta, kMetaBlockTokenKeys, "secret!"),
            R"x({"family": "meta", "key": "\"block_token_keys\"", "value": "7 bytes"})x");
  EXPECT_EQ(RowJson(Family::kBlock, "x", "\xff"), R"x({"family": "block", "key": "0x78", "value": "0xff"})x");
}

}  // namespace
}  // namespace cairn::namenode
