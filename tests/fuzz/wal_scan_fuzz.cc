// The scan of a log ends for any bytes, and what it leaves of a torn log is a whole one with the records that it counted.

#include "common/check.h"
#include "common/crc32c.h"
#include "namenode/journal/wal_scan.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto scan = cairn::namenode::ScanLog(bytes, "log");
  if (!scan.ok() || !scan->torn_at) return 0;
  CAIRN_CHECK(*scan->torn_at < bytes.size(), "a cut that cuts nothing");
  const auto rest = cairn::namenode::ScanLog(bytes.substr(0, *scan->torn_at), "log");
  CAIRN_CHECK(rest.ok() && !rest->torn_at && rest->records == scan->records, "the cut log is not whole");
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  const auto fragment = [](char type, const std::string& payload) {
    const std::string body = type + payload;
    const uint32_t crc = cairn::Crc32c({body.data(), body.size()});
    const uint32_t masked = (crc >> 15 | crc << 17) + 0xa282ead8u;
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(masked >> shift));
    bytes.push_back(static_cast<char>(payload.size()));
    bytes.push_back(static_cast<char>(payload.size() >> 8));
    return bytes + body;
  };
  const std::string small = fragment(1, "first") + fragment(1, "") + fragment(1, std::string(3000, 'x'));
  const std::string first = fragment(1, "before");
  const std::string spanning = first + fragment(2, std::string(32768 - first.size() - 7, 'y')) + fragment(4, std::string(900, 'z'));
  return {small, spanning};
}
