// Configuration files: YAML and Hadoop's *-site.xml to keys and values. See common/config.h.

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>
#include <pugixml.hpp>

#include "common/config.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn {
namespace {

absl::Status Bad(std::string message) { return MakeError(ErrorKind::kInvalidArgument, std::move(message)); }

std::string At(const std::string& file, int line) { return fmt::format("{}:{}", file, line); }

// yaml-cpp counts lines from 0.
std::string At(const std::string& file, const YAML::Mark& mark) { return At(file, mark.line + 1); }

// A scalar, a sequence of scalars as "a,b", nothing as "".
absl::StatusOr<std::string> YamlValue(const YAML::Node& node, const std::string& key, const std::string& at) {
  if (node.IsNull()) return std::string();
  if (node.IsScalar()) return node.Scalar();
  if (!node.IsSequence()) return Bad(fmt::format("{}: {}: keys are flat here: write {}.NAME: VALUE", at, key, key));
  const ConfigKey* known = FindConfigKey(key);
  if (known != nullptr && known->type != ValueType::kList) return Bad(fmt::format("{}: {}: one value is expected, not a list", at, key));
  std::string list;
  for (const YAML::Node& item : node) {
    if (!item.IsScalar()) return Bad(fmt::format("{}: {}: a list holds plain values", at, key));
    list += (list.empty() ? "" : ",") + item.Scalar();
  }
  return list;
}

int LineOf(std::string_view text, ptrdiff_t offset) {
  if (offset < 0) return 1;
  const auto end = text.begin() + std::min(offset, static_cast<ptrdiff_t>(text.size()));
  return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

using Properties = std::map<std::string, std::string, std::less<>>;

// Replaces ${name} by another property of the file or, for ${env.NAME}, by an environment variable, as Hadoop's Configuration does.
absl::StatusOr<std::string> Expand(std::string value, const Properties& properties) {
  constexpr int kMaxSteps = 20;  // As Hadoop's; two properties may name each other.
  for (int step = 0; step < kMaxSteps; ++step) {
    const size_t begin = value.find("${");
    const size_t end = begin == std::string::npos ? begin : value.find('}', begin);
    if (end == std::string::npos) return value;
    const std::string name = value.substr(begin + 2, end - begin - 2);
    std::string text;
    if (name.starts_with("env.")) {
      const char* variable = std::getenv(name.c_str() + 4);  // NOLINT(concurrency-mt-unsafe): before threads.
      if (variable == nullptr) return Bad(fmt::format("environment variable {} is not set", name.substr(4)));
      text = variable;
    } else if (const auto found = properties.find(name); found != properties.end()) {
      text = found->second;
    } else {
      return Bad(fmt::format("${{{}}} is not set in this file", name));
    }
    value.replace(begin, end + 1 - begin, text);
  }
  return Bad("${...} refers to itself");
}

}  // namespace

absl::Status Config::AddYaml(std::string_view text, const std::string& file) {
  files_.push_back(file);
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (root.IsNull()) return absl::OkStatus();
    if (!root.IsMap()) return Bad(fmt::format("{}: KEY: VALUE lines are expected", At(file, root.Mark())));
    std::map<std::string, int> lines;
    for (const auto& entry : root) {
      const std::string at = At(file, entry.first.Mark());
      if (!entry.first.IsScalar()) return Bad(fmt::format("{}: a key has to be a plain word", at));
      const std::string& key = entry.first.Scalar();
      const auto [first, added] = lines.emplace(key, entry.first.Mark().line + 1);
      if (!added) return Bad(fmt::format("{}: {} was set in line {} already", at, key, first->second));
      if (FindConfigKey(key) == nullptr && !entry.second.IsMap()) return Bad(fmt::format("{}: unknown key {}", at, key));
      ASSIGN_OR_RETURN(const std::string value, YamlValue(entry.second, key, at));
      RETURN_IF_ERROR(Set(key, value, at));
    }
  } catch (const YAML::Exception& e) {
    return Bad(fmt::format("{}: not YAML: {}", At(file, e.mark), e.msg));
  }
  return absl::OkStatus();
}

absl::Status Config::AddSiteXml(std::string_view text, const std::string& file) {
  files_.push_back(file);
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed) return Bad(fmt::format("{}: not XML: {}", At(file, LineOf(text, parsed.offset)), parsed.description()));
  const pugi::xml_node root = document.child("configuration");
  if (!root) return Bad(fmt::format("{}: <configuration> is expected", At(file, 1)));

  Properties properties;
  for (const pugi::xml_node property : root.children("property"))
    properties.insert_or_assign(std::string(Trim(property.child_value("name"))), std::string(Trim(property.child_value("value"))));

  for (const pugi::xml_node property : root.children("property")) {
    const std::string at = At(file, LineOf(text, property.offset_debug()));
    const std::string key(Trim(property.child_value("name")));
    if (key.empty()) return Bad(fmt::format("{}: a <property> without a <name>", at));
    if (FindConfigKey(key) == nullptr) {
      if (key.starts_with("cairn.")) return Bad(fmt::format("{}: unknown key {}", at, key));
      ++ignored_;
      continue;
    }
    absl::StatusOr<std::string> value = Expand(std::string(Trim(property.child_value("value"))), properties);
    if (!value.ok()) return Bad(fmt::format("{}: {}: {}", at, key, std::string(value.status().message())));
    RETURN_IF_ERROR(Set(key, *value, at));
  }
  return absl::OkStatus();
}

}  // namespace cairn
