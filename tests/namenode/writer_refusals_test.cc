// Every refusal of the calls that write a file's blocks, with its kind, its reason and its words: addBlock, abandonBlock, fsync, complete,
// updateBlockForPipeline and updatePipeline.

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/records.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

constexpr uint64_t kBlockSize = 1 << 20;
constexpr uint64_t kStranger = 77;  // The id of a block of no file here.

class WriterRefusals : public ::testing::Test {
 protected:
  WriterRefusals() : file_(space_.Must(CreateMutation("/d/f", "me", {1, 2, 3}))), block_(file_.block()) {}

  // That `mutation` is refused so. `{f}` stands for "/d/f (inode N)", `{b}` for "/d/f: block N".
  void Expect(const v1::Mutation& mutation, ErrorKind kind, const std::string& reason, std::string words) {
    const auto refused = space_.Apply(mutation);
    EXPECT_THAT(refused, HasKind(kind));
    EXPECT_THAT(refused, HasReason(reason));
    const auto put = [&](const std::string& mark, const std::string& text) {
      if (const size_t at = words.find(mark); at != std::string::npos) words.replace(at, mark.size(), text);
    };
    put("{f}", fmt::format("/d/f (inode {})", file_.inode().id()));
    put("{b}", fmt::format("/d/f: block {}", block_.id()));
    EXPECT_EQ(std::string(refused.status().message()), words);
  }

  v1::Mutation Add() { return AddBlockMutation(file_, "me", {4, 5, 6}); }
  v1::Mutation AddAfter(const v1::Block& previous, uint64_t length, std::vector<uint32_t> acknowledged = {1, 2, 3}) {
    v1::Mutation add = Add();
    *add.mutable_add_block()->mutable_previous() = MakeCommit(previous, length, acknowledged);
    return add;
  }
  v1::Block Reserve() {
    v1::Mutation reserve = Add();
    reserve.mutable_add_block()->set_reserve(true);
    return space_.Must(reserve).block();
  }
  v1::Mutation Complete(const v1::Block& last, uint64_t length, std::vector<uint32_t> acknowledged = {1, 2, 3}) {
    v1::Mutation complete = CompleteMutation(file_, "me");
    *complete.mutable_complete()->mutable_last() = MakeCommit(last, length, acknowledged);
    return complete;
  }
  v1::Mutation Fsync(const v1::Block& last, uint64_t length) {
    v1::Mutation mutation = MutationOf("me");
    mutation.mutable_fsync()->set_path("/d/f");
    mutation.mutable_fsync()->set_inode_id(file_.inode().id());
    *mutation.mutable_fsync()->mutable_last_block() = MakeBlock(last.id(), last.generation_stamp(), length);
    return mutation;
  }
  v1::Mutation Abandon(const v1::Block& block) {
    v1::Mutation mutation = MutationOf("me");
    mutation.mutable_abandon_block()->set_path("/d/f");
    mutation.mutable_abandon_block()->set_inode_id(file_.inode().id());
    *mutation.mutable_abandon_block()->mutable_block() = block;
    return mutation;
  }
  v1::Mutation NewStamp(const v1::Block& block) {
    v1::Mutation mutation = MutationOf("me");
    mutation.mutable_update_block_for_pipeline()->set_path("/d/f");
    mutation.mutable_update_block_for_pipeline()->set_inode_id(file_.inode().id());
    *mutation.mutable_update_block_for_pipeline()->mutable_block() = block;
    return mutation;
  }
  v1::Mutation NewPipeline(const v1::Block& next, std::vector<uint32_t> storages) {
    v1::Mutation mutation = MutationOf("me");
    v1::Mutation::UpdatePipeline& op = *mutation.mutable_update_pipeline();
    op.set_path("/d/f");
    op.set_inode_id(file_.inode().id());
    *op.mutable_old_block() = block_;
    *op.mutable_new_block() = next;
    for (const uint32_t storage : storages) op.add_storages(storage);
    return mutation;
  }
  // Each of the six calls, right but for what the test is about.
  std::vector<v1::Mutation> EachCall() {
    return {AddAfter(block_, 10), Abandon(block_),  Fsync(block_, 10),
            Complete(block_, 10), NewStamp(block_), NewPipeline(MakeBlock(block_.id(), block_.generation_stamp(), 10), {1, 2})};
  }
  v1::Block With(uint64_t stamp) { return MakeBlock(block_.id(), stamp, 0); }

