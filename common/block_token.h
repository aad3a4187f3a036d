#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/datanode_namenode.pb.h"
#include "common/ids.h"
#include "common/mutex.h"

extern "C" struct evp_mac_ctx_st;  // OpenSSL's EVP_MAC_CTX.

namespace cairn {

// Block tokens: the NameNode's word that the bearer may touch a block, for that very stamp, so that a fenced writer cannot pass for a
// live one. HMAC-SHA256 over (version, key id, pool, block, stamp, mode, epoch, expiry), all big-endian; layout in docs/formats.md.
enum class TokenMode : uint8_t { kRead = 1, kWrite = 2, kTransfer = 4 };  // A bit set.

struct BlockTokenClaims {
  std::string pool_id;  // 16 bytes.
  BlockId block;
  GenerationStamp stamp;
  uint8_t modes = 0;  // Bits of TokenMode.
  Epoch epoch;
  int64_t expires_ms = 0;
};

// Seals tokens with one key, which is set up once: that is most of the cost of a token. Thread-safe.
class BlockTokenSealer {
 public:
  explicit BlockTokenSealer(const v1::BlockTokenKey& key);
  ~BlockTokenSealer();
  BlockTokenSealer(const BlockTokenSealer&) = delete;
  BlockTokenSealer& operator=(const BlockTokenSealer&) = delete;

  std::string Seal(const BlockTokenClaims& claims) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const uint32_t key_id_;
  mutable Mutex mu_;
  evp_mac_ctx_st* mac_ ABSL_PT_GUARDED_BY(mu_);  // Owned; begun with the key.
};

// For one token.
std::string SealBlockToken(const v1::BlockTokenKey& key, const BlockTokenClaims& claims);

// OK if `token` was sealed with one of `keys`, is for this pool, block and stamp, allows `mode` and has not expired; else kAccessToken
// saying what differs. reason UNKNOWN_KEY if its key is not among them (wait for the registration lane, then try again).
absl::Status CheckBlockToken(std::string_view token, const std::vector<v1::BlockTokenKey>& keys, std::string_view pool_id, BlockId block,
                             GenerationStamp stamp, TokenMode mode, int64_t now_ms);

v1::BlockTokenKey NewBlockTokenKey(uint32_t id, std::string secret, int64_t expires_ms);

}  // namespace cairn
