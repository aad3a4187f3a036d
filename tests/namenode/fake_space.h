#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cairn/namespace.pb.h"
#include "common/error.h"
#include "namenode/replicas/replica_plane.h"
#include "namenode/store/keys.h"

namespace cairn::namenode::testing {

// A namespace of nothing but block rows and counters. One thread.
class FakeSpace : public NamespaceForReplicas {
 public:
  FakeSpace() {
    rows_[{Family::kMeta, std::string(kMetaNextBlockId)}] = EncodeU64(kFirstBlockId.value());
    rows_[{Family::kMeta, std::string(kMetaNextGenerationStamp)}] = EncodeU64(5000);
    rows_[{Family::kMeta, std::string(kMetaNextInodeId)}] = EncodeU64(20000);
    rows_[{Family::kMeta, std::string(kMetaEpoch)}] = EncodeU64(1);
    rows_[{Family::kMeta, std::string(kMetaLastMutationTime)}] = EncodeU64(1);
    rows_[{Family::kMeta, std::string(kMetaClusterId)}] = "cluster";
    rows_[{Family::kMeta, std::string(kMetaPoolId)}] = "0123456789abcdef";
  }

  // The next id in line, so that it is below `next`.
  BlockId NextBlock() {
    const BlockId id = next_;
    next_ = BlockId(next_.value() + kBlockIdStep);
    rows_[{Family::kMeta, std::string(kMetaNextBlockId)}] = EncodeU64(next_.value());
    return id;
  }
  void SetBlock(BlockId id, const v1::BlockRecord& record) { rows_[{Family::kBlock, BlockKey(id)}] = record.SerializeAsString(); }
  void DamageBlock(BlockId id) { rows_[{Family::kBlock, BlockKey(id)}] = "\xff"; }
  void RemoveBlock(BlockId id) { rows_.erase({Family::kBlock, BlockKey(id)}); }
  std::optional<v1::BlockRecord> Block(BlockId id) const {
    const auto found = rows_.find({Family::kBlock, BlockKey(id)});
    if (found == rows_.end()) return std::nullopt;
    v1::BlockRecord record;
    record.ParseFromString(found->second);
    return record;
  }

  void PauseReclaim(bool paused) {
    v1::ReclaimControl control;
    control.set_paused(paused);
    rows_[{Family::kMeta, std::string(kMetaReclaimControl)}] = control.SerializeAsString();
  }

  std::shared_ptr<const ReadView> Snapshot() const override { return std::make_shared<View>(rows_); }
  void RegisterStorages(std::string datanode_uuid, std::vector<std::string> storage_uuids,
                        absl::AnyInvocable<void(absl::StatusOr<std::vector<StorageNumber>>)> done) override {
    std::vector<StorageNumber> numbers;
    for (const std::string& uuid : storage_uuids) {
      numbers.push_back(numbers_.emplace(datanode_uuid + "/" + uuid, StorageNumber(numbers_.size() + 1)).first->second);
      v1::DatanodeRecord record;
      record.set_datanode_uuid(datanode_uuid);
      record.set_storage_uuid(uuid);
      rows_[{Family::kDatanode, DatanodeKey(numbers.back())}] = record.SerializeAsString();
    }
    done(std::move(numbers));
  }
  void SetNodeAdmin(NodeAdminChange change, absl::AnyInvocable<void(absl::Status)> done) override {
    if (hold_admin) {
      held_admin_.emplace_back(std::move(change), std::move(done));
    } else {
      done(Apply(change));
    }
  }
  absl::Status admin_error;
  bool admin_unknown = false;  // Changes are made, and their callers hear that nobody can say so.
  bool hold_admin = false;     // Changes wait, as in a writer's queue, until they are let go, in their order.
  size_t held_admin() const { return held_admin_.size(); }
  void DropAdmin() {  // As when their NameNode dies.
    hold_admin = false;
    held_admin_.clear();
  }
  void ReleaseAdmin() {
    hold_admin = false;
    while (!held_admin_.empty()) {
      auto [change, done] = std::move(held_admin_.front());
      held_admin_.pop_front();
      done(Apply(change));
    }
  }
  std::optional<std::string> AdminRow(const std::string& uuid) const {
    const auto found = rows_.find({Family::kMeta, std::string(kMetaNodeAdminPrefix) + uuid});
    return found == rows_.end() ? std::nullopt : std::optional(found->second);
  }
  uint64_t TakeStamp() {
    rows_[{Family::kMeta, std::string(kMetaNextGenerationStamp)}] = EncodeU64(++next_stamp_);
    return next_stamp_ - 1;
  }
  std::function<void(BlockId)> on_changed;  // A block's row was changed by a mutation.

