#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// What a fuzz target defines. The first is libFuzzer's; it aborts when a property is broken. The second gives good inputs, from which
// fuzz_driver.cc makes bad ones.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
std::vector<std::string> FuzzSeeds();
