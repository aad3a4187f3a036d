#include "client/src/packet_cutter.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::client {
namespace {

using ::testing::ElementsAre;

// offset, data bytes, sync, last.
struct Cut {
  int64_t offset;
  size_t size;
  bool sync = false;
  bool last = false;
  bool operator==(const Cut&) const = default;
};
void PrintTo(const Cut& cut, std::ostream* out) {
  *out << cut.offset << "+" << cut.size << (cut.sync ? " sync" : "") << (cut.last ? " last" : "");
}

class PacketCutterTest : public ::testing::Test {
 protected:
  static PacketCutter::Options Small() {
    PacketCutter::Options options;
    options.block_size = 4096;
    options.packet_bytes = 1024;
    return options;
  }
  void Take(std::optional<OutgoingPacket> packet) {
    if (!packet) return;
    EXPECT_EQ(packet->header().seqno, next_seqno_++);
    EXPECT_TRUE(VerifyChunkChecksums(ChecksumType::kCrc32c, 512, packet->packet.data(), packet->packet.checksums()).ok());
    data_.append(packet->packet.data().data(), packet->packet.data().size());
    cuts_.push_back(
        {packet->header().offset_in_block, packet->packet.data().size(), packet->header().sync_block, packet->header().last_in_block});
  }
  void Append(size_t size) {
    std::string bytes(size, ' ');
    for (char& c : bytes) c = static_cast<char>(expected_.size() % 251), expected_ += c;
    std::span<const char> rest(bytes);
    while (std::optional<OutgoingPacket> packet = cutter_.Next(&rest)) Take(std::move(packet));
    EXPECT_TRUE(rest.empty());
  }
  void Close() {
    Take(cutter_.Cut(false));
    std::span<const char> nothing;
    Take(cutter_.Next(&nothing));
    Take(cutter_.EndFile());
    EXPECT_EQ(data_, expected_);
    EXPECT_EQ(cutter_.position(), expected_.size());
  }

  PacketCutter cutter_{Small()};
  std::vector<Cut> cuts_;
  std::string data_;
  std::string expected_;
  int64_t next_seqno_ = 0;
};

TEST_F(PacketCutterTest, EmptyFileHasNoPacket) {
  Close();
  EXPECT_THAT(cuts_, ElementsAre());
  EXPECT_EQ(cutter_.last_seqno(), -1);
}

TEST_F(PacketCutterTest, OneByteIsOnePacketAndTheLast) {
  Append(1);
  EXPECT_THAT(cuts_, ElementsAre());
  Close();
  EXPECT_THAT(cuts_, ElementsAre(Cut{0, 1}, Cut{1, 0, true, true}));
}

TEST_F(PacketCutterTest, FullPacketIsCutAtOnce) {
  Append(1023);
  EXPECT_THAT(cuts_, ElementsAre());
  Append(1);
  EXPECT_THAT(cuts_, ElementsAre(Cut{0, 1024}));
  Append(1025);
  EXPECT_THAT(cuts_, ElementsAre(Cut{0, 1024}, Cut{1024, 1024}));
  Close();
  EXPECT_THAT(cuts_, ElementsAre(Cut{0, 1024}, Cut{1024, 1024}, Cut{2048, 1}, Cut{2049, 0, true, true}));
}

TEST_F(PacketCutterTest, ExactlyOneBlockEndsWithItsLastPacketOnly) {
  Append(4096);
  EXPECT_THAT(cuts_, ElementsAre(Cut{0, 1024}, Cut{1024, 1024}, Cut{2048, 1024}, Cut{3072, 1024}, Cut{4096, 0, true, true}));
  EXPECT_FALSE(cutter_.block_open());
  Close();
  EXPECT_EQ(cuts_.size(), 5u);
}

TEST_F(PacketCutterTest, ByteAfterABlockBeginsTheNextOne) {
  Append(4097);
  Close();
  ASSERT_EQ(cuts_.size(), 7u);
  EXPECT_EQ(cuts_[4], (Cut{4096, 0, true, true}));
  EXPECT_EQ(cuts_[5], (Cut{0, 1}));
  EXPECT_EQ(cuts_[6], (Cut{1, 0, true, true}));
}

TEST_F(PacketCutterTest, FlushInsideAChunkContinuesAtThatByteToTheChunksEnd) {
  Append(700);
  Take(cutter_.Cut(false));
  Append(2000);  // 700 -> 1024 alone, then whole packets.
  Close();
  EXPECT_THAT(cuts_, ElementsAre(Cut{0, 700}, Cut{700, 324}, Cut{1024, 1024}, Cut{2048, 652}, Cut{2700, 0, true, true}));
}

TEST_F(PacketCutterTest, FlushOfNothingSendsNothingButSyncDoes) {
  Take(cutter_.Cut(false));
  Take(cutter_.Cut(true));  // No block is open: nothing to sync.
  EXPECT_THAT(cuts_, ElementsAre());
  Append(512);
  Take(cutter_.Cut(false));
  Take(cutter_.Cut(false));
  EXPECT_THAT(cuts_, ElementsAre(Cut{0, 512}));
  Take(cutter_.Cut(true));
  EXPECT_THAT(cuts_, ElementsAre(Cut{0, 512}, Cut{512, 0, true}));
}

TEST_F(PacketCutterTest, OnlyTheFilesEndFollowsTheClosePolicy) {
  PacketCutter::Options options = Small();
  options.sync_file_end = false;
  cutter_ = PacketCutter(options);
  Append(4097);
  Close();
  EXPECT_TRUE(cuts_[4].sync);
  EXPECT_FALSE(cuts_[6].sync);
}

}  // namespace
}  // namespace cairn::client
