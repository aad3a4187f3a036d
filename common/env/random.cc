#include "common/env/random.h"

#include <bit>
#include <cstring>

namespace cairn {

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {  // SplitMix64.
    seed += 0x9e3779b97f4a7c15ull;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    word = z ^ (z >> 31);
  }
}

uint64_t Random::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  const uint64_t threshold = (0 - bound) % bound;  // Values below it would favour small results.
  for (;;) {
    const uint64_t value = Next();
    if (value >= threshold) return value % bound;
  }
}

std::string Random::Bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; i += 8) {
    const uint64_t word = Next();
    std::memcpy(bytes.data() + i, &word, std::min<size_t>(8, count - i));
  }
  return bytes;
}

std::string Random::Uuid() {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string bytes = Bytes(16);
  bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kHex[(bytes[i] >> 4) & 0xf];
    text += kHex[bytes[i] & 0xf];
  }
  return text;
}

}  // namespace cairn
