#pragma once

// The numbers of Cairn, each a type of its own, so that no two can be taken for one another.
// Plain values: copyable, ordered, hashable, no invariants of their own. Thread-safe as ints are.

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace cairn {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(uint64_t value) : value_(value) {}
  constexpr uint64_t value() const { return value_; }
  constexpr auto operator<=>(const Id&) const = default;

  template <class H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::string ToString(Id id) { return std::to_string(id.value_); }

 private:
  uint64_t value_ = 0;
};

using InodeId = Id<struct InodeIdTag>;
using BlockId = Id<struct BlockIdTag>;                  // From 2^30 in steps of 16, below 2^63.
using GenerationStamp = Id<struct GenerationStampTag>;  // From 1001.
using Epoch = Id<struct EpochTag>;                      // One more at each NameNode start.
using StorageNumber = Id<struct StorageNumberTag>;      // 32 bits on disk; never reused.
using Incarnation = Id<struct IncarnationTag>;          // Random, one per DataNode process start.

inline constexpr InodeId kRootInodeId{16385};  // As HDFS INodeId.ROOT_INODE_ID.
inline constexpr InodeId kDetachedInodeId{0};  // Parent of what was deleted and is not yet freed.
inline constexpr BlockId kFirstBlockId{1ull << 30};
inline constexpr uint64_t kBlockIdStep = 16;  // The low 4 bits are room for erasure-coded groups.
inline constexpr BlockId kEndBlockId{1ull << 63};
inline constexpr GenerationStamp kFirstGenerationStamp{1001};

}  // namespace cairn

template <class Tag>
struct std::hash<cairn::Id<Tag>> {
  size_t operator()(cairn::Id<Tag> id) const noexcept { return std::hash<uint64_t>{}(id.value()); }
};
