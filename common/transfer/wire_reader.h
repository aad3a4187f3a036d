#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/buffer.h"
#include "common/env/network.h"
#include "common/transfer/packet.h"

namespace cairn::transfer {

// Buffered reading of one connection: delimited messages and packets. Packets are not copied: each is a piece of the buffer that was read
// into. Small packets come many to a system call; a large one gets a buffer of its own, and as senders keep to one size, the reader asks
// for as much as the last packet had, so that nothing of the next one needs to be moved.
//
// Belongs to the connection's executor, one call at a time. Errors: UNAVAILABLE for a broken stream or one that ends inside a message,
// DEADLINE_EXCEEDED, kInvalidArgument for bytes that are not the protocol; after any of them (save a deadline with nothing read of the
// message) the stream has no more meaning.
class WireReader {
 public:
  // Both outlive this.
  explicit WireReader(Connection* connection, BufferPool* pool = &BufferPool::Shared());

  // `count` raw bytes. Nothing at a clean end of the stream before the first byte.
  Awaitable<absl::StatusOr<std::optional<std::string>>> ReadExactly(size_t count, SteadyTime deadline);
  // A varint length and that many bytes; at most `max_bytes`. Nothing at a clean end of the stream before the first byte.
  Awaitable<absl::StatusOr<std::optional<std::string>>> ReadDelimited(size_t max_bytes, SteadyTime deadline);
  // The next packet. Type kNull: no checksums expected. A clean end is UNAVAILABLE too: a block ends with a packet that says so.
  Awaitable<absl::StatusOr<Packet>> ReadPacket(ChecksumType type, uint32_t bytes_per_checksum, SteadyTime deadline);

  // Bytes that were read from the connection and not yet asked for.
  size_t buffered() const { return end_ - begin_; }

 private:
  // Has at least `want` bytes in the buffer when it returns true; false at a clean end with nothing buffered.
  Awaitable<absl::StatusOr<bool>> Fill(size_t want, SteadyTime deadline);
  void MakeRoom(size_t want);

  Connection* const connection_;
  BufferPool* const pool_;
  Buffer chunk_;
  size_t begin_ = 0;  // Of what is buffered, in chunk_.
  size_t end_ = 0;
  bool shared_ = false;        // Packets point into chunk_: it may be filled further, but not over again.
  size_t expected_frame_ = 0;  // Size of the last packet with data; 0 before.
};

}  // namespace cairn::transfer
