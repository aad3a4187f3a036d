#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "cairn/types.pb.h"
#include "client/src/scope.h"
#include "common/crc32c.h"
#include "common/env/network.h"
#include "common/transfer/packet.h"
#include "common/transfer/wire_reader.h"

namespace cairn::client {

// Bytes of a file in the packet they came in; no copy. Empty: the end.
class Slice {
 public:
  Slice() = default;
  Slice(transfer::Packet packet, size_t begin, size_t size) : packet_(std::move(packet)), begin_(begin), size_(size) {}
  std::span<const char> data() const { return packet_.data().subspan(begin_, size_); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void RemovePrefix(size_t count) {
    begin_ += count;
    size_ -= count;
  }

 private:
  transfer::Packet packet_;
  size_t begin_ = 0;
  size_t size_ = 0;
};

// Reads [offset, offset + length) of one block from one DataNode (READ_BLOCK), and verifies every
// chunk it touches. Belongs to the scope's executor. Errors: kChecksum for bytes that do not
// verify, kAccessToken for a token to be renewed; anything else is this replica's or its node's
// trouble, and another may do.
class BlockReader {
 public:
  struct Options {
    Options() = default;
    std::string pool_id;
    std::string client_name;
    bool verify = true;
    absl::Duration connect_timeout = absl::Seconds(5);
    absl::Duration read_timeout = absl::Seconds(60);
  };

  BlockReader(Scope scope, Network* network, Options options);
  ~BlockReader();

  // `location`: index in block.locations().
  Awaitable<absl::Status> Open(v1::LocatedBlock block, int location, uint64_t offset, uint64_t length);
  // The next bytes, trimmed to the range; empty after the last.
  Awaitable<absl::StatusOr<Slice>> Next();
  void Close();

 private:
  Awaitable<absl::Status> Finish();

  Scope scope_;
  Network* network_;
  Options options_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<transfer::WireReader> reader_;
  std::unique_ptr<TaskGroup::StopHook> hook_;
  ChecksumType checksum_ = ChecksumType::kNull;
  uint32_t bytes_per_checksum_ = 512;
  uint64_t position_ = 0;  // Of the next byte to give.
  uint64_t end_ = 0;
  uint64_t stream_offset_ = 0;  // Where the next packet begins.
};

}  // namespace cairn::client
