// The transfer port with real threads, sockets and files: several writers and readers at once.

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/check.h"
#include "common/env/env.h"
#include "common/env/wait.h"
#include "common/status.h"
#include "common/task_group.h"
#include "common/transfer/ops.h"
#include "common/transfer/wire_reader.h"
#include "datanode/storage/event_log.h"
#include "datanode/storage/open_block_store.h"
#include "datanode/transfer/transfer_server.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::datanode {
namespace {

const std::string kPool = "0123456789abcdef";
constexpr uint32_t kChunk = 512;
constexpr size_t kNodes = 3;

char ByteAt(uint64_t block, uint64_t offset) { return static_cast<char>((offset * 2654435761u + block * 97 + offset / 4093) >> 7); }

struct Node {
  std::unique_ptr<Env> env = NewRealEnv();
  std::unique_ptr<EventLog> events;
  std::unique_ptr<BlockStore> store;
  std::unique_ptr<KeyringTokenVerifier> tokens;
  std::unique_ptr<TransferServer> server;
};

// Writes one block down the chain, then reads it from each node. Belongs to one executor.
class Job {
 public:
  Job(Env* env, Executor* executor, std::vector<hdfs::DatanodeInfoProto> chain, uint64_t block, size_t bytes, size_t packet)
      : env_(env), executor_(executor), chain_(std::move(chain)), block_(block), bytes_(bytes), packet_(packet) {}

  Awaitable<absl::Status> Run() {
    absl::Status status = co_await Write();
    CO_RETURN_IF_ERROR(status);
    for (size_t i = 0; i < chain_.size(); ++i) {
      status = co_await Read(i);
      CO_RETURN_IF_ERROR(status);
    }
    co_return absl::OkStatus();
  }

 private:
  SteadyTime Soon() const { return executor_->clock().Now() + absl::Seconds(60); }
  hdfs::ClientOperationHeaderProto Header() const {
    hdfs::ClientOperationHeaderProto header;
    *header.mutable_baseheader() = transfer::MakeHeader(transfer::MakeBlock(kPool, BlockId(block_), GenerationStamp(1001), 0), "");
    header.set_clientname("threads");
    return header;
  }

  Awaitable<absl::Status> Open(size_t node, std::string operation) {
    HostPort to = transfer::AddressOf(chain_[node]);
    absl::StatusOr<std::unique_ptr<Connection>> connection = co_await env_->network().Connect(std::move(to), executor_, Soon());
    CO_RETURN_IF_ERROR(connection.status());
    connection_ = std::move(*connection);
    reader_ = std::make_unique<transfer::WireReader>(connection_.get());
    std::vector<std::span<const char>> parts(1, std::span<const char>(operation));
    absl::Status status = co_await connection_->Write(std::move(parts), Soon());
    CO_RETURN_IF_ERROR(status);
    hdfs::BlockOpResponseProto answer;
    status = co_await transfer::ReadMessage(reader_.get(), &answer, transfer::kMaxAnswerBytes, Soon());
    CO_RETURN_IF_ERROR(status);
    co_return transfer::StatusOfResponse(answer, "node");
  }

  Awaitable<absl::Status> Write() {
    hdfs::OpWriteBlockProto op;
    *op.mutable_header() = Header();
    for (size_t i = 1; i < chain_.size(); ++i) *op.add_targets() = chain_[i];
    op.set_stage(hdfs::OpWriteBlockProto::PIPELINE_SETUP_CREATE);
    op.set_pipelinesize(kNodes);
    op.set_minbytesrcvd(0);
    op.set_maxbytesrcvd(0);
    op.set_latestgenerationstamp(0);
    *op.mutable_requestedchecksum() = transfer::MakeChecksum(ChecksumType::kCrc32c, kChunk);
    std::string operation = transfer::EncodeOperation(transfer::Opcode::kWriteBlock, op);
    absl::Status status = co_await Open(0, std::move(operation));
    CO_RETURN_IF_ERROR(status);
    TaskGroup sender(executor_);
    sender.Spawn("sender", [this] { return SendPackets(); });
    const auto packets = static_cast<int64_t>((bytes_ + packet_ - 1) / packet_ + 1);
    for (int64_t seqno = 0; seqno < packets && status.ok(); ++seqno) {
      const absl::StatusOr<transfer::PipelineAck> ack = co_await transfer::ReadAck(reader_.get(), Soon());
      status = ack.status();
      if (ack.ok() && (ack->seqno != seqno || ack->replies != std::vector<hdfs::Status>(kNodes, hdfs::SUCCESS)))
        status = absl::InternalError("an acknowledgement out of order, or bad");
    }
    connection_->Close();
    co_await sender.Join();
    co_return status;
  }

