#pragma once

#include <memory>
#include <string>

#include "datanode/storage/replica_file.h"
#include "datanode/storage/volume.h"

namespace cairn::datanode {

// A replica as it was when it was opened. Its own descriptor, so a deletion meanwhile takes only the name away.
class FileReplicaReader : public ReplicaReader {
 public:
  // `description` as taken under the shard's lock together with `received_checksum`, the checksum of the partial chunk at
  // description.length (for a FINALIZED replica the file's slot has it). Blocks. kChecksum if the last chunk does not verify.
  static absl::StatusOr<std::shared_ptr<ReplicaReader>> Open(Volume* volume, const BootId& boot_id, ReplicaDescription description,
                                                             uint32_t received_checksum);

  Executor* disk() const override { return volume_->disk(); }
  const ReplicaDescription& description() const override { return description_; }
  uint64_t length() const override { return description_.visible_length; }
  uint32_t bytes_per_checksum() const override { return file_->header().bytes_per_checksum; }
  ChecksumType checksum_type() const override { return file_->header().checksum_type; }
  File* file() const override { return file_->file(); }
  uint64_t data_offset() const override { return file_->data_offset(); }
  absl::StatusOr<std::string> ReadChecksums(uint64_t first_chunk, uint64_t count) override;
  absl::StatusOr<size_t> ReadData(uint64_t offset, std::span<char> into) override;

 private:
  FileReplicaReader(Volume* volume, std::unique_ptr<ReplicaFile> file, ReplicaDescription description)
      : volume_(volume), file_(std::move(file)), description_(std::move(description)) {}
  absl::Status TakePartialChecksum(uint32_t received_checksum);

  Volume* const volume_;
  const std::unique_ptr<ReplicaFile> file_;
  const ReplicaDescription description_;
  uint32_t partial_checksum_ = 0;  // Of the last partial chunk of the visible length; constant after Open.
};

}  // namespace cairn::datanode
