#include "datanode/transfer/block_receiver.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/datanode/transfer_harness.h"

namespace cairn::datanode {
namespace {

using hdfs::OpWriteBlockProto;
using transfer::PipelineAck;

class BlockReceiverTest : public TransferTest {
 protected:
  BlockReceiverTest() : TransferTest(3) {}
  static std::vector<hdfs::Status> Replies(std::initializer_list<hdfs::Status> replies) { return replies; }
  // The next acknowledgement; seqno -100 if none came.
  static PipelineAck Next(TestPeer* peer) {
    const absl::StatusOr<PipelineAck> ack = peer->ReadAck();
    EXPECT_TRUE(ack.ok()) << ack.status();
    PipelineAck none;
    none.seqno = -100;
    return ack.ok() ? *ack : none;
  }
};

TEST_F(BlockReceiverTest, WritesTheSameBytesOnAllNodesOfTheChain) {
  StartNodes({});
  for (const size_t size : {0u, 1u, 511u, 512u, 513u, 65'535u, 65'536u, 65'537u, 300'000u}) {
    SCOPED_TRACE(size);
    const std::string data = Pattern(size, size);
    WriteBlock({0, 1, 2}, data);
    for (size_t node = 0; node < 3; ++node) ExpectReplica(node, ReplicaState::kFinalized, data);
    NextBlock();
  }
}

TEST_F(BlockReceiverTest, WritesABlockOfManyPacketsInAWindow) {
  TransferOptions options;
  options.window_bytes = 256 << 10;
  StartNodes(options);
  const std::string data = Pattern(5'000'000);
  WriteBlock({2, 0, 1}, data, 100 * kChunk);
  for (size_t node = 0; node < 3; ++node) ExpectReplica(node, ReplicaState::kFinalized, data);
  EXPECT_EQ(node(0).server->counters().active_streams.load(), 0u);
}

TEST_F(BlockReceiverTest, TakesAPacketLargerThanItsWindow) {
  TransferOptions options;
  options.window_bytes = 64 << 10;
  StartNodes(options);
  const std::string data = Pattern(3 << 20);
  WriteBlock({0, 1, 2}, data, 1 << 20);
  ExpectReplica(2, ReplicaState::kFinalized, data);
}

TEST_F(BlockReceiverTest, AHeartbeatIsAnsweredByTheWholeChain) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  transfer::PacketHeader heartbeat;
  heartbeat.seqno = transfer::kHeartbeatSeqno;
  const transfer::Packet packet = transfer::EmptyPacket(heartbeat);
  ASSERT_TRUE(peer->Write(std::string(packet.frame().begin(), packet.frame().end())).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(-1, 3));
}

TEST_F(BlockReceiverTest, ASilentSenderIsGivenUpAndItsReplicaStays) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  ASSERT_TRUE(peer->Write(Frame(Pattern(1000), 0, 0)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 3));
  EXPECT_TRUE(peer->AtEnd(absl::Minutes(2)));
  for (size_t i = 0; i < 3; ++i) ExpectReplica(i, ReplicaState::kRbw, Pattern(1000));
  EXPECT_EQ(node(1).server->counters().active_streams.load(), 0u);
}

TEST_F(BlockReceiverTest, ReadersSeeOnlyWhatAllHaveAcknowledged) {
  StartNodes({});
  const std::string data = Pattern(1500);
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  ASSERT_TRUE(peer->Write(Frame(data.substr(0, 700), 0, 0)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 3));
  // The second packet is written here, but the others do not get it.
  world().network().Block(node(0).machine, node(1).machine);
  ASSERT_TRUE(peer->Write(Frame(data.substr(512, 988), 512, 1)).ok());
  world().RunFor(absl::Seconds(1));
  EXPECT_EQ(node(0).store->Describe(block_)->length, 1500u);
  const ReadResult read = ReadBlock(0, 0, 700);
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.bytes, data.substr(0, 700));
  EXPECT_FALSE(ReadBlock(0, 0, 701).status.ok());
  world().network().Heal();
  EXPECT_EQ(Next(peer.get()), AllGood(1, 3));
  EXPECT_EQ(ReadBlock(0, 0, 1500).bytes, data);
  ASSERT_TRUE(peer->Write(LastFrame(1500, 2)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(2, 3));
}

