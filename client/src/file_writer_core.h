#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "cairn/options.h"
#include "client/src/block_stream.h"
#include "client/src/client_core.h"
#include "client/src/packet_cutter.h"
#include "client/src/write_progress.h"
#include "common/task_group.h"

namespace cairn::client {

// A file being written, as coroutines on one executor. How: the appending side cuts bytes into
// packets (PacketCutter) and hands them over; a task of its own takes them block by block through a
// BlockStream, asking the NameNode for a block when the first packet of one is there.
//
// The appending side is one of two, never both: coroutines on executor() that call Append, Flush,
// Sync and Close; or a thread that uses cutter() and progress() itself and hands packets over with
// Submit. Abort and Submit may be called from any thread, everything else runs on the executor.
// Destroy after Shutdown (or StopBlocking of group()).
class FileWriterCore {
 public:
  FileWriterCore(ClientCore* core, std::string path, CreateOptions options);
  // For an existing file, which is opened for more.
  FileWriterCore(ClientCore* core, std::string path, AppendOptions options);
  ~FileWriterCore();
  FileWriterCore(const FileWriterCore&) = delete;
  FileWriterCore& operator=(const FileWriterCore&) = delete;

  // Creates the file, or opens it for more. First of all calls.
  Awaitable<absl::Status> Open();
  Awaitable<absl::Status> Append(std::span<const char> data);  // `data` outlives the call.
  Awaitable<absl::Status> Flush();
  Awaitable<absl::Status> Sync();
  Awaitable<absl::Status> Close();
  void Abort();
  Awaitable<void> Shutdown();

  // For an appending thread.
  PacketCutter& cutter() { return *cutter_; }  // After Open.
  WriteProgress& progress() { return progress_; }
  uint64_t window_bytes() const { return core_->options().window_bytes; }
  void Submit(OutgoingPacket packet);
  // Waits for the acknowledgement of packets up to `seqno`, the last that was cut, and tells the
  // NameNode of the new length, so that readers may see it. `synced`: that packet asked for the disk,
  // so no recovery of the block may fall behind that length.
  Awaitable<absl::Status> Publish(int64_t seqno, bool synced);
  // Waits for `seqno`, the file's last packet, and closes the file on the NameNode.
  Awaitable<absl::Status> Finish(int64_t seqno);

  TaskGroup& group() { return group_; }
  Executor* executor() const { return executor_; }
  const std::string& path() const { return file_.path; }
  uint64_t inode_id() const { return file_.inode_id; }
  int recoveries() const { return recoveries_; }

 private:
  FileWriterCore(ClientCore* core, std::string path, CreateOptions options, std::optional<AppendOptions> append);
  Awaitable<absl::Status> CreateFile(const v1::GetServerDefaultsResponse* defaults);
  Awaitable<absl::Status> AppendFile();
  void BeginWriting(uint64_t block_size);  // The file is ours.
  Awaitable<void> WriteBlocks();
  Awaitable<absl::Status> WriteOneBlock();
  Awaitable<absl::Status> WriteOnBlock();
  Awaitable<absl::StatusOr<v1::LocatedBlock>> NextBlock();
  Awaitable<absl::Status> AbandonBlock(v1::Block block);
  Awaitable<absl::Status> AwaitAcked(int64_t seqno);
  Awaitable<absl::Status> PushAll(std::optional<OutgoingPacket> packet);
  absl::Status EndedBy() const;  // The sticky error, or kCancelled.
  void Fail(const absl::Status& status);
  void DropLease();
  // The file stays unfinished: the NameNode is told, so that its other writers' renewals do not keep it.
  void GiveUpLease();

  ClientCore* const core_;
  Executor* const executor_;
  const CreateOptions options_;
  const std::optional<AppendOptions> append_;
  TaskGroup group_;
  WriteProgress progress_;
  FileBeingWritten file_;
  std::optional<PacketCutter> cutter_;
  std::optional<v1::LocatedBlock> first_block_;  // From Create, until used or abandoned.
  std::optional<v1::LocatedBlock> last_block_;   // From Append, until written on,
  uint64_t last_block_old_stamp_ = 0;            // with the stamp that its replicas have.
  std::optional<v1::CommittedBlock> committed_;  // The block before the next one.
  std::unique_ptr<BlockStream> stream_;          // The block being written.
  uint64_t published_length_ = 0;                // Of the current block, as the NameNode was told.
  uint64_t published_block_ = 0;
  bool published_synced_ = false;
  bool closed_ = false;
  std::atomic<bool> has_lease_{false};
  int recoveries_ = 0;
};

}  // namespace cairn::client
