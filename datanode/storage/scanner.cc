#include "datanode/storage/scanner.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include "absl/strings/numbers.h"

#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "datanode/storage/replica_load.h"

namespace cairn::datanode {
namespace {

constexpr absl::Duration kYield = absl::Milliseconds(50);
// How long at most until a changed option, or a replica on a volume that was empty, is noticed.
constexpr absl::Duration kLookAgain = absl::Minutes(1);
// A replica without bytes costs an open and a header.
constexpr uint64_t kLeastCost = kHeaderPageBytes;

std::string CursorPath(const Volume& volume) { return volume.directory() + "/scanner.cursor"; }

uint64_t NumberOf(const google::protobuf::Struct& object, const std::string& key) {
  const auto found = object.fields().find(key);
  uint64_t value = 0;
  return found != object.fields().end() && absl::SimpleAtoi(found->second.string_value(), &value) ? value : 0;
}

}  // namespace

Scanner::Scanner(Env* env, const std::string& thread_name, ScannerOptions options, Verify verify, Volume* volume)
    : env_(env),
      verify_(std::move(verify)),
      volume_(volume),
      options_(options),
      executor_(env->executors().NewBackgroundExecutor(thread_name)) {
  executor_->Post([this] { Step(); });
}

// Not by executor_.reset(), which clears the pointer first: a step that is under way still uses it.
Scanner::~Scanner() = default;

void Scanner::SetOptions(const ScannerOptions& options) {
  executor_->Post([this, options] {
    options_ = options;
    StepAt(executor_->clock().Now());
  });
}

std::optional<absl::Duration> Scanner::since_last_round() const {
  const int64_t ended = round_ended_ms_.load(std::memory_order_relaxed);
  if (ended == 0) return std::nullopt;
  return std::max(absl::ZeroDuration(), env_->clock().WallNow() - absl::FromUnixMillis(ended));
}

void Scanner::StepAt(SteadyTime when) {
  if (timer_ != 0) executor_->CancelTimer(timer_);
  timer_ = executor_->PostAt(when, [this] {
    timer_ = 0;
    Step();
  });
}

void Scanner::Step() {
  const SteadyTime now = executor_->clock().Now();
  if (volume_->failed()) {  // For good: a volume that comes back has another scanner.
    reading_.reset();
    return;
  }
  if (options_.period <= absl::ZeroDuration() || options_.bytes_per_second == 0) return;  // Until SetOptions.
  if (!cursor_read_) ReadCursor();
  if (now < not_before_) return StepAt(not_before_);
  if (volume_->disk()->QueueDepth() > 0) {
    if (yielding_since_ == SteadyTime::Infinite()) yielding_since_ = now;
    if (now - yielding_since_ < options_.longest_yield) return StepAt(now + kYield);
  }
  yielding_since_ = SteadyTime::Infinite();
  if (!reading_ && !BeginNext()) {
    const absl::Duration left = absl::FromUnixMillis(round_started_ms_) + options_.period - env_->clock().WallNow();
    const bool over = left <= absl::ZeroDuration();
    if (over || !round_met_any_) {
      round_started_ms_ = absl::ToUnixMillis(env_->clock().WallNow());
      next_id_ = 0;
    }
    if (over && std::exchange(round_met_any_, false)) return StepAt(now + kYield);
    return StepAt(now + (over ? kLookAgain : std::min(left, kLookAgain)));
  }
  const uint64_t read = reading_ ? ReadPiece() : kLeastCost;
  bytes_.fetch_add(read, std::memory_order_relaxed);
  const double seconds = static_cast<double>(std::max(read, kLeastCost)) / static_cast<double>(options_.bytes_per_second);
  not_before_ = now + absl::Seconds(seconds);
  if (now >= next_cursor_write_) WriteCursor();
  StepAt(not_before_);
}

bool Scanner::BeginNext() {
  Reading next;
  {
    ReplicaShard& shard = volume_->shard();
    MutexLock lock(shard.mu);
    auto at = shard.replicas.lower_bound(BlockId(next_id_));
    while (at != shard.replicas.end() && !at->second.in_digest()) ++at;
    if (at == shard.replicas.end()) {
      next_id_ = UINT64_MAX;
    } else {
      next.id = at->first;
      next.stamp = at->second.stamp();
      next.length = at->second.length();
      next_id_ = at->first.value() + 1;
    }
  }
  if (next_id_ == UINT64_MAX) {
    if (round_met_any_) EndRound();
    return false;
  }
  round_met_any_ = true;
  reading_ = std::move(next);
  return true;
}

void Scanner::EndRound() {
  const int64_t started = round_started_ms_;
  if (round_ended_ms_.load(std::memory_order_relaxed) >= started) return;  // It is over already, and waits.
  round_ended_ms_.store(absl::ToUnixMillis(env_->clock().WallNow()), std::memory_order_relaxed);
  WriteCursor();
  log::Info("{}: every replica has been read again in {}; {} were bad since the start", volume_->directory(),
            absl::FormatDuration(absl::Milliseconds(round_ended_ms_.load(std::memory_order_relaxed) - started)), errors());
}

uint64_t Scanner::ReadPiece() {
  Reading& reading = *reading_;
  if (reading.file == nullptr) {
    absl::StatusOr<std::unique_ptr<ReplicaFile>> file =
        ReplicaFile::Open(env_->files(), volume_->PathOf(reading.id), LocalFileSystem::OpenMode::kRead, env_->boot_id());
    if (!file.ok()) {
      Suspect(file.status());
      return kLeastCost;
    }
    reading.file = *std::move(file);
  }
  ReplicaFile& file = *reading.file;
  const uint32_t chunk = file.header().bytes_per_checksum;
  const uint64_t whole = reading.length - reading.length % chunk;
  const uint64_t from = reading.at;
  if (from < whole) {
    const uint64_t piece = std::max<uint64_t>(1, options_.piece_bytes / chunk) * chunk;
    const uint64_t end = std::min(whole, from + piece);
    const absl::StatusOr<uint64_t> verified = VerifyWholeChunks(file, from / chunk, end);
    if (!verified.ok() || *verified != end - from) {
      Suspect(verified.ok() ? MakeError(ErrorKind::kChecksum, fmt::format("the chunk at byte {} does not verify", from + *verified))
                            : verified.status());
      return end - from;
    }
    file.file()->WriteBehind(file.data_offset() + from, end - from, /*drop=*/true);
    reading.at = end;
    if (end < reading.length) return end - from;
  }
  const std::vector<ReplicaSlot> slots = file.ValidSlots();
  absl::StatusOr<bool> partial = false;
  if (!slots.empty() && slots.front().length == reading.length)
    partial = VerifyPartialChunk(file, reading.length, slots.front().partial_checksum);
  if (!partial.ok() || !*partial) {
    Suspect(partial.ok() ? MakeError(ErrorKind::kChecksum, "its last partial chunk does not verify") : partial.status());
    return reading.length - from;
  }
  replicas_.fetch_add(1, std::memory_order_relaxed);
  reading_.reset();
  return reading.length - from;
}

bool Scanner::StillThere() const {
  MutexLock lock(volume_->shard().mu);
  const auto at = volume_->shard().replicas.find(reading_->id);
  return at != volume_->shard().replicas.end() && at->second.in_digest() && at->second.stamp() == reading_->stamp;
}

// Deleted, appended to or recovered meanwhile is no fault of the disk; else the store reads all of it once more, and judges.
void Scanner::Suspect(const absl::Status& why) {
  if (StillThere()) {
    log::Warning("{}: block {} does not read as it was written: {}", volume_->directory(), reading_->id.value(),
                 std::string(why.message()));
    if (const absl::Status verified = verify_(reading_->id, reading_->stamp); KindOf(verified) == ErrorKind::kChecksum) {
      errors_.fetch_add(1, std::memory_order_relaxed);
    }
    replicas_.fetch_add(1, std::memory_order_relaxed);
  }
  reading_.reset();
}

void Scanner::ReadCursor() {
  cursor_read_ = true;
  const absl::StatusOr<std::string> json = env_->files().ReadWhole(CursorPath(*volume_));
  google::protobuf::Struct object;
  if (json.ok() && google::protobuf::util::JsonStringToMessage(*json, &object).ok()) {
    round_started_ms_ = static_cast<int64_t>(NumberOf(object, "roundStartedMs"));
    next_id_ = NumberOf(object, "nextBlockId");
    round_ended_ms_.store(static_cast<int64_t>(NumberOf(object, "roundEndedMs")), std::memory_order_relaxed);
  }
  const int64_t now = absl::ToUnixMillis(env_->clock().WallNow());
  // None yet, or of a clock that was wrong.
  if (round_started_ms_ == 0 || round_started_ms_ > now) {
    round_started_ms_ = now;
    next_id_ = 0;
  }
  round_met_any_ = next_id_ > 0;
  next_cursor_write_ = executor_->clock().Now() + options_.cursor_interval;
}

void Scanner::WriteCursor() {
  next_cursor_write_ = executor_->clock().Now() + options_.cursor_interval;
  const std::string json =
      fmt::format("{{\"roundStartedMs\": \"{}\", \"nextBlockId\": \"{}\", \"roundEndedMs\": \"{}\"}}\n", round_started_ms_,
                  reading_ ? reading_->id.value() : next_id_, round_ended_ms_.load(std::memory_order_relaxed));
  // It costs a second reading of some replicas, nothing worse; a disk that cannot be written is noticed by its writers.
  IgnoreError(env_->files().WriteWhole(CursorPath(*volume_), json), "the place is kept in memory");
}

}  // namespace cairn::datanode
