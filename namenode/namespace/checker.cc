#include "namenode/namespace/checker.h"

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/namespace/file_edit.h"
#include "namenode/namespace/ops/ops.h"
#include "namenode/namespace/records.h"
#include "namenode/namespace/retry_table.h"
#include "namenode/namespace/row_text.h"

namespace cairn::namenode {
namespace {

constexpr size_t kMostCachedDirectories = 1 << 16;
// Far above any configured depth: what has more steps to the root is in a cycle.
constexpr size_t kMostSteps = 20'000;

enum class Standing { kAttached, kDetached, kNowhere };

template <class Message>
bool Parse(std::string_view bytes, Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

bool Same(const v1::UsageRecord& a, const v1::UsageRecord& b) {
  return a.children() == b.children() && a.directories() == b.directories() && a.files() == b.files() &&
         a.length_bytes() == b.length_bytes() && a.charged_bytes() == b.charged_bytes();
}

std::string Text(const v1::UsageRecord& usage) {
  return fmt::format("{} children, {} directories, {} files, {} bytes, {} charged", usage.children(), usage.directories(), usage.files(),
                     usage.length_bytes(), usage.charged_bytes());
}

class Checker {
 public:
  Checker(const ReadView& view, const std::function<void(const Violation&)>& found) : view_(view), found_(found) {}

  absl::StatusOr<CheckSummary> Run() {
    RETURN_IF_ERROR(Meta());
    RETURN_IF_ERROR(Each(Family::kDatanode, &Checker::Datanode));
    RETURN_IF_ERROR(Each(Family::kWork, &Checker::Work));
    RETURN_IF_ERROR(Each(Family::kInode, &Checker::Inode));
    RETURN_IF_ERROR(Each(Family::kInodeById, &Checker::Link));
    RETURN_IF_ERROR(Each(Family::kFileBlock, &Checker::FileBlock));
    RETURN_IF_ERROR(Each(Family::kBlock, &Checker::Block));
    RETURN_IF_ERROR(Each(Family::kUsage, &Checker::Usage));
    RETURN_IF_ERROR(Each(Family::kLease, &Checker::Lease));
    RETURN_IF_ERROR(Each(Family::kRetry, &Checker::Retry));
    return summary_;
  }

 private:
  struct Found {
    InodeId parent;
    std::string name;
    v1::INodeRecord record;
  };

  void Complain(Family family, std::string_view key, std::string what) {
    ++summary_.violations;
    found_(Violation{family, std::string(key), std::move(what)});
  }

  absl::Status Each(Family family, absl::Status (Checker::*check)(std::string_view key, std::string_view value)) {
    const auto cursor = view_.Scan(family, "", "");
    for (; cursor->Valid(); cursor->Next()) RETURN_IF_ERROR((this->*check)(cursor->key(), cursor->value()));
    return cursor->status();
  }

  // Through its link; nothing if the link or the record is missing or damaged, which the walks over these families report.
  absl::StatusOr<std::optional<Found>> Find(InodeId id) const {
    std::optional<Found> found;
    ASSIGN_OR_RETURN(const std::optional<std::string> link_bytes, view_.Get(Family::kInodeById, InodeByIdKey(id)));
    v1::INodeLink link;
    if (!link_bytes || !Parse(*link_bytes, link)) return found;
    const InodeId parent(link.parent_id());
    ASSIGN_OR_RETURN(const std::optional<std::string> bytes, view_.Get(Family::kInode, InodeKey(parent, link.name())));
    v1::INodeRecord record;
    if (!bytes || !Parse(*bytes, record) || record.id() != id.value()) return found;
    found.emplace(Found{parent, link.name(), std::move(record)});
    return found;
  }

  absl::StatusOr<uint64_t> Counter(std::string_view name) {
    ASSIGN_OR_RETURN(const std::optional<std::string> bytes, view_.Get(Family::kMeta, name));
    const std::optional<uint64_t> value = bytes ? DecodeU64(*bytes) : std::nullopt;
    if (!value) Complain(Family::kMeta, name, bytes ? "is not a number" : "is missing");
    return value.value_or(UINT64_MAX);  // What depends on it is not reported again.
  }

  absl::Status Meta() {
    ASSIGN_OR_RETURN(next_inode_, Counter(kMetaNextInodeId));
    ASSIGN_OR_RETURN(next_block_, Counter(kMetaNextBlockId));
    ASSIGN_OR_RETURN(next_stamp_, Counter(kMetaNextGenerationStamp));
    ASSIGN_OR_RETURN(next_work_, Counter(kMetaNextWorkId));
    ASSIGN_OR_RETURN(next_storage_, Counter(kMetaNextStorageNumber));
    RETURN_IF_ERROR(Counter(kMetaEpoch).status());
    RETURN_IF_ERROR(Counter(kMetaLastMutationTime).status());
    ASSIGN_OR_RETURN(const uint64_t layout, Counter(kMetaLayoutVersion));
    if (layout != kNamespaceLayoutVersion && layout != UINT64_MAX)
      Complain(Family::kMeta, kMetaLayoutVersion, fmt::format("is {}, {} is known here", layout, kNamespaceLayoutVersion));
    if (next_block_ % kBlockIdStep != 0 && next_block_ != UINT64_MAX)
      Complain(Family::kMeta, kMetaNextBlockId, fmt::format("is {}, no multiple of {}", next_block_, kBlockIdStep));
    for (const std::string_view name : {kMetaClusterId, kMetaPoolId}) {
      ASSIGN_OR_RETURN(const std::optional<std::string> bytes, view_.Get(Family::kMeta, name));
      if (!bytes) Complain(Family::kMeta, name, "is missing");
    }
    ASSIGN_OR_RETURN(const std::optional<Found> root, Find(kRootInodeId));
    if (!root || root->parent != kRootParentId || root->record.type() != v1::DIRECTORY)
      Complain(Family::kInodeById, InodeByIdKey(kRootInodeId), "is not the root directory");
    return absl::OkStatus();
  }

  absl::Status Datanode(std::string_view key, std::string_view value) {
    const std::optional<StorageNumber> number = ParseDatanodeKey(key);
    v1::DatanodeRecord record;
    if (!number || !Parse(value, record)) {
      Complain(Family::kDatanode, key, "does not parse");
      return absl::OkStatus();
    }
    storages_.insert(number->value());
    if (number->value() >= next_storage_) Complain(Family::kDatanode, key, fmt::format("is not below the counter, {}", next_storage_));
    if (!storage_uuids_.insert(record.storage_uuid()).second)
      Complain(Family::kDatanode, key, fmt::format("storage {} has another number already", record.storage_uuid()));
    return absl::OkStatus();
  }

  absl::Status Work(std::string_view key, std::string_view value) {
    ++summary_.works;
    const std::optional<uint64_t> id = ParseWorkKey(key);
    v1::WorkRecord work;
    if (!id || !Parse(value, work) || work.kind_case() == v1::WorkRecord::KIND_NOT_SET) {
      Complain(Family::kWork, key, "does not parse");
      return absl::OkStatus();
    }
    if (*id >= next_work_) Complain(Family::kWork, key, fmt::format("is not below the counter, {}", next_work_));
    if (work.has_replication()) {
      spreading_.insert(work.replication().inode_id());
      return absl::OkStatus();
    }
    const v1::ReclaimWork& reclaim = work.reclaim();
    if (!reclaimed_.insert(reclaim.root_inode_id()).second)
      Complain(Family::kWork, key, fmt::format("inode {} is reclaimed twice", reclaim.root_inode_id()));
    ASSIGN_OR_RETURN(const std::optional<Found> root, Find(InodeId(reclaim.root_inode_id())));
    if (!root || root->parent != kDetachedInodeId)
      Complain(Family::kWork, key, fmt::format("inode {} does not stand below parent 0", reclaim.root_inode_id()));
    for (int i = 0; i < reclaim.path_size(); ++i) {
      ASSIGN_OR_RETURN(const std::optional<Found> step, Find(InodeId(reclaim.path(i))));
      const uint64_t above = i == 0 ? kDetachedInodeId.value() : reclaim.path(i - 1);
      if (!step || step->parent.value() != above) Complain(Family::kWork, key, fmt::format("its cursor is wrong at {}", reclaim.path(i)));
      // A directory on the way is freed up to the one below it, which is still there.
      if (step && i > 0) RETURN_IF_ERROR(NoteFreed(InodeId(above), step->name, /*with_itself=*/false));
    }
    if (reclaim.path_size() > 0 && !reclaim.after_name().empty())
      RETURN_IF_ERROR(NoteFreed(InodeId(reclaim.path(reclaim.path_size() - 1)), reclaim.after_name(), /*with_itself=*/true));
    return absl::OkStatus();
  }

  // The entries of `directory` up to this name are freed; of a large one the rows stay, without links, until all go as one range (see
  // docs/decisions/013-range-deletes-for-large-directories.md).
  absl::Status NoteFreed(InodeId directory, const std::string& name, bool with_itself) {
    ASSIGN_OR_RETURN(const std::optional<std::string> bytes, view_.Get(Family::kUsage, UsageKey(directory)));
    v1::UsageRecord usage;
    if (bytes && Parse(*bytes, usage) && usage.children() >= kSweptEntries) freed_[directory.value()] = Freed{name, with_itself};
    return absl::OkStatus();
  }

  bool IsFreed(const InodeKeyParts& place) const {
    const auto found = freed_.find(place.parent.value());
    if (found == freed_.end()) return false;
    return place.name < found->second.name || (found->second.with_itself && place.name == found->second.name);
  }

  // Where a directory's way up ends.
  absl::StatusOr<Standing> StandingOf(InodeId directory) {
    std::vector<uint64_t> steps;
    Standing standing = Standing::kNowhere;
    for (InodeId at = directory; steps.size() < kMostSteps;) {
      if (at == kRootParentId || at == kDetachedInodeId) {
        standing = at == kRootParentId ? Standing::kAttached : Standing::kDetached;
        break;
      }
      if (const auto known = standings_.find(at.value()); known != standings_.end()) {
        standing = known->second;
        break;
      }
      ASSIGN_OR_RETURN(const std::optional<Found> found, Find(at));
      if (!found || found->record.type() != v1::DIRECTORY) break;
      steps.push_back(at.value());
      at = found->parent;
    }
    if (standings_.size() + steps.size() > kMostCachedDirectories) standings_.clear();
    for (const uint64_t id : steps)
      if (standings_.size() < kMostCachedDirectories) standings_.emplace(id, standing);
    return standing;
  }

  absl::Status Inode(std::string_view key, std::string_view value) {
    const std::optional<InodeKeyParts> place = ParseInodeKey(key);
    v1::INodeRecord record;
    if (!place || !Parse(value, record)) {
      Complain(Family::kInode, key, "does not parse");
      return absl::OkStatus();
    }
    const auto complain = [&](std::string what) { Complain(Family::kInode, key, std::move(what)); };
    if (IsFreed(*place)) {
      ASSIGN_OR_RETURN(const std::optional<std::string> link, view_.Get(Family::kInodeById, InodeByIdKey(InodeId(record.id()))));
      if (link) complain(fmt::format("inode {} lies behind the cursor that frees it, and is still linked", record.id()));
      return absl::OkStatus();
    }
    if (record.id() >= next_inode_) complain(fmt::format("id {} is not below the counter, {}", record.id(), next_inode_));
    ASSIGN_OR_RETURN(const std::optional<std::string> link_bytes, view_.Get(Family::kInodeById, InodeByIdKey(InodeId(record.id()))));
    v1::INodeLink link;
    if (!link_bytes || !Parse(*link_bytes, link)) {
      complain(fmt::format("inode {} has no link", record.id()));
    } else if (link.parent_id() != place->parent.value() || link.name() != place->name) {
      complain(fmt::format("inode {} is linked to ({}, \"{}\")", record.id(), link.parent_id(), link.name()));
    }

    Standing standing = Standing::kNowhere;
    if (place->parent == kRootParentId) {
      if (record.id() != kRootInodeId.value() || !place->name.empty()) complain("only the root stands there");
      standing = Standing::kAttached;
    } else if (place->parent == kDetachedInodeId) {
      if (place->name != DetachedName(InodeId(record.id()))) complain("a deleted inode stands under another name than its id");
      if (!reclaimed_.contains(record.id())) complain(fmt::format("inode {} was deleted, but nothing is there to reclaim it", record.id()));
      standing = Standing::kDetached;
    } else {
      if (place->name.empty() || place->name.find('/') != std::string_view::npos || place->name.find('\0') != std::string_view::npos)
        complain("it has no proper name");
      ASSIGN_OR_RETURN(standing, StandingOf(place->parent));
      if (standing == Standing::kNowhere) complain(fmt::format("inode {} cannot be reached from the root", record.id()));
    }
    for (int i = 1; i < record.xattrs_size(); ++i) {
      const v1::Xattr& a = record.xattrs(i - 1);
      const v1::Xattr& b = record.xattrs(i);
      if (std::pair(a.name_space(), a.name()) >= std::pair(b.name_space(), b.name())) complain("its extended attributes are not in order");
    }
    switch (record.type()) {
      case v1::DIRECTORY: ++summary_.directories; return Directory(key, record, standing);
      case v1::FILE: ++summary_.files; return File(key, record, standing);
      default: complain("is neither file nor directory"); return absl::OkStatus();
    }
  }

  absl::Status Directory(std::string_view key, const v1::INodeRecord& record, Standing standing) {
    const InodeId id(record.id());
    ASSIGN_OR_RETURN(const std::optional<std::string> bytes, view_.Get(Family::kUsage, UsageKey(id)));
    v1::UsageRecord usage;
    if (!bytes || !Parse(*bytes, usage)) {
      Complain(Family::kUsage, UsageKey(id), bytes ? "does not parse" : fmt::format("is missing for {}", KeyText(Family::kInode, key)));
      return absl::OkStatus();
    }
    if (usage.namespace_quota() < 0 || usage.space_quota_bytes() < 0) Complain(Family::kUsage, UsageKey(id), "has a negative quota");
    if (record.block_count() != 0 || record.length_bytes() != 0 || !record.lease_holder().empty() || record.delete_if_abandoned() ||
        record.never_closed())
      Complain(Family::kInode, key, "a directory with a file's fields");
    if (standing != Standing::kAttached) return absl::OkStatus();  // The reclaimer does not keep the totals of what it frees.
    v1::UsageRecord sum;
    const auto cursor = view_.Scan(Family::kInode, ChildrenBegin(id, ""), ChildrenEnd(id));
    for (; cursor->Valid(); cursor->Next()) {
      v1::INodeRecord child;
      if (!Parse(cursor->value(), child)) return absl::OkStatus();  // Reported where it stands.
      sum.set_children(sum.children() + 1);
      if (child.type() != v1::DIRECTORY) {
        sum.set_files(sum.files() + 1);
        sum.set_length_bytes(sum.length_bytes() + child.length_bytes());
        sum.set_charged_bytes(sum.charged_bytes() + child.charged_bytes());
        continue;
      }
      ASSIGN_OR_RETURN(const std::optional<std::string> below, view_.Get(Family::kUsage, UsageKey(InodeId(child.id()))));
      v1::UsageRecord part;
      if (!below || !Parse(*below, part)) return absl::OkStatus();
      sum.set_directories(sum.directories() + part.directories() + 1);
      sum.set_files(sum.files() + part.files());
      sum.set_length_bytes(sum.length_bytes() + part.length_bytes());
      sum.set_charged_bytes(sum.charged_bytes() + part.charged_bytes());
    }
    RETURN_IF_ERROR(cursor->status());
    if (!Same(usage, sum)) Complain(Family::kUsage, UsageKey(id), fmt::format("says {}; the rows say {}", Text(usage), Text(sum)));
    return absl::OkStatus();
  }

  // The block of a file, if there is one that fits.
  absl::StatusOr<std::optional<v1::BlockRecord>> BlockOf(std::string_view key, const v1::INodeRecord& file, uint64_t block) {
    std::optional<v1::BlockRecord> record;
    ASSIGN_OR_RETURN(const std::optional<std::string> bytes, view_.Get(Family::kBlock, BlockKey(BlockId(block))));
    if (!bytes || !Parse(*bytes, record.emplace())) {
      Complain(Family::kInode, key, fmt::format("its block {} {}", block, bytes ? "does not parse" : "is missing"));
      record.reset();
    } else if (record->inode_id() != file.id()) {
      Complain(Family::kInode, key, fmt::format("its block {} belongs to inode {}", block, record->inode_id()));
      record.reset();
    }
    return record;
  }

  absl::StatusOr<std::optional<std::vector<uint64_t>>> BlocksOf(std::string_view key, const v1::INodeRecord& file) {
    std::optional<std::vector<uint64_t>> ids(std::in_place);
    if (file.block_count() <= kMaxInlineBlocks) {
      ids->assign(file.blocks().begin(), file.blocks().end());
    } else {
      if (file.blocks_size() != 0) Complain(Family::kInode, key, "it keeps blocks in its record and in rows");
      const InodeId id(file.id());
      const auto cursor = view_.Scan(Family::kFileBlock, FileBlockKey(id, 0), FileBlockKey(InodeId(id.value() + 1), 0));
      for (; cursor->Valid(); cursor->Next()) {
        const std::optional<uint64_t> block = DecodeU64(cursor->value());
        if (!block || cursor->key() != FileBlockKey(id, ids->size())) {
          Complain(Family::kFileBlock, cursor->key(), "is not the block that follows");
          ids.reset();
          break;
        }
        ids->push_back(*block);
      }
      RETURN_IF_ERROR(cursor->status());
    }
    if (ids && ids->size() != file.block_count()) {
      Complain(Family::kInode, key, fmt::format("it has {} blocks and says {}", ids->size(), file.block_count()));
      ids.reset();
    }
    return ids;
  }

  // What a block may say of itself in its state.
  void CheckState(std::string_view key, uint64_t id, const v1::BlockRecord& block) {
    const auto complain = [&](std::string_view what) { Complain(Family::kInode, key, fmt::format("its block {} {}", id, what)); };
    const bool recovered = block.state() == v1::UNDER_RECOVERY;
    const bool written = recovered || block.state() == v1::UNDER_CONSTRUCTION;
    if (recovered != (block.recovery_id() != 0)) complain(recovered ? "is under recovery without an id of it" : "has the id of a recovery");
    if (block.has_truncate_to_bytes() && (!recovered || block.truncate_to_bytes() >= block.length_bytes()))
      complain(fmt::format("is to be cut to {} bytes, it has {}", block.truncate_to_bytes(), block.length_bytes()));
    if (block.closed_length_bytes() > (written ? block.length_bytes() : 0))
      complain(fmt::format("has {} bytes of an earlier close, of {}", block.closed_length_bytes(), block.length_bytes()));
    if (block.synced_length_bytes() > (written ? block.length_bytes() : 0))
      complain(fmt::format("has {} bytes that are synced, of {}", block.synced_length_bytes(), block.length_bytes()));
    if (block.append_from_stamp() != 0 && (!written || block.append_from_stamp() >= block.generation_stamp()))
      complain(fmt::format("was appended to at stamp {}, it has {}", block.append_from_stamp(), block.generation_stamp()));
    if (block.state() == v1::COMMITTED && block.expected_storages().empty()) complain("is committed on no storage");
  }

  void CheckCharge(std::string_view key, const v1::INodeRecord& file, uint64_t id, const v1::BlockRecord& block) {
    // One that is cut charges as before until that is done.
    const bool settled = block.state() == v1::COMMITTED || block.has_truncate_to_bytes();
    const uint64_t expected = (settled ? block.length_bytes() : file.block_size_bytes()) * block.replication();
    if (block.charged_bytes() != expected)
      Complain(Family::kInode, key, fmt::format("its block {} charges {} bytes, expected {}", id, block.charged_bytes(), expected));
    if (block.replication() != file.replication())
      Complain(Family::kInode, key,
               fmt::format("its block {} is to have {} replicas, the file {}", id, block.replication(), file.replication()));
  }

  absl::Status File(std::string_view key, const v1::INodeRecord& file, Standing standing) {
    const auto complain = [&](std::string what) { Complain(Family::kInode, key, std::move(what)); };
    ASSIGN_OR_RETURN(const std::optional<std::vector<uint64_t>> ids, BlocksOf(key, file));
    if (!ids) return absl::OkStatus();
    const bool exact = standing == Standing::kAttached && !spreading_.contains(file.id());
    uint64_t length = 0, charged = 0;
    for (size_t i = 0; i < ids->size(); ++i) {
      const uint64_t id = (*ids)[i];
      ASSIGN_OR_RETURN(const std::optional<v1::BlockRecord> block, BlockOf(key, file, id));
      if (!block) return absl::OkStatus();
      length += block->length_bytes();
      charged += block->charged_bytes();
      if (block->index() != i) complain(fmt::format("its block {} has index {}, expected {}", id, block->index(), i));
      const bool open_end = i + 1 == ids->size() && !file.lease_holder().empty();
      if (block->state() != v1::COMMITTED && standing == Standing::kAttached &&
          (!open_end || block->state() == v1::RESERVED || block->state() == v1::BLOCK_UC_STATE_UNSPECIFIED))
        complain(fmt::format("its block {} is {} as number {} of {}{}", id, v1::BlockUCState_Name(block->state()), i, ids->size(),
                             file.lease_holder().empty() ? " of a closed file" : ""));
      if (standing == Standing::kAttached && (block->state() == v1::UNDER_RECOVERY) != (open_end && file.lease_holder() == kRecoveryHolder))
        complain(fmt::format("its block {} is {}, and the file is written by {}", id, v1::BlockUCState_Name(block->state()),
                             file.lease_holder()));
      CheckState(key, id, *block);
      if (exact) CheckCharge(key, file, id, *block);
    }
    if (file.reserved_block_id() != 0) {
      ASSIGN_OR_RETURN(const std::optional<v1::BlockRecord> reserved, BlockOf(key, file, file.reserved_block_id()));
      if (!reserved) return absl::OkStatus();
      charged += reserved->charged_bytes();
      if (reserved->state() != v1::RESERVED)
        complain(fmt::format("its reserved block {} is {}", file.reserved_block_id(), v1::BlockUCState_Name(reserved->state())));
      if (file.lease_holder().empty() && standing == Standing::kAttached) complain("a closed file with a reserved block");
      if (exact) CheckCharge(key, file, file.reserved_block_id(), *reserved);
    }
    if (file.delete_if_abandoned() && file.lease_holder().empty()) complain("a closed file that is to be deleted if it is abandoned");
    if (file.length_bytes() != length) complain(fmt::format("it has {} bytes, its blocks {}", file.length_bytes(), length));
    if (exact && file.charged_bytes() != charged)
      complain(fmt::format("it charges {} bytes, its blocks {}", file.charged_bytes(), charged));
    if (!file.lease_holder().empty() && standing == Standing::kAttached) {
      ASSIGN_OR_RETURN(const std::optional<std::string> lease,
                       view_.Get(Family::kLease, LeaseKey(file.lease_holder(), InodeId(file.id()))));
      if (!lease) complain(fmt::format("it is written by {}, who has no lease", file.lease_holder()));
    }
    return absl::OkStatus();
  }

  absl::Status Link(std::string_view key, std::string_view value) {
    const std::optional<uint64_t> id = DecodeU64(key);
    v1::INodeLink link;
    if (!id || !Parse(value, link)) {
      Complain(Family::kInodeById, key, "does not parse");
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::optional<Found> inode, Find(InodeId(*id)));
    if (!inode) Complain(Family::kInodeById, key, fmt::format("no inode {} stands at ({}, \"{}\")", *id, link.parent_id(), link.name()));
    return absl::OkStatus();
  }

  absl::Status FileBlock(std::string_view key, std::string_view) {
    if (key.size() != 16) {
      Complain(Family::kFileBlock, key, "does not parse");
      return absl::OkStatus();
    }
    const InodeId id(*DecodeU64(key.substr(0, 8)));
    if (!last_file_ || last_file_->first != id.value()) {
      ASSIGN_OR_RETURN(const std::optional<Found> inode, Find(id));
      const bool keeps_rows = inode && inode->record.type() == v1::FILE && inode->record.block_count() > kMaxInlineBlocks;
      last_file_.emplace(id.value(), keeps_rows ? inode->record.block_count() : 0);
    }
    const uint64_t index = *DecodeU64(key.substr(8));
    if (index >= last_file_->second) Complain(Family::kFileBlock, key, fmt::format("inode {} has no such block", id.value()));
    return absl::OkStatus();
  }

  absl::Status Block(std::string_view key, std::string_view value) {
    ++summary_.blocks;
    const std::optional<BlockId> id = ParseBlockKey(key);
    v1::BlockRecord block;
    if (!id || !Parse(value, block)) {
      Complain(Family::kBlock, key, "does not parse");
      return absl::OkStatus();
    }
    const auto complain = [&](std::string what) { Complain(Family::kBlock, key, std::move(what)); };
    if (id->value() % kBlockIdStep != 0 || id->value() >= next_block_) complain(fmt::format("is not below the counter, {}", next_block_));
    if (block.generation_stamp() >= next_stamp_) complain(fmt::format("stamp {} was never given out", block.generation_stamp()));
    if (block.recovery_id() >= next_stamp_) complain(fmt::format("recovery id {} was never given out", block.recovery_id()));
    if (block.owners() == 0) complain("nobody owns it");
    for (const uint32_t storage : block.expected_storages())
      if (!storages_.empty() && !storages_.contains(storage)) complain(fmt::format("storage {} is unknown", storage));
    ASSIGN_OR_RETURN(const std::optional<Found> inode, Find(InodeId(block.inode_id())));
    if (!inode || inode->record.type() != v1::FILE) {
      complain(fmt::format("file {} is not there", block.inode_id()));
      return absl::OkStatus();
    }
    if (inode->record.reserved_block_id() == id->value()) return absl::OkStatus();
    uint64_t named = 0;
    const v1::INodeRecord& file = inode->record;
    if (block.index() < file.block_count() && file.block_count() <= kMaxInlineBlocks) {
      if (block.index() < static_cast<uint64_t>(file.blocks_size())) named = file.blocks(static_cast<int>(block.index()));
    } else if (block.index() < file.block_count()) {
      ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                       view_.Get(Family::kFileBlock, FileBlockKey(InodeId(file.id()), block.index())));
      named = bytes ? DecodeU64(*bytes).value_or(0) : 0;
    }
    if (named != id->value()) complain(fmt::format("file {} does not name it at {}", file.id(), block.index()));
    return absl::OkStatus();
  }

  absl::Status Usage(std::string_view key, std::string_view) {
    const std::optional<uint64_t> id = DecodeU64(key);
    if (!id) {
      Complain(Family::kUsage, key, "does not parse");
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::optional<Found> inode, Find(InodeId(*id)));
    if (!inode || inode->record.type() != v1::DIRECTORY) Complain(Family::kUsage, key, "is of no directory");
    return absl::OkStatus();
  }

  absl::Status Lease(std::string_view key, std::string_view value) {
    ++summary_.leases;
    const std::optional<LeaseKeyParts> parts = ParseLeaseKey(key);
    v1::LeaseRecord lease;
    if (!parts || !Parse(value, lease)) {
      Complain(Family::kLease, key, "does not parse");
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::optional<Found> inode, Find(parts->id));
    if (!inode || inode->record.lease_holder() != parts->holder)
      Complain(Family::kLease, key, fmt::format("inode {} is not written by {}", parts->id.value(), parts->holder));
    else if (inode->record.delete_if_abandoned() != lease.delete_if_abandoned())
      Complain(Family::kLease, key, fmt::format("it and inode {} differ on what becomes of the file", parts->id.value()));
    return absl::OkStatus();
  }

  absl::Status Retry(std::string_view key, std::string_view value) {
    ++summary_.retries;
    v1::RetryRecord retry;
    if (key.size() != kClientIdBytes + 4 || !Parse(value, retry)) Complain(Family::kRetry, key, "does not parse");
    return absl::OkStatus();
  }

  const ReadView& view_;
  const std::function<void(const Violation&)>& found_;
  CheckSummary summary_;
  uint64_t next_inode_ = 0, next_block_ = 0, next_stamp_ = 0, next_work_ = 0, next_storage_ = 0;
  std::set<uint64_t> storages_;
  std::set<std::string, std::less<>> storage_uuids_;
  std::set<uint64_t> reclaimed_;  // Roots of reclaim works.
  struct Freed {
    std::string name;
    bool with_itself = false;
  };
  std::unordered_map<uint64_t, Freed> freed_;  // How far large directories are freed.
  std::set<uint64_t> spreading_;               // Files whose rows do not all have the file's replication yet.
  std::unordered_map<uint64_t, Standing> standings_;
  std::optional<std::pair<uint64_t, uint64_t>> last_file_;  // Of file_block rows: inode, how many it may have.
};

}  // namespace

absl::StatusOr<CheckSummary> CheckNamespace(const ReadView& view, const std::function<void(const Violation&)>& found) {
  return Checker(view, found).Run();
}

std::string ToString(const Violation& violation) {
  return fmt::format("{} {}: {}", FamilyName(violation.family), KeyText(violation.family, violation.key), violation.what);
}

}  // namespace cairn::namenode
