// The half of BlockManager that recovers blocks: it picks the primary of each round and hands it the order.

#include <algorithm>

#include "common/block_token.h"
#include "common/error.h"
#include "common/log.h"
#include "common/status.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/replicas/block_manager.h"

namespace cairn::namenode {
namespace {
constexpr size_t kRoundsAtOnce = 200;
constexpr absl::Duration kLongDead = absl::Minutes(10);
constexpr absl::Duration kTokenLife = absl::Minutes(10);
}  // namespace

void BlockManager::NeedRecovery(BlockId block) {
  if (!recoveries_.Need(block, parts_.clock->Now())) return;
  StartRecoveriesSoon();
}

void BlockManager::StartRecoveriesSoon() {
  if (recoveries_posted_) return;
  recoveries_posted_ = true;
  parts_.executor->Post([weak = weak_from_this()] {
    const std::shared_ptr<BlockManager> self = weak.lock();
    if (!self) return;
    self->recoveries_posted_ = false;
    self->StartRecoveries();
  });
}

void BlockManager::StartRecoveries() {
  if (safe_mode_) return;
  const SteadyTime now = parts_.clock->Now();
  recoveries_.Expire(now);
  const std::vector<BlockId> due = recoveries_.Due(kRoundsAtOnce, now);
  if (due.empty()) return;
  const std::shared_ptr<const ReadView> view = parts_.space->Snapshot();
  for (const BlockId block : due) {
    const absl::StatusOr<std::optional<v1::BlockRecord>> record = FindBlock(*view, block);
    if (!record.ok()) continue;
    if (!*record || (*record)->state() != v1::UNDER_RECOVERY) {
      recoveries_.Settled(block);
      continue;
    }
    StartRecovery(block, **record);
  }
}

void BlockManager::StartRecovery(BlockId block, const v1::BlockRecord& record) {
  const SteadyTime now = parts_.clock->Now();
  const Primary primary = PrimaryFor(block, record);
  if (primary.crowded) return;  // It stays due: the end of a round makes room.
  if (primary.datanode_uuid.empty()) return recoveries_.Postpone(block, now);
  // The mutation that began the recovery took the id of its first round, unless an earlier NameNode made it: what that one sent, nobody
  // knows here.
  const GenerationStamp id(record.recovery_id());
  if (id >= first_own_stamp_ && id > recoveries_.RecoveryIdOf(block)) return SendRecover(block, record);
  recoveries_.Preparing(block, now);
  parts_.space->StartBlockRecovery(InodeId(record.inode_id()), block,
                                   [weak = weak_from_this(), executor = parts_.executor, block](absl::StatusOr<v1::BlockRecord> begun) {
                                     executor->Post([weak, block, begun = std::move(begun)] {
                                       if (const std::shared_ptr<BlockManager> self = weak.lock()) self->OnRoundBegun(block, begun);
                                     });
                                   });
}

void BlockManager::OnRoundBegun(BlockId block, const absl::StatusOr<v1::BlockRecord>& record) {
  if (record.ok()) {
    SendRecover(block, *record);
  } else if (KindOf(record.status()) == ErrorKind::kStaleGeneration) {
    recoveries_.Settled(block);
  } else {
    recoveries_.Postpone(block, parts_.clock->Now());
  }
}

BlockManager::Primary BlockManager::PrimaryFor(BlockId block, const v1::BlockRecord& record) const {
  std::vector<std::string> live, stale;
  bool crowded = false;
  for (const uint32_t number : record.expected_storages()) {
    const std::optional<StorageStanding> standing = parts_.registry->StandingOf(StorageNumber(number));
    if (!standing || standing->node == v1::DEAD || standing->state >= v1::FAILED) continue;
    const auto session = sessions_.find(standing->datanode_uuid);
    if (session == sessions_.end() || session->second->incarnation() != standing->incarnation) continue;
    if (!session->second->room() || !recoveries_.HasRoom(standing->datanode_uuid)) {
      crowded = true;
      continue;
    }
    (standing->node == v1::LIVE ? live : stale).push_back(standing->datanode_uuid);
  }
  const std::vector<std::string>& candidates = live.empty() ? stale : live;
  if (candidates.empty()) return {"", crowded};
  return {candidates[recoveries_.Rounds(block) % candidates.size()], false};
}

void BlockManager::SendRecover(BlockId block, const v1::BlockRecord& record) {
  const SteadyTime now = parts_.clock->Now();
  const std::string primary = PrimaryFor(block, record).datanode_uuid;
  if (primary.empty()) return recoveries_.Postpone(block, now);
  v1::CommandDown command;
  command.set_command_class(v1::REPAIR_WORK);
  v1::CommandDown::Recover& recover = *command.mutable_recover();
  recover.set_command_id(next_command_id_++);
  recover.mutable_block()->set_id(block.value());
  recover.mutable_block()->set_generation_stamp(record.generation_stamp());
  recover.mutable_block()->set_length_bytes(record.length_bytes());
  recover.set_recovery_id(record.recovery_id());
  // An append's replicas have the stamp of before until its pipeline stands, and nothing is acknowledged meanwhile.
  recover.set_oldest_stamp(record.append_from_stamp() != 0 ? record.append_from_stamp() : record.generation_stamp());
  recover.set_closed_length_bytes(record.closed_length_bytes());
  recover.set_synced_length_bytes(record.synced_length_bytes());
  if (record.has_truncate_to_bytes()) recover.set_new_length_bytes(record.truncate_to_bytes());
  uint32_t unreachable = 0, long_dead = 0;
  for (const uint32_t number : record.expected_storages()) {
    const StorageNumber storage(number);
    const std::optional<StorageStanding> standing = parts_.registry->StandingOf(storage);
    std::optional<v1::StorageLocation> location = parts_.registry->LocationOf(storage);
    if (standing && location && standing->node != v1::DEAD && standing->state < v1::FAILED) {
      *recover.add_replicas() = *std::move(location);
      continue;
    }
    ++unreachable;
    // Of a node that never came to this NameNode: since that began.
    const absl::Duration silent = standing ? standing->silent : now - started_;
    if (silent >= kLongDead) ++long_dead;
  }
  recover.set_unreachable(unreachable);
  recover.set_long_dead(long_dead);
  const absl::Duration budget = recoveries_.RoundTime(block);
  recover.set_budget_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(budget)));
  recover.set_token(WriterToken(block, GenerationStamp(record.recovery_id()), budget + kTokenLife));
  const uint32_t round = recoveries_.Rounds(block) + 1;
  if (round > 1)
    log::Info("block {}: round {} of its recovery, under id {}, by DataNode {}", block.value(), round, record.recovery_id(), primary);
  recoveries_.Started(block, GenerationStamp(record.recovery_id()), recover.command_id(), primary, now);
  sessions_.at(primary)->Queue(std::move(command));
}

