#include "namenode/store/effect_batch.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "common/error.h"
#include "common/status.h"

namespace cairn::namenode {
namespace {

constexpr uint8_t kPut = 1;
constexpr uint8_t kDelete = 2;
constexpr uint8_t kDeleteRange = 3;

void AppendLength(std::string& out, size_t bytes) {
  CAIRN_CHECK(bytes <= std::numeric_limits<uint32_t>::max(), "an effect of 4 GiB");
  auto length = static_cast<uint32_t>(bytes);
  while (length >= 0x80) {
    out.push_back(static_cast<char>(length | 0x80));
    length >>= 7;
  }
  out.push_back(static_cast<char>(length));
}

void AppendPiece(std::string& out, std::string_view piece) {
  AppendLength(out, piece.size());
  out.append(piece);
}

// Reads a batch from front to back.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool AtEnd() const { return offset_ == bytes_.size(); }

  absl::StatusOr<uint8_t> Byte(const char* what) {
    if (AtEnd()) return Broken(fmt::format("ends before {}", what));
    return static_cast<uint8_t>(bytes_[offset_++]);
  }

  absl::StatusOr<uint64_t> BigEndian64(const char* what) {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      ASSIGN_OR_RETURN(const uint8_t byte, Byte(what));
      value = value << 8 | byte;
    }
    return value;
  }

  absl::StatusOr<std::string_view> Piece(const char* what) {
    uint64_t length = 0;
    for (int shift = 0;; shift += 7) {
      if (shift > 28) return Broken(fmt::format("length of {} takes over 5 bytes", what));
      ASSIGN_OR_RETURN(const uint8_t byte, Byte(what));
      length |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        // One encoding for one batch: a second one would pass a hash that the first does not.
        if (byte == 0 && shift > 0) return Broken(fmt::format("length of {} has a superfluous byte", what));
        break;
      }
    }
    if (length > bytes_.size() - offset_) return Broken(fmt::format("{} of {} bytes with {} left", what, length, bytes_.size() - offset_));
    const std::string_view piece = bytes_.substr(offset_, length);
    offset_ += length;
    return piece;
  }

  absl::Status Broken(const std::string& what) const {
    return MakeError(ErrorKind::kCorruptMetadata, fmt::format("journal batch of {} bytes, offset {}: {}", bytes_.size(), offset_, what));
  }

 private:
  std::string_view bytes_;
  size_t offset_ = 0;
};

}  // namespace

EffectEncoder::EffectEncoder(uint64_t applied_index) {
  batch_.applied_index = applied_index;
  batch_.bytes.push_back(static_cast<char>(kEffectBatchVersion));
  for (int shift = 56; shift >= 0; shift -= 8) batch_.bytes.push_back(static_cast<char>(applied_index >> shift));
}

void EffectEncoder::Begin(Family family, uint8_t operation) {
  batch_.bytes.push_back(static_cast<char>(family));
  batch_.bytes.push_back(static_cast<char>(operation));
}

void EffectEncoder::Put(Family family, std::string_view key, std::string_view value) {
  Begin(family, kPut);
  AppendPiece(batch_.bytes, key);
  AppendPiece(batch_.bytes, value);
  batch_.messages.push_back(nullptr);
}

void EffectEncoder::PutMessage(Family family, std::string_view key, SharedMessage message) {
  Begin(family, kPut);
  AppendPiece(batch_.bytes, key);
  const size_t size = message->ByteSizeLong();
  AppendLength(batch_.bytes, size);
  const size_t begin = batch_.bytes.size();
  batch_.bytes.resize(begin + size);
  message->SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(batch_.bytes.data() + begin));
  batch_.messages.push_back(std::move(message));
}

void EffectEncoder::Delete(Family family, std::string_view key) {
  Begin(family, kDelete);
  AppendPiece(batch_.bytes, key);
}

void EffectEncoder::DeleteRange(Family family, std::string_view begin, std::string_view end) {
  Begin(family, kDeleteRange);
  AppendPiece(batch_.bytes, begin);
  AppendPiece(batch_.bytes, end);
}

EffectBatch EffectEncoder::Take() && { return std::move(batch_); }

absl::StatusOr<uint64_t> DecodeEffects(std::string_view bytes, EffectVisitor& visitor) {
  Reader reader(bytes);
  ASSIGN_OR_RETURN(const uint8_t version, reader.Byte("the version"));
  if (version != kEffectBatchVersion) return reader.Broken(fmt::format("version {}, this program knows {}", version, kEffectBatchVersion));
  ASSIGN_OR_RETURN(const uint64_t applied_index, reader.BigEndian64("the applied index"));
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const uint8_t family_number, reader.Byte("a family"));
    if (family_number >= kFamilyCount) return reader.Broken(fmt::format("family {}", family_number));
    const auto family = static_cast<Family>(family_number);
    ASSIGN_OR_RETURN(const uint8_t operation, reader.Byte("an operation"));
    if (operation < kPut || operation > kDeleteRange) return reader.Broken(fmt::format("operation {}", operation));
    ASSIGN_OR_RETURN(const std::string_view key, reader.Piece("a key"));
    if (operation == kPut) {
      ASSIGN_OR_RETURN(const std::string_view value, reader.Piece("a value"));
      visitor.Put(family, key, value);
    } else if (operation == kDelete) {
      visitor.Delete(family, key);
    } else {
      ASSIGN_OR_RETURN(const std::string_view end, reader.Piece("the end of a range"));
      visitor.DeleteRange(family, key, end);
    }
  }
  return applied_index;
}

}  // namespace cairn::namenode
