#include "namenode/token_keys.h"

#include "common/block_token.h"
#include "common/error.h"
#include "common/status.h"
#include "namenode/store/keys.h"

namespace cairn::namenode {
namespace {

constexpr size_t kSecretBytes = 32;
// A key seals tokens for as long as its NameNode runs, so it expires long after: it only bounds how many old ones are kept.
constexpr absl::Duration kKeyLifetime = absl::Hours(24 * 30);

}  // namespace

absl::StatusOr<std::vector<v1::BlockTokenKey>> RotateTokenKeys(MetaStore* store, Epoch epoch, absl::Duration token_lifetime, Env* env) {
  const std::shared_ptr<const ReadView> view = store->Snapshot();
  ASSIGN_OR_RETURN(const std::optional<std::string> row, view->Get(Family::kMeta, kMetaBlockTokenKeys));
  v1::BlockTokenKeys kept;
  if (row && !kept.ParseFromString(*row)) return MakeError(ErrorKind::kCorruptMetadata, "meta block_token_keys does not parse");
  const int64_t now_ms = absl::ToUnixMillis(env->clock().WallNow());
  std::vector<v1::BlockTokenKey> keys;
  for (const v1::BlockTokenKey& key : kept.keys())
    if (key.expires_ms() > now_ms) keys.push_back(key);
  const int64_t expires_ms = now_ms + absl::ToInt64Milliseconds(std::max(kKeyLifetime, token_lifetime));
  keys.push_back(NewBlockTokenKey(static_cast<uint32_t>(epoch.value()), env->SecretBytes(kSecretBytes), expires_ms));

  kept.mutable_keys()->Assign(keys.begin(), keys.end());
  const std::unique_ptr<StoreTransaction> transaction = store->NewTransaction();
  transaction->Put(Family::kMeta, kMetaBlockTokenKeys, kept.SerializeAsString());
  RETURN_IF_ERROR(store->Write(transaction->TakeEffects(), true));
  store->Publish();
  return keys;
}

}  // namespace cairn::namenode
