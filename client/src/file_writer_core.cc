#include "client/src/file_writer_core.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/src/open_call.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::client {
namespace {
constexpr absl::Duration kStampPause = absl::Milliseconds(50);  // Before the NameNode is asked again what a recovery has come to.
}  // namespace

FileWriterCore::FileWriterCore(ClientCore* core, std::string path, CreateOptions options)
    : FileWriterCore(core, std::move(path), options, std::nullopt) {}

FileWriterCore::FileWriterCore(ClientCore* core, std::string path, AppendOptions options)
    : FileWriterCore(core, std::move(path), CreateOptions(), options) {}

FileWriterCore::FileWriterCore(ClientCore* core, std::string path, CreateOptions options, std::optional<AppendOptions> append)
    : core_(core),
      executor_(core->NextExecutor()),
      options_(options),
      append_(append),
      group_(executor_),
      progress_(core->env()),
      file_(Scope(executor_, &group_), core, &progress_) {
  file_.path = std::move(path);
  file_.sync_on_close = core->options().close_sync == CloseSync::kData;
}

FileWriterCore::~FileWriterCore() { GiveUpLease(); }

Awaitable<absl::Status> FileWriterCore::Open() {
  const absl::StatusOr<v1::GetServerDefaultsResponse> defaults = co_await core_->namenode().Defaults(file_.scope);
  CO_RETURN_IF_ERROR(defaults.status());
  file_.pool_id = defaults->pool_id();
  if (defaults->bytes_per_checksum() != 0) file_.bytes_per_checksum = defaults->bytes_per_checksum();
  absl::Status opened;
  if (append_) {
    opened = co_await AppendFile();
  } else {
    opened = co_await CreateFile(&*defaults);
  }
  CO_RETURN_IF_ERROR(opened);
  group_.Spawn("writer", [this] { return WriteBlocks(); });
  co_return absl::OkStatus();
}

Awaitable<absl::Status> FileWriterCore::CreateFile(const v1::GetServerDefaultsResponse* defaults) {
  const ClientOptions& client = core_->options();
  uint64_t block_size = options_.block_size_bytes != 0 ? options_.block_size_bytes : client.block_size_bytes;
  if (block_size == 0) block_size = defaults->block_size_bytes();
  v1::CreateRequest request;
  request.set_path(file_.path);
  request.set_overwrite(options_.overwrite);
  request.set_create_parent(options_.create_parent);
  request.set_delete_if_abandoned(options_.delete_if_abandoned);
  request.set_replication(options_.replication != 0 ? options_.replication : client.replication);
  request.set_block_size_bytes(block_size);
  request.set_mode(options_.mode);
  request.set_umask(client.umask);
  request.set_with_first_block(true);
  request.set_client_host(core_->host());
  RetryPace pace = core_->namenode().NewPace(file_.scope);
  for (;;) {
    request.clear_excluded();
    for (v1::ExcludedNode& node : core_->excluded().Current(executor_->clock().Now())) *request.add_excluded() = std::move(node);
    v1::CreateRequest attempt = request;
    absl::StatusOr<v1::CreateResponse> created = co_await AskToOpen(core_, file_.scope, &api::ClientNamenode::Create, std::move(attempt));
    if (created.ok()) {
      file_.inode_id = created->status().inode_id();
      core_->leases().NoteLimit(absl::Milliseconds(created->lease_soft_limit_ms()));
      if (created->has_first_block()) first_block_ = created->first_block();
      if (created->status().block_size_bytes() != 0) block_size = created->status().block_size_bytes();
      break;
    }
    if (KindOf(created.status()) != ErrorKind::kNoTargets || request.excluded().empty()) co_return created.status();
    core_->excluded().Clear();  // Better a node that failed a while ago than none.
    const bool again = co_await pace.Wait();
    if (!again) co_return pace.GiveUp(created.status());
  }
  BeginWriting(block_size);
  co_return absl::OkStatus();
}

