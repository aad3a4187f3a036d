#include "common/transfer/packet.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "common/error.h"
#include "common/transfer/ops.h"

namespace cairn::transfer {
namespace {

std::string Hex(std::span<const char> bytes) { return absl::BytesToHexString(std::string(bytes.begin(), bytes.end())); }
std::string Hex(const std::string& bytes) { return absl::BytesToHexString(bytes); }
std::string Bytes(const std::string& hex) { return absl::HexStringToBytes(hex); }

PacketHeader Header(int64_t offset, int64_t seqno, bool last = false, bool sync = false) {
  PacketHeader header;
  header.offset_in_block = offset;
  header.seqno = seqno;
  header.last_in_block = last;
  header.sync_block = sync;
  return header;
}

TEST(Packet, HasTheGoldenBytesOfOneChunk) {
  PacketBuilder builder(ChecksumType::kCrc32c, 512, 1024);
  builder.Append(std::string("hello"));
  const Packet packet = builder.Finish(Header(0, 0));
  EXPECT_EQ(Hex(packet.frame()),
            "0000000d0019"
            "09000000000000000011000000000000000018002505000000"
            "9a71bb4c"
            "68656c6c6f");
  EXPECT_EQ(std::string(packet.data().begin(), packet.data().end()), "hello");
  EXPECT_EQ(Hex(packet.checksums()), "9a71bb4c");
  EXPECT_EQ(packet.header().data_length, 5u);
}

TEST(Packet, HasTheGoldenBytesOfTheTrailerAndTheHeartbeat) {
  EXPECT_EQ(Hex(EmptyPacket(Header(5, 1, true)).frame()),
            "000000040019090500000000000000110100000000000000"
            "18012500000000");
  EXPECT_EQ(Hex(EmptyPacket(Header(0, kHeartbeatSeqno)).frame()),
            "00000004001909000000000000000011ffffffffffffffff"
            "18002500000000");
}

TEST(Packet, CarriesSyncBlockOnlyWhenItIsSet) {
  const Packet packet = EmptyPacket(Header(512, 3, false, true));
  EXPECT_EQ(packet.frame().size(), 33u);
  EXPECT_EQ(Hex(packet.frame().last(2)), "2801");
}

TEST(Packet, ChecksumsCoverEachChunkAtItsEdges) {
  for (const size_t size : {1u, 511u, 512u, 513u, 1024u, 1025u}) {
    PacketBuilder builder(ChecksumType::kCrc32c, 512, 2048);
    const std::string data(size, 'x');
    builder.Append(data);
    const Packet packet = builder.Finish(Header(0, 0));
    EXPECT_EQ(packet.checksums().size(), 4 * ((size + 511) / 512)) << size;
    EXPECT_TRUE(VerifyChunkChecksums(ChecksumType::kCrc32c, 512, packet.data(), packet.checksums()).ok()) << size;
    EXPECT_EQ(packet.data().size(), size);
  }
}

TEST(Packet, BuilderIsReusedAfterFinishAndLeavesTheFirstPacketAlone) {
  PacketBuilder builder(ChecksumType::kCrc32c, 4, 8);
  builder.Append(std::string("abcdefgh"));
  EXPECT_EQ(builder.room(), 0u);
  const Packet first = builder.Finish(Header(0, 0));
  EXPECT_EQ(builder.room(), 8u);
  builder.Append(std::string("12345"));
  const Packet second = builder.Finish(Header(8, 1));
  EXPECT_EQ(std::string(first.data().begin(), first.data().end()), "abcdefgh");
  EXPECT_EQ(std::string(second.data().begin(), second.data().end()), "12345");
  EXPECT_EQ(second.checksums().size(), 8u);
}

TEST(Packet, OfNullTypeHasNoChecksums) {
  PacketBuilder builder(ChecksumType::kNull, 512, 100);
  builder.Append(std::string("data"));
  const Packet packet = builder.Finish(Header(0, 0));
  EXPECT_TRUE(packet.checksums().empty());
  EXPECT_EQ(packet.frame().size(), 31u + 4u);
}

absl::StatusOr<PacketHeader> Decode(const std::string& frame, ChecksumType type = ChecksumType::kCrc32c, uint32_t chunk = 512) {
  absl::StatusOr<FrameLayout> layout = DecodePacketPrefix(std::span<const char>(frame).first(kPacketPrefixBytes));
  if (!layout.ok()) return layout.status();
  const std::span<const char> message = std::span<const char>(frame).subspan(layout->header_at, layout->checksums_at - layout->header_at);
  return DecodePacketHeader(message, type, chunk, &*layout);
}

TEST(PacketDecoding, ReadsWhatItWrote) {
  PacketHeader header = Header(0x123456789a, -5, false, true);
  header.data_length = 513;
  char start[33];
  const size_t size = EncodePacketStart(header, 8, start);
  const absl::StatusOr<PacketHeader> decoded = Decode(std::string(start, size));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, header);
}

TEST(PacketDecoding, AcceptsFieldsInAnotherOrderAndUnknownOnes) {
  // seqno first, then the others, then field 100.
  const std::string message = Bytes(
      "110700000000000000"
      "090000000000000000"
      "1801"
      "2500000000"
      "a00601");
  std::string frame = Bytes("00000004") + std::string(1, '\0') + std::string(1, static_cast<char>(message.size())) + message;
  const absl::StatusOr<PacketHeader> decoded = Decode(frame);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->seqno, 7);
  EXPECT_TRUE(decoded->last_in_block);
}