  TestNamespace space_;
  v1::MutationResult file_;
  v1::Block block_;
};

TEST_F(WriterRefusals, OfAnyoneButTheHolder) {
  for (v1::Mutation call : EachCall()) {
    call.set_client_name("stranger");
    Expect(call, ErrorKind::kLeaseExpired, "OTHER_HOLDER", "{f} is written by me, not by stranger");
    call.set_client_name("");
    Expect(call, ErrorKind::kLeaseExpired, "OTHER_HOLDER", "{f} is written by me, not by ");
  }
}

TEST_F(WriterRefusals, OfAWriterWhoseFileWasTaken) {
  space_.Must(Fsync(block_, 10));
  v1::Mutation recover = MutationOf("taker");
  recover.mutable_recover_lease()->set_path("/d/f");
  recover.mutable_recover_lease()->set_by_force(true);
  space_.Must(recover);
  for (const v1::Mutation& call : EachCall()) {
    Expect(call, ErrorKind::kLeaseExpired, "OTHER_HOLDER",
           "{f} was taken from its writer, and its last block is being recovered: me does not write it");
  }
}

TEST_F(WriterRefusals, OfAClosedFile) {
  space_.Must(Complete(block_, 100));
  for (const v1::Mutation& call : EachCall()) Expect(call, ErrorKind::kLeaseExpired, "FILE_CLOSED", "{f} is closed: me does not write it");
}

TEST_F(WriterRefusals, OfAFileThatIsGone) {
  space_.Must(DeleteMutation("/d", true));
  for (v1::Mutation call : EachCall()) {
    if (call.has_abandon_block()) {
      EXPECT_THAT(space_.Apply(call), IsOk());  // There is nothing left to give up.
      continue;
    }
    Expect(call, ErrorKind::kLeaseExpired, "FILE_GONE", "{f}: the file does not exist any more");
  }
  v1::Mutation by_path = Fsync(block_, 1);
  by_path.mutable_fsync()->clear_inode_id();
  Expect(by_path, ErrorKind::kLeaseExpired, "FILE_GONE", "/d/f: the file does not exist any more");
}

TEST_F(WriterRefusals, OfADirectory) {
  v1::Mutation call = Fsync(block_, 1);
  call.mutable_fsync()->clear_inode_id();
  call.mutable_fsync()->set_path("/d");
  const uint64_t id = ResolvePath(space_.view(), "/d")->record.id();
  Expect(call, ErrorKind::kIsDirectory, "", fmt::format("/d (inode {}) is a directory, not a file that is written", id));
}

TEST_F(WriterRefusals, OfACommit) {
  // The same words whoever commits: the next block, or the close.
  for (const bool close : {false, true}) {
    const auto commit = [&](const v1::Block& block, uint64_t length, std::vector<uint32_t> acknowledged = {1, 2, 3}) {
      return close ? Complete(block, length, std::move(acknowledged)) : AddAfter(block, length, std::move(acknowledged));
    };
    Expect(commit(MakeBlock(kStranger, 1001, 0), 10), ErrorKind::kInvalidArgument, "WRONG_BLOCK",
           fmt::format("/d/f: block {}: the last block is {}", kStranger, block_.id()));
    Expect(commit(With(1000), 10), ErrorKind::kStaleGeneration, "STAMP",
           fmt::format("{{b}}: stamp 1000 was named, it has {}", block_.generation_stamp()));
    Expect(commit(block_, kBlockSize + 1), ErrorKind::kInvalidArgument, "LONGER_THAN_BLOCK",
           "{b}: 1048577 bytes were named, a block holds 1048576");
    Expect(commit(block_, 10, {}), ErrorKind::kNotReplicatedYet, "TOO_FEW_ACKNOWLEDGED",
           "{b}: 0 storages acknowledged it, dfs.namenode.replication.min asks for 1");
    v1::Mutation two = commit(block_, 10, {1, 1});
    two.mutable_limits()->set_min_replication(2);
    Expect(two, ErrorKind::kNotReplicatedYet, "TOO_FEW_ACKNOWLEDGED",
           "{b}: 1 storages acknowledged it, dfs.namenode.replication.min asks for 2");
    Expect(commit(block_, 10, {1, 9}), ErrorKind::kInvalidArgument, "NOT_EXPECTED_STORAGE",
           "{b}: storage 9 acknowledged it but is not in its pipeline");
  }
  space_.Must(Fsync(block_, 50));
  Expect(Complete(block_, 49), ErrorKind::kInvalidArgument, "SHORTER_THAN_SYNCED", "{b}: 49 bytes were named, 50 are acknowledged already");
  // Committed by a call for the next block, which was given up then.
  const v1::Block second = space_.Must(AddAfter(block_, 60)).block();
  space_.Must(Abandon(second));
  Expect(Complete(block_, 61), ErrorKind::kInvalidArgument, "COMMITTED", "{b}: committed with 60 bytes, now 61 were named");
  space_.Must(Complete(block_, 60));

  const v1::MutationResult empty = space_.Must(CreateMutation("/d/e", "me"));
  v1::Mutation complete = CompleteMutation(empty, "me");
  *complete.mutable_complete()->mutable_last() = MakeCommit(MakeBlock(kStranger, 1001, 0), 10, {1});
  Expect(complete, ErrorKind::kInvalidArgument, "WRONG_BLOCK", fmt::format("/d/e: block {}: the file has no blocks", kStranger));
}

