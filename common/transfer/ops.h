#pragma once

// Operations of the Data Transfer Protocol: what opens a transfer, and the answers to it. An operation is u16 version (28), u8
// opcode, then one delimited message; answers are delimited messages. As HDFS's Sender, Receiver and PipelineAck; docs/formats.md.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/types.pb.h"
#include "common/env/network.h"
#include "common/ids.h"
#include "common/transfer/wire_reader.h"
#include "hdfs/datatransfer.pb.h"

namespace cairn::transfer {

enum class Opcode : uint8_t {
  kWriteBlock = 80,
  kReadBlock = 81,
  kReadMetadata = 82,
  kReplaceBlock = 83,
  kCopyBlock = 84,
  kBlockChecksum = 85,
  kTransferBlock = 86,
  kRequestShortCircuitFds = 87,
  kReleaseShortCircuitFds = 88,
  kRequestShortCircuitShm = 89,
  kBlockGroupChecksum = 90,
  kCustom = 127,
};

inline constexpr size_t kMaxOperationBytes = 256 << 10;  // Header message of an operation.
inline constexpr size_t kMaxAnswerBytes = 64 << 10;      // BlockOpResponse and the small ones.
inline constexpr size_t kMaxAckBytes = 4 << 10;
inline constexpr size_t kMaxPipelineNodes = 64;  // Replies in one acknowledgement.
inline constexpr size_t kMinAnswerBytes = 5;     // See EncodeResponse.
inline constexpr int64_t kUnknownSeqno = -2;     // Of an out-of-band acknowledgement.

// "varint length, message", for one send.
std::string Delimited(const google::protobuf::MessageLite& message);
// A whole operation, for one send.
std::string EncodeOperation(Opcode opcode, const google::protobuf::MessageLite& message);

// The opcode of the next operation on a connection. Nothing at a clean end. kInvalidArgument for another version, kUnsupported for an
// opcode that HDFS does not have; the message says what came.
Awaitable<absl::StatusOr<std::optional<Opcode>>> ReadOpcode(WireReader* reader, SteadyTime deadline);

// One delimited message, parsed. UNAVAILABLE at the end of the stream, kInvalidArgument if it does not parse or lacks a required field;
// messages name its type. `message` outlives the call.
Awaitable<absl::Status> ReadMessage(WireReader* reader, google::protobuf::MessageLite* message, size_t max_bytes, SteadyTime deadline);

// A BlockOpResponse, delimited, of at least 5 bytes: some clients read that many before they look at the length. A response without
// firstBadLink gets an empty one, and an error without a text gets its status as text.
std::string EncodeResponse(hdfs::BlockOpResponseProto response);
std::string EncodeSuccess();
// `first_bad_link`: "address:port" of the pipeline node to blame, empty for none or for an operation that is not a write.
std::string EncodeFailure(hdfs::Status status, std::string_view first_bad_link, std::string_view message);

// The acknowledgement of one packet: the sender's own status first, then those of the nodes downstream, in pipeline order.
struct PipelineAck {
  int64_t seqno = 0;
  std::vector<hdfs::Status> replies;
  uint64_t slow_nodes = 0;         // Bit i: the node of replies[i] has been found slow by its peers, and says so.
  absl::Duration downstream_time;  // What the sender has waited for the nodes behind it, from forwarding the packet on; for statistics.

  bool all_success() const;
  // Index of the node to blame, as HDFS's clients choose it: the last in the pipeline that did not succeed.
  std::optional<size_t> bad_node() const;
  // How long it took is no part of what it says.
  bool operator==(const PipelineAck& other) const {
    return seqno == other.seqno && replies == other.replies && slow_nodes == other.slow_nodes;
  }
};

// Delimited, with a flag beside each reply (of HDFS's statistics only SLOW), and at least 5 bytes.
std::string EncodeAck(const PipelineAck& ack);
// The message without its length. If it has flags, the replies come from them, as in HDFS. kInvalidArgument if it does not parse, has
// no reply or too many, or if there are not as many flags as replies.
absl::StatusOr<PipelineAck> DecodeAck(std::string_view message);
Awaitable<absl::StatusOr<PipelineAck>> ReadAck(WireReader* reader, SteadyTime deadline);

// What a failure is called on the wire.
hdfs::Status WireStatusOf(const absl::Status& status);
// And back: an error that names `peer`, with the kind that matches (kChecksum, kAccessToken, kAlreadyExists, ...). A text that begins with
// "BUSY: " is kBusy. OK for SUCCESS.
absl::Status StatusOfResponse(const hdfs::BlockOpResponseProto& response, std::string_view peer);

// The pool as it stands in ExtendedBlockProto: 32 lower-case hexadecimal digits of its 16 bytes.
std::string PoolName(std::string_view pool_id);

hdfs::ExtendedBlockProto MakeBlock(std::string_view pool_id, BlockId id, GenerationStamp stamp, uint64_t length_bytes);
// With the token in `identifier` and the rest empty.
hdfs::BaseHeaderProto MakeHeader(hdfs::ExtendedBlockProto block, std::string_view token);
hdfs::DatanodeInfoProto MakeTarget(const v1::DatanodeInfo& node);
hdfs::ChecksumProto MakeChecksum(ChecksumType type, uint32_t bytes_per_checksum);
ChecksumType TypeOf(const hdfs::ChecksumProto& checksum);
HostPort AddressOf(const hdfs::DatanodeInfoProto& node);
// "address:port", as in firstBadLink.
std::string LinkName(const hdfs::DatanodeInfoProto& node);

}  // namespace cairn::transfer
