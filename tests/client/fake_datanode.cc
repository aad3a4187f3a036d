#include "tests/client/fake_datanode.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/ids.h"
#include "common/status.h"

namespace cairn::client {

using hdfs::OpWriteBlockProto;

FakeDatanode::FakeDatanode(testing::SimWorld* world, const std::string& name, uint16_t port)
    : machine_(world->AddMachine(name)),
      process_(machine_->StartProcess()),
      executor_(process_->executors().NewExecutor(name)),
      name_(name),
      port_(port),
      group_(std::make_unique<TaskGroup>(executor_.get())) {
  HostPort bind;
  bind.host = "0.0.0.0";
  bind.port = port;
  listener_ = process_->network().Listen(bind, executor_.get()).value();
  group_->Spawn("accept", [this] { return Accept(); });
}

FakeDatanode::~FakeDatanode() {
  listener_->Close();
  for (const auto& weak : open_)
    if (const auto connection = weak.lock()) connection->Close();
  bool stopped = false;
  group_->StopAndThen([&stopped] { stopped = true; });
  machine_->world().RunUntil([&stopped] { return stopped; }, absl::Hours(1));
}

v1::StorageLocation FakeDatanode::location() const {
  v1::StorageLocation location;
  location.set_storage_uuid("storage-" + name_);
  location.mutable_datanode()->set_uuid("uuid-" + name_);
  location.mutable_datanode()->mutable_transfer()->set_host(name_);
  location.mutable_datanode()->mutable_transfer()->set_port(port_);
  return location;
}

void FakeDatanode::Kill() { process_->Kill(); }

SteadyTime FakeDatanode::Deadline() const { return executor_->clock().Now() + absl::Minutes(10); }

Awaitable<void> FakeDatanode::Accept() {
  for (;;) {
    absl::StatusOr<std::unique_ptr<Connection>> accepted = co_await listener_->Accept(executor_.get());
    if (!accepted.ok()) co_return;
    std::shared_ptr<Connection> connection = std::move(*accepted);
    open_.push_back(connection);
    group_->Spawn("connection", [this, connection] { return Handle(connection); });
  }
}

Awaitable<void> FakeDatanode::Handle(std::shared_ptr<Connection> connection) {
  transfer::WireReader reader(connection.get());
  const absl::StatusOr<std::optional<transfer::Opcode>> opcode = co_await transfer::ReadOpcode(&reader, Deadline());
  if (!opcode.ok() || !*opcode) co_return;
  absl::Status status;
  if (**opcode == transfer::Opcode::kWriteBlock)
    status = co_await Write(connection.get(), &reader);
  else
    status = co_await Read(connection.get(), &reader);
  if (KindOf(status) == ErrorKind::kInvalidArgument) complaints.push_back(status.ToString());
  connection->Close();
}

Awaitable<absl::Status> FakeDatanode::SendText(Connection* connection, std::string bytes) {
  std::vector<std::span<const char>> parts;
  parts.emplace_back(bytes.data(), bytes.size());
  absl::Status status = co_await connection->Write(std::move(parts), Deadline());
  co_return status;
}

std::string FakeDatanode::Store(uint64_t block_id, const transfer::Packet& packet, uint32_t chunk) {
  Replica& replica = replicas[block_id];
  const uint64_t begin = static_cast<uint64_t>(packet.header().offset_in_block);
  const uint64_t size = packet.data().size();
  const uint64_t received = replica.data.size();
  if (begin > received) return fmt::format("a gap: {} bytes received, packet at {}", received, begin);
  if (replica.finalized) return "the replica is finalized";
  if (size > 0) {
    const absl::Status verified = VerifyChunkChecksums(ChecksumType::kCrc32c, chunk, packet.data(), packet.checksums());
    if (!verified.ok()) return verified.ToString();
    if (begin % chunk != 0 && size > chunk - begin % chunk)
      return fmt::format("packet at {} inside a chunk goes on for {} bytes", begin, size);
    ++replica.packets;
    replica.largest_packet = std::max(replica.largest_packet, size);
    if (begin + size > received) {
      replica.data.append(packet.data().data() + (received - begin), begin + size - received);
      replica.synced = false;
    }
  }
  if (packet.header().sync_block) replica.synced = true;
  if (packet.header().last_in_block) {
    if (begin != replica.data.size() || size != 0) return fmt::format("last packet at {} of {} bytes", begin, replica.data.size());
    replica.finalized = true;
  }
  return "";
}

Awaitable<absl::Status> FakeDatanode::Write(Connection* connection, transfer::WireReader* reader) {
  OpWriteBlockProto op;
  absl::Status status = co_await transfer::ReadMessage(reader, &op, transfer::kMaxOperationBytes, Deadline());
  CO_RETURN_IF_ERROR(status);
  writes.push_back(op);
  const hdfs::ExtendedBlockProto& block = op.header().baseheader().block();
  const uint64_t id = block.blockid();
  if (refuse_set_up) {
    std::string failure = transfer::EncodeFailure(hdfs::ERROR, fmt::format("{}:{}", name_, port_), "not today");
    status = co_await SendText(connection, std::move(failure));
    co_return status;
  }
  std::string trouble;
  if (op.stage() == OpWriteBlockProto::PIPELINE_SETUP_CREATE) {
    if (replicas.contains(id)) trouble = "the replica is there already";
    replicas[id].stamp = block.generationstamp();
  } else if (!replicas.contains(id)) {
    trouble = "no such replica";
  } else {
    Replica& replica = replicas[id];
    const bool in_range = replica.data.size() >= op.minbytesrcvd() && replica.data.size() <= op.maxbytesrcvd();
    if (!in_range) trouble = fmt::format("{} bytes, not {} to {}", replica.data.size(), op.minbytesrcvd(), op.maxbytesrcvd());
    if (replica.stamp < block.generationstamp() || replica.stamp > op.latestgenerationstamp()) trouble = "another stamp";
    if (replica.finalized && op.stage() == OpWriteBlockProto::PIPELINE_SETUP_STREAMING_RECOVERY) trouble = "the replica is finalized";
    const bool append = op.stage() == OpWriteBlockProto::PIPELINE_SETUP_APPEND;
    if (append && (!replica.finalized || replica.stamp != block.generationstamp())) trouble = "nothing to append to";
    if (trouble.empty() && (append || op.stage() == OpWriteBlockProto::PIPELINE_SETUP_APPEND_RECOVERY)) replica.finalized = false;
    replica.stamp = op.latestgenerationstamp();
    if (op.stage() == OpWriteBlockProto::PIPELINE_CLOSE_RECOVERY) {
      replica.finalized = true;
      replica.synced = replica.synced || op.cairnsynconclose();
    }
  }
  if (!trouble.empty()) {
    std::string failure = transfer::EncodeFailure(hdfs::ERROR, fmt::format("{}:{}", name_, port_), trouble);
    status = co_await SendText(connection, std::move(failure));
    co_return MakeError(ErrorKind::kInvalidArgument, trouble);
  }

  std::unique_ptr<Connection> mirror;
  std::unique_ptr<transfer::WireReader> mirror_reader;
  if (op.targets_size() > 0) {
    OpWriteBlockProto onward = op;
    const hdfs::DatanodeInfoProto& next = op.targets(0);
    onward.mutable_targets()->DeleteSubrange(0, 1);
    if (onward.targetstorageids_size() > 0) onward.mutable_targetstorageids()->DeleteSubrange(0, 1);
    hdfs::BlockOpResponseProto answer;
    absl::StatusOr<std::unique_ptr<Connection>> connected =
        co_await process_->network().Connect(transfer::AddressOf(next), executor_.get(), executor_->clock().Now() + absl::Seconds(3));
    absl::Status down = connected.status();
    if (down.ok()) {
      mirror = std::move(*connected);
      mirror_reader = std::make_unique<transfer::WireReader>(mirror.get());
      std::string operation = transfer::EncodeOperation(transfer::Opcode::kWriteBlock, onward);
      down = co_await SendText(mirror.get(), std::move(operation));
    }
    if (down.ok()) down = co_await transfer::ReadMessage(mirror_reader.get(), &answer, transfer::kMaxAnswerBytes, Deadline());
    if (!down.ok() || answer.status() != hdfs::SUCCESS) {
      const std::string link = down.ok() && !answer.firstbadlink().empty() ? answer.firstbadlink() : transfer::LinkName(next);
      std::string failure = transfer::EncodeFailure(hdfs::ERROR, link, "the mirror failed");
      if (op.stage() == OpWriteBlockProto::PIPELINE_SETUP_CREATE) replicas.erase(id);
      status = co_await SendText(connection, std::move(failure));
      co_return status;
    }
  }
  std::string success = transfer::EncodeSuccess();
  status = co_await SendText(connection, std::move(success));
  CO_RETURN_IF_ERROR(status);
  if (op.stage() == OpWriteBlockProto::PIPELINE_CLOSE_RECOVERY) co_return absl::OkStatus();

  const uint32_t chunk = op.requestedchecksum().bytesperchecksum();
  int data_packets = 0;
  for (;;) {
    absl::StatusOr<transfer::Packet> packet = co_await reader->ReadPacket(ChecksumType::kCrc32c, chunk, Deadline());
    CO_RETURN_IF_ERROR(packet.status());
    const transfer::PacketHeader& header = packet->header();
    if (!packet->data().empty() && ++data_packets == die_at_data_packet) Kill();
    if (header.last_in_block && die_at_last_packet) Kill();
    if (!process_->alive()) co_return absl::UnavailableError("dead");
    transfer::PipelineAck ack;
    ack.seqno = header.seqno;
    ack.replies.push_back(hdfs::SUCCESS);
    ack.slow_nodes = says_slow ? 1 : 0;
    if (packet->heartbeat()) {
      ++heartbeats;
    } else if (const std::string wrong = Store(id, *packet, chunk); !wrong.empty()) {
      complaints.push_back(wrong);
      ack.replies[0] = hdfs::ERROR;
    }
    if (mirror) {
      std::vector<std::span<const char>> parts;
      parts.push_back(packet->frame());
      absl::Status down = co_await mirror->Write(std::move(parts), Deadline());
      absl::StatusOr<transfer::PipelineAck> from_mirror = absl::UnavailableError("the mirror is gone");
      if (down.ok()) from_mirror = co_await transfer::ReadAck(mirror_reader.get(), Deadline());
      if (from_mirror.ok()) {
        ack.replies.insert(ack.replies.end(), from_mirror->replies.begin(), from_mirror->replies.end());
        ack.slow_nodes |= from_mirror->slow_nodes << 1;
      } else {
        ack.replies.push_back(hdfs::ERROR);
      }
    }
    if (header.last_in_block && op.cairnsynconclose()) replicas[id].synced = true;
    if (hold_acks) continue;
    std::string encoded = transfer::EncodeAck(ack);
    status = co_await SendText(connection, std::move(encoded));
    CO_RETURN_IF_ERROR(status);
    if (!ack.all_success() || header.last_in_block) co_return absl::OkStatus();
  }
}

Awaitable<absl::Status> FakeDatanode::Read(Connection* connection, transfer::WireReader* reader) {
  constexpr uint32_t kChunk = 512;
  constexpr size_t kPacket = 64 << 10;
  hdfs::OpReadBlockProto op;
  absl::Status status = co_await transfer::ReadMessage(reader, &op, transfer::kMaxOperationBytes, Deadline());
  CO_RETURN_IF_ERROR(status);
  reads.push_back(op);
  const auto it = replicas.find(op.header().baseheader().block().blockid());
  const uint64_t end = op.offset() + op.len();
  if (it == replicas.end() || end > it->second.data.size() || refuse_token) {
    std::string failure = transfer::EncodeFailure(refuse_token ? hdfs::ERROR_ACCESS_TOKEN : hdfs::ERROR, "", "no such bytes");
    status = co_await SendText(connection, std::move(failure));
    co_return status;
  }
  const std::string data = it->second.data;
  hdfs::BlockOpResponseProto answer;
  answer.set_status(hdfs::SUCCESS);
  const uint64_t begin = op.offset() / kChunk * kChunk;
  *answer.mutable_readopchecksuminfo()->mutable_checksum() = transfer::MakeChecksum(ChecksumType::kCrc32c, kChunk);
  answer.mutable_readopchecksuminfo()->set_chunkoffset(begin);
  std::string encoded = transfer::EncodeResponse(answer);
  status = co_await SendText(connection, std::move(encoded));
  CO_RETURN_IF_ERROR(status);
  const uint64_t stop = std::min<uint64_t>((end + kChunk - 1) / kChunk * kChunk, data.size());
  int64_t seqno = 0;
  uint64_t at = begin;
  while (at < stop) {
    if (cut_reads_after != 0 && seqno == cut_reads_after) co_return absl::OkStatus();
    const size_t size = std::min<size_t>(kPacket, stop - at);
    transfer::PacketBuilder builder(ChecksumType::kCrc32c, kChunk, size);
    builder.Append(std::span<const char>(data.data() + at, size));
    transfer::PacketHeader header;
    header.offset_in_block = static_cast<int64_t>(at);
    header.seqno = seqno++;
    const transfer::Packet packet = builder.Finish(header);
    std::string frame(packet.frame().begin(), packet.frame().end());
    if (corrupt_reads) frame.back() = static_cast<char>(frame.back() ^ 1);
    status = co_await SendText(connection, std::move(frame));
    CO_RETURN_IF_ERROR(status);
    at += size;
  }
  transfer::PacketHeader trailer;
  trailer.offset_in_block = static_cast<int64_t>(stop);
  trailer.seqno = seqno;
  trailer.last_in_block = true;
  const transfer::Packet last = transfer::EmptyPacket(trailer);
  std::string frame(last.frame().begin(), last.frame().end());
  status = co_await SendText(connection, std::move(frame));
  CO_RETURN_IF_ERROR(status);
  hdfs::ClientReadStatusProto verdict;
  status = co_await transfer::ReadMessage(reader, &verdict, transfer::kMaxAnswerBytes, Deadline());
  if (status.ok() && verdict.status() == hdfs::CHECKSUM_OK) ++read_verdicts;
  co_return absl::OkStatus();
}

}  // namespace cairn::client
