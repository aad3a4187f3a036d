// A connection to the transfer port, as its server reads it: operation, header message, packets. What is taken for a packet has parts
// that agree, however the bytes arrive; nothing else does more than fail.

#include <deque>
#include <string>

#include "common/check.h"
#include "common/transfer/ops.h"
#include "common/transfer/wire_reader.h"
#include "tests/common/scripted_connection.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace cairn;            // NOLINT
using namespace cairn::transfer;  // NOLINT

constexpr SteadyTime kNever = SteadyTime::Infinite();
constexpr uint32_t kChunk = 512;

void CheckPacket(const Packet& packet) {
  const PacketHeader& header = packet.header();
  CAIRN_CHECK(packet.data().size() == header.data_length, "another length of data than the header says");
  CAIRN_CHECK(packet.checksums().size() == ChecksumBytes(ChecksumType::kCrc32c, kChunk, header.data_length), "a wrong number of checksums");
  CAIRN_CHECK(packet.frame().size() >= kPacketPrefixBytes + packet.data().size() + packet.checksums().size(), "parts outside of the frame");
  CAIRN_CHECK(packet.frame().size() <= kMaxPacketBytes, "a packet over the limit");
}

Awaitable<absl::StatusOr<size_t>> ReadAll(WireReader* reader) {
  const absl::StatusOr<std::optional<Opcode>> opcode = co_await ReadOpcode(reader, kNever);
  if (!opcode.ok()) co_return opcode.status();
  if (!opcode->has_value()) co_return size_t{0};
  absl::Status read;
  if (**opcode == Opcode::kReadBlock) {
    hdfs::OpReadBlockProto op;
    read = co_await ReadMessage(reader, &op, kMaxOperationBytes, kNever);
  } else {
    hdfs::OpWriteBlockProto op;
    read = co_await ReadMessage(reader, &op, kMaxOperationBytes, kNever);
  }
  if (!read.ok()) co_return read;
  for (size_t packets = 0;; ++packets) {
    const absl::StatusOr<Packet> packet = co_await reader->ReadPacket(ChecksumType::kCrc32c, kChunk, kNever);
    if (!packet.ok()) co_return packets;
    CheckPacket(*packet);
  }
}

std::string Frame(const std::string& data, bool last) {
  PacketHeader header;
  header.last_in_block = last;
  PacketBuilder builder(ChecksumType::kCrc32c, kChunk, 1 << 20);
  builder.Append(data);
  const Packet packet = builder.Finish(header);
  return std::string(packet.frame().begin(), packet.frame().end());
}

}  // namespace

// The first byte says how large the portions are in which the rest arrives.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t portion = data[0] == 0 ? size : data[0];
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  std::deque<std::string> portions;
  for (size_t at = 0; at < bytes.size(); at += portion) portions.push_back(bytes.substr(at, portion));
  cairn::testing::ScriptedConnection connection(std::move(portions));
  WireReader reader(&connection);
  const absl::StatusOr<size_t> packets = cairn::testing::RunToEnd(ReadAll(&reader));
  CAIRN_CHECK(!packets.ok() || *packets <= bytes.size() / kPacketPrefixBytes + 1, "more packets than bytes");
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  hdfs::OpWriteBlockProto write;
  *write.mutable_header()->mutable_baseheader() = MakeHeader(MakeBlock("0123456789abcdef", BlockId(1 << 30), GenerationStamp(1001), 0), "");
  write.mutable_header()->set_clientname("seed");
  write.set_stage(hdfs::OpWriteBlockProto::PIPELINE_SETUP_CREATE);
  write.set_pipelinesize(1);
  write.set_minbytesrcvd(0);
  write.set_maxbytesrcvd(0);
  write.set_latestgenerationstamp(0);
  *write.mutable_requestedchecksum() = MakeChecksum(ChecksumType::kCrc32c, kChunk);
  hdfs::OpReadBlockProto read;
  *read.mutable_header() = write.header();
  read.set_offset(0);
  read.set_len(1);
  const std::string packets = Frame(std::string(700, 'a'), false) + Frame("b", false) + Frame("", true);
  return {std::string(1, '\0') + EncodeOperation(Opcode::kWriteBlock, write) + packets,
          std::string(1, '\x07') + EncodeOperation(Opcode::kWriteBlock, write) + packets,
          std::string(1, '\x20') + EncodeOperation(Opcode::kReadBlock, read)};
}
