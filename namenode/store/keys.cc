#include "namenode/store/keys.h"

#include "common/check.h"

namespace cairn::namenode {
namespace {

void AppendBigEndian(std::string& out, uint64_t value, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) out.push_back(static_cast<char>((value >> shift) & 0xff));
}

uint64_t ReadBigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::string U64Pair(uint64_t first, uint64_t second) {
  std::string key;
  key.reserve(16);
  AppendBigEndian(key, first, 8);
  AppendBigEndian(key, second, 8);
  return key;
}

}  // namespace

std::string EncodeU64(uint64_t value) {
  std::string out;
  AppendBigEndian(out, value, 8);
  return out;
}

std::optional<uint64_t> DecodeU64(std::string_view bytes) {
  if (bytes.size() != 8) return std::nullopt;
  return ReadBigEndian(bytes);
}

std::string PrefixEnd(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

std::string InodeKey(InodeId parent, std::string_view name) {
  std::string key;
  key.reserve(8 + name.size());
  AppendBigEndian(key, parent.value(), 8);
  key += name;
  return key;
}

std::optional<InodeKeyParts> ParseInodeKey(std::string_view key) {
  if (key.size() < 8) return std::nullopt;
  return InodeKeyParts{InodeId(ReadBigEndian(key.substr(0, 8))), key.substr(8)};
}

std::string ChildrenBegin(InodeId parent, std::string_view start_after) {
  std::string key = InodeKey(parent, start_after);
  if (!start_after.empty()) key.push_back('\0');  // Names hold no NUL: this is the least key above the name itself.
  return key;
}

std::string ChildrenEnd(InodeId parent) { return PrefixEnd(EncodeU64(parent.value())); }

std::string DetachedName(InodeId id) { return EncodeU64(id.value()); }

std::string InodeByIdKey(InodeId id) { return EncodeU64(id.value()); }
std::string FileBlockKey(InodeId id, uint64_t index) { return U64Pair(id.value(), index); }
std::string BlockKey(BlockId id) { return EncodeU64(id.value()); }

std::optional<BlockId> ParseBlockKey(std::string_view key) {
  const auto id = DecodeU64(key);
  if (!id) return std::nullopt;
  return BlockId(*id);
}

std::string UsageKey(InodeId directory) { return EncodeU64(directory.value()); }

std::string LeaseKey(std::string_view holder, InodeId id) {
  CAIRN_CHECK(holder.size() <= kMaxHolderBytes, "lease holder's name is too long for its key");
  std::string key;
  key.reserve(2 + holder.size() + 8);
  AppendBigEndian(key, holder.size(), 2);
  key += holder;
  AppendBigEndian(key, id.value(), 8);
  return key;
}

std::optional<LeaseKeyParts> ParseLeaseKey(std::string_view key) {
  if (key.size() < 10 || key.size() != 10 + ReadBigEndian(key.substr(0, 2))) return std::nullopt;
  return LeaseKeyParts{key.substr(2, key.size() - 10), InodeId(ReadBigEndian(key.substr(key.size() - 8)))};
}

std::string WorkKey(uint64_t work_id) { return EncodeU64(work_id); }
std::optional<uint64_t> ParseWorkKey(std::string_view key) { return DecodeU64(key); }

std::string RetryKey(std::string_view client_id, uint32_t slot) {
  CAIRN_CHECK(client_id.size() == kClientIdBytes, "a client id is 16 bytes");
  std::string key(client_id);
  AppendBigEndian(key, slot, 4);
  return key;
}

std::string DatanodeKey(StorageNumber storage) {
  std::string key;
  AppendBigEndian(key, storage.value(), 4);
  return key;
}

std::optional<StorageNumber> ParseDatanodeKey(std::string_view key) {
  if (key.size() != 4) return std::nullopt;
  return StorageNumber(ReadBigEndian(key));
}

}  // namespace cairn::namenode