TEST_F(BlockReceiverTest, NothingIsAcknowledgedBeforeTheNodesDownstreamHaveIt) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  world().network().Block(node(2).machine, node(1).machine);
  ASSERT_TRUE(peer->Write(Frame(Pattern(1000), 0, 0)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(peer->ReadAck(absl::Seconds(5)).status()));
  EXPECT_EQ(node(2).store->Describe(block_)->length, 1000u);
  world().network().Heal();
  EXPECT_EQ(Next(peer.get()), AllGood(0, 3));
}

TEST_F(BlockReceiverTest, TheSwitchableBugAcknowledgesTooEarly) {
  StartNodes({});
  ASSERT_TRUE(ArmFault("datanode.receiver.ack_before_downstream", "error").ok());
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  world().network().Block(node(2).machine, node(1).machine);
  ASSERT_TRUE(peer->Write(Frame(Pattern(1000), 0, 0)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 3));
}

TEST_F(BlockReceiverTest, ASlowMirrorPushesBackOnTheSender) {
  TransferOptions options;
  options.window_bytes = 1 << 20;
  options.socket_timeout = absl::Minutes(10);
  StartNodes(options);
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1});
  world().network().Block(node(0).machine, node(1).machine);
  const std::string data = Pattern(8 << 20);
  std::string frames;
  int64_t seqno = 0;
  for (size_t at = 0; at < data.size(); at += 64 << 10) frames += Frame(data.substr(at, 64 << 10), at, seqno++);
  frames += LastFrame(data.size(), seqno++);
  const size_t all = frames.size();
  peer->WriteLater(std::move(frames));
  world().RunFor(absl::Minutes(1));
  // One window here, one batch with the socket, one packet in hand; the rest stays with the sender.
  EXPECT_GE(node(0).server->counters().bytes_received.load(), options.window_bytes);
  EXPECT_LE(node(0).server->counters().bytes_received.load(), options.window_bytes + (512 << 10));
  EXPECT_LT(peer->sent(), all / 2);
  world().network().Heal();
  for (int64_t i = 0; i < seqno; ++i) ASSERT_EQ(Next(peer.get()), AllGood(i, 2));
  ExpectReplica(1, ReplicaState::kFinalized, data);
}

TEST_F(BlockReceiverTest, ASlowDiskPushesBackOnTheSenderToo) {
  TransferOptions options;
  options.window_bytes = 1 << 20;
  options.socket_timeout = absl::Minutes(10);
  StartNodes(options);
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0});
  ASSERT_TRUE(ArmFault("datanode.receiver.before_write", "block").ok());
  std::string frames;
  for (int64_t i = 0; i < 64; ++i) frames += Frame(Pattern(64 << 10), static_cast<uint64_t>(i) * (64 << 10), i);
  peer->WriteLater(std::move(frames));
  world().RunFor(absl::Minutes(1));
  EXPECT_LE(node(0).server->counters().bytes_received.load(), options.window_bytes + (128 << 10));
  DisarmAllFaults();
  for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(Next(peer.get()), AllGood(i, 1));
}

TEST_F(BlockReceiverTest, ManyStreamsShareTheMemoryOfTheNode) {
  TransferOptions options;
  options.window_bytes = 1 << 20;
  options.memory_bytes = 1 << 20;
  options.socket_timeout = absl::Minutes(10);
  StartNodes(options);
  std::vector<std::unique_ptr<TestPeer>> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(OpenPipeline({0}));
    NextBlock();
  }
  ASSERT_TRUE(ArmFault("datanode.receiver.before_write", "block").ok());
  std::string frames;
  for (int64_t i = 0; i < 64; ++i) frames += Frame(Pattern(64 << 10), static_cast<uint64_t>(i) * (64 << 10), i);
  for (const std::unique_ptr<TestPeer>& peer : peers) peer->WriteLater(frames);
  world().RunFor(absl::Minutes(1));
  // Each may be over by the packet that filled it, and has one in hand.
  EXPECT_LE(node(0).server->counters().bytes_received.load(), options.memory_bytes + 4 * (128 << 10));
  DisarmAllFaults();
  for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(Next(peers[3].get()), AllGood(i, 1));
}

TEST_F(BlockReceiverTest, ADeadNodeAtSetUpIsTheFirstBadLink) {
  StartNodes({});
  node(2).machine->Kill();
  const std::unique_ptr<TestPeer> peer = Connect(0);
  ASSERT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kWriteBlock, WriteOp({0, 1, 2}))).ok());
  hdfs::BlockOpResponseProto answer;
  ASSERT_TRUE(peer->Read(&answer).ok());
  EXPECT_EQ(answer.status(), hdfs::ERROR);
  EXPECT_EQ(answer.firstbadlink(), node(2).link());
  EXPECT_NE(answer.message(), "");
  EXPECT_TRUE(peer->AtEnd());
}

