#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "cairn/file_reader.h"
#include "client/src/client_core.h"
#include "client/src/file_reader_core.h"

namespace cairn::client {

// FileReader over FileReaderCore. The sequential reader copies out of packets on the calling thread
// and crosses to the io executor once a packet.
class BlockingFileReader : public FileReader {
 public:
  static absl::StatusOr<std::unique_ptr<FileReader>> Open(std::shared_ptr<ClientCore> core, const std::string& path);
  BlockingFileReader(std::shared_ptr<ClientCore> core, const std::string& path);
  ~BlockingFileReader() override;

  absl::StatusOr<size_t> Read(std::span<char> into) override;
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> into) override;
  absl::Status Seek(uint64_t offset) override;
  uint64_t position() const override { return position_; }
  uint64_t length() const override { return core_.length(); }
  void Close() override;

 private:
  const std::shared_ptr<ClientCore> client_;
  FileReaderCore core_;
  Slice current_;  // Only the reading thread, as position_.
  uint64_t position_ = 0;
  std::atomic<bool> closed_{false};
};

}  // namespace cairn::client
