#pragma once

#include <functional>
#include <string>

#include "common/api/inter_datanode.h"
#include "datanode/storage/block_store.h"
#include "datanode/transfer/token_verifier.h"

namespace cairn::datanode {

// This node's end of block recovery: checks the token and lets the store act on the replica's disk executor. Thread-safe; no call blocks.
class ReplicaRecoveryService : public api::InterDatanode {
 public:
  // `pool`: the served pool's id, empty before the first registration; any thread. All pointers outlive this and the calls under way,
  // which end with the disk executors.
  ReplicaRecoveryService(BlockStore* store, const TokenVerifier* tokens, std::function<std::string()> pool)
      : store_(store), tokens_(tokens), pool_(std::move(pool)) {}

  void InitReplicaRecovery(api::CallContext context, v1::InitReplicaRecoveryRequest request,
                           api::Done<v1::InitReplicaRecoveryResponse> done) override;
  void UpdateReplicaUnderRecovery(api::CallContext context, v1::UpdateReplicaUnderRecoveryRequest request,
                                  api::Done<v1::UpdateReplicaUnderRecoveryResponse> done) override;

 private:
  // The token is for the block at the stamp that the recovery will give it, for writing.
  absl::Status Check(const std::string& token, BlockId block, GenerationStamp recovery_id) const;

  BlockStore* const store_;
  const TokenVerifier* const tokens_;
  const std::function<std::string()> pool_;
};

}  // namespace cairn::datanode
