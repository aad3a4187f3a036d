#include "datanode/storage/version_file.h"

#include <utility>

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <fmt/format.h>
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

#include "common/error.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

using Object = google::protobuf::Struct;

absl::Status Bad(const std::string& what) { return MakeError(ErrorKind::kCorruptMetadata, fmt::format("VERSION: {}", what)); }

absl::StatusOr<std::string> StringOf(const Object& object, const std::string& key) {
  const auto found = object.fields().find(key);
  if (found == object.fields().end() || found->second.kind_case() != google::protobuf::Value::kStringValue) {
    return Bad(fmt::format("\"{}\" is not there, or no string", key));
  }
  return found->second.string_value();
}

absl::StatusOr<uint64_t> NumberOf(const Object& object, const std::string& key) {
  if (!object.fields().contains(key)) return uint64_t{0};
  ASSIGN_OR_RETURN(const std::string text, StringOf(object, key));
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return Bad(fmt::format("\"{}\" is \"{}\", no number", key, text));
  return value;
}

std::string Quoted(const std::string& text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(value, &json);
  static_cast<void>(printed);  // Fails only for numbers that are not finite.
  return json;
}

}  // namespace

// Line by line in a fixed order, so that the same record is the same bytes: a protobuf map would follow its hashes.
std::string EncodeVersion(const VersionRecord& record) {
  const std::pair<const char*, std::string> texts[] = {
      {"clusterId", record.cluster_id},
      {"poolId", absl::BytesToHexString(record.pool_id)},
      {"datanodeUuid", record.datanode_uuid},
      {"storageUuid", record.storage_uuid},
      {"highestEpoch", std::to_string(record.highest_epoch)},
      {"highestBlockId", std::to_string(record.highest_block_id)},
      {"highestGenerationStamp", std::to_string(record.highest_generation_stamp)},
  };
  std::string json = fmt::format("{{\n \"layout\": {}", record.layout);
  for (const auto& [key, text] : texts) json += fmt::format(",\n \"{}\": {}", key, Quoted(text));
  if (record.distrust) json += ",\n \"distrust\": true";
  return json + "\n}\n";
}

absl::StatusOr<VersionRecord> DecodeVersion(std::string_view json) {
  Object object;
  const auto parsed = google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &object);
  if (!parsed.ok()) return Bad("not a JSON object");
  const auto layout = object.fields().find("layout");
  if (layout == object.fields().end() || layout->second.kind_case() != google::protobuf::Value::kNumberValue) return Bad("no \"layout\"");
  const double number = layout->second.number_value();
  if (!(number >= 1 && number <= 1e6)) return Bad(fmt::format("layout {}", number));
  VersionRecord record;
  record.layout = static_cast<uint32_t>(number);
  if (record.layout != kVolumeLayout) {
    return MakeError(ErrorKind::kUnsupported,
                     fmt::format("VERSION: layout {}, this version of Cairn reads {}", record.layout, kVolumeLayout));
  }
  ASSIGN_OR_RETURN(record.cluster_id, StringOf(object, "clusterId"));
  ASSIGN_OR_RETURN(const std::string pool, StringOf(object, "poolId"));
  record.pool_id = absl::HexStringToBytes(pool);
  if ((pool.size() != 32 && !pool.empty()) || absl::BytesToHexString(record.pool_id) != pool)
    return Bad(fmt::format("pool id \"{}\"", pool));
  ASSIGN_OR_RETURN(record.datanode_uuid, StringOf(object, "datanodeUuid"));
  ASSIGN_OR_RETURN(record.storage_uuid, StringOf(object, "storageUuid"));
  if (record.datanode_uuid.empty() || record.storage_uuid.empty()) return Bad("an empty uuid");
  ASSIGN_OR_RETURN(record.highest_epoch, NumberOf(object, "highestEpoch"));
  ASSIGN_OR_RETURN(record.highest_block_id, NumberOf(object, "highestBlockId"));
  ASSIGN_OR_RETURN(record.highest_generation_stamp, NumberOf(object, "highestGenerationStamp"));
  const auto distrust = object.fields().find("distrust");
  record.distrust = distrust != object.fields().end() && distrust->second.bool_value();
  return record;
}

}  // namespace cairn::datanode