  // As the namespace's, without files.
  void StartBlockRecovery(InodeId, BlockId block, absl::AnyInvocable<void(absl::StatusOr<v1::BlockRecord>)> done) override {
    std::optional<v1::BlockRecord> row = Block(block);
    if (!row || row->state() != v1::UNDER_RECOVERY) return done(MakeError(ErrorKind::kStaleGeneration, "not under recovery"));
    row->set_recovery_id(TakeStamp());
    SetBlock(block, *row);
    done(*row);
  }
  void CommitBlockRecovery(v1::Mutation::CommitBlockRecovery found, absl::AnyInvocable<void(absl::Status)> done) override {
    const BlockId block(found.block().id());
    std::optional<v1::BlockRecord> row = Block(block);
    if (!row || row->state() != v1::UNDER_RECOVERY || row->recovery_id() != found.recovery_id())
      return done(MakeError(ErrorKind::kStaleGeneration, "another round"));
    if (found.drop()) {
      if (found.empty_size() != row->expected_storages_size()) return done(MakeError(ErrorKind::kInvalidArgument, "not all answered"));
      RemoveBlock(block);
    } else {
      row->set_state(v1::COMMITTED);
      row->set_generation_stamp(found.recovery_id());
      row->set_length_bytes(found.block().length_bytes());
      *row->mutable_expected_storages() = found.storages();
      row->clear_recovery_id();
      SetBlock(block, *row);
    }
    done(absl::OkStatus());
    if (on_changed) on_changed(block);
  }
  void OnRolledBack(uint64_t at_least_block_id, uint64_t) override { rolled_back_to_ = at_least_block_id; }
  uint64_t rolled_back_to() const { return rolled_back_to_; }

 private:
  absl::Status Apply(const NodeAdminChange& change) {
    if (!admin_error.ok()) return admin_error;
    const std::string prefix(kMetaNodeAdminPrefix);
    const std::pair key(Family::kMeta, prefix + change.datanode_uuid);
    if (AdminRow(change.datanode_uuid).value_or("") != change.before) return MakeError(ErrorKind::kStaleGeneration, "changed meanwhile");
    for (const std::string& uuid : change.replaced) rows_.erase({Family::kMeta, prefix + uuid});
    if (change.record.state() == v1::NODE_NORMAL) {
      rows_.erase(key);
    } else {
      rows_[key] = change.record.SerializeAsString();
    }
    if (admin_unknown) return MakeError(ErrorKind::kRetriable, "whether it was written is not known");
    return absl::OkStatus();
  }

  using Rows = std::map<std::pair<Family, std::string>, std::string>;
  class Range : public Cursor {
   public:
    Range(Rows::const_iterator at, Rows::const_iterator end) : at_(at), end_(end) {}
    bool Valid() const override { return at_ != end_; }
    std::string_view key() const override { return at_->first.second; }
    std::string_view value() const override { return at_->second; }
    void Next() override { ++at_; }
    absl::Status status() const override { return absl::OkStatus(); }

   private:
    Rows::const_iterator at_;
    const Rows::const_iterator end_;
  };
  class View : public ReadView {
   public:
    explicit View(Rows rows) : rows_(std::move(rows)) {}
    absl::StatusOr<std::optional<std::string>> Get(Family family, std::string_view key) const override {
      const auto found = rows_.find({family, std::string(key)});
      return found == rows_.end() ? std::nullopt : std::optional<std::string>(found->second);
    }
    std::unique_ptr<Cursor> Scan(Family family, std::string_view begin, std::string_view end) const override {
      auto first = rows_.lower_bound({family, std::string(begin)});
      auto last = first;
      while (last != rows_.end() && last->first.first == family && (end.empty() || last->first.second < end)) ++last;
      return std::make_unique<Range>(first, last);
    }

   private:
    const Rows rows_;
  };

  Rows rows_;
  std::deque<std::pair<NodeAdminChange, absl::AnyInvocable<void(absl::Status)>>> held_admin_;
  BlockId next_ = kFirstBlockId;
  std::map<std::string, StorageNumber> numbers_;
  uint64_t rolled_back_to_ = 0;
  uint64_t next_stamp_ = 5000;
};

}  // namespace cairn::namenode::testing
