#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/config.h"

namespace cairn {

// What a daemon's main() does before and after its own work. Call in the order: BlockTerminationSignals (before any thread is made),
// SetUpDaemon, ..., WaitForTermination.

struct DaemonDescription {
  std::string program;      // "cairn-namenode": the executable, and the log file.
  std::string description;  // For --help.
  bool can_format = false;  // Has --format.
};

struct DaemonSetup {
  Config config;
  ConfigSources sources;  // Where it is from: to read it anew.
  bool format = false;
};

// Parses flags (--config, -D key=value, --format, --fault-points, --version, --help), loads the configuration, opens the log and arms
// CAIRN_FAULTS if --fault-points is given. Nothing when the process should end with *exit_code: after --help, --version, or an error
// that has been printed in one line.
std::optional<DaemonSetup> SetUpDaemon(int argc, char** argv, const DaemonDescription& description, int* exit_code);

// SIGTERM and SIGINT, and with `hangup_too` SIGHUP, wait for WaitForTermination, in every thread made later; SIGPIPE is ignored.
void BlockTerminationSignals(bool hangup_too = false);
// Returns the signal's name, or "a command" after RequestTermination. Calls `on_hangup`, if there is one, at each SIGHUP
// that was blocked so.
std::string WaitForTermination(const std::function<void()>& on_hangup = nullptr);
// Makes WaitForTermination of this process return, from any thread: for a daemon that cannot go on.
void RequestTermination();

// Says on standard error and in the log why the daemon cannot run, in one line; returns the exit code, 1.
int FailDaemon(const std::string& program, const absl::Status& status);

}  // namespace cairn
