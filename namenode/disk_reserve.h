#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/env/file_system.h"

namespace cairn::namenode {

// Space kept back on the namespace's disk: the file `reserve` in the NameNode's directory, of zeros. A NameNode that runs needs none to
// serve reads on a full disk; but one that starts has to take its epoch and to open two databases, which write. So it gives the reserve up
// then, and takes no changes (DiskWatch) until there is room to put it back.
//
// One thread at a time: who starts the NameNode, then DiskWatch's executor.
class DiskReserve {
 public:
  // 0 bytes: none is kept. `files` outlives this.
  DiskReserve(const std::string& directory, uint64_t bytes, LocalFileSystem* files)
      : directory_(directory), path_(directory + "/reserve"), bytes_(bytes), files_(files) {}

  // Before anything in the directory is opened, and with its lock: gives the space up if less than as much again is free. True if so, or if
  // it was given up before: then nothing may be written that need not be.
  absl::StatusOr<bool> GiveUpIfFull();
  // Opening the database found too little room, however much was free: gives the space up, if there still is any, for another try in which
  // nothing is written that need not be.
  absl::Status GiveUpFor(const absl::Status& failure);
  // Bytes that are to be put back.
  uint64_t missing_bytes() const { return whole_ ? 0 : bytes_; }
  // Puts it back, synced. Blocks.
  absl::Status PutBack();

 private:
  const std::string directory_;
  const std::string path_;
  const uint64_t bytes_;
  LocalFileSystem* const files_;
  bool whole_ = false;
};

}  // namespace cairn::namenode
