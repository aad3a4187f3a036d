#include "namenode/replicas/host_list.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "common/error.h"
#include "common/line_words.h"
#include "common/status.h"

namespace cairn::namenode {
namespace {

std::vector<std::string> NamesOf(const v1::Endpoint& node) {
  const std::string host = absl::AsciiStrToLower(node.host());
  return {host, fmt::format("{}:{}", host, node.port())};
}

absl::Status Bad(const std::string& what) { return MakeError(ErrorKind::kInvalidArgument, what); }

absl::Status ParseWords(std::string_view text, std::set<std::string>* names) {
  for (const std::vector<std::string>& words : LineWords(text)) {
    for (const std::string& word : words) {
      std::string name = absl::AsciiStrToLower(word);
      const size_t colon = name.rfind(':');
      uint32_t port = 0;
      const bool has_port = colon != std::string::npos && name.find(':') == colon;  // More colons: an IPv6 address.
      if (has_port && (colon == 0 || !absl::SimpleAtoi(name.substr(colon + 1), &port) || port == 0 || port > 65535))
        return Bad(fmt::format("'{}' is no host and no host:port", name));
      names->insert(std::move(name));
    }
  }
  return absl::OkStatus();
}

const google::protobuf::Value* Field(const google::protobuf::Struct& entry, const char* name) {
  const auto found = entry.fields().find(name);
  return found == entry.fields().end() ? nullptr : &found->second;
}

// A number, or the digits of one.
absl::StatusOr<int64_t> Number(const google::protobuf::Value& value) {
  if (value.kind_case() == google::protobuf::Value::kNumberValue) return static_cast<int64_t>(value.number_value());
  int64_t number = 0;
  if (value.kind_case() == google::protobuf::Value::kStringValue && absl::SimpleAtoi(value.string_value(), &number)) return number;
  return Bad("a port or a time that is no number");
}

}  // namespace

absl::StatusOr<HostList> HostList::Parse(std::string_view hosts, std::string_view exclude) {
  HostList list;
  const size_t first = hosts.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && hosts[first] == '[') {
    RETURN_IF_ERROR(list.ParseJson(hosts));
  } else {
    RETURN_IF_ERROR(ParseWords(hosts, &list.included_));
  }
  RETURN_IF_ERROR(ParseWords(exclude, &list.excluded_));
  return list;
}

absl::Status HostList::ParseJson(std::string_view text) {
  google::protobuf::ListValue entries;
  const auto parsed = google::protobuf::util::JsonStringToMessage(std::string(text), &entries);
  if (!parsed.ok()) return Bad(fmt::format("no JSON array: {}", std::string(parsed.message().data(), parsed.message().size())));
  for (int i = 0; i < entries.values_size(); ++i) {
    const google::protobuf::Struct& entry = entries.values(i).struct_value();
    const google::protobuf::Value* const host = Field(entry, "hostName");
    if (host == nullptr || host->string_value().empty()) return Bad(fmt::format("entry {} has no hostName", i + 1));
    std::string name = absl::AsciiStrToLower(host->string_value());
    if (const google::protobuf::Value* const port = Field(entry, "port")) {
      ASSIGN_OR_RETURN(const int64_t number, Number(*port));
      if (number < 0 || number > 65535) return Bad(fmt::format("entry {}: {} is no port", i + 1, number));
      if (number > 0) name += fmt::format(":{}", number);
    }
    const google::protobuf::Value* const state = Field(entry, "adminState");
    const std::string wanted = state == nullptr ? "NORMAL" : state->string_value();
    if (wanted == "DECOMMISSIONED") {
      excluded_.insert(name);
    } else if (wanted == "IN_MAINTENANCE") {
      int64_t until_ms = 0;
      if (const google::protobuf::Value* const until = Field(entry, "maintenanceExpireTimeInMS")) {
        ASSIGN_OR_RETURN(until_ms, Number(*until));
      }
      maintenance_[name] = until_ms;
    } else if (wanted != "NORMAL") {
      return Bad(fmt::format("entry {}: adminState '{}' is none of NORMAL, DECOMMISSIONED, IN_MAINTENANCE", i + 1, wanted));
    }
    included_.insert(std::move(name));
  }
  return absl::OkStatus();
}

bool HostList::Names(const std::set<std::string>& names, const v1::Endpoint& node) {
  if (names.empty()) return false;
  for (const std::string& name : NamesOf(node))
    if (names.contains(name)) return true;
  return false;
}

const int64_t* HostList::MaintenanceOf(const v1::Endpoint& node) const {
  for (const std::string& name : NamesOf(node))
    if (const auto found = maintenance_.find(name); found != maintenance_.end()) return &found->second;
  return nullptr;
}

}  // namespace cairn::namenode