  Awaitable<void> SendPackets() {
    transfer::PacketBuilder builder(ChecksumType::kCrc32c, kChunk, packet_);
    transfer::PacketHeader header;
    for (size_t at = 0; at < bytes_ + 1; at += packet_) {
      const size_t end = std::min(at + packet_, bytes_);
      for (size_t i = at; i < end;) {
        const std::span<char> room = builder.free_space();
        const size_t count = std::min(room.size(), end - i);
        for (size_t j = 0; j < count; ++j) room[j] = ByteAt(block_, i + j);
        builder.Advance(count);
        i += count;
      }
      header.offset_in_block = static_cast<int64_t>(at);
      if (end > at) {
        const transfer::Packet packet = builder.Finish(header);
        const absl::Status sent = co_await Send(packet);
        if (!sent.ok()) co_return;
        ++header.seqno;
      }
    }
    header.offset_in_block = static_cast<int64_t>(bytes_);
    header.last_in_block = true;
    const transfer::Packet last = transfer::EmptyPacket(header);
    const absl::Status sent = co_await Send(last);
    IgnoreError(sent, "the acknowledgements tell");
  }

  Awaitable<absl::Status> Send(transfer::Packet packet) {
    std::vector<std::span<const char>> parts(1, packet.frame());
    absl::Status sent = co_await connection_->Write(std::move(parts), Soon());
    co_return sent;
  }

  Awaitable<absl::Status> Read(size_t node) {
    hdfs::OpReadBlockProto op;
    *op.mutable_header() = Header();
    op.set_offset(0);
    op.set_len(bytes_);
    op.set_cairnpacketbytes(static_cast<uint32_t>(packet_));
    std::string operation = transfer::EncodeOperation(transfer::Opcode::kReadBlock, op);
    absl::Status status = co_await Open(node, std::move(operation));
    CO_RETURN_IF_ERROR(status);
    uint64_t offset = 0;
    for (;;) {
      const absl::StatusOr<transfer::Packet> packet = co_await reader_->ReadPacket(ChecksumType::kCrc32c, kChunk, Soon());
      CO_RETURN_IF_ERROR(packet.status());
      if (packet->header().last_in_block) break;
      CO_RETURN_IF_ERROR(VerifyChunkChecksums(ChecksumType::kCrc32c, kChunk, packet->data(), packet->checksums()));
      for (const char c : packet->data())
        if (c != ByteAt(block_, offset++)) co_return absl::DataLossError("another byte than was written");
    }
    connection_->Close();
    co_return offset == bytes_ ? absl::OkStatus() : absl::DataLossError("another length than was written");
  }

