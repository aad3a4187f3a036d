#include "common/transfer/ops.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include "common/check.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::transfer {
namespace {

// Of a flag: bits 0-3 are the status, bits 7-8 say whether the node is slow; that it is congested (5-6) we neither say nor hear.
constexpr uint32_t kFlagStatusMask = 0xf;
constexpr uint32_t kFlagSlowMask = 0x3 << 7;
constexpr uint32_t kFlagSlow = 0x2 << 7;
constexpr std::string_view kBusyPrefix = "BUSY: ";

absl::Status Invalid(std::string message) { return MakeError(ErrorKind::kInvalidArgument, std::move(message)); }

void AppendDelimited(const google::protobuf::MessageLite& message, std::string& out) {
  const size_t size = message.ByteSizeLong();
  uint8_t varint[10];
  const uint8_t* end = google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), varint);
  for (const uint8_t* p = varint; p != end; ++p) out += static_cast<char>(*p);
  CAIRN_CHECK(message.AppendToString(&out), "a message lacks a required field");
}

}  // namespace

std::string Delimited(const google::protobuf::MessageLite& message) {
  std::string out;
  AppendDelimited(message, out);
  return out;
}

std::string EncodeOperation(Opcode opcode, const google::protobuf::MessageLite& message) {
  std::string out;
  out += static_cast<char>(kDataTransferVersion >> 8);
  out += static_cast<char>(kDataTransferVersion & 0xff);
  out += static_cast<char>(opcode);
  AppendDelimited(message, out);
  return out;
}

Awaitable<absl::StatusOr<std::optional<Opcode>>> ReadOpcode(WireReader* reader, SteadyTime deadline) {
  absl::StatusOr<std::optional<std::string>> bytes = co_await reader->ReadExactly(3, deadline);
  CO_RETURN_IF_ERROR(bytes.status());
  std::optional<Opcode> none;
  if (!bytes->has_value()) co_return none;
  const std::string& start = **bytes;
  const auto byte = [&start](size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(start[i])); };
  if ((byte(0) << 8 | byte(1)) != kDataTransferVersion)
    co_return Invalid(fmt::format("not the data transfer protocol, version {}: began with {:02x} {:02x} {:02x}", kDataTransferVersion,
                                  byte(0), byte(1), byte(2)));
  const unsigned code = byte(2);
  const bool known = (code >= static_cast<unsigned>(Opcode::kWriteBlock) && code <= static_cast<unsigned>(Opcode::kBlockGroupChecksum)) ||
                     code == static_cast<unsigned>(Opcode::kCustom);
  if (!known) co_return MakeError(ErrorKind::kUnsupported, fmt::format("unknown operation {}", code));
  std::optional<Opcode> opcode = static_cast<Opcode>(code);
  co_return opcode;
}

Awaitable<absl::Status> ReadMessage(WireReader* reader, google::protobuf::MessageLite* message, size_t max_bytes, SteadyTime deadline) {
  absl::StatusOr<std::optional<std::string>> bytes = co_await reader->ReadDelimited(max_bytes, deadline);
  if (!bytes.ok()) co_return Annotate(bytes.status(), message->GetTypeName());
  if (!bytes->has_value()) co_return absl::UnavailableError(fmt::format("{}: the connection ended before it", message->GetTypeName()));
  const std::string& wire = **bytes;
  if (!message->ParsePartialFromArray(wire.data(), static_cast<int>(wire.size())))
    co_return Invalid(fmt::format("{}: does not parse", message->GetTypeName()));
  if (!message->IsInitialized())
    co_return Invalid(fmt::format("{}: required fields are missing: {}", message->GetTypeName(), message->InitializationErrorString()));
  co_return absl::OkStatus();
}

std::string EncodeResponse(hdfs::BlockOpResponseProto response) {
  if (response.status() != hdfs::SUCCESS && response.message().empty()) response.set_message(hdfs::Status_Name(response.status()));
  if (!response.has_readopchecksuminfo() && !response.has_firstbadlink()) response.set_firstbadlink("");
  std::string out = Delimited(response);
  CAIRN_CHECK(out.size() >= kMinAnswerBytes, "answer too short for clients that read 5 bytes at once");
  return out;
}

std::string EncodeSuccess() {
  hdfs::BlockOpResponseProto response;
  response.set_status(hdfs::SUCCESS);
  return EncodeResponse(std::move(response));
}

std::string EncodeFailure(hdfs::Status status, std::string_view first_bad_link, std::string_view message) {
  CAIRN_CHECK(status != hdfs::SUCCESS, "a failure that is none");
  hdfs::BlockOpResponseProto response;
  response.set_status(status);
  response.set_firstbadlink(std::string(first_bad_link));
  response.set_message(std::string(message.substr(0, kMaxAnswerBytes / 2)));
  return EncodeResponse(std::move(response));
}

