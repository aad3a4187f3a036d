// Whatever a disk gives as a replica's header or slot, or as a VERSION file, is refused or means the same after it was encoded again.

#include <span>
#include <string_view>

#include "common/check.h"
#include "datanode/storage/replica_format.h"
#include "datanode/storage/version_file.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn::datanode;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto header = DecodeHeader(bytes); header.ok()) {
    CAIRN_CHECK(CheckHeader(*header).ok(), "a header that cannot be");
    CAIRN_CHECK(DataOffset(header->capacity, header->bytes_per_checksum) % kHeaderPageBytes == 0, "data that is not aligned");
    const auto again = DecodeHeader(EncodeHeader(*header));
    CAIRN_CHECK(again.ok() && again->id == header->id && again->capacity == header->capacity, "another header after a round trip");
  }
  if (const auto slot = DecodeSlot(bytes)) {
    const auto again = DecodeSlot(EncodeSlot(*slot));
    CAIRN_CHECK(again && again->sequence == slot->sequence && again->length == slot->length && again->state == slot->state,
                "another slot after a round trip");
  }
  if (const auto version = DecodeVersion(bytes); version.ok()) {
    const auto again = DecodeVersion(EncodeVersion(*version));
    CAIRN_CHECK(again.ok() && again->storage_uuid == version->storage_uuid && again->pool_id == version->pool_id,
                "another VERSION after a round trip");
  }
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  using namespace cairn::datanode;
  const ReplicaHeader header{.capacity = 1 << 30, .pool_id = "0123456789abcdef", .id = cairn::BlockId(1 << 30)};
  ReplicaSlot slot;
  slot.sequence = 3;
  slot.stamp = cairn::GenerationStamp(1001);
  slot.length = 700;
  slot.boot_id = "0123456789abcdef";
  VersionRecord version;
  version.datanode_uuid = "node";
  version.storage_uuid = "storage";
  version.pool_id = "0123456789abcdef";
  return {EncodeHeader(header), EncodeSlot(slot), EncodeVersion(version)};
}