Awaitable<absl::Status> FileWriterCore::AppendFile() {
  v1::AppendRequest request;
  request.set_path(file_.path);
  request.set_new_block(append_->new_block);
  request.set_client_host(core_->host());
  const absl::StatusOr<v1::AppendResponse> opened =
      co_await AskToOpen(core_, file_.scope, &api::ClientNamenode::Append, std::move(request));
  CO_RETURN_IF_ERROR(opened.status());
  file_.inode_id = opened->status().inode_id();
  core_->leases().NoteLimit(absl::Milliseconds(opened->lease_soft_limit_ms()));
  BeginWriting(opened->status().block_size_bytes());
  uint64_t block_offset = 0;
  if (opened->has_last_block()) {
    last_block_ = opened->last_block();
    last_block_old_stamp_ = opened->old_generation_stamp();
    block_offset = last_block_->block().length_bytes();
  }
  cutter_->ContinueAt(opened->status().length_bytes(), block_offset);
  co_return absl::OkStatus();
}

void FileWriterCore::BeginWriting(uint64_t block_size) {
  has_lease_ = true;
  core_->leases().Add();
  PacketCutter::Options cut;
  cut.block_size = block_size;
  cut.packet_bytes = std::clamp<size_t>(core_->options().packet_bytes, file_.bytes_per_checksum, 4 << 20);
  cut.bytes_per_checksum = file_.bytes_per_checksum;
  cut.checksum = file_.checksum;
  cut.sync_file_end = file_.sync_on_close;
  cutter_.emplace(cut);
}

Awaitable<absl::Status> FileWriterCore::PushAll(std::optional<OutgoingPacket> packet) {
  if (!packet) co_return absl::OkStatus();
  const uint64_t bytes = packet->header().data_length;
  while (!progress_.Fits(bytes, window_bytes()) && !progress_.ended()) {
    file_.changed.Reset();
    const bool moved = co_await file_.changed.Wait(SteadyTime::Infinite());
    static_cast<void>(moved);
  }
  if (progress_.ended()) co_return progress_.error();
  progress_.AddPending(bytes);
  file_.unsent.push_back(*std::move(packet));
  file_.changed.Set();
  co_return absl::OkStatus();
}

void FileWriterCore::Submit(OutgoingPacket packet) {
  progress_.AddPending(packet.header().data_length);
  executor_->Post([this, packet = std::move(packet)]() mutable {
    file_.unsent.push_back(std::move(packet));
    file_.changed.Set();
  });
}

Awaitable<absl::Status> FileWriterCore::Append(std::span<const char> data) {
  for (;;) {
    if (progress_.ended()) co_return progress_.error();
    std::optional<OutgoingPacket> packet = cutter_->Next(&data);
    if (!packet) co_return absl::OkStatus();
    absl::Status pushed = co_await PushAll(std::move(packet));
    CO_RETURN_IF_ERROR(pushed);
  }
}

Awaitable<absl::Status> FileWriterCore::Flush() {
  absl::Status pushed = co_await PushAll(cutter_->Cut(/*sync=*/false));
  CO_RETURN_IF_ERROR(pushed);
  absl::Status published = co_await Publish(cutter_->last_seqno(), /*synced=*/false);
  co_return published;
}

Awaitable<absl::Status> FileWriterCore::Sync() {
  absl::Status pushed = co_await PushAll(cutter_->Cut(/*sync=*/true));
  CO_RETURN_IF_ERROR(pushed);
  absl::Status published = co_await Publish(cutter_->last_seqno(), /*synced=*/true);
  co_return published;
}

Awaitable<absl::Status> FileWriterCore::Close() {
  if (closed_) co_return absl::OkStatus();
  absl::Status pushed = co_await PushAll(cutter_->Cut(/*sync=*/false));
  CO_RETURN_IF_ERROR(pushed);
  pushed = co_await PushAll(cutter_->EndFile());
  CO_RETURN_IF_ERROR(pushed);
  absl::Status finished = co_await Finish(cutter_->last_seqno());
  co_return finished;
}

Awaitable<absl::Status> FileWriterCore::AwaitAcked(int64_t seqno) {
  while (file_.acked_seqno < seqno && !progress_.ended()) {
    file_.changed.Reset();
    const bool moved = co_await file_.changed.Wait(SteadyTime::Infinite());
    static_cast<void>(moved);
  }
  co_return progress_.error();
}

