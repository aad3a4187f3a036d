#include "client/src/file_writer.h"

#include <utility>

#include "client/src/blocking.h"
#include "common/status.h"

namespace cairn::client {

absl::StatusOr<std::unique_ptr<FileWriter>> BlockingFileWriter::Create(std::shared_ptr<ClientCore> core, const std::string& path,
                                                                       const CreateOptions& options) {
  auto writer = std::make_unique<BlockingFileWriter>(std::move(core), path, options);
  absl::Status opened;
  {
    // Its end waits for a cancel that is under way: then nobody else holds the writer.
    const std::stop_callback cancelled(options.cancel, [opening = writer.get()] { opening->core_.Abort(); });
    opened = writer->Open();
  }
  if (options.cancel.stop_requested()) return MakeError(ErrorKind::kCancelled, path + ": the create was cancelled");
  RETURN_IF_ERROR(opened);
  return writer;
}

absl::StatusOr<std::unique_ptr<FileWriter>> BlockingFileWriter::OpenForAppend(std::shared_ptr<ClientCore> core, const std::string& path,
                                                                              const AppendOptions& options) {
  auto writer = std::make_unique<BlockingFileWriter>(std::move(core), path, options);
  RETURN_IF_ERROR(writer->Open());
  return writer;
}

absl::Status BlockingFileWriter::Open() {
  return RunBlocking<absl::Status>(client_->env(), &core_.group(), "open", [this] { return core_.Open(); });
}

BlockingFileWriter::~BlockingFileWriter() {
  if (!closed_) core_.Abort();
  StopBlocking(client_->env(), &core_.group());
}

absl::Status BlockingFileWriter::Submit(std::optional<OutgoingPacket> packet) {
  if (!packet) return absl::OkStatus();
  WriteProgress& progress = core_.progress();
  progress.AwaitRoom(packet->header().data_length, core_.window_bytes());
  if (progress.ended()) return progress.error();
  core_.Submit(*std::move(packet));
  return absl::OkStatus();
}

absl::Status BlockingFileWriter::Append(std::span<const char> data) {
  if (closed_) return MakeError(ErrorKind::kInvalidArgument, path_ + ": the writer is closed");
  for (;;) {
    if (core_.progress().ended()) return core_.progress().error();
    std::optional<OutgoingPacket> packet = core_.cutter().Next(&data);
    if (!packet) return absl::OkStatus();
    RETURN_IF_ERROR(Submit(std::move(packet)));
  }
}

absl::Status BlockingFileWriter::Outcome(absl::Status status) const {
  if (!status.ok() && core_.progress().ended()) return core_.progress().error();
  return status;
}

absl::Status BlockingFileWriter::Publish(bool synced) {
  const int64_t seqno = core_.cutter().last_seqno();
  return Outcome(
      RunBlocking<absl::Status>(client_->env(), &core_.group(), "flush", [this, seqno, synced] { return core_.Publish(seqno, synced); }));
}

absl::Status BlockingFileWriter::Flush() {
  if (closed_) return absl::OkStatus();
  RETURN_IF_ERROR(Submit(core_.cutter().Cut(/*sync=*/false)));
  return Publish(/*synced=*/false);
}

absl::Status BlockingFileWriter::Sync() {
  if (closed_) return absl::OkStatus();
  RETURN_IF_ERROR(Submit(core_.cutter().Cut(/*sync=*/true)));
  return Publish(/*synced=*/true);
}

absl::Status BlockingFileWriter::Close() {
  if (closed_) return absl::OkStatus();
  if (core_.progress().ended()) return core_.progress().error();
  RETURN_IF_ERROR(Submit(core_.cutter().Cut(/*sync=*/false)));
  std::span<const char> nothing;
  RETURN_IF_ERROR(Submit(core_.cutter().Next(&nothing)));  // The last packet of a block that is exactly full.
  RETURN_IF_ERROR(Submit(core_.cutter().EndFile()));
  const int64_t seqno = core_.cutter().last_seqno();
  RETURN_IF_ERROR(
      Outcome(RunBlocking<absl::Status>(client_->env(), &core_.group(), "close", [this, seqno] { return core_.Finish(seqno); })));
  closed_ = true;
  return absl::OkStatus();
}

void BlockingFileWriter::Abort() { core_.Abort(); }

}  // namespace cairn::client
