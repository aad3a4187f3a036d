#include "common/transfer/wire_reader.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.h"
#include "common/transfer/ops.h"
#include "tests/common/scripted_connection.h"

namespace cairn::transfer {
namespace {

using cairn::testing::RunToEnd;
using cairn::testing::ScriptedConnection;

constexpr SteadyTime kNever = SteadyTime::Infinite();

std::string Pattern(size_t size, size_t seed) {
  std::string data(size, '\0');
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<char>((i * 131 + seed * 7 + i / 251) & 0xff);
  return data;
}

std::string Frame(size_t size, int64_t offset, int64_t seqno) {
  PacketHeader header;
  header.offset_in_block = offset;
  header.seqno = seqno;
  PacketBuilder builder(ChecksumType::kCrc32c, 512, size == 0 ? 1 : size);
  builder.Append(Pattern(size, static_cast<size_t>(seqno)));
  const Packet packet = builder.Finish(header);
  return std::string(packet.frame().begin(), packet.frame().end());
}

// `bytes` in portions of `size`.
std::deque<std::string> Cut(const std::string& bytes, size_t size) {
  std::deque<std::string> portions;
  for (size_t at = 0; at < bytes.size(); at += size) portions.push_back(bytes.substr(at, size));
  return portions;
}

Awaitable<absl::StatusOr<std::vector<Packet>>> ReadPackets(WireReader* reader, size_t count) {
  std::vector<Packet> packets;
  for (size_t i = 0; i < count; ++i) {
    absl::StatusOr<Packet> packet = co_await reader->ReadPacket(ChecksumType::kCrc32c, 512, kNever);
    if (!packet.ok()) co_return packet.status();
    packets.push_back(std::move(*packet));
  }
  co_return packets;
}

void ExpectPackets(const std::vector<size_t>& sizes, size_t portion) {
  std::string bytes;
  for (size_t i = 0; i < sizes.size(); ++i) bytes += Frame(sizes[i], 0, static_cast<int64_t>(i));
  ScriptedConnection connection(Cut(bytes, portion));
  WireReader reader(&connection);
  const absl::StatusOr<std::vector<Packet>> packets = RunToEnd(ReadPackets(&reader, sizes.size()));
  ASSERT_TRUE(packets.ok()) << packets.status();
  // All of them are still whole after the last was read, though they share buffers.
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::span<const char> data = (*packets)[i].data();
    EXPECT_EQ((*packets)[i].header().seqno, static_cast<int64_t>(i));
    EXPECT_EQ(std::string(data.begin(), data.end()), Pattern(sizes[i], i)) << "packet " << i << " of " << sizes[i];
    EXPECT_TRUE(VerifyChunkChecksums(ChecksumType::kCrc32c, 512, data, (*packets)[i].checksums()).ok());
  }
  EXPECT_EQ(reader.buffered(), 0u);
}

TEST(WireReader, ReadsPacketsHoweverTheyArrive) {
  for (const size_t portion : {1u, 5u, 7u, 31u, 4096u, 1u << 20}) ExpectPackets({0, 1, 511, 512, 513, 70'000, 0, 3, 65'536, 9}, portion);
}

TEST(WireReader, ReadsPacketsLargerThanItsBuffers) {
  for (const size_t portion : {1460u, 65'536u, 4u << 20}) ExpectPackets({1u << 20, 1u << 20, 600'000, 3u << 20, 100, 1u << 20}, portion);
}

TEST(WireReader, TakesManySmallPacketsAtOnce) {
  std::string bytes;
  for (int64_t i = 0; i < 64; ++i) bytes += Frame(4096, 0, i);
  ScriptedConnection connection({bytes});
  WireReader reader(&connection);
  ASSERT_TRUE(RunToEnd(ReadPackets(&reader, 64)).ok());
  EXPECT_LE(connection.reads, 6u);
}

TEST(WireReader, AsksForALargePacketOnceItKnowsTheirSize) {
  std::string bytes;
  for (int64_t i = 0; i < 10; ++i) bytes += Frame(1 << 20, 0, i);
  ScriptedConnection connection({bytes});
  WireReader reader(&connection);
  ASSERT_TRUE(RunToEnd(ReadPackets(&reader, 10)).ok());
  EXPECT_LE(connection.reads, 12u);  // The first takes a few.
}

TEST(WireReader, MessagesAndPacketsFollowOneAnother) {
  const std::string bytes = EncodeSuccess() + Frame(600, 0, 0) + Frame(600, 0, 1);
  ScriptedConnection connection(Cut(bytes, 100));
  WireReader reader(&connection);
  hdfs::BlockOpResponseProto response;
  ASSERT_TRUE(RunToEnd(ReadMessage(&reader, &response, kMaxAnswerBytes, kNever)).ok());
  EXPECT_EQ(response.status(), hdfs::SUCCESS);
  EXPECT_TRUE(RunToEnd(ReadPackets(&reader, 2)).ok());
  const auto end = RunToEnd(reader.ReadDelimited(100, kNever));
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
}

TEST(WireReader, AnEndInsideAMessageIsABrokenStream) {
  const std::string frame = Frame(600, 0, 0);
  for (const size_t cut : {size_t{1}, size_t{5}, size_t{6}, size_t{30}, size_t{31}, frame.size() - 1}) {
    ScriptedConnection connection({frame.substr(0, cut)});
    WireReader reader(&connection);
    EXPECT_TRUE(absl::IsUnavailable(RunToEnd(ReadPackets(&reader, 1)).status())) << cut;
  }
  ScriptedConnection empty({});
  WireReader reader(&empty);
  EXPECT_TRUE(absl::IsUnavailable(RunToEnd(ReadPackets(&reader, 1)).status()));
}

TEST(WireReader, RefusesAnOversizeOrEndlessLength) {
  ScriptedConnection oversize({std::string("\xff\x7f", 2)});
  WireReader first(&oversize);
  EXPECT_EQ(KindOf(RunToEnd(first.ReadDelimited(100, kNever)).status()), ErrorKind::kInvalidArgument);
  ScriptedConnection endless({std::string(12, '\xff')});
  WireReader second(&endless);
  EXPECT_EQ(KindOf(RunToEnd(second.ReadDelimited(100, kNever)).status()), ErrorKind::kInvalidArgument);
}

TEST(Operations, TheStartOfAConnectionIsChecked) {
  const auto opcode_of = [](std::string bytes) {
    ScriptedConnection connection({std::move(bytes)});
    WireReader reader(&connection);
    return RunToEnd(ReadOpcode(&reader, kNever));
  };
  const auto read = opcode_of(std::string("\x00\x1c\x51", 3));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, Opcode::kReadBlock);
  EXPECT_EQ(KindOf(opcode_of("GET / HTTP/1.1\r\n").status()), ErrorKind::kInvalidArgument);
  EXPECT_EQ(KindOf(opcode_of(std::string("\x00\x1b\x51", 3)).status()), ErrorKind::kInvalidArgument);
  EXPECT_EQ(KindOf(opcode_of(std::string("\x00\x1c\x01", 3)).status()), ErrorKind::kUnsupported);
  EXPECT_TRUE(absl::IsUnavailable(opcode_of(std::string("\x00", 1)).status()));
  const auto end = opcode_of("");
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
}

TEST(Operations, AMessageWithoutARequiredFieldIsRefusedByName) {
  ScriptedConnection connection({std::string("\x02\x12\x00", 3)});
  WireReader reader(&connection);
  hdfs::BlockOpResponseProto response;
  const absl::Status status = RunToEnd(ReadMessage(&reader, &response, kMaxAnswerBytes, kNever));
  EXPECT_EQ(KindOf(status), ErrorKind::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("BlockOpResponseProto"), std::string::npos) << status;
}

}  // namespace
}  // namespace cairn::transfer
