#include "common/block_token.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <fmt/format.h>

#include "common/error.h"

namespace cairn {
namespace {

constexpr char kVersion = 1;
constexpr size_t kClaimsBytes = 1 + 4 + 16 + 8 + 8 + 1 + 8 + 8;
constexpr size_t kMacBytes = 32;

void AppendBigEndian(uint64_t value, int bytes, std::string& out) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
}

uint64_t LoadBigEndian(std::string_view in) {
  uint64_t value = 0;
  for (const char c : in) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::string Mac(std::string_view secret, std::string_view message) {
  std::string mac(kMacBytes, '\0');
  unsigned int size = kMacBytes;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), reinterpret_cast<const unsigned char*>(message.data()), message.size(),
       reinterpret_cast<unsigned char*>(mac.data()), &size);
  return mac;
}

absl::Status Refused(std::string message, std::string reason, BlockId block) {
  Error error;
  error.kind = ErrorKind::kAccessToken;
  error.message = "block token: " + std::move(message);
  error.reason = std::move(reason);
  error.block_id = block.value();
  return MakeError(std::move(error));
}

}  // namespace

std::string SealBlockToken(const v1::BlockTokenKey& key, const BlockTokenClaims& claims) {
  std::string token(1, kVersion);
  AppendBigEndian(key.id(), 4, token);
  std::string pool = claims.pool_id;
  pool.resize(16);
  token += pool;
  AppendBigEndian(claims.block.value(), 8, token);
  AppendBigEndian(claims.stamp.value(), 8, token);
  token += static_cast<char>(claims.modes);
  AppendBigEndian(claims.epoch.value(), 8, token);
  AppendBigEndian(static_cast<uint64_t>(claims.expires_ms), 8, token);
  token += Mac(key.secret(), token);
  return token;
}

absl::Status CheckBlockToken(std::string_view token, const std::vector<v1::BlockTokenKey>& keys, std::string_view pool_id, BlockId block,
                             GenerationStamp stamp, TokenMode mode, int64_t now_ms) {
  if (token.size() != kClaimsBytes + kMacBytes || token[0] != kVersion)
    return Refused(fmt::format("not one of ours ({} bytes)", token.size()), "BAD_TOKEN", block);
  const auto key_id = static_cast<uint32_t>(LoadBigEndian(token.substr(1, 4)));
  const v1::BlockTokenKey* key = nullptr;
  for (const v1::BlockTokenKey& candidate : keys)
    if (candidate.id() == key_id) key = &candidate;
  if (key == nullptr) return Refused(fmt::format("key {} is not known here", key_id), "UNKNOWN_KEY", block);
  const std::string expected = Mac(key->secret(), token.substr(0, kClaimsBytes));
  if (CRYPTO_memcmp(expected.data(), token.data() + kClaimsBytes, kMacBytes) != 0) return Refused("forged or damaged", "BAD_TOKEN", block);
  if (token.substr(5, 16) != pool_id) return Refused("for another pool", "WRONG_POOL", block);
  if (const uint64_t id = LoadBigEndian(token.substr(21, 8)); id != block.value())
    return Refused(fmt::format("for block {}, not {}", id, block.value()), "WRONG_BLOCK", block);
  if (const uint64_t sealed = LoadBigEndian(token.substr(29, 8)); sealed != stamp.value())
    return Refused(fmt::format("for stamp {}, not {}", sealed, stamp.value()), "WRONG_STAMP", block);
  if ((static_cast<unsigned char>(token[37]) & static_cast<unsigned char>(mode)) == 0)
    return Refused("does not allow this operation", "WRONG_MODE", block);
  if (const auto expires = static_cast<int64_t>(LoadBigEndian(token.substr(46, 8))); expires < now_ms)
    return Refused(fmt::format("expired {} ms ago", now_ms - expires), "EXPIRED", block);
  return absl::OkStatus();
}

v1::BlockTokenKey NewBlockTokenKey(uint32_t id, std::string secret, int64_t expires_ms) {
  v1::BlockTokenKey key;
  key.set_id(id);
  key.set_secret(std::move(secret));
  key.set_expires_ms(expires_ms);
  return key;
}

}  // namespace cairn
