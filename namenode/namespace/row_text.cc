#include "namenode/namespace/row_text.h"

#include <memory>
#include <optional>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include "absl/strings/escaping.h"
#include "cairn/namespace.pb.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

std::string Hex(std::string_view bytes) { return absl::BytesToHexString({bytes.data(), bytes.size()}); }

// A JSON string; names and holders are UTF-8.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::unique_ptr<google::protobuf::Message> RecordOf(Family family) {
  switch (family) {
    case Family::kInode: return std::make_unique<v1::INodeRecord>();
    case Family::kInodeById: return std::make_unique<v1::INodeLink>();
    case Family::kBlock: return std::make_unique<v1::BlockRecord>();
    case Family::kUsage: return std::make_unique<v1::UsageRecord>();
    case Family::kLease: return std::make_unique<v1::LeaseRecord>();
    case Family::kWork: return std::make_unique<v1::WorkRecord>();
    case Family::kRetry: return std::make_unique<v1::RetryRecord>();
    case Family::kDatanode: return std::make_unique<v1::DatanodeRecord>();
    case Family::kFileBlock:
    case Family::kMeta: return nullptr;
  }
  return nullptr;
}

std::string ValueJson(Family family, std::string_view key, std::string_view value) {
  if (const auto record = RecordOf(family)) {
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    std::string json;
    if (record->ParseFromArray(value.data(), static_cast<int>(value.size())) &&
        google::protobuf::util::MessageToJsonString(*record, &json, options).ok())
      return json;
    return fmt::format("\"0x{}\"", Hex(value));
  }
  if (family == Family::kMeta && key.starts_with(kMetaNodeAdminPrefix)) {
    v1::NodeAdminRecord record;
    std::string json;
    if (record.ParseFromArray(value.data(), static_cast<int>(value.size())) &&
        google::protobuf::util::MessageToJsonString(record, &json).ok())
      return json;
  }
  if (family == Family::kMeta && (key == kMetaClusterId || key == kMetaKeepUnknownReplicas)) return Quoted(value);
  if (const std::optional<uint64_t> number = DecodeU64(value)) return fmt::format("{}", *number);
  // Keys of block tokens are secrets.
  if (family == Family::kMeta && key == kMetaBlockTokenKeys) return fmt::format("\"{} bytes\"", value.size());
  return fmt::format("\"0x{}\"", Hex(value));
}

}  // namespace

std::string KeyText(Family family, std::string_view key) {
  switch (family) {
    case Family::kInode:
      if (const auto parts = ParseInodeKey(key)) {
        const bool detached = parts->parent == kDetachedInodeId;
        return fmt::format("({}, {})", parts->parent.value(), detached ? "0x" + Hex(parts->name) : Quoted(parts->name));
      }
      break;
    case Family::kFileBlock:
      if (key.size() == 16) return fmt::format("({}, {})", *DecodeU64(key.substr(0, 8)), *DecodeU64(key.substr(8)));
      break;
    case Family::kInodeById:
    case Family::kBlock:
    case Family::kUsage:
    case Family::kWork:
      if (const auto number = DecodeU64(key)) return fmt::format("{}", *number);
      break;
    case Family::kLease:
      if (const auto parts = ParseLeaseKey(key)) return fmt::format("({}, {})", Quoted(parts->holder), parts->id.value());
      break;
    case Family::kRetry:
      if (key.size() == kClientIdBytes + 4) {
        const std::string slot = std::string(4, '\0') + std::string(key.substr(kClientIdBytes));
        return fmt::format("(0x{}, {})", Hex(key.substr(0, kClientIdBytes)), *DecodeU64(slot));
      }
      break;
    case Family::kDatanode:
      if (const auto number = ParseDatanodeKey(key)) return fmt::format("{}", number->value());
      break;
    case Family::kMeta: return Quoted(key);
  }
  return "0x" + Hex(key);
}

std::string RowJson(Family family, std::string_view key, std::string_view value) {
  return fmt::format(R"({{"family": "{}", "key": {}, "value": {}}})", FamilyName(family), Quoted(KeyText(family, key)),
                     ValueJson(family, key, value));
}

}  // namespace cairn::namenode
