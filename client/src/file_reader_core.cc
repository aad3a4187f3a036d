#include "client/src/file_reader_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"

namespace cairn::client {

FileReaderCore::FileReaderCore(ClientCore* core, std::string path)
    : core_(core), executor_(core->NextExecutor()), path_(std::move(path)), group_(executor_), changed_(executor_) {}

Awaitable<absl::Status> FileReaderCore::Open() {
  const absl::StatusOr<v1::GetServerDefaultsResponse> defaults = co_await core_->namenode().Defaults(scope());
  CO_RETURN_IF_ERROR(defaults.status());
  pool_id_ = defaults->pool_id();
  absl::Status fetched = co_await Refetch();
  CO_RETURN_IF_ERROR(fetched);
  length_ = blocks_.empty() ? 0 : blocks_.back().offset_bytes() + blocks_.back().block().length_bytes();
  co_return absl::OkStatus();
}

Awaitable<absl::Status> FileReaderCore::Refetch() {
  std::vector<v1::LocatedBlock> blocks;
  uint64_t offset = 0;
  for (;;) {
    v1::GetBlockLocationsRequest request;
    request.set_path(path_);
    request.set_offset_bytes(offset);
    request.set_length_bytes((1ull << 62) - offset);
    request.set_client_host(core_->host());
    const absl::StatusOr<v1::GetBlockLocationsResponse> answer =
        co_await core_->namenode().Read(scope(), &api::ClientNamenode::GetBlockLocations, std::move(request));
    CO_RETURN_IF_ERROR(answer.status());
    if (answer->status().is_directory()) co_return MakeError(ErrorKind::kIsDirectory, fmt::format("{}: Is a directory", path_));
    for (const v1::LocatedBlock& block : answer->blocks())
      if (block.block().length_bytes() > 0) blocks.push_back(block);
    const uint64_t known = blocks.empty() ? 0 : blocks.back().offset_bytes() + blocks.back().block().length_bytes();
    // A page ends after 1,000 blocks; one that brings nothing new is the last.
    if (known <= offset || known >= answer->status().length_bytes()) break;
    offset = known;
  }
  blocks_ = std::move(blocks);
  co_return absl::OkStatus();
}

std::optional<FileReaderCore::Want> FileReaderCore::Find(uint64_t offset, uint64_t length) const {
  const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), offset,
                                      [](uint64_t o, const v1::LocatedBlock& block) { return o < block.offset_bytes(); });
  if (after == blocks_.begin()) return std::nullopt;
  const v1::LocatedBlock& block = *std::prev(after);
  const uint64_t inside = offset - block.offset_bytes();
  if (inside >= block.block().length_bytes()) return std::nullopt;
  Want want;
  want.block = block;
  want.offset_in_block = inside;
  want.length = std::min(length, block.block().length_bytes() - inside);
  return want;
}

void FileReaderCore::MarkBad(uint64_t block_id, const std::string& storage_uuid) { bad_.insert({block_id, storage_uuid}); }

bool FileReaderCore::IsBad(uint64_t block_id, const std::string& storage_uuid) const { return bad_.contains({block_id, storage_uuid}); }

Awaitable<absl::Status> FileReaderCore::ReportBad(v1::Block block, std::string storage_uuid) {
  v1::ReportBadReplicasRequest request;
  v1::ReportBadReplicasRequest::Bad* bad = request.add_replicas();
  *bad->mutable_block() = std::move(block);
  bad->set_storage_uuid(std::move(storage_uuid));
  const absl::StatusOr<v1::ReportBadReplicasResponse> reported =
      co_await core_->namenode().Read(scope(), &api::ClientNamenode::ReportBadReplicas, std::move(request));
  co_return reported.status();
}

