#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/crc32c.h"
#include "common/transfer/packet.h"

namespace cairn::client {

// A packet on its way, with what its writer has to remember of it until it is acknowledged.
struct OutgoingPacket {
  OutgoingPacket() = default;
  explicit OutgoingPacket(transfer::Packet p) : packet(std::move(p)) {}
  const transfer::PacketHeader& header() const { return packet.header(); }
  uint64_t end() const { return static_cast<uint64_t>(header().offset_in_block) + header().data_length; }
  transfer::Packet packet;
};

// Cuts a stream of bytes into the packets of consecutive blocks. Sequence numbers run over the
// whole file, from 0.
//
// A packet holds whole chunks, but for the last of a block and one that Cut() ended early. After
// that the next packet starts at that very byte, and goes only to the end of its chunk, with one
// checksum over just its own bytes: DataNodes continue the chunk's stored checksum
// (docs/formats.md, "Receiver"), and no byte is sent twice. From there on packets are aligned
// again. A full block is ended at once with its empty last packet.
//
// Does no I/O. One owner, on one thread at a time.
class PacketCutter {
 public:
  struct Options {
    uint64_t block_size = 128 << 20;
    size_t packet_bytes = 512 << 10;  // Data of a packet; rounded down to whole chunks, at least one.
    uint32_t bytes_per_checksum = 512;
    ChecksumType checksum = ChecksumType::kCrc32c;
    bool sync_file_end = true;  // The file's last block is on disk before its last packet is acknowledged.
  };

  explicit PacketCutter(Options options) : options_(options) {}

  // Before the first byte: the file has `position` bytes, the last `block_offset` of them in a block that is written on (0: the next byte
  // begins a block).
  void ContinueAt(uint64_t position, uint64_t block_offset);

  // Consumes bytes from the front of *data up to the end of a packet. The packet, if one is
  // complete; nothing once *data is used up. Call it until it gives nothing: a full block's last
  // packet comes from the call after the one that filled it.
  std::optional<OutgoingPacket> Next(std::span<const char>* data);
  // Ends the packet that was begun. With `sync`, or nothing begun and `sync`, a packet that asks
  // for the disk. Nothing if there is nothing to send.
  std::optional<OutgoingPacket> Cut(bool sync);
  // The last packet of an open block (after Cut). Nothing between blocks.
  std::optional<OutgoingPacket> EndFile();

  uint64_t position() const { return position_; }  // Of the next byte in the file.
  uint64_t block_offset() const { return block_offset_; }
  bool block_open() const { return block_open_; }         // Some byte of it was taken and its last packet is not cut.
  int64_t last_seqno() const { return next_seqno_ - 1; }  // -1: none yet.

 private:
  OutgoingPacket Finish(bool sync);
  OutgoingPacket LastPacket(bool sync);
  size_t RoomOfNextPacket() const;

  Options options_;
  std::optional<transfer::PacketBuilder> builder_;
  uint64_t position_ = 0;
  uint64_t block_offset_ = 0;   // Of the next byte, in its block.
  uint64_t packet_offset_ = 0;  // Of the packet begun.
  int64_t next_seqno_ = 0;
  bool block_open_ = false;
};

}  // namespace cairn::client
