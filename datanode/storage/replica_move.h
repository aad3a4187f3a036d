#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "datanode/storage/deleter.h"
#include "datanode/storage/replica_file.h"
#include "datanode/storage/volume.h"

namespace cairn::datanode {

// A copy of one FINALIZED replica, on its way from one volume of this node to another. It is made in `moving/` of the volume that it goes
// to, each chunk proved by its checksum on the way, and synced; then it takes the place where a replica of its id belongs, which is
// durable too before anyone is told of it. What a crash leaves in `moving/` the next start removes; a copy that is in its place already
// is as good as the replica that it was made of, and one of the two goes.
//
// All calls block; one thread at a time. It touches neither map nor report: FileBlockStore::InstallMoved does.
class ReplicaMove {
 public:
  using Replica = Deleter::File;  // As the deleter of its old volume takes it over.
  // The volumes outlive this.
  ReplicaMove(Volume* from, Volume* to, const Replica& replica);
  ~ReplicaMove();  // Removes the copy, unless it stays.
  ReplicaMove(const ReplicaMove&) = delete;
  ReplicaMove& operator=(const ReplicaMove&) = delete;

  Volume* from() const { return from_; }
  Volume* to() const { return to_; }
  const Replica& replica() const { return replica_; }

  // Copies about so many bytes, whole chunks; the last piece makes it durable as well. How many were copied. kChecksum if what is there
  // does not verify, kDiskFull without a fault of the target if that has no room to spare, kAlreadyExists if the place is taken there.
  absl::StatusOr<uint64_t> CopyPiece(size_t piece_bytes);
  bool copied() const { return stage_ >= Stage::kCopied; }
  // Into its place, durably.
  absl::Status TakePlace();
  // It is in the map now.
  void Stay() { stage_ = Stage::kStays; }
  // Whether the error that a call has just answered is the fault of the volume that it goes to, and not of the one that it comes from.
  bool is_fault_of_target() const { return fault_of_target_; }

 private:
  enum class Stage { kNew, kCopying, kCopied, kInPlace, kStays };

  absl::Status Open();
  absl::StatusOr<uint64_t> CopyChunks(uint64_t from, uint64_t end);
  absl::Status CopyPartialChunk();
  absl::Status Complete();
  absl::Status CheckPlaceIsFree();  // kAlreadyExists.
  // Of something that was done on the volume that it goes to.
  absl::Status OfTarget(absl::Status status);

  Volume* const from_;
  Volume* const to_;
  const Volume::Use use_;  // Nothing else is made of that directory meanwhile.
  const Replica replica_;
  const std::string path_;  // While it is being made.
  Stage stage_ = Stage::kNew;
  bool fault_of_target_ = false;
  uint64_t grown_bytes_ = 0;  // Of the target's used space.
  uint64_t at_ = 0;
  uint32_t partial_checksum_ = 0;
  std::unique_ptr<ReplicaFile> source_;
  std::unique_ptr<ReplicaFile> copy_;
};

}  // namespace cairn::datanode
