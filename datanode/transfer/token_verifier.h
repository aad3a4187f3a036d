#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cairn/datanode_namenode.pb.h"
#include "common/block_token.h"
#include "common/env/clock.h"
#include "common/ids.h"
#include "common/mutex.h"

namespace cairn::datanode {

// Whether the bearer of a block token may do what it asks for. Thread-safe; no call blocks.
class TokenVerifier {
 public:
  virtual ~TokenVerifier() = default;
  // `pool`: 16 bytes. kAccessToken saying why not; with reason UNKNOWN_KEY if the registration lane may bring the key soon. Whether an
  // empty token passes is this verifier's to say.
  virtual absl::Status Check(std::string_view token, std::string_view pool, BlockId block, GenerationStamp stamp, TokenMode mode) const = 0;
};

// Checks against the keys that the NameNode gave last.
class KeyringTokenVerifier : public TokenVerifier {
 public:
  // `accept_empty`: cairn.block.token.empty. `clock` outlives this.
  KeyringTokenVerifier(const Clock* clock, bool accept_empty) : clock_(clock), accept_empty_(accept_empty) {}

  void SetKeys(std::vector<v1::BlockTokenKey> keys) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Check(std::string_view token, std::string_view pool, BlockId block, GenerationStamp stamp, TokenMode mode) const override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const Clock* const clock_;
  const bool accept_empty_;
  mutable Mutex mu_;
  std::shared_ptr<const std::vector<v1::BlockTokenKey>> keys_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cairn::datanode