TEST_F(BlockReceiverTest, ANodeThatRefusesTheReplicaIsTheFirstBadLink) {
  StartNodes({});
  WriteBlock({1}, Pattern(10));
  const std::unique_ptr<TestPeer> peer = Connect(0);
  ASSERT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kWriteBlock, WriteOp({0, 1, 2}))).ok());
  hdfs::BlockOpResponseProto answer;
  ASSERT_TRUE(peer->Read(&answer).ok());
  EXPECT_EQ(answer.status(), hdfs::ERROR_EXISTS) << answer.message();
  EXPECT_EQ(answer.firstbadlink(), node(1).link());
}

TEST_F(BlockReceiverTest, ANodeLostWhileStreamingIsReportedBehindTheGoodOnes) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  ASSERT_TRUE(peer->Write(Frame(Pattern(1000), 0, 0)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 3));
  node(2).machine->Kill();
  ASSERT_TRUE(peer->Write(Frame(Pattern(2000).substr(512, 1000), 512, 1)).ok());
  const PipelineAck ack = Next(peer.get());
  EXPECT_EQ(ack.seqno, 1);
  EXPECT_EQ(ack.replies, Replies({hdfs::SUCCESS, hdfs::SUCCESS, hdfs::ERROR}));
  EXPECT_TRUE(peer->AtEnd());
  EXPECT_EQ(node(0).store->Describe(block_)->visible_length, 1000u);
}

TEST_F(BlockReceiverTest, ABadChecksumIsFoundAtTheEndOfTheChain) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  std::string bad = Frame(Pattern(2000), 0, 0);
  bad[bad.size() - 1] = static_cast<char>(bad[bad.size() - 1] ^ 1);
  ASSERT_TRUE(peer->Write(bad).ok());
  const PipelineAck ack = Next(peer.get());
  EXPECT_EQ(ack.seqno, 0);
  ASSERT_EQ(ack.replies.size(), 3u);
  EXPECT_EQ(ack.replies[2], hdfs::ERROR_CHECKSUM);
  EXPECT_TRUE(peer->AtEnd());
  EXPECT_EQ(node(2).store->Describe(block_)->length, 0u);
  // Those before it wrote the bytes unverified; they have found out themselves that theirs are bad.
  EXPECT_EQ(ack.replies[0], hdfs::ERROR_CHECKSUM);
  EXPECT_EQ(ack.replies[1], hdfs::ERROR_CHECKSUM);
  EXPECT_TRUE(node(0).store->Describe(block_)->corrupt);
}

TEST_F(BlockReceiverTest, AGapIsAnErrorOfItsReceiver) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  ASSERT_TRUE(peer->Write(Frame(Pattern(512), 512, 0)).ok());
  EXPECT_EQ(Next(peer.get()).replies, Replies({hdfs::ERROR_INVALID}));
  EXPECT_TRUE(peer->AtEnd());
}

TEST_F(BlockReceiverTest, AWrongLengthAtTheEndIsNotFinalized) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0});
  ASSERT_TRUE(peer->Write(Frame(Pattern(512), 0, 0) + LastFrame(100, 1)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 1));
  EXPECT_EQ(Next(peer.get()).replies, Replies({hdfs::ERROR_INVALID}));
  EXPECT_EQ(node(0).store->Describe(block_)->state, ReplicaState::kRbw);
}

