#include "common/config.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <fmt/format.h>

#include "common/check.h"
#include "common/env/network.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn {
namespace {

absl::Status Bad(std::string message, std::string_view key = {}) {
  Error error;
  error.kind = ErrorKind::kInvalidArgument;
  error.message = std::move(message);
  error.key = std::string(key);
  return MakeError(std::move(error));
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (const std::string_view item = Trim(text.substr(0, comma)); !item.empty()) items.emplace_back(item);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return items;
}

// By its letters only: what is a link nobody asks.
std::string PlainPath(std::string_view path) {
  std::string plain = std::filesystem::path(path).lexically_normal().string();
  if (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return plain.empty() ? "." : plain;
}

template <class Int>
absl::StatusOr<Int> ParseInt(std::string_view text, int base, std::string_view what) {
  Int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return Bad(fmt::format("'{}' is {}", text, what));
  return number;
}

absl::StatusOr<bool> ParseBool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return Bad(fmt::format("'{}' is neither true nor false", text));
}

absl::Status CheckRange(std::string_view text, int64_t value, int64_t min, int64_t max, std::string_view unit) {
  if (value >= min && value <= max) return absl::OkStatus();
  if (max == std::numeric_limits<int64_t>::max()) return Bad(fmt::format("'{}' is less than {}{}", text, min, unit));
  return Bad(fmt::format("'{}' is not in {} to {}{}", text, min, max, unit));
}

absl::Status CheckValue(const ConfigKey& key, std::string_view text) {
  switch (key.type) {
    case ValueType::kBool: return ParseBool(text).status();
    case ValueType::kInt: {
      ASSIGN_OR_RETURN(const int64_t number, ParseInt<int64_t>(text, 10, "no number"));
      return CheckRange(text, number, key.min, key.max, "");
    }
    case ValueType::kMode: {
      ASSIGN_OR_RETURN(const int64_t number, ParseInt<int64_t>(text, 8, "no octal number"));
      return CheckRange(text, number, 0, 07777, " (decimal)");
    }
    case ValueType::kBytes: {
      ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
      if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return Bad(fmt::format("'{}' is too large", text));
      return CheckRange(text, static_cast<int64_t>(bytes), key.min, key.max, " bytes");
    }
    case ValueType::kDuration: {
      ASSIGN_OR_RETURN(const absl::Duration duration, ParseDuration(text, key.unit));
      return CheckRange(text, absl::ToInt64Milliseconds(duration), key.min, key.max, " ms");
    }
    case ValueType::kChoice: {
      std::string_view choices = key.unit;
      while (!choices.empty()) {
        const size_t bar = choices.find('|');
        if (choices.substr(0, bar) == text) return absl::OkStatus();
        choices = bar == std::string_view::npos ? std::string_view() : choices.substr(bar + 1);
      }
      return Bad(fmt::format("'{}' is none of {}", text, key.unit));
    }
    case ValueType::kAddress:
      if (text.empty() && key.default_value.empty()) return absl::OkStatus();
      return ParseHostPort(text).status();
    case ValueType::kString:
    case ValueType::kList: return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Bad(fmt::format("configuration {} cannot be read", path));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return Bad(fmt::format("configuration {} cannot be read", path));
  return std::move(text).str();
}

bool Exists(const std::string& path) { return std::ifstream(path).good(); }

absl::Status AddFile(const std::string& path, Config& config) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return path.ends_with(".xml") ? config.AddSiteXml(text, path) : config.AddYaml(text, path);
}

std::string FromEnvironmentOrEmpty(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before threads.
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

ConfigSources ConfigSources::FromEnvironment() {
  ConfigSources sources;
  sources.cairn_conf = FromEnvironmentOrEmpty("CAIRN_CONF");
  sources.hadoop_conf_dir = FromEnvironmentOrEmpty("HADOOP_CONF_DIR");
  return sources;
}

absl::StatusOr<Config> Config::Load(const ConfigSources& sources) {
  Config config;
  const std::string system_file = sources.system_directory + "/cairn.yaml";
  if (!sources.file.empty()) {
    RETURN_IF_ERROR(AddFile(sources.file, config));
  } else if (!sources.cairn_conf.empty()) {
    RETURN_IF_ERROR(Annotate(AddFile(sources.cairn_conf, config), "CAIRN_CONF"));
  } else if (!sources.system_directory.empty() && Exists(system_file)) {
    RETURN_IF_ERROR(AddFile(system_file, config));
  } else if (!sources.hadoop_conf_dir.empty()) {
    for (const char* name : {"core-site.xml", "hdfs-site.xml"}) {
      const std::string file = sources.hadoop_conf_dir + "/" + name;
      if (Exists(file)) RETURN_IF_ERROR(AddFile(file, config));
    }
  }
  for (const auto& [key, value] : sources.overrides) RETURN_IF_ERROR(config.Set(key, value, "-D"));
  return config;
}

absl::Status Config::Set(std::string_view key, std::string_view value, const std::string& origin) {
  const ConfigKey* known = FindConfigKey(key);
  if (known == nullptr) return Bad(fmt::format("{}: unknown key {}", origin, key), key);
  const std::string_view text = Trim(value);
  if (const absl::Status status = CheckValue(*known, text); !status.ok())
    return Bad(fmt::format("{}: {}: {}", origin, key, std::string(status.message())), key);
  values_.insert_or_assign(std::string(key), Value{std::string(text), origin});
  return absl::OkStatus();
}

const ConfigKey& Config::Require(std::string_view key, ValueType type) const {
  const ConfigKey* known = FindConfigKey(key);
  CAIRN_CHECK(known != nullptr, fmt::format("configuration key {} is not in the table", key));
  CAIRN_CHECK(known->type == type, fmt::format("configuration key {} is of another type", key));
  return *known;
}

std::string Config::Text(std::string_view key) const {
  if (const auto found = values_.find(key); found != values_.end()) return found->second.text;
  const ConfigKey* known = FindConfigKey(key);
  CAIRN_CHECK(known != nullptr, fmt::format("configuration key {} is not in the table", key));
  return std::string(known->default_value);
}

// Values were checked when they were set, and a test checks the defaults, so parsing cannot fail below.
bool Config::GetBool(std::string_view key) const {
  Require(key, ValueType::kBool);
  return ParseBool(Text(key)).value();
}

int64_t Config::GetInt(std::string_view key) const {
  Require(key, ValueType::kInt);
  return ParseInt<int64_t>(Text(key), 10, "").value();
}

uint32_t Config::GetMode(std::string_view key) const {
  Require(key, ValueType::kMode);
  return ParseInt<uint32_t>(Text(key), 8, "").value();
}

uint64_t Config::GetBytes(std::string_view key) const {
  Require(key, ValueType::kBytes);
  return ParseBytes(Text(key)).value();
}

absl::Duration Config::GetDuration(std::string_view key) const {
  return ParseDuration(Text(key), Require(key, ValueType::kDuration).unit).value();
}

std::string Config::GetString(std::string_view key) const {
  const ConfigKey* known = FindConfigKey(key);
  if (known == nullptr || known->type != ValueType::kChoice) Require(key, ValueType::kString);
  return Text(key);
}

std::vector<std::string> Config::GetList(std::string_view key) const {
  Require(key, ValueType::kList);
  return SplitList(Text(key));
}

std::vector<std::string> Config::GetDirectories(std::string_view key) const {
  std::vector<std::string> directories = GetList(key);
  for (std::string& directory : directories) {
    if (directory.starts_with('[')) directory.erase(0, directory.find(']') + 1);
    if (directory.starts_with("file://")) directory.erase(0, 7);
    directory = PlainPath(directory);
  }
  return directories;
}

std::optional<HostPort> Config::GetAddress(std::string_view key) const {
  Require(key, ValueType::kAddress);
  const std::string text = Text(key);
  if (text.empty()) return std::nullopt;
  return ParseHostPort(text).value();
}

bool Config::IsSet(std::string_view key) const { return values_.find(key) != values_.end(); }

std::string Config::OriginOf(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? "default" : found->second.origin;
}

std::string Config::Summary() const {
  std::string files;
  for (const std::string& file : files_) files += (files.empty() ? "" : ", ") + file;
  return fmt::format("configuration: {}; {} keys set, {} keys of others ignored", files.empty() ? "defaults" : files, values_.size(),
                     ignored_);
}

}  // namespace cairn