TEST_F(WriterRefusals, OfANewBlock) {
  v1::Mutation crowded = AddAfter(block_, 10);
  crowded.mutable_limits()->set_max_blocks_per_file(1);
  Expect(crowded, ErrorKind::kQuota, "TOO_MANY_BLOCKS",
         "/d/f: File has reached the limit on maximum number of blocks: it has 1 (limit 1, raised by "
         "dfs.namenode.fs-limits.max-blocks-per-file)");
  crowded.mutable_add_block()->set_reserve(true);
  crowded.mutable_add_block()->clear_previous();
  EXPECT_THAT(space_.Apply(crowded), HasReason("TOO_MANY_BLOCKS"));
  v1::Mutation nowhere = AddAfter(block_, 10);
  nowhere.mutable_add_block()->clear_targets();
  Expect(nowhere, ErrorKind::kInvalidArgument, "NO_TARGETS", "/d/f: no storages were chosen for its new block");
  space_.Must(Fsync(block_, 5));
  Expect(Add(), ErrorKind::kInvalidArgument, "NOT_COMMITTED", "{b} is still being written; a new one must name it as previous");
}

TEST_F(WriterRefusals, OfAReservedBlock) {
  v1::Mutation take = AddAfter(block_, 10);
  take.mutable_add_block()->set_use_reserved_id(kStranger);
  Expect(take, ErrorKind::kInvalidArgument, "NOT_RESERVED", fmt::format("/d/f: block {}: it is not reserved for this file", kStranger));
  const v1::Block reserved = Reserve();
  v1::Mutation uncommitted = Add();
  uncommitted.mutable_add_block()->set_use_reserved_id(reserved.id());
  Expect(uncommitted, ErrorKind::kInvalidArgument, "NOT_COMMITTED", "{b}: it must be committed before the next is taken");
  Expect(Fsync(reserved, 5), ErrorKind::kInvalidArgument, "RESERVED",
         fmt::format("/d/f: block {}: it is no part of the file until use_reserved_id names it", reserved.id()));
  take.mutable_add_block()->set_use_reserved_id(reserved.id());
  space_.Must(take);
  EXPECT_THAT(space_.Apply(take), IsOk());  // Said again.
  take.mutable_add_block()->mutable_previous()->mutable_block()->set_length_bytes(11);
  Expect(take, ErrorKind::kInvalidArgument, "WRONG_BLOCK",
         fmt::format("/d/f: block {}: it was taken after another block than the one named", reserved.id()));

  // The first of a file.
  file_ = space_.Must(CreateMutation("/d/e", "me"));
  const v1::Block first = Reserve();
  v1::Mutation after_none = AddAfter(MakeBlock(kStranger, 1001, 0), 10);
  after_none.mutable_add_block()->set_use_reserved_id(first.id());
  Expect(after_none, ErrorKind::kInvalidArgument, "WRONG_BLOCK", fmt::format("/d/e: block {}: the file has no blocks", kStranger));
}

TEST_F(WriterRefusals, OfACompleteThatNamesNoLastBlock) {
  Expect(CompleteMutation(file_, "me"), ErrorKind::kInvalidArgument, "NOT_COMMITTED",
         fmt::format("/d/f: complete must name the last block, {}, which is being written", block_.id()));
}

