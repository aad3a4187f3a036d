#include "common/block_token.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>

#include <fmt/format.h>

#include "common/check.h"
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

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

EVP_MAC_CTX* NewMac(std::string_view secret) {
  static EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
  CAIRN_CHECK(hmac != nullptr, "OpenSSL has no HMAC");
  EVP_MAC_CTX* const mac = EVP_MAC_CTX_new(hmac);
  std::string digest = "SHA256";
  const std::array<OSSL_PARAM, 2> parameters = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
                                                OSSL_PARAM_construct_end()};
  CAIRN_CHECK(mac != nullptr && EVP_MAC_init(mac, Bytes(secret), secret.size(), parameters.data()) == 1, "OpenSSL has no HMAC-SHA256");
  return mac;
}

// Leaves `mac` begun anew with its key.
std::string MacOf(EVP_MAC_CTX* mac, std::string_view message) {
  std::string out(kMacBytes, '\0');
  size_t size = 0;
  const bool made = EVP_MAC_update(mac, Bytes(message), message.size()) == 1 &&
                    EVP_MAC_final(mac, reinterpret_cast<unsigned char*>(out.data()), &size, out.size()) == 1 &&
                    EVP_MAC_init(mac, nullptr, 0, nullptr) == 1;
  CAIRN_CHECK(made && size == kMacBytes, "HMAC-SHA256 failed");
  return out;
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

BlockTokenSealer::BlockTokenSealer(const v1::BlockTokenKey& key) : key_id_(key.id()), mac_(NewMac(key.secret())) {}

BlockTokenSealer::~BlockTokenSealer() { EVP_MAC_CTX_free(mac_); }

std::string BlockTokenSealer::Seal(const BlockTokenClaims& claims) const {
  std::string token(1, kVersion);
  token.reserve(kClaimsBytes + kMacBytes);
  AppendBigEndian(key_id_, 4, token);
  std::string pool = claims.pool_id;
  pool.resize(16);
  token += pool;
  AppendBigEndian(claims.block.value(), 8, token);
  AppendBigEndian(claims.stamp.value(), 8, token);
  token += static_cast<char>(claims.modes);
  AppendBigEndian(claims.epoch.value(), 8, token);
  AppendBigEndian(static_cast<uint64_t>(claims.expires_ms), 8, token);
  const MutexLock lock(mu_);
  token += MacOf(mac_, token);
  return token;
}

std::string SealBlockToken(const v1::BlockTokenKey& key, const BlockTokenClaims& claims) { return BlockTokenSealer(key).Seal(claims); }

absl::Status CheckBlockToken(std::string_view token, const std::vector<v1::BlockTokenKey>& keys, std::string_view pool_id, BlockId block,
                             GenerationStamp stamp, TokenMode mode, int64_t now_ms) {
  if (token.size() != kClaimsBytes + kMacBytes || token[0] != kVersion)
    return Refused(fmt::format("not one of ours ({} bytes)", token.size()), "BAD_TOKEN", block);
  const auto key_id = static_cast<uint32_t>(LoadBigEndian(token.substr(1, 4)));
  const v1::BlockTokenKey* key = nullptr;
  for (const v1::BlockTokenKey& candidate : keys)
    if (candidate.id() == key_id) key = &candidate;
  if (key == nullptr) return Refused(fmt::format("key {} is not known here", key_id), "UNKNOWN_KEY", block);
  EVP_MAC_CTX* const mac = NewMac(key->secret());
  const std::string expected = MacOf(mac, token.substr(0, kClaimsBytes));
  EVP_MAC_CTX_free(mac);
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