Awaitable<absl::Status> FileWriterCore::Publish(int64_t seqno, bool synced) {
  absl::Status acked = co_await AwaitAcked(seqno);
  CO_RETURN_IF_ERROR(acked);
  const SteadyTime give_up = executor_->clock().Now() + core_->options().retry_budget;
  for (;;) {
    if (!stream_ && !committed_) co_return absl::OkStatus();  // Nothing was written.
    const v1::Block block = stream_ ? stream_->block() : committed_->block();
    const bool known = block.id() == published_block_ && block.length_bytes() == published_length_;
    if (known && (published_synced_ || !synced)) co_return absl::OkStatus();
    v1::FsyncRequest request;
    request.set_path(file_.path);
    request.set_inode_id(file_.inode_id);
    *request.mutable_last_block() = block;
    request.set_synced(synced);
    const absl::StatusOr<v1::FsyncResponse> published =
        co_await core_->namenode().Mutate(file_.scope, &api::ClientNamenode::Fsync, std::move(request));
    if (published.ok()) {
      published_block_ = block.id();
      published_length_ = block.length_bytes();
      published_synced_ = synced;
      co_return absl::OkStatus();
    }
    if (progress_.ended()) co_return EndedBy();
    // A recovery meanwhile may have raised the stamp: then the call was about yesterday's block.
    const v1::Block now = stream_ ? stream_->block() : committed_->block();
    if (stream_ && KindOf(published.status()) == ErrorKind::kStaleGeneration && executor_->clock().Now() < give_up) {
      // One whose UpdatePipeline has acted, but has not been answered yet, has raised it on the NameNode before it did here.
      co_await SleepUntil(executor_, executor_->clock().Now() + kStampPause);
      if (progress_.ended()) co_return EndedBy();
      continue;
    }
    if (now.generation_stamp() == block.generation_stamp() && now.id() == block.id()) {
      Fail(published.status());
      co_return published.status();
    }
  }
}

Awaitable<absl::Status> FileWriterCore::Finish(int64_t seqno) {
  absl::Status acked = co_await AwaitAcked(seqno);
  CO_RETURN_IF_ERROR(acked);
  if (first_block_) {  // Of an empty file; no pipeline ever knew of it.
    const v1::Block unused = first_block_->block();
    first_block_.reset();
    absl::Status abandoned = co_await AbandonBlock(unused);
    if (!abandoned.ok()) {
      Fail(abandoned);
      co_return abandoned;
    }
  }
  // The acknowledgement may be noted a moment before the stream has ended.
  while (stream_ && !progress_.ended()) {
    file_.changed.Reset();
    const bool moved = co_await file_.changed.Wait(SteadyTime::Infinite());
    static_cast<void>(moved);
  }
  if (progress_.ended()) co_return EndedBy();
  v1::CompleteRequest request;
  request.set_path(file_.path);
  request.set_inode_id(file_.inode_id);
  if (committed_) *request.mutable_last() = *committed_;
  const absl::StatusOr<v1::CompleteResponse> completed =
      co_await core_->namenode().Mutate(file_.scope, &api::ClientNamenode::Complete, std::move(request));
  if (!completed.ok()) {
    if (progress_.ended()) co_return EndedBy();
    Fail(completed.status());
    co_return completed.status();
  }
  closed_ = true;
  DropLease();
  group_.Stop();
  co_return absl::OkStatus();
}

Awaitable<void> FileWriterCore::WriteBlocks() {
  const auto hook = group_.OnStop([this] { file_.changed.Set(); });
  while (!group_.stopping()) {
    if (file_.unsent.empty()) {
      file_.changed.Reset();
      const bool moved = co_await file_.changed.Wait(SteadyTime::Infinite());
      static_cast<void>(moved);
      continue;
    }
    absl::Status written;
    if (last_block_) {
      written = co_await WriteOnBlock();
    } else {
      written = co_await WriteOneBlock();
    }
    if (!written.ok()) {
      Fail(written);
      break;
    }
  }
}