TEST_F(BlockReceiverTest, AFullDiskIsAnErrorOfThatNode) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  node(1).machine->disk().SetCapacity(node(1).machine->disk().used_bytes());
  ASSERT_TRUE(peer->Write(Frame(Pattern(100'000), 0, 0)).ok());
  const PipelineAck ack = Next(peer.get());
  ASSERT_EQ(ack.bad_node(), 1u);
  EXPECT_EQ(ack.replies[0], hdfs::SUCCESS);
}

TEST_F(BlockReceiverTest, SendersWithoutChecksumsGetThem) {
  StartNodes({});
  OpWriteBlockProto op = WriteOp({0, 1});
  *op.mutable_requestedchecksum() = transfer::MakeChecksum(ChecksumType::kNull, kChunk);
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1}, op);
  const std::string data = Pattern(1300);
  transfer::PacketBuilder builder(ChecksumType::kNull, kChunk, data.size());
  builder.Append(data);
  const transfer::Packet packet = builder.Finish({});
  ASSERT_TRUE(peer->Write(std::string(packet.frame().begin(), packet.frame().end()) + LastFrame(1300, 1)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 2));
  EXPECT_EQ(Next(peer.get()), AllGood(1, 2));
  ExpectReplica(0, ReplicaState::kFinalized, data);
  ExpectReplica(1, ReplicaState::kFinalized, data);
}

TEST_F(BlockReceiverTest, RecoveryGoesOnWithTheSurvivorsAndResendsWhatOverlaps) {
  StartNodes({});
  const std::string data = Pattern(200'000);
  std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  ASSERT_TRUE(peer->Write(Frame(data.substr(0, 65'536), 0, 0)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 3));
  node(1).machine->Kill();
  // Written by the first node only.
  ASSERT_TRUE(peer->Write(Frame(data.substr(65'536, 65'636), 65'536, 1)).ok());
  EXPECT_EQ(Next(peer.get()).bad_node(), 1u);
  peer.reset();

  OpWriteBlockProto op = WriteOp({0, 2}, OpWriteBlockProto::PIPELINE_SETUP_STREAMING_RECOVERY);
  op.set_latestgenerationstamp(1002);
  op.set_minbytesrcvd(65'536);
  op.set_maxbytesrcvd(131'172);
  stamp_ = GenerationStamp(1002);
  peer = OpenPipeline({0, 2}, op);
  ASSERT_TRUE(peer->Write(Frame(data.substr(65'536, 65'636), 65'536, 1)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(1, 2));
  ASSERT_TRUE(peer->Write(Frame(data.substr(131'072), 131'072, 2) + LastFrame(data.size(), 3)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(2, 2));
  EXPECT_EQ(Next(peer.get()), AllGood(3, 2));
  ExpectReplica(0, ReplicaState::kFinalized, data);
  ExpectReplica(2, ReplicaState::kFinalized, data);
}

TEST_F(BlockReceiverTest, ARecoveryEndsTheOldWritersConnection) {
  StartNodes({});
  const std::unique_ptr<TestPeer> old = OpenPipeline({0, 1});
  ASSERT_TRUE(old->Write(Frame(Pattern(512), 0, 0)).ok());
  EXPECT_EQ(Next(old.get()), AllGood(0, 2));
  OpWriteBlockProto op = WriteOp({0, 1}, OpWriteBlockProto::PIPELINE_SETUP_STREAMING_RECOVERY);
  op.set_latestgenerationstamp(1002);
  op.set_minbytesrcvd(512);
  op.set_maxbytesrcvd(512);
  const std::unique_ptr<TestPeer> fresh = OpenPipeline({0, 1}, op);
  EXPECT_TRUE(old->AtEnd(absl::Seconds(5)));
  ASSERT_TRUE(fresh->Write(LastFrame(512, 1)).ok());
  EXPECT_EQ(Next(fresh.get()), AllGood(1, 2));
}

TEST_F(BlockReceiverTest, RecoveryRefusesAReplicaThatLacksAcknowledgedBytes) {
  StartNodes({});
  std::unique_ptr<TestPeer> peer = OpenPipeline({0});
  ASSERT_TRUE(peer->Write(Frame(Pattern(512), 0, 0)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 1));
  OpWriteBlockProto op = WriteOp({0}, OpWriteBlockProto::PIPELINE_SETUP_STREAMING_RECOVERY);
  op.set_latestgenerationstamp(1002);
  op.set_minbytesrcvd(513);
  op.set_maxbytesrcvd(600);
  peer = Connect(0);
  ASSERT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kWriteBlock, op)).ok());
  hdfs::BlockOpResponseProto answer;
  ASSERT_TRUE(peer->Read(&answer).ok());
  EXPECT_NE(answer.status(), hdfs::SUCCESS);
  EXPECT_EQ(answer.firstbadlink(), node(0).link());
}

TEST_F(BlockReceiverTest, CloseRecoveryFinalizesDuringTheSetUp) {
  StartNodes({});
  const std::string data = Pattern(777);
  std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1});
  ASSERT_TRUE(peer->Write(Frame(data, 0, 0)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 2));
  peer.reset();
  OpWriteBlockProto op = WriteOp({0, 1}, OpWriteBlockProto::PIPELINE_CLOSE_RECOVERY);
  op.set_latestgenerationstamp(1002);
  op.set_minbytesrcvd(777);
  op.set_maxbytesrcvd(777);
  stamp_ = GenerationStamp(1002);
  peer = OpenPipeline({0, 1}, op);
  EXPECT_TRUE(peer->AtEnd());
  ExpectReplica(0, ReplicaState::kFinalized, data);
  ExpectReplica(1, ReplicaState::kFinalized, data);
}

TEST_F(BlockReceiverTest, AppendContinuesTheLastChunkOnEveryNode) {
  StartNodes({});
  const std::string data = Pattern(5000);
  for (const size_t length : std::vector<size_t>{1, 511, 512, 513, 777}) {
    stamp_ = kStamp;
    WriteBlock({0, 1, 2}, data.substr(0, length));
    OpWriteBlockProto op = WriteOp({0, 1, 2}, OpWriteBlockProto::PIPELINE_SETUP_APPEND);
    op.set_latestgenerationstamp(1002);
    op.set_minbytesrcvd(length);
    op.set_maxbytesrcvd(length);
    stamp_ = GenerationStamp(1002);
    const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2}, op);
    // As HDFS's clients: the first packet fills the chunk up, with one checksum over just its own bytes.
    const size_t chunk_end = length % 512 == 0 ? length : length + 512 - length % 512;
    int64_t seqno = 0;
    if (chunk_end > length) {
      ASSERT_TRUE(peer->Write(Frame(data.substr(length, chunk_end - length), length, seqno)).ok());
      EXPECT_EQ(Next(peer.get()), AllGood(seqno++, 3));
    }
    EXPECT_EQ(ReadBlock(1, 0, chunk_end).bytes, data.substr(0, chunk_end));  // While it is open.
    ASSERT_TRUE(peer->Write(Frame(data.substr(chunk_end), chunk_end, seqno)).ok());
    EXPECT_EQ(Next(peer.get()), AllGood(seqno++, 3));
    ASSERT_TRUE(peer->Write(LastFrame(data.size(), seqno)).ok());
    EXPECT_EQ(Next(peer.get()), AllGood(seqno, 3));
    for (size_t i = 0; i < 3; ++i) ExpectReplica(i, ReplicaState::kFinalized, data);
    NextBlock();
  }
}

TEST_F(BlockReceiverTest, AppendWithoutAByteGivesTheReplicasTheNewStamp) {
  StartNodes({});
  const std::string data = Pattern(700);
  WriteBlock({0, 1}, data);
  OpWriteBlockProto op = WriteOp({0, 1}, OpWriteBlockProto::PIPELINE_SETUP_APPEND);
  op.set_latestgenerationstamp(1002);
  op.set_minbytesrcvd(700);
  op.set_maxbytesrcvd(700);
  stamp_ = GenerationStamp(1002);
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1}, op);
  ASSERT_TRUE(peer->Write(LastFrame(700, 0)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 2));
  ExpectReplica(0, ReplicaState::kFinalized, data);
  ExpectReplica(1, ReplicaState::kFinalized, data);
}

TEST_F(BlockReceiverTest, AppendKeepsTheStampIfTheClientDoes) {
  StartNodes({});
  WriteBlock({0}, Pattern(512));
  OpWriteBlockProto op = WriteOp({0}, OpWriteBlockProto::PIPELINE_SETUP_APPEND);
  op.set_latestgenerationstamp(stamp_.value());
  op.set_minbytesrcvd(512);
  op.set_maxbytesrcvd(512);
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0}, op);
  ASSERT_TRUE(peer->Write(Frame(Pattern(1024).substr(512), 512, 0) + LastFrame(1024, 1)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 1));
  EXPECT_EQ(Next(peer.get()), AllGood(1, 1));
  ExpectReplica(0, ReplicaState::kFinalized, Pattern(1024));
}

TEST_F(BlockReceiverTest, AppendRecoveryGoesOnWithTheNodesThatAreLeft) {
  StartNodes({});
  const std::string data = Pattern(3000);
  WriteBlock({0, 1, 2}, data.substr(0, 700));
  // The set-up that reached the first node only: it is RBW at 1002, the others are FINALIZED at the old stamp.
  OpWriteBlockProto op = WriteOp({0}, OpWriteBlockProto::PIPELINE_SETUP_APPEND);
  op.set_latestgenerationstamp(1002);
  op.set_minbytesrcvd(700);
  op.set_maxbytesrcvd(700);
  std::unique_ptr<TestPeer> peer = OpenPipeline({0}, op);
  peer.reset();
  op = WriteOp({0, 2}, OpWriteBlockProto::PIPELINE_SETUP_APPEND_RECOVERY);
  op.set_latestgenerationstamp(1003);
  op.set_minbytesrcvd(700);
  op.set_maxbytesrcvd(700);
  stamp_ = GenerationStamp(1003);
  peer = OpenPipeline({0, 2}, op);
  ASSERT_TRUE(peer->Write(Frame(data.substr(700, 324), 700, 0) + Frame(data.substr(1024), 1024, 1) + LastFrame(data.size(), 2)).ok());
  for (int64_t seqno = 0; seqno < 3; ++seqno) EXPECT_EQ(Next(peer.get()), AllGood(seqno, 2));
  ExpectReplica(0, ReplicaState::kFinalized, data);
  ExpectReplica(2, ReplicaState::kFinalized, data);
}

TEST_F(BlockReceiverTest, AppendToAReplicaOfAnotherLengthIsRefused) {
  StartNodes({});
  WriteBlock({0}, Pattern(700));
  OpWriteBlockProto op = WriteOp({0}, OpWriteBlockProto::PIPELINE_SETUP_APPEND);
  op.set_latestgenerationstamp(1002);
  op.set_minbytesrcvd(699);
  op.set_maxbytesrcvd(699);
  const std::unique_ptr<TestPeer> peer = Connect(0);
  ASSERT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kWriteBlock, op)).ok());
  hdfs::BlockOpResponseProto answer;
  ASSERT_TRUE(peer->Read(&answer).ok());
  EXPECT_NE(answer.status(), hdfs::SUCCESS);
  ExpectReplica(0, ReplicaState::kFinalized, Pattern(700));
}

TEST_F(BlockReceiverTest, ASyncedPacketOutlivesAPowerCut) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0});
  ASSERT_TRUE(peer->Write(Frame(Pattern(1000), 0, 0)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(0, 1));
  const uint64_t before = node(0).machine->disk().counters().syncs;
  ASSERT_TRUE(peer->Write(Frame(Pattern(2000).substr(512, 1000), 512, 1, /*sync=*/true)).ok());
  EXPECT_EQ(Next(peer.get()), AllGood(1, 1));
  EXPECT_GT(node(0).machine->disk().counters().syncs, before);
}

