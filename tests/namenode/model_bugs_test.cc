// The model finds bugs: each of these is put between Apply and what is kept of it, and has to be found within a few sequences.

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "namenode/namespace/path_walk.h"
#include "namenode/namespace/records.h"
#include "tests/namenode/model_run.h"

namespace cairn::namenode {
namespace {

using cairn::testing::MemoryState;
using cairn::testing::MemoryTransaction;
using cairn::testing::ModelRun;

constexpr uint64_t kSequences = 40;
constexpr int kSteps = 600;

// The row is as it was before the mutation.
void Restore(Family family, const std::string& key, const MemoryState& before, MemoryTransaction& txn) {
  if (const auto row = *before.Get(family, key)) txn.Put(family, key, *row);
}

std::optional<PathWalk> Walk(const ReadView& view, const std::string& path) {
  absl::StatusOr<PathWalk> walk = WalkPath(view, path, Caller::Trusted());
  if (!walk.ok() || !walk->complete()) return std::nullopt;
  return *std::move(walk);
}

struct Bug {
  const char* name;
  ModelRun::Bug bug;
};

void PrintTo(const Bug& bug, std::ostream* out) { *out << bug.name; }

Bug WrongRows(const char* name, cairn::testing::TestNamespace::Tamper tamper) { return {name, {.tamper = std::move(tamper), .bend = {}}}; }
Bug NotAsked(const char* name, std::function<void(const ReadView&, v1::Mutation*)> bend) {
  return {name, {.tamper = {}, .bend = std::move(bend)}};
}

std::vector<Bug> Bugs() {
  return {
      WrongRows("RenameLeavesTheUsageOfTheOldParent",
                [](const v1::Mutation& m, v1::MutationResult& result, MemoryTransaction& txn, const MemoryState& before) {
                  if (!m.has_rename() || !result.has_inode()) return;
                  if (const auto source = Walk(before, m.rename().source()))
                    Restore(Family::kUsage, UsageKey(source->parent().id()), before, txn);
                }),
      WrongRows("DeleteLeavesTheUsageOfTheRoot",
                [](const v1::Mutation& m, v1::MutationResult&, MemoryTransaction& txn, const MemoryState& before) {
                  if (m.has_delete_()) Restore(Family::kUsage, UsageKey(kRootInodeId), before, txn);
                }),
      WrongRows("DeletedFileKeepsItsLease",
                [](const v1::Mutation& m, v1::MutationResult& result, MemoryTransaction& txn, const MemoryState& before) {
                  if (!m.has_delete_() || !result.existed()) return;
                  const auto file = Walk(before, m.delete_().path());
                  if (file && !file->last().record->lease_holder().empty())
                    Restore(Family::kLease, LeaseKey(file->last().record->lease_holder(), file->last().id()), before, txn);
                }),
      // In its record and in all directories above, so that everything fits together.
      WrongRows("TruncateKeepsTheChargeOfWhatItCutOff",
                [](const v1::Mutation& m, v1::MutationResult&, MemoryTransaction& txn, const MemoryState& before) {
                  if (!m.has_truncate()) return;
                  const auto old = Walk(before, m.truncate().path());
                  const auto now = Walk(txn, m.truncate().path());
                  if (!old || !now) return;
                  const uint64_t left = old->last().record->charged_bytes() - now->last().record->charged_bytes();
                  if (left == 0) return;
                  for (const InodeId directory : now->ancestors()) {
                    v1::UsageRecord usage = *GetRecord<v1::UsageRecord>(txn, Family::kUsage, UsageKey(directory));
                    usage.set_charged_bytes(usage.charged_bytes() + left);
                    PutRecord(txn, Family::kUsage, UsageKey(directory), usage);
                  }
                  InodeAt file = now->last().Copy();
                  file.record.set_charged_bytes(old->last().record->charged_bytes());
                  PutInode(txn, file);
                }),
      WrongRows("AppendKeepsTheOldStamp",
                [](const v1::Mutation& m, v1::MutationResult& result, MemoryTransaction& txn, const MemoryState&) {
                  if (!m.has_append() || !result.has_block()) return;
                  v1::BlockRecord block = *GetBlock(txn, BlockId(result.block().id()));
                  block.set_generation_stamp(result.old_generation_stamp());
                  PutBlock(txn, BlockId(result.block().id()), block);
                }),
      WrongRows("AppendForgetsWhatWasClosed",
                [](const v1::Mutation& m, v1::MutationResult& result, MemoryTransaction& txn, const MemoryState&) {
                  if (!m.has_append() || !result.has_block()) return;
                  v1::BlockRecord block = *GetBlock(txn, BlockId(result.block().id()));
                  block.clear_closed_length_bytes();
                  PutBlock(txn, BlockId(result.block().id()), block);
                }),
      WrongRows("FsyncForgetsThatItWasSynced",
                [](const v1::Mutation& m, v1::MutationResult&, MemoryTransaction& txn, const MemoryState&) {
                  if (!m.fsync().synced() || !m.fsync().has_last_block()) return;
                  const BlockId id(m.fsync().last_block().id());
                  v1::BlockRecord block = *GetBlock(txn, id);
                  block.clear_synced_length_bytes();
                  PutBlock(txn, id, block);
                }),
      WrongRows("AnotherRoundKeepsTheRecoveryId",
                [](const v1::Mutation& m, v1::MutationResult&, MemoryTransaction& txn, const MemoryState& before) {
                  if (m.has_start_block_recovery())
                    Restore(Family::kBlock, BlockKey(BlockId(m.start_block_recovery().block_id())), before, txn);
                }),
      WrongRows("DroppedBlockKeepsItsRow",
                [](const v1::Mutation& m, v1::MutationResult&, MemoryTransaction& txn, const MemoryState& before) {
                  if (m.commit_block_recovery().drop())
                    Restore(Family::kBlock, BlockKey(BlockId(m.commit_block_recovery().block().id())), before, txn);
                }),
      WrongRows("ClosedFileKeepsTheRowOfItsReservedBlock",
                [](const v1::Mutation& m, v1::MutationResult&, MemoryTransaction& txn, const MemoryState& before) {
                  if (!m.has_complete()) return;
                  const auto file = FindInodeAnywhere(before, InodeId(m.complete().inode_id()));
                  if (file.ok() && *file && (*file)->record.reserved_block_id() != 0)
                    Restore(Family::kBlock, BlockKey(BlockId((*file)->record.reserved_block_id())), before, txn);
                }),
      WrongRows("DeleteManyForgetsTheCodesOfEarlierParts",
                [](const v1::Mutation& m, v1::MutationResult& result, MemoryTransaction&, const MemoryState&) {
                  if (m.has_delete_many() && m.delete_many().from() > 0 && result.next() == result.codes().size())
                    result.mutable_codes()->erase(0, m.delete_many().from());
                }),
      WrongRows("SetReplicationForgetsTheReservedBlock",
                [](const v1::Mutation& m, v1::MutationResult& result, MemoryTransaction& txn, const MemoryState& before) {
                  if (m.has_set_replication() && result.inode().reserved_block_id() != 0)
                    Restore(Family::kBlock, BlockKey(BlockId(result.inode().reserved_block_id())), before, txn);
                }),
      WrongRows("SpreadingPassesOverABlock",
                [](const v1::Mutation& m, v1::MutationResult& result, MemoryTransaction& txn, const MemoryState& before) {
                  if (m.has_spread_replication() && !result.changed_blocks().empty())
                    Restore(Family::kBlock, BlockKey(BlockId(result.changed_blocks(0))), before, txn);
                }),
      WrongRows("ConcatLeavesTheLinkOfASource",
                [](const v1::Mutation& m, v1::MutationResult&, MemoryTransaction& txn, const MemoryState& before) {
                  if (!m.has_concat()) return;
                  if (const auto source = Walk(before, m.concat().sources(0)))
                    Restore(Family::kInodeById, InodeByIdKey(source->last().id()), before, txn);
                }),
      WrongRows("ReclaimLeavesABlock",
                [](const v1::Mutation& m, v1::MutationResult& result, MemoryTransaction& txn, const MemoryState& before) {
                  if (m.has_reclaim_step() && !result.freed().empty())
                    Restore(Family::kBlock, BlockKey(BlockId(result.freed(0).block().id())), before, txn);
                }),
      WrongRows("TimeRunsBackwards",
                [](const v1::Mutation& m, v1::MutationResult&, MemoryTransaction& txn, const MemoryState&) {
                  if (txn.writes() > 0) PutNumber(txn, kMetaLastMutationTime, static_cast<uint64_t>(m.time_ms()));
                }),
      NotAsked("RightsAreNotAsked", [](const ReadView&, v1::Mutation* m) { m->set_superuser(true); }),
      NotAsked("RepeatsAreTakenForNewCalls", [](const ReadView&, v1::Mutation* m) { m->set_sequence(0); }),
      NotAsked("EverySilenceIsLongEnough",
               [](const ReadView&, v1::Mutation* m) {
                 if (m->has_append()) m->mutable_append()->mutable_lease_seen()->set_idle_ms(60'000);
                 if (m->has_recover_lease()) m->mutable_recover_lease()->mutable_lease_seen()->set_idle_ms(60'000);
               }),
      NotAsked("RoundsThatAreOverCount",
               [](const ReadView& view, v1::Mutation* m) {
                 if (!m->has_commit_block_recovery()) return;
                 v1::Mutation::CommitBlockRecovery& op = *m->mutable_commit_block_recovery();
                 const absl::StatusOr<v1::BlockRecord> block = GetBlock(view, BlockId(op.block().id()));
                 if (!block.ok() || block->state() != v1::UNDER_RECOVERY) return;
                 op.set_recovery_id(block->recovery_id());
                 op.mutable_block()->set_generation_stamp(block->recovery_id());
               }),
      NotAsked("TruncateCutsFarther",
               [](const ReadView&, v1::Mutation* m) {
                 if (m->truncate().new_length_bytes() > 0)
                   m->mutable_truncate()->set_new_length_bytes(m->truncate().new_length_bytes() - 1);
               }),
  };
}

class ModelBugs : public ::testing::TestWithParam<Bug> {};

TEST_P(ModelBugs, AreFound) {
  for (uint64_t seed = 1; seed <= kSequences; ++seed) {
    const std::string wrong = ModelRun(seed, GetParam().bug).Run(kSteps);
    if (wrong.empty()) continue;
    std::printf("by seed %d: %s\n", static_cast<int>(seed), wrong.substr(0, 400).c_str());
    return;
  }
  FAIL() << "not found in " << kSequences << " sequences";
}

INSTANTIATE_TEST_SUITE_P(All, ModelBugs, ::testing::ValuesIn(Bugs()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace cairn::namenode
