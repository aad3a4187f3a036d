// Runs a fuzz target without libFuzzer: on the files named as arguments (to replay a finding), or else on the target's seeds and on
// changed copies of them, the same ones in every run.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/env/random.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr int kChangedCopies = 5000;  // Of each seed.

void RunOne(const std::string& input) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size()); }

std::string Changed(std::string input, cairn::Random& random) {
  for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
    if (input.empty()) {
      input = random.Bytes(1 + random.Below(16));
      continue;
    }
    const auto at = static_cast<size_t>(random.Below(input.size()));
    const auto length = static_cast<size_t>(random.Below(600));
    switch (random.Below(6)) {
      case 0: input[at] = static_cast<char>(input[at] ^ (1 << random.Below(8))); break;
      case 1: input[at] = static_cast<char>(random.Next()); break;
      case 2: input.resize(at); break;
      case 3: input.erase(at, length); break;
      case 4: input.insert(at, random.OneIn(2) ? random.Bytes(1 + length) : std::string(1 + length, '\0')); break;
      default:
        for (size_t i = at; i < input.size() && i < at + length; ++i) input[i] = 0;
        break;
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    RunOne(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  if (argc > 1) return 0;
  cairn::Random random(1);
  for (const std::string& seed : FuzzSeeds()) {
    RunOne(seed);
    for (int i = 0; i < kChangedCopies; ++i) RunOne(Changed(seed, random));
  }
  RunOne("");
  return 0;
}