  Env* const env_;
  Executor* const executor_;
  const std::vector<hdfs::DatanodeInfoProto> chain_;
  const uint64_t block_;
  const size_t bytes_;
  const size_t packet_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<transfer::WireReader> reader_;
};

class TransferThreads : public ::testing::Test {
 protected:
  TransferThreads() {
    for (size_t i = 0; i < kNodes; ++i) {
      auto node = std::make_unique<Node>();
      node->events = std::make_unique<EventLog>(&node->env->clock());
      BlockStoreOptions options;
      options.directories = {directory_.path() + "/dn" + std::to_string(i)};
      absl::StatusOr<OpenedBlockStore> opened = OpenBlockStore(options, node->env.get(), node->events.get());
      CAIRN_CHECK(opened.ok(), opened.status().ToString());
      const absl::Status adopted = opened->identity->AdoptCluster("cluster", kPool);
      CAIRN_CHECK(adopted.ok(), adopted.ToString());
      node->store = std::move(opened->store);
      node->tokens = std::make_unique<KeyringTokenVerifier>(&node->env->clock(), true);
      TransferOptions transfer_options;
      transfer_options.pool_id = kPool;
      transfer_options.sync_on_close = false;
      node->server = std::make_unique<TransferServer>(node->env.get(), node->store.get(), node->tokens.get(), transfer_options);
      HostPort bind;
      bind.host = "127.0.0.1";
      const absl::Status started = node->server->Start(bind);
      CAIRN_CHECK(started.ok(), started.ToString());
      nodes_.push_back(std::move(node));
    }
  }
  ~TransferThreads() override {
    for (const std::unique_ptr<Node>& node : nodes_) {
      Env* const env = node->env.get();
      node->server->StopAndThen([env] { env->Wake(); });
      const SteadyTime limit = env->clock().Now() + absl::Seconds(30);
      CAIRN_CHECK(env->BlockUntil([&] { return node->server->stopped(); }, limit), "a server does not stop");
    }
    nodes_.clear();
  }

  // `count` blocks at once, each written down the chain (which begins elsewhere for each) and read back from all nodes.
  void RunJobs(size_t count, size_t bytes, size_t packet) {
    const std::unique_ptr<Env> env = NewRealEnv();
    const std::unique_ptr<Executor> executor = env->executors().NewExecutor("client");
    std::vector<std::unique_ptr<Job>> jobs;
    std::vector<absl::Status> results(count, absl::UnknownError("not run"));
    std::atomic<bool> idle = false;
    {
      TaskGroup group(executor.get());
      for (size_t i = 0; i < count; ++i) {
        std::vector<hdfs::DatanodeInfoProto> chain;
        for (size_t j = 0; j < kNodes; ++j) {
          v1::DatanodeInfo info;
          info.mutable_transfer()->set_host("127.0.0.1");
          info.mutable_transfer()->set_port(nodes_[(i + j) % kNodes]->server->local().port);
          chain.push_back(transfer::MakeTarget(info));
        }
        jobs.push_back(
            std::make_unique<Job>(env.get(), executor.get(), std::move(chain), (1ull << 30) + 16 * (next_block_++), bytes, packet));
        group.Spawn("job", [job = jobs.back().get(), result = &results[i]] { return Keep(job, result); });
      }
      TaskGroup waiter(executor.get());
      waiter.Spawn("waiter", [&] { return JoinAndTell(&group, env.get(), &idle); });
      const SteadyTime limit = env->clock().Now() + absl::Minutes(4);
      CAIRN_CHECK(env->BlockUntil([&] { return idle.load(); }, limit), "the jobs do not end");
      std::atomic<bool> gone = false;
      waiter.StopAndThen([&] {
        gone = true;
        env->Wake();
      });
      CAIRN_CHECK(env->BlockUntil([&] { return gone.load(); }, limit), "the waiter does not end");
    }
    for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
  }

 private:
  static Awaitable<void> Keep(Job* job, absl::Status* result) {
    absl::Status status = co_await job->Run();
    *result = std::move(status);
  }
  static Awaitable<void> JoinAndTell(TaskGroup* group, Env* env, std::atomic<bool>* idle) {
    co_await group->Join();
    idle->store(true);
    env->Wake();
  }

  const testing::TemporaryDirectory directory_;
  std::vector<std::unique_ptr<Node>> nodes_;
  uint64_t next_block_ = 0;
};

TEST_F(TransferThreads, ManySmallBlocksAtOnce) { RunJobs(48, 10'000, 4096); }

TEST_F(TransferThreads, LargeBlocksInLargePacketsAtOnce) { RunJobs(4, (8 << 20) + 777, 1 << 20); }

TEST_F(TransferThreads, LargeBlocksInTheStockClientsPackets) { RunJobs(4, (4 << 20) + 1, 126 * kChunk); }

}  // namespace
}  // namespace cairn::datanode
