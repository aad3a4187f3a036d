// Whatever decodes as a journal batch encodes to the same bytes again; nothing else does more than fail.

#include "common/check.h"
#include "namenode/store/effect_batch.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using cairn::namenode::EffectEncoder;
using cairn::namenode::Family;

class ReEncoder : public cairn::namenode::EffectVisitor {
 public:
  explicit ReEncoder(uint64_t applied_index) : encoder(applied_index) {}
  void Put(Family family, std::string_view key, std::string_view value) override { encoder.Put(family, key, value); }
  void Delete(Family family, std::string_view key) override { encoder.Delete(family, key); }
  void DeleteRange(Family family, std::string_view begin, std::string_view end) override { encoder.DeleteRange(family, begin, end); }
  EffectEncoder encoder;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReEncoder probe(0);
  const auto applied_index = cairn::namenode::DecodeEffects(bytes, probe);
  if (!applied_index.ok()) return 0;
  ReEncoder again(*applied_index);
  CAIRN_CHECK(cairn::namenode::DecodeEffects(bytes, again).ok(), "decodes only once");
  CAIRN_CHECK(std::move(again.encoder).Take().bytes == bytes, "two encodings of one batch");
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  EffectEncoder small(1);
  small.Put(Family::kInode, "key", "value");
  small.Delete(Family::kMeta, "gone");
  small.DeleteRange(Family::kRetry, "a", "");
  EffectEncoder large(1ull << 40);
  for (char c = 'a'; c < 'k'; ++c) large.Put(Family::kBlock, std::string(200, c), std::string(20000, c));
  return {std::move(small).Take().bytes, std::move(large).Take().bytes};
}
