#include "client/src/pipeline.h"

#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/ids.h"
#include "common/status.h"

namespace cairn::client {
namespace {

hdfs::OpWriteBlockProto OperationOf(const PipelineSetUp& set_up) {
  hdfs::OpWriteBlockProto op;
  hdfs::ClientOperationHeaderProto* header = op.mutable_header();
  *header->mutable_baseheader() = transfer::MakeHeader(
      transfer::MakeBlock(set_up.pool_id, BlockId(set_up.block.id()), GenerationStamp(set_up.block.generation_stamp()), set_up.min_bytes),
      set_up.token);
  header->set_clientname(set_up.client_name);
  for (size_t i = 1; i < set_up.nodes.size(); ++i) {
    *op.add_targets() = transfer::MakeTarget(set_up.nodes[i].datanode());
    op.add_targetstoragetypes(hdfs::DISK);
    op.add_targetstorageids(set_up.nodes[i].storage_uuid());
  }
  op.set_stage(set_up.stage);
  op.set_pipelinesize(static_cast<uint32_t>(set_up.nodes.size()));
  op.set_minbytesrcvd(set_up.min_bytes);
  op.set_maxbytesrcvd(set_up.max_bytes);
  op.set_latestgenerationstamp(set_up.latest_stamp);
  *op.mutable_requestedchecksum() = transfer::MakeChecksum(set_up.checksum, set_up.bytes_per_checksum);
  op.set_storageid(set_up.nodes[0].storage_uuid());
  op.set_cairntrafficclass(v1::FOREGROUND);
  op.set_cairnsynconclose(set_up.sync_on_close);
  return op;
}

size_t IndexOfLink(const PipelineSetUp& set_up, const std::string& link) {
  for (size_t i = 0; i < set_up.nodes.size(); ++i)
    if (transfer::LinkName(transfer::MakeTarget(set_up.nodes[i].datanode())) == link) return i;
  return 0;
}

HostPort AddressOf(const v1::StorageLocation& node) {
  HostPort address;
  address.host = node.datanode().transfer().host();
  address.port = static_cast<uint16_t>(node.datanode().transfer().port());
  return address;
}

}  // namespace

std::string FailureReason(const absl::Status& status, bool connecting) {
  switch (KindOf(status)) {
    case ErrorKind::kChecksum: return "CHECKSUM";
    case ErrorKind::kAccessToken: return "ACCESS_TOKEN";
    case ErrorKind::kBusy: return "TOO_MANY_STREAMS";
    case ErrorKind::kDiskFull: return "NO_SPACE";
    default: break;  // NOLINT: the others have no word of their own.
  }
  if (status.code() == absl::StatusCode::kDeadlineExceeded) return connecting ? "CONNECT_TIMEOUT" : "ACK_TIMEOUT";
  if (status.code() == absl::StatusCode::kUnavailable && KindOf(status) == ErrorKind::kNone)
    return connecting ? "CONNECT_FAILED" : "CONNECTION_RESET";
  return "REFUSED";
}

Pipeline::Pipeline(Scope scope, Network* network, Timeouts timeouts)
    : scope_(scope), network_(network), timeouts_(timeouts), read_timeout_(timeouts.read) {}

Awaitable<absl::Status> Pipeline::SetUp(PipelineSetUp set_up, PipelineFailure* failure) {
  node_count_ = set_up.nodes.size();
  read_timeout_ = timeouts_.read + kPerNode * static_cast<double>(node_count_);
  const SteadyTime connect_by = scope_.executor->clock().Now() + timeouts_.connect;
  absl::StatusOr<std::unique_ptr<Connection>> connection =
      co_await network_->Connect(AddressOf(set_up.nodes[0]), scope_.executor, connect_by);
  if (!connection.ok()) {
    *failure = PipelineFailure(0, FailureReason(connection.status(), /*connecting=*/true), connection.status());
    co_return failure->status;
  }
  connection_ = std::move(*connection);
  reader_ = std::make_unique<transfer::WireReader>(connection_.get());
  hook_ = scope_.group->OnStop([this] { Close(); });

  const std::string operation = transfer::EncodeOperation(transfer::Opcode::kWriteBlock, OperationOf(set_up));
  // Each node connects to the next before the answer comes.
  const SteadyTime answer_by = scope_.executor->clock().Now() + timeouts_.connect * static_cast<double>(node_count_) + timeouts_.read;
  std::vector<std::span<const char>> parts;
  parts.emplace_back(operation.data(), operation.size());
  absl::Status status = co_await connection_->Write(std::move(parts), answer_by);
  hdfs::BlockOpResponseProto answer;
  if (status.ok()) status = co_await transfer::ReadMessage(reader_.get(), &answer, transfer::kMaxAnswerBytes, answer_by);
  size_t bad_node = 0;
  bool reached = true;
  if (status.ok() && answer.status() != hdfs::SUCCESS) {
    status = transfer::StatusOfResponse(answer, connection_->peer());
    if (!answer.firstbadlink().empty()) bad_node = IndexOfLink(set_up, answer.firstbadlink());
    reached = bad_node == 0;
  }
  if (status.ok()) co_return status;
  Close();
  *failure = PipelineFailure(bad_node, reached ? FailureReason(status, false) : "CONNECT_FAILED", Annotate(status, "pipeline set-up"));
  co_return failure->status;
}

Awaitable<absl::Status> Pipeline::Send(transfer::Packet packet) {
  std::vector<std::span<const char>> parts;
  parts.push_back(packet.frame());
  const SteadyTime deadline = scope_.executor->clock().Now() + read_timeout_;
  absl::Status status = co_await connection_->Write(std::move(parts), deadline);
  co_return status;
}

Awaitable<absl::StatusOr<transfer::PipelineAck>> Pipeline::ReadAck() {
  const SteadyTime deadline = scope_.executor->clock().Now() + read_timeout_;
  absl::StatusOr<transfer::PipelineAck> ack = co_await transfer::ReadAck(reader_.get(), deadline);
  co_return ack;
}

void Pipeline::Close() {
  if (connection_) connection_->Close();
}

}  // namespace cairn::client
