#pragma once

// Where nn_fill and nn_load put files: paths of 4 components, /base/dN/eN/fN.

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace cairn::bench {

struct Layout {
  std::string base;  // One component, with its slash.
  uint64_t files_per_directory = 10;
  uint64_t directories_per_directory = 100;

  uint64_t Directory(uint64_t file) const { return file / files_per_directory; }
  std::string UpperPath(uint64_t upper) const { return fmt::format("{}/d{}", base, upper); }
  std::string DirectoryPath(uint64_t directory) const {
    return fmt::format("{}/d{}/e{}", base, directory / directories_per_directory, directory);
  }
  std::string FilePath(uint64_t file, char prefix = 'f') const {
    return fmt::format("{}/{}{}", DirectoryPath(Directory(file)), prefix, file);
  }
};

// The storages that simulated DataNodes have, one each.
inline constexpr int kDatanodes = 3;
inline std::string DatanodeUuid(int node) { return fmt::format("00000000-0000-4000-8000-{:012}", node + 1); }
inline std::string StorageUuid(int node) { return fmt::format("00000000-0000-4000-9000-{:012}", node + 1); }

}  // namespace cairn::bench
