#include "datanode/storage/replica_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "common/status.h"

namespace cairn::datanode {

absl::StatusOr<std::unique_ptr<ReplicaFile>> ReplicaFile::Create(LocalFileSystem& files, const std::string& path,
                                                                 const ReplicaHeader& header, GenerationStamp stamp, ReplicaState state,
                                                                 const BootId& boot_id) {
  RETURN_IF_ERROR(CheckHeader(header));
  ASSIGN_OR_RETURN(std::unique_ptr<File> opened, files.Open(path, LocalFileSystem::OpenMode::kCreateNew));
  std::unique_ptr<ReplicaFile> file(new ReplicaFile(std::move(opened), header, boot_id));
  RETURN_IF_ERROR(FaultPoint("replica_file.before_header"));
  RETURN_IF_ERROR(file->file_->WriteAt(0, EncodeHeader(header)));
  RETURN_IF_ERROR(file->WriteDurableSlot({.stamp = stamp, .length = 0, .state = state, .flags = 0, .partial_checksum = 0}));
  RETURN_IF_ERROR(file->Sync());
  return file;
}

absl::StatusOr<std::unique_ptr<ReplicaFile>> ReplicaFile::Open(LocalFileSystem& files, const std::string& path,
                                                               LocalFileSystem::OpenMode mode, const BootId& boot_id) {
  absl::StatusOr<std::unique_ptr<File>> opened = files.Open(path, mode);
  if (KindOf(opened.status()) == ErrorKind::kNotFound)
    return MakeError(ErrorKind::kReplicaNotFound, fmt::format("{}: no such replica file", path));
  RETURN_IF_ERROR(opened.status());
  std::string page(kHeaderPageBytes, '\0');
  ASSIGN_OR_RETURN(const size_t got, (*opened)->ReadAt(0, page));
  const std::span<const char> bytes(page.data(), got);
  absl::StatusOr<ReplicaHeader> header = DecodeHeader(bytes);
  if (!header.ok()) return Annotate(header.status(), path);
  std::unique_ptr<ReplicaFile> file(new ReplicaFile(*std::move(opened), *std::move(header), boot_id));
  for (size_t i = 0; i < kSlotCount; ++i) {
    if (got < SlotOffset(i) + kSlotContentBytes) break;
    file->slots_[i] = DecodeSlot(bytes.subspan(SlotOffset(i)));
    // A length that cannot be is no slot, whatever its checksum says.
    if (file->slots_[i] && file->slots_[i]->length > file->header_.capacity) file->slots_[i].reset();
  }
  return file;
}

absl::StatusOr<bool> ReplicaFile::IsBlank(LocalFileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files.Open(path, LocalFileSystem::OpenMode::kRead));
  std::string page(kHeaderPageBytes, '\0');
  ASSIGN_OR_RETURN(const size_t got, file->ReadAt(0, page));
  const auto zeros = [&page, got](size_t begin, size_t end) {
    return std::all_of(page.begin() + static_cast<ptrdiff_t>(std::min(begin, got)),
                       page.begin() + static_cast<ptrdiff_t>(std::min(end, got)), [](char c) { return c == '\0'; });
  };
  // Header and first slot are made durable by one sync, and a power cut may keep either: without both nothing was answered. A header gone
  // from a file with more slots is rot.
  return zeros(SlotOffset(0), page.size()) || (zeros(0, kHeaderBytes) && zeros(SlotOffset(1), page.size()));
}

std::vector<ReplicaSlot> ReplicaFile::ValidSlots() const {
  std::vector<ReplicaSlot> valid;
  for (const std::optional<ReplicaSlot>& slot : slots_) {
    if (slot) valid.push_back(*slot);
  }
  std::sort(valid.begin(), valid.end(), [](const ReplicaSlot& a, const ReplicaSlot& b) { return a.sequence > b.sequence; });
  return valid;
}

absl::Status ReplicaFile::WriteSlot(size_t first_of_pair, const SlotContent& content) {
  const auto sequence_of = [this](size_t index) { return slots_[index] ? slots_[index]->sequence : 0; };
  uint64_t newest = 0;
  for (size_t i = 0; i < kSlotCount; ++i) newest = std::max(newest, sequence_of(i));
  const size_t index = sequence_of(first_of_pair) <= sequence_of(first_of_pair + 1) ? first_of_pair : first_of_pair + 1;
  ReplicaSlot slot;
  slot.sequence = newest + 1;
  slot.stamp = content.stamp;
  slot.length = content.length;
  slot.state = content.state;
  slot.flags = content.flags;
  slot.partial_checksum = content.length % header_.bytes_per_checksum == 0 ? 0 : content.partial_checksum;
  slot.boot_id = boot_id_;
  RETURN_IF_ERROR(FaultPoint(first_of_pair == 0 ? "replica_file.before_durable_slot" : "replica_file.before_progress_slot"));
  RETURN_IF_ERROR(file_->WriteAt(SlotOffset(index), EncodeSlot(slot)));
  slots_[index] = std::move(slot);
  return absl::OkStatus();
}

absl::Status ReplicaFile::Sync() {
  RETURN_IF_ERROR(FaultPoint("replica_file.before_sync"));
  RETURN_IF_ERROR(file_->Sync());
  return FaultPoint("replica_file.after_sync");
}

absl::Status ReplicaFile::WriteData(uint64_t offset, std::span<const char> data) {
  RETURN_IF_ERROR(FaultPoint("replica_file.before_data"));
  return file_->WriteAt(data_offset() + offset, data);
}

absl::StatusOr<size_t> ReplicaFile::ReadData(uint64_t offset, std::span<char> into) { return file_->ReadAt(data_offset() + offset, into); }

absl::Status ReplicaFile::WriteChecksums(uint64_t first_chunk, std::span<const char> checksums) {
  RETURN_IF_ERROR(FaultPoint("replica_file.before_region"));
  return file_->WriteAt(kHeaderPageBytes + 4 * first_chunk, checksums);
}

absl::StatusOr<std::string> ReplicaFile::ReadChecksums(uint64_t first_chunk, uint64_t count) {
  std::string entries(4 * count, '\0');
  ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(kHeaderPageBytes + 4 * first_chunk, entries));
  std::fill(entries.begin() + static_cast<ptrdiff_t>(got), entries.end(), '\0');
  return entries;
}

absl::Status ReplicaFile::Cut(SlotContent content) {
  content.flags |= kSlotCut;
  RETURN_IF_ERROR(WriteDurableSlot(content));
  RETURN_IF_ERROR(Sync());
  return FinishCut(content.length);
}

absl::Status ReplicaFile::FinishCut(uint64_t length) {
  const uint64_t first_gone = length / header_.bytes_per_checksum;  // A chunk cut in two is partial: its entry goes too.
  const uint64_t entries_at = kHeaderPageBytes + 4 * first_gone;
  RETURN_IF_ERROR(FaultPoint("replica_file.before_cut_region"));
  RETURN_IF_ERROR(file_->PunchHole(entries_at, data_offset() - entries_at));
  RETURN_IF_ERROR(FaultPoint("replica_file.before_cut_data"));
  const uint64_t data_from = data_offset() + length;
  RETURN_IF_ERROR(file_->PunchHole(data_from, data_offset() + header_.capacity - data_from));
  return Sync();
}

}  // namespace cairn::datanode
