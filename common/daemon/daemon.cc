#include "common/daemon/daemon.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <utility>

#include <google/protobuf/stubs/logging.h>
#include <CLI/CLI.hpp>

#include "common/env/thread_stack.h"
#include "common/fault_points.h"
#include "common/log.h"

namespace cairn {
namespace {

// Of main(), which blocks the signals first and waits for them last.
pthread_t waiting_thread;

sigset_t TerminationSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGUSR1);  // RequestTermination's.
  return signals;
}

log::Options LogOptions(const Config& config, const std::string& program) {
  log::Options options;
  options.level = log::LevelFromName(config.GetString("cairn.log.level")).value_or(log::Level::kInfo);
  options.directory = config.GetString("cairn.log.dir");
  options.program = program;
  options.max_file_bytes = config.GetBytes("cairn.log.file.size");
  options.max_files = static_cast<size_t>(config.GetInt("cairn.log.file.count"));
  options.to_standard_error = config.GetBool("cairn.log.stderr");
  return options;
}

// "key=value" of -D.
absl::StatusOr<std::pair<std::string, std::string>> ParseOverride(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) return absl::InvalidArgumentError("-D " + text + ": expected key=value");
  return std::make_pair(text.substr(0, equals), text.substr(equals + 1));
}

}  // namespace

int FailDaemon(const std::string& program, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), std::string(status.message()).c_str());
  return 1;
}

std::optional<DaemonSetup> SetUpDaemon(int argc, char** argv, const DaemonDescription& description, int* exit_code) {
  InitializeStackNames(argv[0]);
  CLI::App app(description.description, description.program);
  ConfigSources sources = ConfigSources::FromEnvironment();
  std::vector<std::string> overrides;
  bool fault_points = false;
  DaemonSetup setup;
  app.add_option("--config", sources.file, "Configuration: YAML, or a Hadoop *-site.xml")->type_name("FILE");
  app.add_option("-D", overrides, "Sets a key over the file's value")->type_name("KEY=VALUE");
  app.add_flag("--fault-points", fault_points, "Lets tests arm fault points, also from CAIRN_FAULTS");
  app.set_version_flag("--version", description.program + " " CAIRN_VERSION);
  if (description.can_format) app.add_flag("--format", setup.format, "Makes a new, empty cluster in the configured directory, and ends");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // Also --help and --version.
    *exit_code = app.exit(error) == 0 ? 0 : 255;
    return std::nullopt;
  }
  *exit_code = 1;
  for (const std::string& text : overrides) {
    auto parsed = ParseOverride(text);
    if (!parsed.ok()) {
      *exit_code = 255;
      FailDaemon(description.program, parsed.status());
      return std::nullopt;
    }
    sources.overrides.push_back(*std::move(parsed));
  }
  absl::StatusOr<Config> config = Config::Load(sources);
  if (!config.ok()) {
    FailDaemon(description.program, config.status());
    return std::nullopt;
  }
  setup.config = *std::move(config);
  setup.sources = std::move(sources);
  if (absl::Status log = log::SetUp(LogOptions(setup.config, description.program)); !log.ok()) {
    FailDaemon(description.program, log);
    return std::nullopt;
  }
  // What does not parse is answered as an error to its sender; protobuf's own lines would come unbidden to standard error.
  google::protobuf::SetLogHandler(
      [](google::protobuf::LogLevel, const char*, int, const std::string& message) { log::Debug("protobuf: {}", message); });
  if (fault_points) {
    EnableFaultPoints();
    if (absl::Status armed = ArmFaultsFromEnvironment(); !armed.ok()) {
      FailDaemon(description.program, armed);
      return std::nullopt;
    }
  }
  log::Info("{} {} starts; {}", description.program, CAIRN_VERSION, setup.config.Summary());
  return setup;
}

void BlockTerminationSignals(bool hangup_too) {
  waiting_thread = pthread_self();
  sigset_t signals = TerminationSignals();
  if (hangup_too) sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

std::string WaitForTermination(const std::function<void()>& on_hangup) {
  sigset_t signals = TerminationSignals();
  if (on_hangup) sigaddset(&signals, SIGHUP);
  int number = 0;
  for (;;) {
    if (sigwait(&signals, &number) != 0) continue;
    if (number != SIGHUP) break;
    on_hangup();
  }
  return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : "a command";
}

void RequestTermination() { pthread_kill(waiting_thread, SIGUSR1); }

}  // namespace cairn
