#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cairn/file_writer.h"
#include "client/src/client_core.h"
#include "client/src/file_writer_core.h"

namespace cairn::client {

// FileWriter over FileWriterCore: bytes are cut into packets and checksummed on the calling thread,
// and handed to the io executor a packet at a time.
class BlockingFileWriter : public FileWriter {
 public:
  static absl::StatusOr<std::unique_ptr<FileWriter>> Create(std::shared_ptr<ClientCore> core, const std::string& path,
                                                            const CreateOptions& options);
  static absl::StatusOr<std::unique_ptr<FileWriter>> OpenForAppend(std::shared_ptr<ClientCore> core, const std::string& path,
                                                                   const AppendOptions& options);
  template <class Options>
  BlockingFileWriter(std::shared_ptr<ClientCore> core, const std::string& path, const Options& options)
      : client_(std::move(core)), path_(path), core_(client_.get(), path, options) {}
  ~BlockingFileWriter() override;

  using FileWriter::Append;
  absl::Status Append(std::span<const char> data) override;
  absl::Status Flush() override;
  absl::Status Sync() override;
  absl::Status Close() override;
  void Abort() override;
  uint64_t position() const override { return core_.cutter().position(); }
  const std::string& path() const override { return path_; }

 private:
  absl::Status Open();
  absl::Status Submit(std::optional<OutgoingPacket> packet);
  absl::Status Publish(bool synced);
  // What a call that did not end well returns: the writer's own error, if it has one.
  absl::Status Outcome(absl::Status status) const;

  const std::shared_ptr<ClientCore> client_;
  const std::string path_;
  mutable FileWriterCore core_;
  bool closed_ = false;  // Only the writing thread.
};

}  // namespace cairn::client