TEST(PacketDecoding, RefusesLengthsThatNoPacketHas) {
  EXPECT_EQ(KindOf(Decode(Bytes("000000030019")).status()), ErrorKind::kInvalidArgument);  // PLEN below 4.
  EXPECT_EQ(KindOf(Decode(Bytes("ffffffff0019")).status()), ErrorKind::kInvalidArgument);  // Negative.
  EXPECT_EQ(KindOf(Decode(Bytes("010000010019")).status()), ErrorKind::kInvalidArgument);  // Over 16 MiB.
  EXPECT_EQ(KindOf(Decode(Bytes("010000000019")).status()), ErrorKind::kInvalidArgument);  // Over it with its header.
  EXPECT_EQ(KindOf(Decode(Bytes("000000040018")).status()), ErrorKind::kInvalidArgument);  // No room for the fields.
  EXPECT_EQ(KindOf(Decode(Bytes("000000040401")).status()), ErrorKind::kInvalidArgument);  // Header over 1,024.
}

TEST(PacketDecoding, RefusesContradictions) {
  const auto with = [](size_t payload, PacketHeader header, uint32_t data_length) {
    header.data_length = data_length;
    char start[33];
    const size_t size = EncodePacketStart(header, payload - 4 - data_length, start);
    return Decode(std::string(start, size)).status();
  };
  EXPECT_TRUE(with(4 + 4 + 10, Header(0, 1), 10).ok());
  EXPECT_EQ(KindOf(with(4 + 8 + 10, Header(0, 1), 10)), ErrorKind::kInvalidArgument);        // A checksum too many.
  EXPECT_EQ(KindOf(with(4 + 10, Header(0, 1), 10)), ErrorKind::kInvalidArgument);            // None.
  EXPECT_EQ(KindOf(with(4 + 4, Header(0, 1), 10)), ErrorKind::kInvalidArgument);             // More data than body.
  EXPECT_EQ(KindOf(with(4 + 4 + 10, Header(-1, 1), 10)), ErrorKind::kInvalidArgument);       // Negative offset.
  EXPECT_EQ(KindOf(with(4 + 4 + 10, Header(0, 1, true), 10)), ErrorKind::kInvalidArgument);  // Last with data.
}

TEST(Operations, ReadBlockHasTheGoldenBytes) {
  hdfs::OpReadBlockProto op;
  hdfs::ExtendedBlockProto block;
  block.set_poolid("BP-1");
  block.set_blockid(1073741825);
  block.set_generationstamp(1001);
  block.set_numbytes(5);
  *op.mutable_header()->mutable_baseheader() = MakeHeader(block, "");
  op.mutable_header()->set_clientname("cl");
  op.set_offset(0);
  op.set_len(5);
  EXPECT_EQ(Hex(EncodeOperation(Opcode::kReadBlock, op)),
            "001c51290a230a1d0a110a0442502d31108180808004"
            "18e907200512080a0012001a0022001202636c10001805");
}

TEST(Operations, AnswersHaveTheGoldenBytes) {
  EXPECT_EQ(Hex(EncodeSuccess()), "0408001200");
  hdfs::BlockOpResponseProto read;
  read.set_status(hdfs::SUCCESS);
  *read.mutable_readopchecksuminfo()->mutable_checksum() = MakeChecksum(ChecksumType::kCrc32c, 512);
  read.mutable_readopchecksuminfo()->set_chunkoffset(0);
  EXPECT_EQ(Hex(EncodeResponse(read)),
            "0d080022090a05080210800410"
            "00");
  hdfs::BlockOpResponseProto bad_link;
  bad_link.set_status(hdfs::ERROR);
  bad_link.set_firstbadlink("10.0.0.7:9866");
  bad_link.set_message("x");
  EXPECT_EQ(Hex(EncodeResponse(bad_link)),
            "14"
            "0801120d" +
                Hex(std::string("10.0.0.7:9866")) + "2a0178");
}

TEST(Operations, EveryFailureSaysSomething) {
  hdfs::BlockOpResponseProto response;
  const std::string wire = EncodeFailure(hdfs::ERROR_ACCESS_TOKEN, "", "");
  ASSERT_TRUE(response.ParseFromString(wire.substr(1)));
  EXPECT_EQ(response.message(), "ERROR_ACCESS_TOKEN");
  EXPECT_TRUE(response.has_firstbadlink());
  EXPECT_EQ(KindOf(StatusOfResponse(response, "dn1")), ErrorKind::kAccessToken);
}

