#include "client/src/file_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "client/src/blocking.h"
#include "common/status.h"

namespace cairn::client {

absl::StatusOr<std::unique_ptr<FileReader>> BlockingFileReader::Open(std::shared_ptr<ClientCore> core, const std::string& path) {
  auto reader = std::make_unique<BlockingFileReader>(std::move(core), path);
  RETURN_IF_ERROR(
      RunBlocking<absl::Status>(reader->client_->env(), &reader->core_.group(), "open", [r = reader.get()] { return r->core_.Open(); }));
  return std::unique_ptr<FileReader>(std::move(reader));
}

BlockingFileReader::BlockingFileReader(std::shared_ptr<ClientCore> core, const std::string& path)
    : client_(std::move(core)), core_(client_.get(), path) {}

BlockingFileReader::~BlockingFileReader() { StopBlocking(client_->env(), &core_.group()); }

absl::StatusOr<size_t> BlockingFileReader::Read(std::span<char> into) {
  if (closed_) return MakeError(ErrorKind::kCancelled, core_.path() + ": the reader is closed");
  if (into.empty()) return size_t{0};
  if (current_.empty()) {
    ASSIGN_OR_RETURN(current_, RunBlocking<absl::StatusOr<Slice>>(client_->env(), &core_.group(), "read", [this] { return core_.Next(); }));
  }
  const size_t take = std::min(into.size(), current_.size());
  if (take > 0) std::memcpy(into.data(), current_.data().data(), take);
  current_.RemovePrefix(take);
  if (current_.empty()) current_ = Slice();  // Lets the packet's buffer go.
  position_ += take;
  return take;
}

absl::StatusOr<size_t> BlockingFileReader::ReadAt(uint64_t offset, std::span<char> into) {
  if (closed_) return MakeError(ErrorKind::kCancelled, core_.path() + ": the reader is closed");
  return RunBlocking<absl::StatusOr<size_t>>(client_->env(), &core_.group(), "read at",
                                             [this, offset, into] { return core_.ReadAt(offset, into); });
}

absl::Status BlockingFileReader::Seek(uint64_t offset) {
  if (offset > core_.length())
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("{}: seek to {} past the end at {}", core_.path(), offset, core_.length()));
  if (offset == position_) return absl::OkStatus();
  if (offset > position_ && offset - position_ <= current_.size()) {
    current_.RemovePrefix(static_cast<size_t>(offset - position_));
    position_ = offset;
    return absl::OkStatus();
  }
  current_ = Slice();
  position_ = offset;
  core_.executor()->Post([this, offset] { core_.Seek(offset); });  // Before any Next that follows.
  return absl::OkStatus();
}

void BlockingFileReader::Close() {
  if (!closed_.exchange(true)) core_.group().Stop();
}

}  // namespace cairn::client
