#include "common/log.h"

#include <atomic>
#include <memory>
#include <vector>

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "common/error.h"
#include "common/mutex.h"

namespace cairn::log {
namespace {

// ISO 8601 in UTC, so that lines of several machines sort together; level's first letter; thread id.
constexpr char kPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %L %t %v";

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarning: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::shared_ptr<spdlog::logger> NewLogger(std::vector<spdlog::sink_ptr> sinks, Level level) {
  auto logger = std::make_shared<spdlog::logger>("cairn", sinks.begin(), sinks.end());
  logger->set_pattern(kPattern, spdlog::pattern_time_type::utc);
  logger->set_level(ToSpdlog(level));
  logger->flush_on(spdlog::level::debug);  // What was logged before a crash is what one wants to read after it.
  return logger;
}

// The logger in use. Not an atomic pointer: libstdc++'s one of shared_ptr looks like a race to the thread sanitizer.
struct Current {
  Mutex mu;
  std::shared_ptr<spdlog::logger> logger ABSL_GUARDED_BY(mu) = NewLogger({std::make_shared<spdlog::sinks::stderr_sink_mt>()},
                                                                         Level::kWarning);
};

// Never destroyed: destructors of static objects may log.
Current& TheCurrent() {
  static auto* current = new Current;
  return *current;
}

std::shared_ptr<spdlog::logger> Logger() {
  Current& current = TheCurrent();
  MutexLock lock(current.mu);
  return current.logger;
}

void ReplaceLogger(std::shared_ptr<spdlog::logger> logger) {
  Current& current = TheCurrent();
  MutexLock lock(current.mu);
  current.logger = std::move(logger);
}

std::atomic<int> threshold{static_cast<int>(Level::kWarning)};

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::optional<Level> LevelFromName(std::string_view name) {
  if (name == "debug") return Level::kDebug;
  if (name == "info") return Level::kInfo;
  if (name == "warning") return Level::kWarning;
  if (name == "error") return Level::kError;
  return std::nullopt;
}

absl::Status SetUp(const Options& options) {
  std::vector<spdlog::sink_ptr> sinks;
  if (options.to_standard_error) sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (!options.directory.empty()) {
    const std::string file = options.directory + "/" + options.program + ".log";
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(file, options.max_file_bytes, options.max_files));
    } catch (const spdlog::spdlog_ex& e) {
      ::cairn::Error error;
      error.kind = ErrorKind::kInvalidArgument;
      error.message = fmt::format("cannot log to {}: {}", file, e.what());
      error.key = "cairn.log.dir";
      return MakeError(std::move(error));
    }
  }
  ReplaceLogger(NewLogger(std::move(sinks), options.level));
  threshold.store(static_cast<int>(options.level), std::memory_order_relaxed);
  return absl::OkStatus();
}

void SetLevel(Level level) {
  Logger()->set_level(ToSpdlog(level));
  threshold.store(static_cast<int>(level), std::memory_order_relaxed);
}

bool Enabled(Level level) { return static_cast<int>(level) >= threshold.load(std::memory_order_relaxed); }

void Write(Level level, std::string_view message) {
  std::string escaped;
  for (size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    if (!IsControl(c)) {
      if (!escaped.empty()) escaped += c;
      continue;
    }
    if (escaped.empty()) escaped.assign(message.substr(0, i));
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  const std::string_view line = escaped.empty() ? message : std::string_view(escaped);
  Logger()->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace cairn::log