bool PipelineAck::all_success() const { return !bad_node().has_value(); }

std::optional<size_t> PipelineAck::bad_node() const {
  for (size_t i = replies.size(); i > 0; --i)
    if (replies[i - 1] != hdfs::SUCCESS) return i - 1;
  return std::nullopt;
}

std::string EncodeAck(const PipelineAck& ack) {
  CAIRN_CHECK(!ack.replies.empty() && ack.replies.size() <= kMaxPipelineNodes, "acknowledgement without a node");
  hdfs::PipelineAckProto proto;
  proto.set_seqno(ack.seqno);
  for (size_t i = 0; i < ack.replies.size(); ++i) {
    const uint32_t slow = (ack.slow_nodes >> i & 1) != 0 ? kFlagSlow : 0;
    proto.add_reply(ack.replies[i]);
    proto.add_flag(static_cast<uint32_t>(ack.replies[i]) | slow);
  }
  if (ack.downstream_time > absl::ZeroDuration())
    proto.set_downstreamacktimenanos(static_cast<uint64_t>(absl::ToInt64Nanoseconds(ack.downstream_time)));
  std::string out = Delimited(proto);
  CAIRN_CHECK(out.size() >= kMinAnswerBytes, "acknowledgement too short for clients that read 5 bytes at once");
  return out;
}

absl::StatusOr<PipelineAck> DecodeAck(std::string_view message) {
  hdfs::PipelineAckProto proto;
  // Partial, because protobuf prints a line of its own about a field that is missing.
  if (!proto.ParsePartialFromArray(message.data(), static_cast<int>(message.size())) || !proto.IsInitialized())
    return Invalid("not an acknowledgement: does not parse");
  PipelineAck ack;
  ack.seqno = proto.seqno();
  const int count = proto.flag_size() > 0 ? proto.flag_size() : proto.reply_size();
  if (count == 0) return Invalid(fmt::format("acknowledgement of packet {} without a reply", ack.seqno));
  if (static_cast<size_t>(count) > kMaxPipelineNodes)
    return Invalid(fmt::format("acknowledgement of packet {} with {} replies", ack.seqno, count));
  if (proto.flag_size() > 0 && proto.flag_size() != proto.reply_size())
    return Invalid(
        fmt::format("acknowledgement of packet {} with {} replies and {} flags", ack.seqno, proto.reply_size(), proto.flag_size()));
  for (int i = 0; i < count; ++i) {
    const uint32_t flag = proto.flag_size() > 0 ? proto.flag(i) & kFlagStatusMask : static_cast<uint32_t>(proto.reply(i));
    if (!hdfs::Status_IsValid(static_cast<int>(flag)))
      return Invalid(fmt::format("acknowledgement of packet {} with status {}", ack.seqno, flag));
    ack.replies.push_back(static_cast<hdfs::Status>(flag));
    if (proto.flag_size() > 0 && (proto.flag(i) & kFlagSlowMask) == kFlagSlow) ack.slow_nodes |= uint64_t{1} << i;
  }
  constexpr uint64_t kMostNanoseconds = std::numeric_limits<int64_t>::max();
  ack.downstream_time = absl::Nanoseconds(std::min(proto.downstreamacktimenanos(), kMostNanoseconds));
  return ack;
}

Awaitable<absl::StatusOr<PipelineAck>> ReadAck(WireReader* reader, SteadyTime deadline) {
  absl::StatusOr<std::optional<std::string>> bytes = co_await reader->ReadDelimited(kMaxAckBytes, deadline);
  CO_RETURN_IF_ERROR(bytes.status());
  if (!bytes->has_value()) co_return absl::UnavailableError("the connection ended before an acknowledgement");
  co_return DecodeAck(**bytes);
}

hdfs::Status WireStatusOf(const absl::Status& status) {
  if (status.ok()) return hdfs::SUCCESS;
  switch (KindOf(status)) {
    case ErrorKind::kChecksum: return hdfs::ERROR_CHECKSUM;
    case ErrorKind::kAlreadyExists: return hdfs::ERROR_EXISTS;
    case ErrorKind::kAccessToken: return hdfs::ERROR_ACCESS_TOKEN;
    case ErrorKind::kUnsupported: return hdfs::ERROR_UNSUPPORTED;
    case ErrorKind::kInvalidArgument: return hdfs::ERROR_INVALID;
    case ErrorKind::kNone:
    case ErrorKind::kNotFound:
    case ErrorKind::kInvalidPath:
    case ErrorKind::kNotDirectory:
    case ErrorKind::kNotEmpty:
    case ErrorKind::kIsDirectory:
    case ErrorKind::kPermission:
    case ErrorKind::kQuota:
    case ErrorKind::kLeaseExpired:
    case ErrorKind::kBeingWritten:
    case ErrorKind::kNotReplicatedYet:
    case ErrorKind::kSafeMode:
    case ErrorKind::kRetriable:
    case ErrorKind::kStandby:
    case ErrorKind::kStaleGeneration:
    case ErrorKind::kReplicaNotFound:
    case ErrorKind::kDiskFull:
    case ErrorKind::kUnregistered:
    case ErrorKind::kSlotExpired:
    case ErrorKind::kNoTargets:
    case ErrorKind::kReadOnly:
    case ErrorKind::kCancelled:
    case ErrorKind::kCorruptMetadata:
    case ErrorKind::kBusy: return hdfs::ERROR;
  }
  return hdfs::ERROR;
}

