#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/env/file_system.h"
#include "datanode/storage/replica_file.h"

namespace cairn::datanode {

// What a replica file is worth after a restart.
//
// Slots whose own checksum is right are tried, newest first; the first whose last partial chunk verifies is taken. One may be passed over
// only if the host has rebooted since it was written (then bytes it speaks of may never have reached the disk); the result is then not
// `sure`. On a host that did not reboot, a slot that does not verify means that bytes rotted: the replica is corrupt.
//
// RBW: without a reboot the slot's length, extended by the whole chunks that verify against the checksum region (whole chunks are
// acknowledged without a slot) unless the slot says CUT; after a reboot the longest prefix in which every chunk verifies. It comes out as
// RWR. FINALIZED: trusted when marked synced, and on a host that did not reboot; else read in full, and passed over if it does not verify.
struct LoadedReplica {
  GenerationStamp stamp;
  ReplicaState state = ReplicaState::kRwr;  // FINALIZED, RWR or TEMPORARY.
  uint64_t length = 0;
  uint32_t partial_checksum = 0;
  bool sure = false;
  bool corrupt = false;
  bool cut = false;             // Its slot says CUT: what lies beyond may not be gone yet (ReplicaFile::FinishCut).
  bool newly_verified = false;  // A FINALIZED replica that lacks the synced mark and has earned it.
};

// Blocks. kCorruptMetadata when no slot is valid; the error of a read that failed.
absl::StatusOr<LoadedReplica> LoadReplica(ReplicaFile& file, const BootId& boot_id);

// How many bytes, a multiple of the chunk size, verify against the checksum region from chunk `first_chunk` on, looking no further than
// byte `end`. Blocks.
absl::StatusOr<uint64_t> VerifyWholeChunks(ReplicaFile& file, uint64_t first_chunk, uint64_t end);
// Whether [chunk start, length) has this checksum. True if `length` ends on a chunk's edge. Blocks.
absl::StatusOr<bool> VerifyPartialChunk(ReplicaFile& file, uint64_t length, uint32_t partial_checksum);

// Checksum of the last partial chunk of the first `length` bytes (0 on a chunk's edge), when `received_checksum` is that of all `received`.
// What is stored on this disk is proved by the known checksum before a new one vouches for a part of it: kChecksum. Blocks.
absl::StatusOr<uint32_t> PartialChecksumAt(ReplicaFile& file, uint64_t received, uint32_t received_checksum, uint64_t length);

}  // namespace cairn::datanode