BlockReader::Options FileReaderCore::ReaderOptions() const {
  const ClientOptions& client = core_->options();
  BlockReader::Options options;
  options.pool_id = pool_id_;
  options.client_name = core_->namenode().client_name();
  options.verify = client.verify_checksums;
  options.connect_timeout = client.connect_timeout;
  options.read_timeout = client.socket_timeout;
  return options;
}

Awaitable<absl::StatusOr<Slice>> FileReaderCore::Next() {
  const auto hook = group_.OnStop([this] { changed_.Set(); });
  if (!reading_ahead_ && ahead_.empty() && ahead_status_.ok() && position_ < length_) {
    reading_ahead_ = true;
    group_.Spawn("read-ahead", [this, generation = generation_, from = position_] { return ReadAhead(generation, from); });
  }
  while (ahead_.empty() && reading_ahead_) {
    if (group_.stopping()) co_return MakeError(ErrorKind::kCancelled, fmt::format("{}: closed", path_));
    changed_.Reset();
    const bool moved = co_await changed_.Wait(SteadyTime::Infinite());
    static_cast<void>(moved);
  }
  if (ahead_.empty()) {
    absl::Status status = std::exchange(ahead_status_, absl::OkStatus());  // The next Next tries again.
    CO_RETURN_IF_ERROR(status);
    co_return Slice();
  }
  Slice slice = std::move(ahead_.front());
  ahead_.pop_front();
  ahead_bytes_ -= slice.size();
  position_ += slice.size();
  changed_.Set();
  co_return slice;
}

void FileReaderCore::Seek(uint64_t offset) {
  ++generation_;
  position_ = offset;
  reading_ahead_ = false;
  ahead_.clear();
  ahead_bytes_ = 0;
  ahead_status_ = absl::OkStatus();
  changed_.Set();
}

Awaitable<void> FileReaderCore::ReadAhead(uint64_t generation, uint64_t from) {
  const auto hook = group_.OnStop([this] { changed_.Set(); });
  RangeReader reader(this, from, length_ - from);
  for (;;) {
    absl::StatusOr<Slice> slice = co_await reader.Next();
    if (generation != generation_) co_return;
    if (!slice.ok() || slice->empty()) {
      ahead_status_ = slice.status();
      break;
    }
    ahead_bytes_ += slice->size();
    ahead_.push_back(*std::move(slice));
    changed_.Set();
    while (generation == generation_ && ahead_bytes_ >= kReadAheadBytes && !group_.stopping()) {
      changed_.Reset();
      const bool moved = co_await changed_.Wait(SteadyTime::Infinite());
      static_cast<void>(moved);
    }
    if (generation != generation_) co_return;
    if (group_.stopping()) break;
  }
  reading_ahead_ = false;
  changed_.Set();
}

Awaitable<absl::StatusOr<size_t>> FileReaderCore::ReadAt(uint64_t offset, std::span<char> into) {
  if (offset >= length_ || into.empty()) co_return size_t{0};
  const uint64_t length = std::min<uint64_t>(into.size(), length_ - offset);
  RangeReader reader(this, offset, length);
  size_t done = 0;
  while (done < length) {
    absl::StatusOr<Slice> slice = co_await reader.Next();
    CO_RETURN_IF_ERROR(slice.status());
    if (slice->empty()) break;
    std::memcpy(into.data() + done, slice->data().data(), slice->size());
    done += slice->size();
  }
  co_return done;
}

Awaitable<void> FileReaderCore::Shutdown() {
  group_.Stop();
  co_await group_.Join();
}

RangeReader::RangeReader(FileReaderCore* file, uint64_t offset, uint64_t length)
    : file_(file), position_(offset), end_(offset + length), pace_(file->core()->namenode().NewPace(file->scope())) {}

void RangeReader::DropReader() {
  if (reader_) reader_->Close();
  reader_.reset();
}

