#include "client/src/packet_cutter.h"

#include <algorithm>

namespace cairn::client {

size_t PacketCutter::RoomOfNextPacket() const {
  const uint64_t chunk = options_.bytes_per_checksum;
  const uint64_t inside_chunk = block_offset_ % chunk;
  uint64_t room = std::max<uint64_t>(options_.packet_bytes / chunk, 1) * chunk;
  if (inside_chunk != 0) room = chunk - inside_chunk;
  return static_cast<size_t>(std::min(room, options_.block_size - block_offset_));
}

void PacketCutter::ContinueAt(uint64_t position, uint64_t block_offset) {
  position_ = position;
  block_offset_ = block_offset;
  block_open_ = block_offset > 0;
}

std::optional<OutgoingPacket> PacketCutter::Next(std::span<const char>* data) {
  if (block_open_ && !builder_ && block_offset_ == options_.block_size) return LastPacket(/*sync=*/true);
  if (data->empty()) return std::nullopt;
  if (!block_open_) {
    block_open_ = true;
    block_offset_ = 0;
  }
  if (!builder_) {
    packet_offset_ = block_offset_;
    builder_.emplace(options_.checksum, options_.bytes_per_checksum, RoomOfNextPacket());
  }
  const size_t take = std::min(data->size(), builder_->room());
  builder_->Append(data->first(take));
  *data = data->subspan(take);
  block_offset_ += take;
  position_ += take;
  if (builder_->room() != 0) return std::nullopt;
  return Finish(/*sync=*/false);
}

std::optional<OutgoingPacket> PacketCutter::Cut(bool sync) {
  if (builder_) return Finish(sync);
  if (!sync || !block_open_) return std::nullopt;
  transfer::PacketHeader header;
  header.offset_in_block = static_cast<int64_t>(block_offset_);
  header.seqno = next_seqno_++;
  header.sync_block = true;
  return OutgoingPacket(transfer::EmptyPacket(header));
}

std::optional<OutgoingPacket> PacketCutter::EndFile() {
  if (!block_open_) return std::nullopt;
  return LastPacket(options_.sync_file_end);
}

OutgoingPacket PacketCutter::Finish(bool sync) {
  transfer::PacketHeader header;
  header.offset_in_block = static_cast<int64_t>(packet_offset_);
  header.seqno = next_seqno_++;
  header.sync_block = sync;
  header.data_length = static_cast<uint32_t>(builder_->size());
  OutgoingPacket packet(builder_->Finish(header));
  builder_.reset();
  return packet;
}

OutgoingPacket PacketCutter::LastPacket(bool sync) {
  transfer::PacketHeader header;
  header.offset_in_block = static_cast<int64_t>(block_offset_);
  header.seqno = next_seqno_++;
  header.last_in_block = true;
  header.sync_block = sync;
  block_open_ = false;
  return OutgoingPacket(transfer::EmptyPacket(header));
}

}  // namespace cairn::client
