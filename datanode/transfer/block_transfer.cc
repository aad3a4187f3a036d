#include "datanode/transfer/block_transfer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "datanode/transfer/block_sender.h"
#include "datanode/transfer/replica_stream.h"

namespace cairn::datanode {
namespace {

// At most a quarter of what the pace allows in a second, so that a slow one is an even one, and no receiver takes the pauses for silence.
size_t PacedPacketBytes(uint64_t bytes_per_second) {
  constexpr uint64_t kLeast = 16 << 10;
  constexpr uint64_t kMost = 128 << 10;
  return static_cast<size_t>(std::clamp(bytes_per_second / 4, kLeast, kMost));
}

hdfs::OpWriteBlockProto MakeOperation(const TransferContext& context, const TransferRequest& request, const ReplicaReader& replica) {
  const ReplicaDescription& description = replica.description();
  hdfs::OpWriteBlockProto op;
  hdfs::ClientOperationHeaderProto* header = op.mutable_header();
  *header->mutable_baseheader() =
      transfer::MakeHeader(transfer::MakeBlock(context.pool.Get(), request.block, description.stamp, replica.length()), request.token);
  header->set_clientname(request.client_name);
  for (size_t i = 1; i < request.targets.size(); ++i) *op.add_targets() = request.targets[i];
  hdfs::DatanodeIDProto* source = op.mutable_source()->mutable_id();
  source->set_ipaddr(context.options.advertised.host);
  source->set_hostname(context.options.advertised.host);
  source->set_datanodeuuid(context.options.datanode_uuid);
  source->set_xferport(context.options.advertised.port);
  source->set_infoport(0);
  source->set_ipcport(0);
  op.set_stage(description.state == ReplicaState::kFinalized ? hdfs::OpWriteBlockProto::TRANSFER_FINALIZED
                                                             : hdfs::OpWriteBlockProto::TRANSFER_RBW);
  op.set_pipelinesize(0);
  op.set_minbytesrcvd(0);
  op.set_maxbytesrcvd(0);
  op.set_latestgenerationstamp(0);
  *op.mutable_requestedchecksum() = transfer::MakeChecksum(replica.checksum_type(), replica.bytes_per_checksum());
  op.set_cairntrafficclass(static_cast<uint32_t>(request.traffic_class));
  for (size_t i = 0; i < request.storage_uuids.size() && i < request.targets.size(); ++i) {
    if (i == 0) {
      op.set_storageid(request.storage_uuids[i]);
    } else {
      op.add_targetstorageids(request.storage_uuids[i]);
    }
  }
  return op;
}

}  // namespace

Awaitable<absl::Status> TransferBlock(TransferContext* context, TaskGroup* owner, Executor* executor, TransferRequest request) {
  if (request.targets.empty()) co_return MakeError(ErrorKind::kInvalidArgument, "a transfer without a target");
  const std::string name =
      fmt::format("transfer of block {}_{} to {}", request.block.value(), request.stamp.value(), transfer::LinkName(request.targets[0]));
  absl::StatusOr<std::shared_ptr<ReplicaReader>> opened = co_await OpenForReading(context->store, executor, request.block, request.stamp);
  if (!opened.ok()) co_return Annotate(opened.status(), name);
  const std::shared_ptr<ReplicaReader> replica = std::move(*opened);

  const SteadyTime connect_by = std::min(request.deadline, executor->clock().Now() + context->options.connect_timeout);
  HostPort address = transfer::AddressOf(request.targets[0]);
  absl::StatusOr<std::unique_ptr<Connection>> connected = co_await context->network->Connect(std::move(address), executor, connect_by);
  if (!connected.ok()) co_return Annotate(connected.status(), name);
  const std::unique_ptr<Connection> connection = std::move(*connected);
  const std::unique_ptr<TaskGroup::StopHook> hook = owner->OnStop([&connection] { connection->Close(); });

  const std::string operation = transfer::EncodeOperation(transfer::Opcode::kWriteBlock, MakeOperation(*context, request, *replica));
  std::vector<std::span<const char>> parts(1, std::span<const char>(operation));
  absl::Status status = co_await connection->Write(std::move(parts), connect_by);
  if (status.ok()) {
    const bool paced = request.traffic_class == v1::BALANCING;
    size_t packet_bytes = context->options.transfer_packet_bytes;
    if (paced) packet_bytes = std::min(packet_bytes, PacedPacketBytes(context->balance_pace.bytes_per_second()));
    ReplicaStream stream(context, executor, connection.get(), replica.get(), packet_bytes, true);
    if (paced) stream.SetPace(&context->balance_pace, owner);
    status = co_await stream.Send(0, replica->length(), request.deadline);
  }
  // A target that refuses says why, and may have done so while we were sending.
  transfer::WireReader reader(connection.get());
  hdfs::DNTransferAckProto ack;
  const SteadyTime answer_by = std::min(request.deadline, executor->clock().Now() + context->options.socket_timeout);
  const absl::Status read = co_await transfer::ReadMessage(&reader, &ack, transfer::kMaxAnswerBytes, answer_by);
  connection->Close();
  if (read.ok() && ack.status() != hdfs::SUCCESS)
    status = absl::UnavailableError(fmt::format("the target answered {}", hdfs::Status_Name(ack.status())));
  if (!read.ok() && status.ok()) status = read;
  if (!status.ok()) co_return Annotate(status, name);
  context->counters.blocks_transferred.fetch_add(1, std::memory_order_relaxed);
  co_return absl::OkStatus();
}

}  // namespace cairn::datanode