void BlockManager::OnRecoveryFailed(BlockId block, GenerationStamp recovery_id, const std::string& why) {
  if (recoveries_.RecoveryIdOf(block) != recovery_id) return;  // Of an earlier round: that is known.
  log::Warning("block {}: its recovery under id {} failed, and is tried again: {}", block.value(), recovery_id.value(), why);
  recoveries_.Failed(block, recovery_id, parts_.clock->Now());
}

std::string BlockManager::WriterToken(BlockId block, GenerationStamp stamp, absl::Duration life) const {
  if (identity_.keys.empty()) return "";
  const v1::BlockTokenKey& key =
      *std::max_element(identity_.keys.begin(), identity_.keys.end(), [](const auto& a, const auto& b) { return a.id() < b.id(); });
  BlockTokenClaims claims;
  claims.pool_id = identity_.pool_id;
  claims.block = block;
  claims.stamp = stamp;
  claims.modes =
      static_cast<uint8_t>(TokenMode::kRead) | static_cast<uint8_t>(TokenMode::kWrite) | static_cast<uint8_t>(TokenMode::kTransfer);
  claims.epoch = identity_.epoch;
  claims.expires_ms = absl::ToUnixMillis(parts_.clock->WallNow() + life);
  return SealBlockToken(key, claims);
}

}  // namespace cairn::namenode
