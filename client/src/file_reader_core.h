#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/status/statusor.h"
#include "client/src/block_reader.h"
#include "client/src/client_core.h"
#include "common/env/wait.h"
#include "common/task_group.h"

namespace cairn::client {

// A file being read, as coroutines on one executor: where its blocks are, which replicas failed
// this reader, and a read-ahead for the sequential reader. Everything runs on executor(). Destroy
// after Shutdown (or StopBlocking of group()).
class FileReaderCore {
 public:
  static constexpr uint64_t kReadAheadBytes = 4 << 20;

  FileReaderCore(ClientCore* core, std::string path);
  FileReaderCore(const FileReaderCore&) = delete;
  FileReaderCore& operator=(const FileReaderCore&) = delete;

  // kNotFound, kIsDirectory.
  Awaitable<absl::Status> Open();
  // The next bytes at the sequential position; empty at the end. One caller at a time.
  Awaitable<absl::StatusOr<Slice>> Next();
  // The sequential position for the following Next.
  void Seek(uint64_t offset);
  // Any number at once.
  Awaitable<absl::StatusOr<size_t>> ReadAt(uint64_t offset, std::span<char> into);
  Awaitable<void> Shutdown();

  uint64_t length() const { return length_; }
  TaskGroup& group() { return group_; }
  Executor* executor() const { return executor_; }
  const std::string& path() const { return path_; }

  // A block with the part of it that a read wants next.
  struct Want {
    Want() = default;
    v1::LocatedBlock block;
    uint64_t offset_in_block = 0;
    uint64_t length = 0;
  };
  // The block that holds file offset `offset`, from what is known.
  std::optional<Want> Find(uint64_t offset, uint64_t length) const;
  Awaitable<absl::Status> Refetch();
  // A replica that failed this reader is tried last from then on.
  void MarkBad(uint64_t block_id, const std::string& storage_uuid);
  bool IsBad(uint64_t block_id, const std::string& storage_uuid) const;
  void ForgiveAll() { bad_.clear(); }
  Awaitable<absl::Status> ReportBad(v1::Block block, std::string storage_uuid);
  BlockReader::Options ReaderOptions() const;
  ClientCore* core() { return core_; }
  Scope scope() { return Scope(executor_, &group_); }

 private:
  Awaitable<void> ReadAhead(uint64_t generation, uint64_t from);

  ClientCore* const core_;
  Executor* const executor_;
  const std::string path_;
  TaskGroup group_;
  uint64_t length_ = 0;
  std::string pool_id_;
  std::vector<v1::LocatedBlock> blocks_;  // By offset.
  absl::btree_set<std::pair<uint64_t, std::string>> bad_;

  // The sequential reader. A Seek begins a new generation; what an older one still brings is
  // dropped.
  uint64_t position_ = 0;  // Of the next byte for Next.
  uint64_t generation_ = 0;
  bool reading_ahead_ = false;
  std::deque<Slice> ahead_;
  uint64_t ahead_bytes_ = 0;
  absl::Status ahead_status_;  // Why the read-ahead ended early.
  Event changed_;
};

// Reads a range of a file, block after block, from whichever replica serves it; fails over in the
// middle of a block and goes on at the byte it had reached. Belongs to the core's executor.
class RangeReader {
 public:
  RangeReader(FileReaderCore* file, uint64_t offset, uint64_t length);

  // The next bytes; empty at the end of the range or file. An error only when no replica could be
  // read within the retry budget.
  Awaitable<absl::StatusOr<Slice>> Next();

 private:
  Awaitable<absl::Status> OpenReplica();
  void DropReader();

  FileReaderCore* file_;
  uint64_t position_;
  uint64_t end_;
  RetryPace pace_;
  std::unique_ptr<BlockReader> reader_;
  FileReaderCore::Want want_;
  std::string storage_uuid_;    // Of the replica being read.
  bool token_renewed_ = false;  // Since the last byte: a further refusal is not a matter of age.
};

}  // namespace cairn::client