TEST_F(WriterRefusals, OfABlockThatIsNotBeingWritten) {
  const std::string not_his = ": it is not the block that this file's writer may change";
  for (const v1::Mutation& call : {Fsync(MakeBlock(kStranger, 1001, 0), 1), NewStamp(MakeBlock(kStranger, 1001, 0))}) {
    Expect(call, ErrorKind::kLeaseExpired, "WRONG_BLOCK", fmt::format("/d/f: block {}{}", kStranger, not_his));
  }
  // The file's own first block, when it has a second.
  const v1::Block second = space_.Must(AddAfter(block_, 10)).block();
  for (const v1::Mutation& call : {Fsync(block_, 10), Abandon(block_), NewStamp(block_)})
    Expect(call, ErrorKind::kLeaseExpired, "WRONG_BLOCK", "{b}" + not_his);
  // And as the last again, committed.
  space_.Must(Abandon(second));
  for (const v1::Mutation& call : {Fsync(block_, 10), Abandon(block_), NewStamp(block_)})
    Expect(call, ErrorKind::kLeaseExpired, "COMMITTED", "{b}: it is not being written any more");
}

TEST_F(WriterRefusals, OfAnFsync) {
  Expect(Fsync(With(1000), 5), ErrorKind::kStaleGeneration, "STAMP",
         fmt::format("{{b}}: stamp 1000 was named, it has {}", block_.generation_stamp()));
  Expect(Fsync(block_, kBlockSize + 1), ErrorKind::kInvalidArgument, "LONGER_THAN_BLOCK",
         "{b}: 1048577 bytes were named, a block holds 1048576");
}

TEST_F(WriterRefusals, OfAnAbandonOfABlockThatHadBytesBefore) {
  space_.Must(Complete(block_, 100));
  v1::Mutation append = MutationOf("me");
  append.mutable_append()->set_path("/d/f");
  append.mutable_append()->set_block_id(block_.id());
  append.mutable_append()->set_generation_stamp(block_.generation_stamp());
  append.mutable_append()->add_holding(1);
  space_.Must(append);
  Expect(Abandon(block_), ErrorKind::kInvalidArgument, "APPENDED",
         "{b} holds 100 bytes of a time before this writer; it cannot be abandoned");
}

TEST_F(WriterRefusals, OfANewPipeline) {
  const uint64_t stamp = space_.Must(NewStamp(block_)).block().generation_stamp();
  const auto next = [&](uint64_t with, uint64_t length) { return MakeBlock(block_.id(), with, length); };
  space_.Must(Fsync(block_, 50));
  Expect(NewPipeline(MakeBlock(kStranger, stamp, 50), {1}), ErrorKind::kInvalidArgument, "WRONG_BLOCK",
         "{b}: the new block has another id, 77");
  for (const std::vector<uint32_t>& storages : {std::vector<uint32_t>{}, std::vector<uint32_t>{1, 1}})
    Expect(NewPipeline(next(stamp, 50), storages), ErrorKind::kInvalidArgument, "BAD_PIPELINE",
           "{b}: a pipeline needs storages, each once");
  Expect(NewPipeline(next(stamp - 1, 50), {1}), ErrorKind::kStaleGeneration, "STAMP",
         fmt::format("{{b}}: stamp {} is not above its own, {}", stamp - 1, block_.generation_stamp()));
  Expect(NewPipeline(next(stamp + 1, 50), {1}), ErrorKind::kInvalidArgument, "STAMP",
         fmt::format("{{b}}: stamp {} was never given out", stamp + 1));
  Expect(NewPipeline(next(stamp, 49), {1}), ErrorKind::kInvalidArgument, "SHORTER_THAN_SYNCED",
         "{b}: 49 bytes were named, 50 are acknowledged already");
  Expect(NewPipeline(next(stamp, kBlockSize + 1), {1}), ErrorKind::kInvalidArgument, "LONGER_THAN_BLOCK",
         "{b}: 1048577 bytes were named, a block holds 1048576");
}

// What a damaged namespace shows of itself.
TEST_F(WriterRefusals, OfABlockInAStateThatCannotBe) {
  v1::BlockRecord row = **FindBlock(space_.view(), BlockId(block_.id()));
  row.set_state(v1::RESERVED);
  MemoryTransaction txn(&space_.state());
  PutBlock(txn, BlockId(block_.id()), row);
  txn.Commit();
  Expect(Complete(block_, 10), ErrorKind::kCorruptMetadata, "", "{b}: it is in state RESERVED as the file's last");
}

}  // namespace
}  // namespace cairn::namenode
