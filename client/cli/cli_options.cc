#include "client/cli/cli_options.h"

#include <utility>

#include <fmt/format.h>

#include "client/src/file_system.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::cli {
namespace {

bool IsOption(const std::string& word, std::string_view name) {
  return word == fmt::format("-{}", name) || word == fmt::format("--{}", name);
}

bool IsCommand(const std::string& word) { return word == "dfs" || word == "fs" || word == "dfsadmin"; }

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(std::vector<std::string> words, ConfigSources environment) {
  CommandLine line;
  line.config = std::move(environment);
  bool command_seen = false;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    const bool address = IsOption(word, "fs");
    const bool file = IsOption(word, "conf") || IsOption(word, "config");
    const bool define = word == "-D";
    if (!address && !file && !define) {
      line.words.push_back(std::move(word));
      if (!command_seen && !line.words.back().starts_with('-')) {
        command_seen = true;
        continue;
      }
      // The verb: everything behind it is its own.
      line.words.insert(line.words.end(), std::make_move_iterator(words.begin() + static_cast<ptrdiff_t>(i) + 1),
                        std::make_move_iterator(words.end()));
      break;
    }
    if (i + 1 == words.size()) return MakeError(ErrorKind::kInvalidArgument, fmt::format("{} needs a value", word));
    std::string& value = words[++i];
    // "-fs dfs -ls": what follows is the command, not an address.
    const bool takes_command = !command_seen && IsCommand(value) && i + 1 < words.size() && words[i + 1].starts_with('-');
    if (value.starts_with('-') || (!define && takes_command))
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("{} needs a value", word));
    if (address) {
      line.address = std::move(value);
    } else if (file) {
      line.config.file = std::move(value);
    } else {
      const size_t equals = value.find('=');
      if (equals == std::string::npos || equals == 0)
        return MakeError(ErrorKind::kInvalidArgument, fmt::format("-D {}: key=value is needed", value));
      line.config.overrides.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    }
  }
  return line;
}

absl::StatusOr<HostPort> NamenodeAddress(const std::string& address, const Config& config) {
  constexpr std::string_view kHdfs = "hdfs://";
  std::string text = address.empty() ? config.GetString("fs.defaultFS") : address;
  const bool configured = config.IsSet("cairn.namenode.grpc-address");
  if (text.starts_with(kHdfs) && !configured) {
    text = text.substr(kHdfs.size());
    text = text.substr(0, text.find_first_of(":/"));  // Its port is that of Hadoop's protocol.
  }
  if (text.empty() || text.starts_with(kHdfs) || text.starts_with("file://")) {
    if (const auto grpc = config.GetAddress("cairn.namenode.grpc-address")) return *grpc;
    return MakeError(ErrorKind::kInvalidArgument, "no NameNode: give -fs cairn://host:port, or set cairn.namenode.grpc-address");
  }
  return client::ParseAddress(text);
}

ClientOptions ClientOptionsOf(const Config& config) {
  ClientOptions options;
  // Unset: the server's own word, which its operator configured.
  if (config.IsSet("dfs.replication")) options.replication = static_cast<uint32_t>(config.GetInt("dfs.replication"));
  if (config.IsSet("dfs.blocksize")) options.block_size_bytes = config.GetBytes("dfs.blocksize");
  options.umask = config.GetMode("fs.permissions.umask-mode");
  options.close_sync = config.GetString("cairn.close.sync") == "none" ? CloseSync::kNone : CloseSync::kData;
  options.packet_bytes = config.GetBytes("cairn.client.packet.size");
  options.window_bytes = config.GetBytes("cairn.client.window");
  options.retry_budget = config.GetDuration("cairn.client.retry.budget");
  options.call_timeout = config.GetDuration("cairn.client.call.timeout");
  options.connect_timeout = config.GetDuration("cairn.client.connect.timeout");
  options.socket_timeout = config.GetDuration("dfs.client.socket-timeout");
  options.slow_node_threshold = static_cast<int>(config.GetInt("dfs.client.mark.slownode.as.badnode.threshold"));
  options.trash_interval = config.GetDuration("fs.trash.interval");
  options.lease_renew_interval = config.GetDuration("dfs.client.lease.renew.interval");
  return options;
}

}  // namespace cairn::cli
