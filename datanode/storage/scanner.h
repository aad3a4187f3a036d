#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/env/env.h"
#include "datanode/storage/replica_file.h"
#include "datanode/storage/scanner_options.h"
#include "datanode/storage/volume.h"

namespace cairn::datanode {

// Reads every FINALIZED replica of one volume again, in the order of ids, once in each period and no faster than its rate: what has rotted
// is found before the last good copy has rotted too. What does not verify twice is CORRUPT: the slot's flag is on the disk before the
// NameNode hears of it, and the NameNode heals it.
//
// On an executor of its own, so that a slow disk holds up nothing else; it gives way while the volume's disk has work waiting, and lets go
// of the pages that it read. Its place is kept in the file `scanner.cursor` of the volume:
//   {"roundStartedMs": "...", "nextBlockId": "...", "roundEndedMs": "..."}   (0: none has ended; a file that cannot be read: begin anew)
// A round that ends early waits for its period to pass; one that takes longer than its period is followed by the next at once. On a volume
// without replicas none begins: the first one that comes is not left for the next period.
//
// Thread-safe; the destructor waits for the piece under way.
class Scanner {
 public:
  // Reads a whole replica again, twice if need be, and judges it: kChecksum if it is CORRUPT now. Blocks; on the scanner's executor.
  using Verify = std::function<absl::Status(BlockId id, GenerationStamp stamp)>;
  // All outlive this.
  Scanner(Env* env, const std::string& thread_name, ScannerOptions options, Verify verify, Volume* volume);
  ~Scanner();
  Scanner(const Scanner&) = delete;
  Scanner& operator=(const Scanner&) = delete;

  void SetOptions(const ScannerOptions& options);

  uint64_t replicas() const { return replicas_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }
  // Since a whole round ended, be it an earlier process's; nothing if none has.
  std::optional<absl::Duration> since_last_round() const;

 private:
  struct Reading {
    BlockId id;
    GenerationStamp stamp;
    uint64_t length = 0;
    uint64_t at = 0;
    std::unique_ptr<ReplicaFile> file;
  };

  void StepAt(SteadyTime when);
  void Step();
  void ReadCursor();
  void WriteCursor();
  bool BeginNext();  // False at the end of a round.
  void EndRound();
  // One piece; the bytes it took.
  uint64_t ReadPiece();
  void Suspect(const absl::Status& why);
  bool StillThere() const;

  Env* const env_;
  const Verify verify_;
  Volume* const volume_;
  std::atomic<uint64_t> replicas_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> errors_{0};
  std::atomic<int64_t> round_ended_ms_{0};  // Of the wall clock.
  // Of the executor.
  ScannerOptions options_;
  bool cursor_read_ = false;
  int64_t round_started_ms_ = 0;
  uint64_t next_id_ = 0;
  bool round_met_any_ = false;
  std::optional<Reading> reading_;
  SteadyTime yielding_since_ = SteadyTime::Infinite();
  SteadyTime next_cursor_write_;
  SteadyTime not_before_;
  Executor::TimerId timer_ = 0;
  std::unique_ptr<Executor> executor_;  // Last: ends before what its tasks use.
};

}  // namespace cairn::datanode
