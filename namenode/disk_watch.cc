#include "namenode/disk_watch.h"

#include <atomic>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"

namespace cairn::namenode {
namespace {

constexpr char kReservedKey[] = "dfs.namenode.resource.du.reserved";

std::string Text(const absl::Status& status) { return std::string(status.message()); }

absl::Status LowSpace(const std::string& directory, uint64_t available, uint64_t reserved, uint64_t missing) {
  Error error;
  error.kind = ErrorKind::kReadOnly;
  error.reason = "LOW_SPACE";
  error.limit = static_cast<int64_t>(reserved);
  error.key = kReservedKey;
  error.message = fmt::format(
      "the NameNode is in safe mode and takes no changes: resources are low: {} has {} bytes free, {} asks for {}{}. It takes changes "
      "again by itself when there is room",
      directory, available, kReservedKey, reserved,
      missing == 0 ? "" : fmt::format(", and {} are to be kept back for a start on a full disk (cairn.namenode.disk-reserve)", missing));
  return MakeError(std::move(error));
}

}  // namespace

struct DiskWatch::Impl : std::enable_shared_from_this<DiskWatch::Impl> {
  Impl(Options o, LocalFileSystem* f, MetaStore* s, Journal* j, NamespaceWriter* w, Executor* e)
      : options(std::move(o)), files(f), store(s), journal(j), writer(w), executor(e) {}

  bool Look();
  bool LookAtFailure(const absl::Status& failure, bool room);
  void LookAtSpace(const absl::StatusOr<LocalFileSystem::Space>& space, bool room);
  void Set(State state, absl::Status why) ABSL_LOCKS_EXCLUDED(mu);
  void Run();

  const Options options;
  std::atomic<uint64_t> reserved_bytes{options.reserved_bytes};
  LocalFileSystem* const files;
  MetaStore* const store;
  Journal* const journal;
  NamespaceWriter* const writer;
  Executor* const executor;

  // The executor's.
  bool stopping = false;
  std::optional<absl::Status> broken;  // The store could not be brought back.
  bool held = false;                   // By us, for low space.
  uint64_t missing = 0;                // Of the reserve, when it was last looked at.
  Executor::TimerId timer = 0;

  mutable Mutex mu;
  Stats stats ABSL_GUARDED_BY(mu);
  absl::Status status ABSL_GUARDED_BY(mu);
};

void DiskWatch::Impl::Set(State state, absl::Status why) {
  const MutexLock lock(mu);
  stats.state = state;
  status = std::move(why);
}

bool DiskWatch::Impl::Look() {
  const uint64_t reserved = reserved_bytes.load(std::memory_order_relaxed);
  const absl::StatusOr<LocalFileSystem::Space> space = files->SpaceOf(options.directory);
  const uint64_t available = space.ok() ? space->available_bytes : 0;
  if (space.ok()) {
    const MutexLock lock(mu);
    stats.available_bytes = available;
  }
  if (const absl::Status sick = store->health(); !sick.ok()) writer->Fail(sick);
  const absl::Status failure = writer->failure();
  const bool trouble = held || !failure.ok();
  missing = options.reserve == nullptr ? 0 : options.reserve->missing_bytes();
  bool room = space.ok() && available >= reserved + missing + (trouble ? reserved / 8 : 0);
  if (room && missing > 0) {
    const absl::Status put_back = options.reserve->PutBack();
    if (!put_back.ok() && !held) spdlog::warn("no space can be kept back in {}: {}", options.directory, Text(put_back));
    room = put_back.ok();
  }
  if (!failure.ok()) return LookAtFailure(failure, room);
  LookAtSpace(space, room);
  return false;
}

bool DiskWatch::Impl::LookAtFailure(const absl::Status& failure, bool room) {
  if (broken) return false;
  if (KindOf(failure) != ErrorKind::kDiskFull) {
    Set(State::kFailed, MakeError(ErrorKind::kReadOnly, fmt::format("no changes are taken until a restart: {}", Text(failure))));
    return false;
  }
  Set(State::kFull, MakeError(ErrorKind::kReadOnly, fmt::format("no changes are taken until there is room: {}", Text(failure))));
  if (!room) return false;
  const absl::StatusOr<bool> reopened = store->Reopen();
  if (!reopened.ok()) {
    if (KindOf(reopened.status()) == ErrorKind::kDiskFull) return false;
    spdlog::critical("the namespace could not be opened again and takes no changes until this NameNode is restarted: {}",
                     Text(reopened.status()));
    broken = reopened.status();
    Set(State::kFailed, MakeError(ErrorKind::kReadOnly, fmt::format("no changes are taken until a restart: {}", Text(*broken))));
    return false;
  }
  if (!*reopened) return true;
  journal->Recovered();
  writer->Resume();
  held = false;
  writer->Hold(absl::OkStatus());
  Set(State::kWell, absl::OkStatus());
  {
    const MutexLock lock(mu);
    ++stats.recoveries;
  }
  spdlog::warn("there is room on the disk of {} again: changes are taken, after batch {}", options.directory, store->applied_index());
  return false;
}

void DiskWatch::Impl::LookAtSpace(const absl::StatusOr<LocalFileSystem::Space>& space, bool room) {
  if (room == !held) return;
  held = !room;
  if (room) {
    spdlog::warn("{} has {} bytes free again: the NameNode leaves safe mode and takes changes", options.directory, space->available_bytes);
    writer->Hold(absl::OkStatus());
    return Set(State::kWell, absl::OkStatus());
  }
  const uint64_t reserved = reserved_bytes.load(std::memory_order_relaxed);
  const absl::Status why = space.ok() ? LowSpace(options.directory, space->available_bytes, reserved, missing)
                                      : MakeError(ErrorKind::kReadOnly, fmt::format("no changes are taken: {}", Text(space.status())));
  spdlog::critical("{}", Text(why));
  writer->Hold(why);
  Set(State::kLowSpace, why);
}

void DiskWatch::Impl::Run() {
  if (stopping) return;
  const absl::Duration wait = Look() ? options.closing_interval : options.interval;
  timer = executor->PostAt(executor->clock().Now() + wait, [self = shared_from_this()] {
    self->timer = 0;
    self->Run();
  });
}

DiskWatch::DiskWatch(Options options, LocalFileSystem* files, MetaStore* store, Journal* journal, NamespaceWriter* writer,
                     Executor* executor)
    : impl_(std::make_shared<Impl>(std::move(options), files, store, journal, writer, executor)) {}

DiskWatch::~DiskWatch() = default;

void DiskWatch::Start() {
  impl_->executor->Post([impl = impl_] { impl->Run(); });
}

void DiskWatch::SetReserved(uint64_t bytes) { impl_->reserved_bytes.store(bytes, std::memory_order_relaxed); }

bool DiskWatch::Look() { return impl_->Look(); }

absl::Status DiskWatch::status() const {
  const MutexLock lock(impl_->mu);
  return impl_->status;
}

DiskWatch::Stats DiskWatch::stats() const {
  const MutexLock lock(impl_->mu);
  return impl_->stats;
}

void DiskWatch::Stop(absl::AnyInvocable<void()> then) {
  impl_->executor->Post([impl = impl_, then = std::move(then)]() mutable {
    impl->stopping = true;
    if (impl->timer != 0) impl->executor->CancelTimer(impl->timer);
    then();
  });
}

}  // namespace cairn::namenode