TEST(Operations, BusyIsAKindOfItsOwn) {
  hdfs::BlockOpResponseProto response;
  response.set_status(hdfs::ERROR);
  response.set_message("BUSY: 4096 streams");
  EXPECT_EQ(KindOf(StatusOfResponse(response, "dn1")), ErrorKind::kBusy);
}

TEST(Acknowledgement, HasTheGoldenBytes) {
  PipelineAck ack;
  ack.seqno = 0;
  ack.replies = {hdfs::SUCCESS, hdfs::SUCCESS, hdfs::SUCCESS};
  EXPECT_EQ(Hex(EncodeAck(ack)),
            "0d0800100010001000"
            "2203000000");
  ack.replies = {hdfs::SUCCESS};
  EXPECT_EQ(Hex(EncodeAck(ack)),
            "070800100022"
            "0100");
  ack.seqno = kUnknownSeqno;
  ack.replies = {hdfs::OOB_RESTART};
  EXPECT_EQ(Hex(EncodeAck(ack)),
            "07080310082201"
            "08");
}

TEST(Acknowledgement, FlagsOverruleReplies) {
  const absl::StatusOr<PipelineAck> ack =
      DecodeAck(Bytes("08001000100022"
                      "02"
                      "0001"));
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->replies, (std::vector<hdfs::Status>{hdfs::SUCCESS, hdfs::ERROR}));
  EXPECT_EQ(ack->bad_node(), 1u);
}

TEST(Acknowledgement, FlagsMayCarryStatistics) {
  // SUCCESS, ECN SUPPORTED, SLOW NORMAL = 160.
  const absl::StatusOr<PipelineAck> ack =
      DecodeAck(Bytes("0800100022"
                      "02a001"));
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_TRUE(ack->all_success());
}

TEST(Acknowledgement, SaysWhichNodesAreSlowAndWhatTheSenderWaitedForThoseBehindIt) {
  PipelineAck ack;
  ack.seqno = 3;
  ack.replies = {hdfs::SUCCESS, hdfs::SUCCESS, hdfs::ERROR};
  ack.slow_nodes = 2;
  ack.downstream_time = absl::Nanoseconds(300);
  const std::string wire = EncodeAck(ack);
  // SUCCESS, SLOW = 256.
  EXPECT_EQ(Hex(wire),
            "11"
            "0806100010001001"
            "18ac02"
            "220400800201");
  const absl::StatusOr<PipelineAck> decoded = DecodeAck(std::string_view(wire).substr(1));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, ack);
  EXPECT_EQ(decoded->downstream_time, absl::Nanoseconds(300));
  ack.slow_nodes = 0;
  EXPECT_NE(*decoded, ack);
  // More than any clock says.
  const absl::StatusOr<PipelineAck> absurd = DecodeAck(Bytes("0800100018ffffffffffffffffff01"));
  ASSERT_TRUE(absurd.ok()) << absurd.status();
  EXPECT_GT(absurd->downstream_time, absl::Hours(24 * 365 * 200));
}

TEST(Acknowledgement, AsManySlowNodesAsRepliesFit) {
  PipelineAck ack;
  ack.replies.assign(kMaxPipelineNodes, hdfs::SUCCESS);
  ack.slow_nodes = ~uint64_t{0};
  const std::string wire = EncodeAck(ack);
  const absl::StatusOr<PipelineAck> decoded = DecodeAck(std::string_view(wire).substr(2));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, ack);
}

TEST(Acknowledgement, WithoutFlagsIsAccepted) {
  const absl::StatusOr<PipelineAck> ack = DecodeAck(Bytes("08011000"));
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->seqno, kHeartbeatSeqno);
}

TEST(Acknowledgement, RefusesNonsense) {
  EXPECT_EQ(KindOf(DecodeAck(Bytes("0800")).status()), ErrorKind::kInvalidArgument);              // No reply.
  EXPECT_EQ(KindOf(DecodeAck(Bytes("0800100022020000")).status()), ErrorKind::kInvalidArgument);  // Two flags, one reply.
  EXPECT_EQ(KindOf(DecodeAck("\xff\xff\xff").status()), ErrorKind::kInvalidArgument);
  std::string many = Bytes("0800");
  for (size_t i = 0; i < kMaxPipelineNodes + 1; ++i) many += Bytes("1000");
  EXPECT_EQ(KindOf(DecodeAck(many).status()), ErrorKind::kInvalidArgument);
}

TEST(Operations, PoolNameIsTheHexOfThePool) { EXPECT_EQ(PoolName(Bytes("00ff10")), "00ff10"); }

}  // namespace
}  // namespace cairn::transfer