Awaitable<absl::StatusOr<Slice>> RangeReader::Next() {
  while (position_ < end_) {
    absl::Status status;
    if (!reader_) status = co_await OpenReplica();
    if (status.ok()) {
      absl::StatusOr<Slice> slice = co_await reader_->Next();
      if (slice.ok() && !slice->empty()) {
        position_ += slice->size();
        pace_ = file_->core()->namenode().NewPace(file_->scope());  // Progress: the budget starts again.
        token_renewed_ = false;
        co_return slice;
      }
      DropReader();
      if (slice.ok()) continue;  // The end of this block.
      status = slice.status();
      file_->MarkBad(want_.block.block().id(), storage_uuid_);
    } else {
      DropReader();
    }
    if (file_->scope().group->stopping()) co_return MakeError(ErrorKind::kCancelled, fmt::format("{}: closed", file_->path()));
    if (KindOf(status) == ErrorKind::kChecksum) {
      absl::Status reported = co_await file_->ReportBad(want_.block.block(), storage_uuid_);
      IgnoreError(reported, "a hint; the scanner of that DataNode will find it too");
    }
    if (KindOf(status) == ErrorKind::kNotFound || KindOf(status) == ErrorKind::kPermission) co_return status;
    bool another = false;
    const std::optional<FileReaderCore::Want> want = file_->Find(position_, end_ - position_);
    if (want)
      for (const v1::StorageLocation& location : want->block.locations())
        another = another || !file_->IsBad(want->block.block().id(), location.storage_uuid());
    const bool stale_token = KindOf(status) == ErrorKind::kAccessToken && !token_renewed_;
    if (another && !stale_token) continue;
    if (stale_token) token_renewed_ = true;
    // Every replica that we know of has failed: ask where they are now, and give them another
    // chance.
    const bool again = co_await pace_.Wait();
    if (!again)
      co_return pace_.GiveUp(
          Annotate(status, fmt::format("{}: no replica of the block at offset {} could be read", file_->path(), position_)));
    absl::Status fetched = co_await file_->Refetch();
    CO_RETURN_IF_ERROR(fetched);
    file_->ForgiveAll();
  }
  if (reader_) {  // Lets it take its leave: the DataNode then knows a whole read from a broken one.
    const absl::StatusOr<Slice> end = co_await reader_->Next();
    IgnoreError(end.status(), "all bytes are here");
  }
  DropReader();
  co_return Slice();
}

Awaitable<absl::Status> RangeReader::OpenReplica() {
  std::optional<FileReaderCore::Want> want = file_->Find(position_, end_ - position_);
  if (!want) co_return absl::UnavailableError(fmt::format("{}: the file has no byte at offset {} any more", file_->path(), position_));
  want_ = *std::move(want);
  const uint64_t block_id = want_.block.block().id();
  int chosen = -1;
  for (int i = 0; i < want_.block.locations_size() && chosen < 0; ++i)
    if (!file_->IsBad(block_id, want_.block.locations(i).storage_uuid())) chosen = i;
  if (chosen < 0) {
    storage_uuid_.clear();
    Error error;
    error.kind = ErrorKind::kRetriable;
    if (want_.block.locations().empty()) error.reason = "BLOCK_MISSING";  // As far as the NameNode knows, too.
    error.block_id = block_id;
    error.message = fmt::format("block {} has no replica to read ({} known)", block_id, want_.block.locations_size());
    co_return MakeError(std::move(error));
  }
  storage_uuid_ = want_.block.locations(chosen).storage_uuid();
  reader_ = std::make_unique<BlockReader>(file_->scope(), &file_->core()->env()->network(), file_->ReaderOptions());
  absl::Status opened = co_await reader_->Open(want_.block, chosen, want_.offset_in_block, want_.length);
  // A stale token is the NameNode's to renew; a new one that is refused is this DataNode's trouble.
  if (!opened.ok() && (KindOf(opened) != ErrorKind::kAccessToken || token_renewed_)) file_->MarkBad(block_id, storage_uuid_);
  co_return opened;
}

}  // namespace cairn::client