Awaitable<absl::Status> FileWriterCore::WriteOneBlock() {
  RetryPace pace = core_->namenode().NewPace(file_.scope);
  for (;;) {
    absl::StatusOr<v1::LocatedBlock> block = co_await NextBlock();
    absl::Status status = block.status();
    if (status.ok()) {
      stream_ = std::make_unique<BlockStream>(&file_, *std::move(block));
      PipelineFailure failure;
      bool another_may_do = true;
      status = co_await stream_->Open(&failure);
      if (status.ok()) {
        pace = core_->namenode().NewPace(file_.scope);
        status = co_await stream_->Run();
        recoveries_ += stream_->recoveries();
        // All packets of the block are still here if none was acknowledged. An acknowledged byte is
        // only where it was.
        another_may_do = stream_->datanodes_failed() && stream_->acked_length() == 0;
      } else if (!stream_->nodes().empty()) {
        core_->excluded().Add(stream_->nodes()[failure.bad_node].datanode().uuid(), failure.reason, executor_->clock().Now());
      }
      if (status.ok()) {
        committed_ = stream_->committed();
        stream_.reset();
        file_.changed.Set();
        co_return absl::OkStatus();
      }
      const v1::Block lost = stream_->block();
      stream_.reset();
      if (!another_may_do || group_.stopping()) co_return status;
      absl::Status abandoned = co_await AbandonBlock(lost);
      CO_RETURN_IF_ERROR(abandoned);
    } else if (KindOf(status) == ErrorKind::kNoTargets && ReasonOf(status) == "ALL_EXCLUDED") {
      core_->excluded().Clear();
    } else {
      co_return status;
    }
    const bool again = co_await pace.Wait();
    if (!again) co_return pace.GiveUp(status);
  }
}

// The block that the file ended with. No other can take its place, so what goes wrong here ends the writer.
Awaitable<absl::Status> FileWriterCore::WriteOnBlock() {
  stream_ = std::make_unique<BlockStream>(&file_, *std::move(last_block_), last_block_old_stamp_);
  last_block_.reset();
  absl::Status status = co_await stream_->OpenForAppend();
  if (status.ok()) status = co_await stream_->Run();
  recoveries_ += stream_->recoveries();
  if (status.ok()) committed_ = stream_->committed();
  stream_.reset();
  file_.changed.Set();
  co_return status;
}

Awaitable<absl::StatusOr<v1::LocatedBlock>> FileWriterCore::NextBlock() {
  if (first_block_) {
    v1::LocatedBlock block = *std::move(first_block_);
    first_block_.reset();
    co_return block;
  }
  v1::AddBlockRequest request;
  request.set_path(file_.path);
  request.set_inode_id(file_.inode_id);
  if (committed_) *request.mutable_previous() = *committed_;
  for (v1::ExcludedNode& node : core_->excluded().Current(executor_->clock().Now())) *request.add_excluded() = std::move(node);
  request.set_client_host(core_->host());
  absl::StatusOr<v1::AddBlockResponse> added =
      co_await core_->namenode().Mutate(file_.scope, &api::ClientNamenode::AddBlock, std::move(request));
  if (!added.ok()) co_return added.status();
  co_return added->block();
}

Awaitable<absl::Status> FileWriterCore::AbandonBlock(v1::Block block) {
  v1::AbandonBlockRequest request;
  request.set_path(file_.path);
  request.set_inode_id(file_.inode_id);
  *request.mutable_block() = std::move(block);
  const absl::StatusOr<v1::AbandonBlockResponse> abandoned =
      co_await core_->namenode().Mutate(file_.scope, &api::ClientNamenode::AbandonBlock, std::move(request));
  co_return abandoned.status();
}

absl::Status FileWriterCore::EndedBy() const {
  const absl::Status error = progress_.error();
  return error.ok() ? MakeError(ErrorKind::kCancelled, fmt::format("{}: cancelled", file_.path)) : error;
}

void FileWriterCore::Fail(const absl::Status& status) {
  progress_.Fail(status);
  GiveUpLease();
  file_.changed.Set();
}

void FileWriterCore::Abort() {
  progress_.Fail(MakeError(ErrorKind::kCancelled, fmt::format("{}: aborted", file_.path)));
  GiveUpLease();
  group_.Stop();
}

Awaitable<void> FileWriterCore::Shutdown() {
  group_.Stop();
  co_await group_.Join();
}

void FileWriterCore::DropLease() {
  if (!has_lease_.exchange(false)) return;
  core_->leases().Remove();
  core_->opens().Closed(file_.inode_id);
}

void FileWriterCore::GiveUpLease() {
  if (!has_lease_.exchange(false)) return;
  core_->leases().Remove();
  core_->leases().Release(file_.inode_id);
  core_->opens().Closed(file_.inode_id);
}

}  // namespace cairn::client
