#include "datanode/transfer/token_verifier.h"

#include <utility>

#include "absl/time/time.h"
#include "common/error.h"

namespace cairn::datanode {

void KeyringTokenVerifier::SetKeys(std::vector<v1::BlockTokenKey> keys) {
  auto fresh = std::make_shared<const std::vector<v1::BlockTokenKey>>(std::move(keys));
  MutexLock lock(mu_);
  keys_ = std::move(fresh);
}

absl::Status KeyringTokenVerifier::Check(std::string_view token, std::string_view pool, BlockId block, GenerationStamp stamp,
                                         TokenMode mode) const {
  if (token.empty()) {
    if (accept_empty_) return absl::OkStatus();
    Error error;
    error.kind = ErrorKind::kAccessToken;
    error.message = "block token: there is none";
    error.reason = "NO_TOKEN";
    error.key = "cairn.block.token.empty";
    error.block_id = block.value();
    return MakeError(std::move(error));
  }
  std::shared_ptr<const std::vector<v1::BlockTokenKey>> keys;
  {
    MutexLock lock(mu_);
    keys = keys_;
  }
  static const std::vector<v1::BlockTokenKey> kNone;
  return CheckBlockToken(token, keys == nullptr ? kNone : *keys, pool, block, stamp, mode, absl::ToUnixMillis(clock_->WallNow()));
}

}  // namespace cairn::datanode
