#include "tests/datanode/transfer_harness.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/status.h"

namespace cairn::datanode {
namespace {

constexpr uint16_t kPort = 9866;

SteadyTime After(testing::SimWorld* world, absl::Duration patience) { return world->Now() + patience; }

Awaitable<absl::Status> Send(Connection* connection, std::string bytes, std::shared_ptr<size_t> sent, size_t piece) {
  for (size_t at = 0; at < bytes.size(); at += piece) {
    std::vector<std::span<const char>> parts(1, std::span<const char>(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    absl::Status status = co_await connection->Write(std::move(parts), SteadyTime::Infinite());
    CO_RETURN_IF_ERROR(status);
    *sent = std::min(at + piece, bytes.size());
  }
  co_return absl::OkStatus();
}

Awaitable<void> SendAndForget(Connection* connection, std::string bytes, std::shared_ptr<size_t> sent) {
  const absl::Status status = co_await Send(connection, std::move(bytes), std::move(sent), 64 << 10);
  IgnoreError(status, "the test looks at what arrives");
}

}  // namespace

std::string Pattern(size_t size, uint64_t seed) {
  std::string data(size, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (char& c : data) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    c = static_cast<char>(state >> 56);
  }
  return data;
}

hdfs::DatanodeInfoProto TestNode::AsTarget() const {
  v1::DatanodeInfo info;
  info.set_uuid(machine->name());
  info.mutable_transfer()->set_host(machine->address());
  info.mutable_transfer()->set_port(kPort);
  return transfer::MakeTarget(info);
}

absl::Status TestPeer::Write(std::string bytes) {
  return Sync<absl::Status>(world_, group_,
                            [&] { return Send(connection_.get(), std::move(bytes), std::make_shared<size_t>(0), 16 << 20); });
}

void TestPeer::WriteLater(std::string bytes) {
  *sent_ = 0;
  group_->Spawn("writer", [connection = connection_.get(), sent = sent_, bytes = std::move(bytes)]() mutable {
    return SendAndForget(connection, std::move(bytes), sent);
  });
}

absl::Status TestPeer::Read(google::protobuf::MessageLite* message, absl::Duration patience) {
  return Sync<absl::Status>(world_, group_,
                            [&] { return transfer::ReadMessage(&reader_, message, transfer::kMaxAnswerBytes, After(world_, patience)); });
}

absl::StatusOr<transfer::PipelineAck> TestPeer::ReadAck(absl::Duration patience) {
  return Sync<absl::StatusOr<transfer::PipelineAck>>(world_, group_, [&] { return transfer::ReadAck(&reader_, After(world_, patience)); });
}

absl::StatusOr<transfer::Packet> TestPeer::ReadPacket(ChecksumType type) {
  return Sync<absl::StatusOr<transfer::Packet>>(world_, group_,
                                                [&] { return reader_.ReadPacket(type, kChunk, After(world_, absl::Minutes(5))); });
}

bool TestPeer::AtEnd(absl::Duration patience) {
  const absl::StatusOr<std::optional<std::string>> bytes =
      Sync<absl::StatusOr<std::optional<std::string>>>(world_, group_, [&] { return reader_.ReadExactly(1, After(world_, patience)); });
  if (!bytes.ok()) return absl::IsUnavailable(bytes.status());
  return !bytes->has_value();
}

void TestPeer::Close() {
  connection_->Close();
  // A write in the background holds the connection until it has seen the end.
  world_->RunFor(absl::Milliseconds(10));
}

TransferTest::TransferTest(int nodes) : node_count_(nodes), world_({.seed = 7}) {
  EnableFaultPoints();
  client_ = world_.AddMachine("client");
  client_process_ = client_->StartProcess();
  executor_ = client_process_->executors().NewExecutor("client");
  group_ = std::make_unique<TaskGroup>(executor_.get());
}

TransferTest::~TransferTest() {
  DisarmAllFaults();
  StopNodes();
  bool stopped = false;
  group_->StopAndThen([&] { stopped = true; });
  CAIRN_CHECK(world_.RunUntil([&] { return stopped; }, absl::Hours(1)), "the test's coroutines do not end");
  nodes_.clear();
  group_.reset();
  executor_.reset();
}

void TransferTest::StartNodes(const TransferOptions& options) {
  for (int i = 0; i < node_count_; ++i) {
    auto node = std::make_unique<TestNode>();
    node->machine = world_.AddMachine(fmt::format("dn{}", i + 1));
    node->process = node->machine->StartProcess();
    node->events = std::make_unique<EventLog>(&node->process->clock());
    BlockStoreOptions store_options;
    store_options.directories = {"/data"};
    store_options.max_block_bytes = 256 << 20;
    absl::StatusOr<OpenedBlockStore> opened = OpenBlockStore(store_options, node->process, node->events.get());
    CAIRN_CHECK(opened.ok(), opened.status().ToString());
    const absl::Status adopted = opened->identity->AdoptCluster("cluster", kPool);
    CAIRN_CHECK(adopted.ok(), adopted.ToString());
    node->store = std::move(opened->store);
    node->tokens = std::make_unique<KeyringTokenVerifier>(&node->process->clock(), /*accept_empty=*/true);
    TransferOptions own = options;
    own.pool_id = kPool;
    own.datanode_uuid = node->machine->name();
    own.block_capacity = store_options.max_block_bytes;
    own.advertised.host = node->machine->address();
    own.advertised.port = kPort;
    node->server = std::make_unique<TransferServer>(node->process, node->store.get(), node->tokens.get(), own);
    HostPort bind;
    bind.host = "0.0.0.0";
    bind.port = kPort;
    const absl::Status started = node->server->Start(bind);
    CAIRN_CHECK(started.ok(), started.ToString());
    nodes_.push_back(std::move(node));
  }
}

void TransferTest::StopNodes() {
  for (const std::unique_ptr<TestNode>& node : nodes_) {
    if (node->server == nullptr) continue;
    bool stopped = false;
    node->server->StopAndThen([&] { stopped = true; });
    CAIRN_CHECK(world_.RunUntil([&] { return stopped; }, absl::Hours(1)), "a transfer server does not stop");
    node->server.reset();
  }
}

std::unique_ptr<TestPeer> TransferTest::Connect(size_t node) {
  HostPort to = transfer::AddressOf(nodes_[node]->AsTarget());
  using ConnectionOr = absl::StatusOr<std::unique_ptr<Connection>>;
  ConnectionOr connection = Sync<ConnectionOr>(
      &world_, group_.get(), [&] { return client_process_->network().Connect(to, executor_.get(), After(&world_, absl::Seconds(10))); });
  CAIRN_CHECK(connection.ok(), connection.status().ToString());
  return std::make_unique<TestPeer>(&world_, group_.get(), std::move(*connection));
}

hdfs::OpWriteBlockProto TransferTest::WriteOp(const std::vector<size_t>& chain, hdfs::OpWriteBlockProto::BlockConstructionStage stage) {
  hdfs::OpWriteBlockProto op;
  *op.mutable_header()->mutable_baseheader() = transfer::MakeHeader(transfer::MakeBlock(kPool, block_, stamp_, 0), token_);
  op.mutable_header()->set_clientname("test");
  for (size_t i = 1; i < chain.size(); ++i) *op.add_targets() = nodes_[chain[i]]->AsTarget();
  op.set_stage(stage);
  op.set_pipelinesize(static_cast<uint32_t>(chain.size()));
  op.set_minbytesrcvd(0);
  op.set_maxbytesrcvd(0);
  op.set_latestgenerationstamp(0);
  *op.mutable_requestedchecksum() = transfer::MakeChecksum(ChecksumType::kCrc32c, kChunk);
  return op;
}

std::unique_ptr<TestPeer> TransferTest::OpenPipeline(const std::vector<size_t>& chain, const hdfs::OpWriteBlockProto& op) {
  std::unique_ptr<TestPeer> peer = Connect(chain[0]);
  EXPECT_TRUE(peer->Write(transfer::EncodeOperation(transfer::Opcode::kWriteBlock, op)).ok());
  hdfs::BlockOpResponseProto answer;
  const absl::Status read = peer->Read(&answer);
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(answer.status(), hdfs::SUCCESS) << answer.message();
  EXPECT_EQ(answer.firstbadlink(), "");
  return peer;
}

std::string TransferTest::Frame(const std::string& data, uint64_t offset, int64_t seqno, bool sync) {
  transfer::PacketHeader header;
  header.offset_in_block = static_cast<int64_t>(offset);
  header.seqno = seqno;
  header.sync_block = sync;
  transfer::PacketBuilder builder(ChecksumType::kCrc32c, kChunk, std::max<size_t>(data.size(), 1));
  builder.Append(data);
  const transfer::Packet packet = builder.Finish(header);
  return std::string(packet.frame().begin(), packet.frame().end());
}

std::string TransferTest::LastFrame(uint64_t length, int64_t seqno) {
  transfer::PacketHeader header;
  header.offset_in_block = static_cast<int64_t>(length);
  header.seqno = seqno;
  header.last_in_block = true;
  const transfer::Packet packet = transfer::EmptyPacket(header);
  return std::string(packet.frame().begin(), packet.frame().end());
}

transfer::PipelineAck TransferTest::AllGood(int64_t seqno, size_t nodes) {
  transfer::PipelineAck ack;
  ack.seqno = seqno;
  ack.replies.assign(nodes, hdfs::SUCCESS);
  return ack;
}

void TransferTest::WriteBlock(const std::vector<size_t>& chain, const std::string& data, size_t packet) {
  std::unique_ptr<TestPeer> peer = OpenPipeline(chain);
  std::string frames;
  int64_t seqno = 0;
  for (size_t at = 0; at < data.size(); at += packet) frames += Frame(data.substr(at, packet), at, seqno++);
  frames += LastFrame(data.size(), seqno++);
  peer->WriteLater(std::move(frames));
  for (int64_t i = 0; i < seqno; ++i) {
    const absl::StatusOr<transfer::PipelineAck> ack = peer->ReadAck();
    ASSERT_TRUE(ack.ok()) << ack.status();
    ASSERT_EQ(*ack, AllGood(i, chain.size()));
  }
  EXPECT_TRUE(peer->AtEnd());
}

hdfs::OpReadBlockProto TransferTest::ReadOp(uint64_t offset, uint64_t length) {
  hdfs::OpReadBlockProto op;
  *op.mutable_header()->mutable_baseheader() = transfer::MakeHeader(transfer::MakeBlock(kPool, block_, stamp_, 0), token_);
  op.mutable_header()->set_clientname("test");
  op.set_offset(offset);
  op.set_len(length);
  return op;
}

TransferTest::ReadResult TransferTest::ReadOver(TestPeer* peer, const hdfs::OpReadBlockProto& op) {
  ReadResult result;
  result.status = peer->Write(transfer::EncodeOperation(transfer::Opcode::kReadBlock, op));
  hdfs::BlockOpResponseProto answer;
  if (result.status.ok()) result.status = peer->Read(&answer);
  if (result.status.ok()) result.status = transfer::StatusOfResponse(answer, "the node");
  if (!result.status.ok()) return result;
  result.chunk_offset = answer.readopchecksuminfo().chunkoffset();
  const ChecksumType type = transfer::TypeOf(answer.readopchecksuminfo().checksum());
  EXPECT_EQ(type, op.sendchecksums() ? ChecksumType::kCrc32c : ChecksumType::kNull);
  for (int64_t seqno = 0;; ++seqno) {
    const absl::StatusOr<transfer::Packet> packet = peer->ReadPacket(type);
    result.status = packet.status();
    if (!packet.ok()) return result;
    EXPECT_EQ(packet->header().seqno, seqno);
    EXPECT_EQ(packet->header().offset_in_block, static_cast<int64_t>(result.chunk_offset + result.bytes.size()));
    EXPECT_FALSE(packet->header().sync_block);
    if (packet->header().last_in_block) break;
    EXPECT_GT(packet->header().data_length, 0u);
    const absl::Status verified = VerifyChunkChecksums(type, kChunk, packet->data(), packet->checksums());
    EXPECT_TRUE(verified.ok()) << verified;
    result.bytes.append(packet->data().begin(), packet->data().end());
    ++result.packets;
  }
  hdfs::ClientReadStatusProto verdict;
  verdict.set_status(hdfs::CHECKSUM_OK);
  result.status = peer->Write(transfer::Delimited(verdict));
  return result;
}

TransferTest::ReadResult TransferTest::ReadBlock(size_t node, uint64_t offset, uint64_t length) {
  std::unique_ptr<TestPeer> peer = Connect(node);
  return ReadOver(peer.get(), ReadOp(offset, length));
}

void TransferTest::ExpectReplica(size_t node, ReplicaState state, const std::string& data) {
  SCOPED_TRACE(nodes_[node]->machine->name());
  const std::optional<ReplicaDescription> replica = nodes_[node]->store->Describe(block_);
  ASSERT_TRUE(replica.has_value());
  EXPECT_EQ(replica->state, state);
  EXPECT_EQ(replica->stamp, stamp_);
  EXPECT_EQ(replica->visible_length, data.size());
  const ReadResult read = ReadBlock(node, 0, data.size());
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_TRUE(read.bytes == data) << read.bytes.size() << " bytes read, " << data.size() << " written";
}

}  // namespace cairn::datanode
