#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/env/file_system.h"
#include "datanode/storage/replica_format.h"

namespace cairn::datanode {

// One replica's file, open. Knows where things are and which slot is next; what to write when is its caller's business
// (replica_writer.h), what to believe after a restart is replica_load.h's.
//
// A write of a slot takes the older of its pair, and one sequence runs over all four, so the newest state of each pair survives a
// cut in the middle of the next. Not thread-safe: belongs to its volume's disk executor; ReadData and ReadChecksums may run beside others.
class ReplicaFile {
 public:
  // A new file with its header and one durable slot, synced; the directory is not. kAlreadyExists.
  static absl::StatusOr<std::unique_ptr<ReplicaFile>> Create(LocalFileSystem& files, const std::string& path, const ReplicaHeader& header,
                                                             GenerationStamp stamp, ReplicaState state, const BootId& boot_id);
  // kReplicaNotFound if there is none, kCorruptMetadata for a bad header. Slots are read; none need be valid.
  static absl::StatusOr<std::unique_ptr<ReplicaFile>> Open(LocalFileSystem& files, const std::string& path, LocalFileSystem::OpenMode mode,
                                                           const BootId& boot_id);
  // True if the file has no header at all: its creation was cut off before anyone was told of it.
  static absl::StatusOr<bool> IsBlank(LocalFileSystem& files, const std::string& path);

  const ReplicaHeader& header() const { return header_; }
  uint64_t data_offset() const { return DataOffset(header_.capacity, header_.bytes_per_checksum); }
  File* file() { return file_.get(); }
  const std::string& path() const { return file_->path(); }
  // Those whose checksum and length are right, newest first.
  std::vector<ReplicaSlot> ValidSlots() const;

  struct SlotContent {
    GenerationStamp stamp;
    uint64_t length = 0;
    ReplicaState state = ReplicaState::kRbw;
    uint8_t flags = 0;
    uint32_t partial_checksum = 0;
  };
  // Neither syncs.
  absl::Status WriteDurableSlot(const SlotContent& content) { return WriteSlot(0, content); }
  absl::Status WriteProgressSlot(const SlotContent& content) { return WriteSlot(2, content); }
  // After a failure what is on disk is unknown: the volume stops, nobody tries again.
  absl::Status Sync();

  // Offsets within the data.
  absl::Status WriteData(uint64_t offset, std::span<const char> data);
  absl::StatusOr<size_t> ReadData(uint64_t offset, std::span<char> into);
  // Entries of 4 bytes. A short read is filled up with zeros, as the hole that it is.
  absl::Status WriteChecksums(uint64_t first_chunk, std::span<const char> checksums);
  absl::StatusOr<std::string> ReadChecksums(uint64_t first_chunk, uint64_t count);

  // Shortens to content.length, in an order that every power cut survives: durable slot {content, CUT}, sync; then the entries and
  // bytes beyond go, sync.
  absl::Status Cut(SlotContent content);
  // The second half of Cut, again: for one that a crash ended in the middle.
  absl::Status FinishCut(uint64_t length);

 private:
  ReplicaFile(std::unique_ptr<File> file, ReplicaHeader header, const BootId& boot_id)
      : file_(std::move(file)), header_(std::move(header)), boot_id_(boot_id.bytes) {}
  absl::Status WriteSlot(size_t first_of_pair, const SlotContent& content);

  std::unique_ptr<File> file_;
  const ReplicaHeader header_;
  const std::string boot_id_;
  std::array<std::optional<ReplicaSlot>, kSlotCount> slots_;
};

}  // namespace cairn::datanode
