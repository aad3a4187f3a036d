#include "namenode/audit_log.h"

#include <utility>

#include <fmt/format.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/spdlog.h>

#include "common/error.h"

namespace cairn::namenode {
namespace {

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string OrNull(std::string_view text) { return text.empty() ? "null" : Escaped(text); }

}  // namespace

struct AuditLog::State {
  State(const Options& o, Executor* e) : options(o), executor(e) {}

  const Options options;
  Executor* const executor;
  std::shared_ptr<spdlog::logger> logger;  // The executor's, once it is open.
  std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> dropped{0};
  Mutex mu;
  std::vector<Event> waiting ABSL_GUARDED_BY(mu);
  bool posted ABSL_GUARDED_BY(mu) = false;

  // On the executor.
  void Drain() ABSL_LOCKS_EXCLUDED(mu) {
    std::vector<Event> batch;
    {
      const MutexLock lock(mu);
      batch.swap(waiting);
      posted = false;
    }
    for (const Event& event : batch) {
      const std::string line = AuditLine(event);
      logger->log(spdlog::log_clock::time_point(absl::ToChronoTime(event.time)), spdlog::source_loc{}, spdlog::level::info,
                  spdlog::string_view_t(line.data(), line.size()));
    }
    logger->flush();
    written.fetch_add(batch.size(), std::memory_order_relaxed);
  }
};

std::string PermissionText(uint32_t mode) {
  std::string text = "rwxrwxrwx";
  for (size_t i = 0; i < 9; ++i)
    if ((mode & (0400u >> i)) == 0) text[i] = '-';
  if ((mode & 01000) != 0) text[8] = text[8] == 'x' ? 't' : 'T';
  return text;
}

std::string AuditLine(const AuditLog::Event& event) {
  std::string line = fmt::format("allowed={}\tugi={} (auth:SIMPLE)\tip=/{}\tcmd={}\tsrc={}\tdst={}\tperm={}\tproto=rpc", event.allowed,
                                 Escaped(event.user), Escaped(event.address), event.command, OrNull(event.source),
                                 OrNull(event.destination), OrNull(event.permission));
  if (!event.error.empty()) line += fmt::format("\terror={}", event.error);
  return line;
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const Options& options, Executor* executor) {
  auto state = std::make_shared<State>(options, executor);
  try {
    auto sink = std::make_shared<spdlog::sinks::rotating_file_sink_st>(options.file, options.max_file_bytes, options.max_files);
    state->logger = std::make_shared<spdlog::logger>("audit", std::move(sink));
  } catch (const spdlog::spdlog_ex& e) {
    Error error;
    error.kind = ErrorKind::kInvalidArgument;
    error.message = fmt::format("cannot write the audit log to {}: {}", options.file, e.what());
    error.key = "cairn.namenode.audit.file";
    return MakeError(std::move(error));
  }
  state->logger->set_pattern("%Y-%m-%d %H:%M:%S,%e INFO FSNamesystem.audit: %v", spdlog::pattern_time_type::utc);
  state->logger->set_error_handler([](const std::string&) {});  // A full disk costs lines, nothing else.
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(state)));
}

AuditLog::~AuditLog() = default;

void AuditLog::Write(Event event) {
  bool post = false;
  {
    const MutexLock lock(state_->mu);
    if (state_->waiting.size() >= state_->options.max_queued) {
      state_->dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    state_->waiting.push_back(std::move(event));
    post = !std::exchange(state_->posted, true);
  }
  if (post) state_->executor->Post([state = state_] { state->Drain(); });
}

uint64_t AuditLog::written() const { return state_->written.load(std::memory_order_relaxed); }
uint64_t AuditLog::dropped() const { return state_->dropped.load(std::memory_order_relaxed); }

void AuditLog::Flush(absl::AnyInvocable<void()> then) {
  state_->executor->Post([state = state_, then = std::move(then)]() mutable {
    state->Drain();
    then();
  });
}

}  // namespace cairn::namenode