TEST_F(BlockReceiverTest, TheClientChoosesWhetherAClosedBlockIsSynced) {
  StartNodes({});
  for (const bool sync : {false, true}) {
    OpWriteBlockProto op = WriteOp({0});
    op.set_cairnsynconclose(sync);
    const std::unique_ptr<TestPeer> peer = OpenPipeline({0}, op);
    const uint64_t before = node(0).machine->disk().counters().syncs;
    ASSERT_TRUE(peer->Write(Frame(Pattern(512), 0, 0) + LastFrame(512, 1)).ok());
    EXPECT_EQ(Next(peer.get()), AllGood(0, 1));
    EXPECT_EQ(Next(peer.get()), AllGood(1, 1));
    EXPECT_EQ(node(0).machine->disk().counters().syncs > before, sync);
    NextBlock();
  }
}

TEST_F(BlockReceiverTest, StagesThatBeginNoStreamAreRefused) {
  StartNodes({});
  for (const auto stage : {OpWriteBlockProto::DATA_STREAMING, OpWriteBlockProto::PIPELINE_CLOSE}) {
    const std::unique_ptr<TestPeer> peer = Connect(0);
    ASSERT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kWriteBlock, WriteOp({0}, stage))).ok());
    hdfs::BlockOpResponseProto answer;
    ASSERT_TRUE(peer->Read(&answer).ok());
    EXPECT_NE(answer.status(), hdfs::SUCCESS);
    EXPECT_NE(answer.message(), "");
  }
  EXPECT_FALSE(node(0).store->Describe(block_).has_value());
}

TEST_F(BlockReceiverTest, StopEndsAnOpenStream) {
  StartNodes({});
  const std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1, 2});
  bool stopped = false;
  node(1).server->StopAndThen([&] { stopped = true; });
  ASSERT_TRUE(world().RunUntil([&] { return stopped; }, absl::Seconds(20)));
  EXPECT_TRUE(node(1).server->stopped());
  node(1).server.reset();
  ASSERT_TRUE(peer->Write(Frame(Pattern(512), 0, 0)).ok());
  EXPECT_EQ(Next(peer.get()).bad_node(), 1u);
}

}  // namespace
}  // namespace cairn::datanode
