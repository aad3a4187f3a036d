#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/options.h"
#include "common/config.h"
#include "common/env/network.h"

namespace cairn::cli {

// The command line without the options that belong to all commands (as Hadoop's generic options):
// -fs, -conf, -D.
struct CommandLine {
  std::string address;             // -fs; empty: the configuration's.
  ConfigSources config;            // -conf and -D, on top of the environment's.
  std::vector<std::string> words;  // What is left: command, verb, arguments.
};

// Options are looked for before the verb only: `cairn -fs X dfs -D k=v -ls /`. kInvalidArgument for
// one without a value.
absl::StatusOr<CommandLine> ParseCommandLine(std::vector<std::string> words, ConfigSources environment);

// Where the NameNode is: `address` if there is one, else fs.defaultFS, else
// cairn.namenode.grpc-address. An hdfs:// address means the same host, at
// cairn.namenode.grpc-address if that is set, else port 8021.
absl::StatusOr<HostPort> NamenodeAddress(const std::string& address, const Config& config);

ClientOptions ClientOptionsOf(const Config& config);

}  // namespace cairn::cli
