#pragma once

// Configuration: flat dotted keys with typed values, from one YAML file or Hadoop's *-site.xml files as they are, and flags that override.
//
// Every key is in a table (common/config_keys.cc) with its type, default, unit and meaning; deploy/config/cairn.yaml is that table as a
// sample. A key that is not in the table, and a value that is not of its type, is an error naming file and line; only keys of *-site.xml
// that do not begin with cairn. are ignored, and counted. Keys that HDFS has keep HDFS's names and, where nothing better is said, defaults.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace cairn {

struct HostPort;

enum class ValueType {
  kBool,      // true, false.
  kInt,       // Decimal.
  kMode,      // Octal: 022.
  kBytes,     // 4096, 64k, 128m, 1g: powers of 1024.
  kDuration,  // 300ms, 3s, 10m, 6h, 1d; a bare number counts in the key's unit.
  kString,
  kChoice,   // One of the key's choices.
  kAddress,  // host:port, [::1]:port; may be empty where the default is.
  kList,     // a,b,c; in YAML also a sequence.
};

struct ConfigKey {
  std::string_view name;
  ValueType type;
  std::string_view default_value;
  std::string_view unit;  // kDuration: of a bare number. kChoice: the choices, "a|b". Else for readers only.
  int64_t min;            // kInt, kBytes (bytes), kDuration (milliseconds): the range.
  int64_t max;
  std::string_view doc;     // A sentence or two.
  std::string_view part;    // Heading in the sample.
  bool reloadable = false;  // Its daemon takes a new value over without a restart.
};

std::span<const ConfigKey> ConfigKeys();
// Null if there is none.
const ConfigKey* FindConfigKey(std::string_view name);
// deploy/config/cairn.yaml: every key, commented out, at its default.
std::string SampleConfig();

// Where a configuration is looked for: the first of these that there is. Flags come on top.
struct ConfigSources {
  std::string file;                                            // --config: YAML, or XML if it ends in .xml. Has to exist.
  std::string cairn_conf;                                      // $CAIRN_CONF: a file as above. Has to exist.
  std::string system_directory = "/etc/cairn";                 // cairn.yaml in it.
  std::string hadoop_conf_dir;                                 // $HADOOP_CONF_DIR: core-site.xml, then hdfs-site.xml.
  std::vector<std::pair<std::string, std::string>> overrides;  // -D key=value.

  // With $CAIRN_CONF and $HADOOP_CONF_DIR of this process.
  static ConfigSources FromEnvironment();
};

// Values of all keys. A value type; reading is thread-safe. Asking for a key that is not in the table, or by another type, aborts.
class Config {
 public:
  Config() = default;  // Defaults.
  // kInvalidArgument naming file, line and key.
  static absl::StatusOr<Config> Load(const ConfigSources& sources);

  bool GetBool(std::string_view key) const;
  int64_t GetInt(std::string_view key) const;
  uint32_t GetMode(std::string_view key) const;
  uint64_t GetBytes(std::string_view key) const;
  absl::Duration GetDuration(std::string_view key) const;
  std::string GetString(std::string_view key) const;  // kString and kChoice.
  std::vector<std::string> GetList(std::string_view key) const;
  // A kList of directories: "file://" and a storage type such as "[SSD]" before a path are taken off, and a path is written one way only:
  // without "//", "." and "..", and no "/" at its end.
  std::vector<std::string> GetDirectories(std::string_view key) const;
  // A kAddress; nothing if it is empty. Needs common/env/network.h.
  std::optional<HostPort> GetAddress(std::string_view key) const;

  bool IsSet(std::string_view key) const;            // By a file or a flag.
  std::string Text(std::string_view key) const;      // As it was written; the default if it was not.
  std::string OriginOf(std::string_view key) const;  // "file:line", "-D", or "default".
  // Keys of *-site.xml that mean nothing here.
  size_t ignored_count() const { return ignored_; }
  // One line for the log: which files, how many keys set and ignored.
  std::string Summary() const;

  // The steps of Load. `file` is for messages. A key that was set before is replaced; twice in one YAML file is an error.
  absl::Status AddYaml(std::string_view text, const std::string& file);
  absl::Status AddSiteXml(std::string_view text, const std::string& file);
  absl::Status Set(std::string_view key, std::string_view value, const std::string& origin);

 private:
  struct Value {
    std::string text;
    std::string origin;
  };
  const ConfigKey& Require(std::string_view key, ValueType type) const;

  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> files_;
  size_t ignored_ = 0;
};

// Values by themselves, for flags of programs.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);
// `bare_unit`: of a number without one; empty: it needs one.
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text, std::string_view bare_unit);
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

}  // namespace cairn
