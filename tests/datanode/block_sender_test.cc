#include "datanode/transfer/block_sender.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/datanode/transfer_harness.h"

namespace cairn::datanode {
namespace {

class BlockSenderTest : public TransferTest {
 protected:
  BlockSenderTest() : TransferTest(1) {}
};

TEST_F(BlockSenderTest, SendsEveryRangeInWholeChunks) {
  StartNodes({});
  const std::string data = Pattern(1300);
  WriteBlock({0}, data);
  const std::unique_ptr<TestPeer> peer = Connect(0);
  const std::vector<uint64_t> edges = {0, 1, 511, 512, 513, 1023, 1024, 1025, 1299, 1300};
  for (const uint64_t begin : edges) {
    for (const uint64_t end : edges) {
      if (end < begin) continue;
      SCOPED_TRACE(std::to_string(begin) + " to " + std::to_string(end));
      const ReadResult read = ReadOver(peer.get(), ReadOp(begin, end - begin));
      ASSERT_TRUE(read.status.ok()) << read.status;
      EXPECT_EQ(read.chunk_offset, begin / kChunk * kChunk);
      if (begin == end) {
        EXPECT_EQ(read.bytes, "");
        continue;
      }
      const uint64_t sent_end = std::min<uint64_t>((end + kChunk - 1) / kChunk * kChunk, data.size());
      EXPECT_EQ(read.bytes, data.substr(read.chunk_offset, sent_end - read.chunk_offset));
    }
  }
}

TEST_F(BlockSenderTest, PacketsAreAsLargeAsTheReaderAsks) {
  StartNodes({});
  const std::string data = Pattern(1 << 20);
  WriteBlock({0}, data);
  const std::unique_ptr<TestPeer> peer = Connect(0);
  EXPECT_EQ(ReadOver(peer.get(), ReadOp(0, data.size())).packets, 16u);  // 64 KiB, as HDFS sends.
  hdfs::OpReadBlockProto op = ReadOp(0, data.size());
  op.set_cairnpacketbytes(512 << 10);
  const ReadResult large = ReadOver(peer.get(), op);
  EXPECT_EQ(large.packets, 2u);
  EXPECT_TRUE(large.bytes == data);
  op.set_cairnpacketbytes(1);  // At least a chunk.
  op.set_len(2000);
  EXPECT_EQ(ReadOver(peer.get(), op).packets, 4u);
  op.set_cairnpacketbytes(1000);  // Whole chunks.
  EXPECT_EQ(ReadOver(peer.get(), op).packets, 4u);
}

TEST_F(BlockSenderTest, ALargeBlockIsReadInOrder) {
  StartNodes({});
  const std::string data = Pattern(20'000'123);
  WriteBlock({0}, data, 1 << 20);
  const ReadResult read = ReadBlock(0, 0, data.size());
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_TRUE(read.bytes == data);
  const ReadResult tail = ReadBlock(0, 12'345'678, data.size() - 12'345'678);
  EXPECT_TRUE(tail.bytes == data.substr(tail.chunk_offset));
}

TEST_F(BlockSenderTest, LeavesChecksumsOutWhenNobodyWantsThem) {
  StartNodes({});
  const std::string data = Pattern(70'000);
  WriteBlock({0}, data);
  hdfs::OpReadBlockProto op = ReadOp(0, data.size());
  op.set_sendchecksums(false);
  const std::unique_ptr<TestPeer> peer = Connect(0);
  EXPECT_TRUE(ReadOver(peer.get(), op).bytes == data);
}

TEST_F(BlockSenderTest, RefusesWhatItDoesNotHave) {
  StartNodes({});
  WriteBlock({0}, Pattern(1000));
  EXPECT_EQ(KindOf(ReadBlock(0, 0, 1001).status), ErrorKind::kInvalidArgument);
  EXPECT_EQ(KindOf(ReadBlock(0, 1001, 0).status), ErrorKind::kInvalidArgument);
  EXPECT_EQ(KindOf(ReadBlock(0, UINT64_MAX, 2).status), ErrorKind::kInvalidArgument);
  EXPECT_EQ(KindOf(ReadBlock(0, 2, UINT64_MAX).status), ErrorKind::kInvalidArgument);
  stamp_ = GenerationStamp(1002);  // Of locations that are newer than this replica.
  EXPECT_FALSE(ReadBlock(0, 0, 1000).status.ok());
  stamp_ = GenerationStamp(1000);  // Older locations may read a newer replica.
  EXPECT_TRUE(ReadBlock(0, 0, 1000).status.ok());
  NextBlock();
  EXPECT_FALSE(ReadBlock(0, 0, 0).status.ok());
}

TEST_F(BlockSenderTest, RefusesABlockOfAnotherPool) {
  StartNodes({});
  WriteBlock({0}, Pattern(1000));
  hdfs::OpReadBlockProto op = ReadOp(0, 1000);
  op.mutable_header()->mutable_baseheader()->mutable_block()->set_poolid("BP-other");
  const std::unique_ptr<TestPeer> peer = Connect(0);
  const ReadResult read = ReadOver(peer.get(), op);
  EXPECT_EQ(KindOf(read.status), ErrorKind::kInvalidArgument);
  EXPECT_NE(std::string(read.status.message()).find("BP-other"), std::string::npos);
  EXPECT_TRUE(peer->AtEnd());
}

TEST_F(BlockSenderTest, AReaderOfAGrowingChunkGetsTheChecksumOfItsMoment) {
  StartNodes({});
  const std::string data = Pattern(2000);
  const std::unique_ptr<TestPeer> writer = OpenPipeline({0});
  int64_t seqno = 0;
  uint64_t sent = 0;
  // Every packet begins at the border of the chunk that it continues, as after an hflush.
  for (const uint64_t length : {1u, 100u, 511u, 512u, 513u, 1024u, 1500u, 2000u}) {
    const uint64_t begin = sent / kChunk * kChunk;
    ASSERT_TRUE(writer->Write(Frame(data.substr(begin, length - begin), begin, seqno)).ok());
    const absl::StatusOr<transfer::PipelineAck> ack = writer->ReadAck();
    ASSERT_TRUE(ack.ok()) << ack.status();
    ASSERT_EQ(*ack, AllGood(seqno, 1)) << length;
    ++seqno;
    sent = length;
    const ReadResult read = ReadBlock(0, 0, length);
    ASSERT_TRUE(read.status.ok()) << read.status;
    EXPECT_TRUE(read.bytes == data.substr(0, length)) << length;
  }
}

TEST_F(BlockSenderTest, AReadThatBeganSeesNothingOfWhatIsWrittenMeanwhile) {
  StartNodes({});
  const std::string data = Pattern(400'300);
  const std::unique_ptr<TestPeer> writer = OpenPipeline({0});
  ASSERT_TRUE(writer->Write(Frame(data.substr(0, 300'100), 0, 0)).ok());
  ASSERT_TRUE(writer->ReadAck().ok());
  // More than the simulated sockets hold, so the sender is in the middle when the writer goes on.
  const std::unique_ptr<TestPeer> reader = Connect(0);
  ASSERT_TRUE(reader->Write(transfer::EncodeOperation(transfer::Opcode::kReadBlock, ReadOp(0, 300'100))).ok());
  world().RunFor(absl::Seconds(1));
  const uint64_t begin = 300'100 / kChunk * kChunk;
  ASSERT_TRUE(writer->Write(Frame(data.substr(begin), begin, 1) + LastFrame(data.size(), 2)).ok());
  ASSERT_TRUE(writer->ReadAck().ok());
  ASSERT_TRUE(writer->ReadAck().ok());
  hdfs::BlockOpResponseProto answer;
  ASSERT_TRUE(reader->Read(&answer).ok());
  std::string bytes;
  for (;;) {
    const absl::StatusOr<transfer::Packet> packet = reader->ReadPacket(ChecksumType::kCrc32c);
    ASSERT_TRUE(packet.ok()) << packet.status();
    if (packet->header().last_in_block) break;
    EXPECT_TRUE(VerifyChunkChecksums(ChecksumType::kCrc32c, kChunk, packet->data(), packet->checksums()).ok());
    bytes.append(packet->data().begin(), packet->data().end());
  }
  EXPECT_TRUE(bytes == data.substr(0, 300'100));
  ExpectReplica(0, ReplicaState::kFinalized, data);
}

TEST_F(BlockSenderTest, AFlippedByteReachesTheReaderWithTheOldChecksum) {
  StartNodes({});
  WriteBlock({0}, Pattern(5000));
  // blk_<id> below the two levels of directories.
  const std::string name = "/data/blocks/" + std::to_string((kBlock.value() >> 20) & 255) + "/" +
                           std::to_string((kBlock.value() >> 12) & 255) + "/blk_" + std::to_string(kBlock.value());
  absl::StatusOr<std::shared_ptr<ReplicaReader>> replica = node(0).store->OpenForRead(kBlock, kStamp);
  ASSERT_TRUE(replica.ok()) << replica.status();
  ASSERT_TRUE(node(0).machine->disk().FlipByte(name, (*replica)->data_offset() + 1000).ok());
  replica->reset();
  const std::unique_ptr<TestPeer> peer = Connect(0);
  ASSERT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kReadBlock, ReadOp(0, 5000))).ok());
  hdfs::BlockOpResponseProto answer;
  ASSERT_TRUE(peer->Read(&answer).ok());
  const absl::StatusOr<transfer::Packet> packet = peer->ReadPacket(ChecksumType::kCrc32c);
  ASSERT_TRUE(packet.ok()) << packet.status();
  EXPECT_EQ(KindOf(VerifyChunkChecksums(ChecksumType::kCrc32c, kChunk, packet->data(), packet->checksums())), ErrorKind::kChecksum);
  ASSERT_TRUE(peer->ReadPacket(ChecksumType::kCrc32c).ok());  // The empty last one.
  hdfs::ClientReadStatusProto verdict;
  verdict.set_status(hdfs::ERROR_CHECKSUM);
  ASSERT_TRUE(peer->Write(transfer::Delimited(verdict)).ok());
  EXPECT_TRUE(peer->AtEnd(absl::Seconds(1)));
}

TEST_F(BlockSenderTest, ADeletedReplicaIsReadToItsEndByWhoHasItOpen) {
  StartNodes({});
  const std::string data = Pattern(2 << 20);
  WriteBlock({0}, data);
  const std::unique_ptr<TestPeer> peer = Connect(0);
  ASSERT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kReadBlock, ReadOp(0, data.size()))).ok());
  world().RunFor(absl::Seconds(1));
  const std::string storage = node(0).store->Describe(block_)->storage_uuid;
  node(0).store->Invalidate(storage, block_, stamp_, 1, [] { return false; });
  world().RunFor(absl::Seconds(30));
  EXPECT_FALSE(node(0).store->Describe(block_).has_value());
  hdfs::BlockOpResponseProto answer;
  ASSERT_TRUE(peer->Read(&answer).ok());
  size_t bytes = 0;
  for (;;) {
    const absl::StatusOr<transfer::Packet> packet = peer->ReadPacket(ChecksumType::kCrc32c);
    ASSERT_TRUE(packet.ok()) << packet.status();
    if (packet->header().last_in_block) break;
    EXPECT_TRUE(VerifyChunkChecksums(ChecksumType::kCrc32c, kChunk, packet->data(), packet->checksums()).ok());
    bytes += packet->data().size();
  }
  EXPECT_EQ(bytes, data.size());
}

TEST_F(BlockSenderTest, AReaderThatGoesAwayCostsNothing) {
  StartNodes({});
  WriteBlock({0}, Pattern(4 << 20));
  std::unique_ptr<TestPeer> peer = Connect(0);
  ASSERT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kReadBlock, ReadOp(0, 4 << 20))).ok());
  world().RunFor(absl::Seconds(1));
  EXPECT_EQ(node(0).server->counters().active_streams.load(), 1u);
  peer.reset();
  world().RunFor(absl::Seconds(1));
  EXPECT_EQ(node(0).server->counters().active_streams.load(), 0u);
  EXPECT_EQ(node(0).server->counters().connections.load(), 0u);
}

}  // namespace
}  // namespace cairn::datanode
