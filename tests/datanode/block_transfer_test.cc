#include "datanode/transfer/block_transfer.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/datanode/transfer_harness.h"

namespace cairn::datanode {
namespace {

class BlockTransferTest : public TransferTest {
 protected:
  BlockTransferTest() : TransferTest(4) {}

  absl::Status Copy(size_t from, const std::vector<size_t>& to, absl::Duration limit = absl::Minutes(10),
                    v1::TrafficClass traffic_class = v1::REPAIR) {
    TransferRequest request;
    request.traffic_class = traffic_class;
    request.block = block_;
    request.stamp = stamp_;
    for (const size_t i : to) request.targets.push_back(node(i).AsTarget());
    request.deadline = world().Now() + limit;
    std::optional<absl::Status> result;
    node(from).server->Transfer(std::move(request), [&](absl::Status status) { result = std::move(status); });
    CAIRN_CHECK(world().RunUntil([&] { return result.has_value(); }, absl::Hours(1)), "the transfer does not end");
    return *result;
  }
};

TEST_F(BlockTransferTest, CopiesAFinalizedReplicaDownAChain) {
  StartNodes({});
  for (const size_t size : {0u, 1u, 512u, 700'001u}) {
    const std::string data = Pattern(size);
    WriteBlock({0}, data);
    const absl::Status copied = Copy(0, {1, 2, 3});
    ASSERT_TRUE(copied.ok()) << copied;
    for (size_t i = 1; i < 4; ++i) ExpectReplica(i, ReplicaState::kFinalized, data);
    NextBlock();
  }
}

TEST_F(BlockTransferTest, ATargetThatHasItSaysSo) {
  StartNodes({});
  WriteBlock({0, 1}, Pattern(1000));
  EXPECT_FALSE(Copy(0, {1}).ok());
  ExpectReplica(1, ReplicaState::kFinalized, Pattern(1000));
}

TEST_F(BlockTransferTest, ADeadTargetCostsOnlyWhatIsBehindIt) {
  StartNodes({});
  WriteBlock({0}, Pattern(100'000));
  node(2).machine->Kill();
  EXPECT_FALSE(Copy(0, {1, 2, 3}).ok());
  ExpectReplica(1, ReplicaState::kFinalized, Pattern(100'000));
  EXPECT_FALSE(node(3).store->Describe(block_).has_value());
  const absl::Status dead = Copy(0, {2});
  EXPECT_NE(std::string(dead.message()).find(node(2).link()), std::string::npos) << dead;
}

TEST_F(BlockTransferTest, WhatTheBalancerMovesKeepsToItsPaceOnBothSidesAndRepairsDoNot) {
  TransferOptions options;
  options.balance_bytes_per_second = 1 << 20;
  StartNodes(options);
  const std::string data = Pattern(4 << 20);
  WriteBlock({0}, data);
  const auto took = [&](v1::TrafficClass traffic_class) {
    const SteadyTime begin = world().Now();
    const absl::Status copied = Copy(0, {1}, absl::Minutes(10), traffic_class);
    EXPECT_TRUE(copied.ok()) << copied;
    ExpectReplica(1, ReplicaState::kFinalized, data);
    node(1).store->Invalidate(node(1).store->Statistics()[0].storage_uuid(), block_, stamp_, 1, [] { return false; });
    return world().Now() - begin;
  };
  EXPECT_LT(took(v1::REPAIR), absl::Seconds(1));
  const absl::Duration paced = took(v1::BALANCING);
  EXPECT_GE(paced, absl::Seconds(3.5));
  EXPECT_LE(paced, absl::Seconds(5));
  // The receiver has a pace of its own.
  node(0).server->SetBalanceBandwidth(1 << 30);
  node(1).server->SetBalanceBandwidth(2 << 20);
  const absl::Duration received = took(v1::BALANCING);
  EXPECT_GE(received, absl::Seconds(1.5));
  EXPECT_LE(received, absl::Seconds(3));
  node(1).server->SetBalanceBandwidth(0);
  EXPECT_GE(took(v1::BALANCING), absl::Seconds(3.5));
}

TEST_F(BlockTransferTest, IsBoundedInTime) {
  StartNodes({});
  WriteBlock({0}, Pattern(4 << 20));
  world().network().Block(node(1).machine, node(0).machine);
  const SteadyTime begin = world().Now();
  EXPECT_FALSE(Copy(0, {1}, absl::Seconds(7)).ok());
  EXPECT_LE(world().Now() - begin, absl::Seconds(8));
  world().network().Heal();
  world().RunFor(absl::Minutes(2));
  EXPECT_FALSE(node(1).store->Describe(block_).has_value());  // Nothing half is left.
  EXPECT_TRUE(Copy(0, {1}).ok());
}

TEST_F(BlockTransferTest, ABadReplicaIsNotCopied) {
  StartNodes({});
  WriteBlock({0}, Pattern(5000));
  absl::StatusOr<std::shared_ptr<ReplicaReader>> replica = node(0).store->OpenForRead(block_, stamp_);
  ASSERT_TRUE(replica.ok()) << replica.status();
  ASSERT_TRUE(node(0).machine->disk().FlipByte((*replica)->file()->path(), (*replica)->data_offset() + 4000).ok());
  replica->reset();
  EXPECT_FALSE(Copy(0, {1}).ok());
  world().RunFor(absl::Minutes(1));
  EXPECT_FALSE(node(1).store->Describe(block_).has_value());
}

TEST_F(BlockTransferTest, AnUnknownBlockIsAnError) {
  StartNodes({});
  EXPECT_EQ(KindOf(Copy(0, {1})), ErrorKind::kReplicaNotFound);
}

TEST_F(BlockTransferTest, AWriterCopiesItsBlockToANewNodeAndGoesOn) {
  StartNodes({});
  const std::string data = Pattern(3000);
  std::unique_ptr<TestPeer> peer = OpenPipeline({0, 1});
  ASSERT_TRUE(peer->Write(Frame(data.substr(0, 1300), 0, 0)).ok());
  ASSERT_TRUE(peer->ReadAck().ok());
  node(1).machine->Kill();
  peer.reset();

  hdfs::OpTransferBlockProto op;
  *op.mutable_header() = ReadOp(0, 0).header();
  *op.add_targets() = node(2).AsTarget();
  peer = Connect(0);
  ASSERT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kTransferBlock, op)).ok());
  hdfs::BlockOpResponseProto answer;
  ASSERT_TRUE(peer->Read(&answer).ok());
  ASSERT_EQ(answer.status(), hdfs::SUCCESS) << answer.message();
  ExpectReplica(2, ReplicaState::kRbw, data.substr(0, 1300));

  hdfs::OpWriteBlockProto recovery = WriteOp({0, 2}, hdfs::OpWriteBlockProto::PIPELINE_SETUP_STREAMING_RECOVERY);
  recovery.set_latestgenerationstamp(1002);
  recovery.set_minbytesrcvd(1300);
  recovery.set_maxbytesrcvd(1300);
  stamp_ = GenerationStamp(1002);
  peer = OpenPipeline({0, 2}, recovery);
  ASSERT_TRUE(peer->Write(Frame(data.substr(1024), 1024, 1) + LastFrame(3000, 2)).ok());
  for (int64_t i = 1; i <= 2; ++i) {
    const absl::StatusOr<transfer::PipelineAck> ack = peer->ReadAck();
    ASSERT_TRUE(ack.ok()) << ack.status();
    EXPECT_EQ(*ack, AllGood(i, 2));
  }
  ExpectReplica(0, ReplicaState::kFinalized, data);
  ExpectReplica(2, ReplicaState::kFinalized, data);
}

TEST_F(BlockTransferTest, StopCancelsTransfers) {
  StartNodes({});
  WriteBlock({0}, Pattern(4 << 20));
  world().network().Block(node(1).machine, node(0).machine);
  TransferRequest request;
  request.block = block_;
  request.stamp = stamp_;
  request.targets.push_back(node(1).AsTarget());
  std::optional<absl::Status> result;
  node(0).server->Transfer(std::move(request), [&](absl::Status status) { result = std::move(status); });
  world().RunFor(absl::Milliseconds(100));
  bool stopped = false;
  node(0).server->StopAndThen([&] { stopped = true; });
  EXPECT_TRUE(world().RunUntil([&] { return stopped; }, absl::Seconds(20)));
  ASSERT_TRUE(result.has_value());
  EXPECT_FALSE(result->ok());
  node(0).server.reset();
}

}  // namespace
}  // namespace cairn::datanode
