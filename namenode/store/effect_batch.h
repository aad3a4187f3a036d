#pragma once

// What a commit changes, as bytes: effects, not intentions, in an encoding of our own, so that a replicated journal can carry
// it and replicas of two versions cannot compute different results.
//
// Journal batch, version 1:
//
//   u8      version = 1
//   u64     applied index, big-endian: one more for each batch, from 1
//   then effects to the end, each
//     u8      family (the number of enum Family)
//     u8      1 put | 2 delete | 3 delete-range
//     varint  length of key, key             (delete-range: begin)
//     varint  length of value, value         (put only)
//     varint  length of end, end             (delete-range only; empty: to the end of the family)
//
// A varint is base 128, least significant group first, of at most 5 bytes and without superfluous ones. Effects are applied in
// order. The store adds the applied index to family `meta` itself.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

inline constexpr uint8_t kEffectBatchVersion = 1;

struct EffectBatch {
  std::string bytes;
  uint64_t applied_index = 0;  // As in the bytes.
  // What its puts say, in their order; null where only the bytes are at hand, or fewer. No part of the encoding: it spares the process
  // that made the batch the parsing of what it has just written.
  std::vector<SharedMessage> messages = {};
};

// Writes a batch. Keys and values are at most 2^32 - 1 bytes.
class EffectEncoder {
 public:
  explicit EffectEncoder(uint64_t applied_index);
  void Put(Family family, std::string_view key, std::string_view value);
  void PutMessage(Family family, std::string_view key, SharedMessage message);
  void Delete(Family family, std::string_view key);
  void DeleteRange(Family family, std::string_view begin, std::string_view end);
  EffectBatch Take() &&;

 private:
  void Begin(Family family, uint8_t operation);

  EffectBatch batch_;
};

// Takes the effects of a batch, in order. Views are into the batch.
class EffectVisitor {
 public:
  virtual ~EffectVisitor() = default;
  virtual void Put(Family family, std::string_view key, std::string_view value) = 0;
  virtual void Delete(Family family, std::string_view key) = 0;
  virtual void DeleteRange(Family family, std::string_view begin, std::string_view end) = 0;
};

// Gives the effects to `visitor` and returns the applied index. kCorruptMetadata naming the offset for anything but a whole batch
// of a known version; then the visitor may have seen some of it.
absl::StatusOr<uint64_t> DecodeEffects(std::string_view bytes, EffectVisitor& visitor);

}  // namespace cairn::namenode