absl::Status StatusOfResponse(const hdfs::BlockOpResponseProto& response, std::string_view peer) {
  ErrorKind kind = ErrorKind::kRetriable;
  switch (response.status()) {
    case hdfs::SUCCESS:
    case hdfs::CHECKSUM_OK: return absl::OkStatus();
    case hdfs::ERROR_CHECKSUM: kind = ErrorKind::kChecksum; break;
    case hdfs::ERROR_INVALID: kind = ErrorKind::kInvalidArgument; break;
    case hdfs::ERROR_EXISTS: kind = ErrorKind::kAlreadyExists; break;
    case hdfs::ERROR_ACCESS_TOKEN: kind = ErrorKind::kAccessToken; break;
    case hdfs::ERROR_UNSUPPORTED: kind = ErrorKind::kUnsupported; break;
    case hdfs::ERROR:
    case hdfs::OOB_RESTART:
    case hdfs::OOB_RESERVED1:
    case hdfs::OOB_RESERVED2:
    case hdfs::OOB_RESERVED3:
    case hdfs::IN_PROGRESS:
    case hdfs::ERROR_BLOCK_PINNED: break;
  }
  if (response.message().starts_with(kBusyPrefix)) kind = ErrorKind::kBusy;
  Error error;
  error.kind = kind;
  error.message = fmt::format("{} answered {}{}{}{}{}", peer, hdfs::Status_Name(response.status()), response.message().empty() ? "" : ": ",
                              response.message(), response.firstbadlink().empty() ? "" : "; first bad link ", response.firstbadlink());
  if (!response.firstbadlink().empty()) error.nodes.push_back(response.firstbadlink());
  return MakeError(std::move(error));
}

std::string PoolName(std::string_view pool_id) {
  std::string name;
  for (const char c : pool_id) name += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return name;
}

hdfs::ExtendedBlockProto MakeBlock(std::string_view pool_id, BlockId id, GenerationStamp stamp, uint64_t length_bytes) {
  hdfs::ExtendedBlockProto block;
  block.set_poolid(PoolName(pool_id));
  block.set_blockid(id.value());
  block.set_generationstamp(stamp.value());
  block.set_numbytes(length_bytes);
  return block;
}

hdfs::BaseHeaderProto MakeHeader(hdfs::ExtendedBlockProto block, std::string_view token) {
  hdfs::BaseHeaderProto header;
  *header.mutable_block() = std::move(block);
  hdfs::TokenProto* proto = header.mutable_token();
  proto->set_identifier(std::string(token));
  proto->set_password("");
  proto->set_kind("");
  proto->set_service("");
  return header;
}

hdfs::DatanodeInfoProto MakeTarget(const v1::DatanodeInfo& node) {
  hdfs::DatanodeInfoProto target;
  hdfs::DatanodeIDProto* id = target.mutable_id();
  id->set_ipaddr(node.transfer().host());
  id->set_hostname(node.transfer().host());
  id->set_datanodeuuid(node.uuid());
  id->set_xferport(node.transfer().port());
  id->set_infoport(node.http().port());
  id->set_ipcport(node.admin().port());
  return target;
}

hdfs::ChecksumProto MakeChecksum(ChecksumType type, uint32_t bytes_per_checksum) {
  hdfs::ChecksumProto checksum;
  checksum.set_type(static_cast<hdfs::ChecksumTypeProto>(type));
  checksum.set_bytesperchecksum(bytes_per_checksum);
  return checksum;
}

ChecksumType TypeOf(const hdfs::ChecksumProto& checksum) { return static_cast<ChecksumType>(checksum.type()); }

HostPort AddressOf(const hdfs::DatanodeInfoProto& node) {
  HostPort address;
  address.host = node.id().ipaddr();
  address.port = static_cast<uint16_t>(node.id().xferport());
  return address;
}

std::string LinkName(const hdfs::DatanodeInfoProto& node) { return fmt::format("{}:{}", node.id().ipaddr(), node.id().xferport()); }

}  // namespace cairn::transfer
