#include "tests/namenode/namespace_dump.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cairn/namespace.pb.h"
#include "namenode/namespace/block_replication.h"
#include "namenode/namespace/records.h"
#include "namenode/store/keys.h"

namespace cairn::testing {
namespace {

using namenode::Family;
using namenode::ReadView;

struct Inode {
  InodeId parent;
  std::string name;
  v1::INodeRecord record;
};

class Dumper {
 public:
  explicit Dumper(const ReadView& view) : view_(view) {}

  NamespaceDump Run() {
    Load();
    CheckLinks();
    for (const auto& [id, inode] : inodes_)
      if (inode.parent == namenode::kRootParentId) Descend(InodeId(id), "/", /*detached=*/false);
    for (const auto& [id, inode] : inodes_)
      if (inode.parent == kDetachedInodeId) Descend(InodeId(id), fmt::format("(detached {})", id), /*detached=*/true);
    CheckWork();
    for (const auto& [id, inode] : inodes_)
      if (!seen_.contains(id)) Broken("inode {} below {} is reached from nowhere", id, inode.parent.value());
    for (const auto& [id, block] : blocks_)
      if (!used_blocks_.contains(id)) Broken("block {} of inode {} is in no file", id, block.inode_id());
    for (const auto& [key, number] : file_blocks_)
      if (!used_file_blocks_.contains(key)) Broken("a file_block row of block {} belongs to no file", number);
    for (const auto& [id, usage] : usages_)
      if (!seen_.contains(id)) Broken("usage of {}, which is no directory", id);
    CheckLeases();
    dump_.counters = CounterLine(Counters());
    return std::move(dump_);
  }

 private:
  struct Totals {
    uint64_t children = 0, directories = 0, files = 0, length = 0, charged = 0;
  };

  template <class... Args>
  void Broken(fmt::format_string<Args...> format, Args&&... args) {
    dump_.broken.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  template <class Each>
  void ForEach(Family family, Each each) {
    const auto cursor = view_.Scan(family, "", "");
    for (; cursor->Valid(); cursor->Next()) each(std::string(cursor->key()), std::string(cursor->value()));
    if (!cursor->status().ok()) Broken("a scan failed: {}", cursor->status().ToString());
  }

  uint64_t Number(std::string_view name) {
    const absl::StatusOr<uint64_t> number = namenode::GetNumber(view_, name);
    return number.ok() ? *number : 0;
  }

  CounterFacts Counters() {
    CounterFacts facts;
    facts.next_inode = Number(namenode::kMetaNextInodeId);
    facts.next_block = Number(namenode::kMetaNextBlockId);
    facts.next_stamp = Number(namenode::kMetaNextGenerationStamp);
    facts.last_time_ms = Number(namenode::kMetaLastMutationTime);
    ForEach(Family::kRetry, [&](const std::string&, const std::string&) { ++facts.retry_rows; });
    ForEach(Family::kDatanode, [&](const std::string& key, const std::string& value) {
      const auto record = Parsed<v1::DatanodeRecord>("datanode", value);
      const auto number = namenode::ParseDatanodeKey(key);
      if (!number) return Broken("a datanode key of {} bytes", key.size());
      facts.storages.push_back(StorageText(record.storage_uuid(), record.datanode_uuid(), number->value()));
    });
    std::sort(facts.storages.begin(), facts.storages.end());
    const auto keep = view_.Get(Family::kMeta, namenode::kMetaKeepUnknownReplicas);
    if (keep.ok() && *keep) facts.keep_unknown_replicas = **keep;
    return facts;
  }

  template <class Message>
  Message Parsed(const char* what, const std::string& value) {
    Message message;
    if (!message.ParseFromString(value)) Broken("a row of {} does not parse", what);
    return message;
  }

  void Load() {
    ForEach(Family::kInode, [&](const std::string& key, const std::string& value) {
      const auto parts = namenode::ParseInodeKey(key);
      if (!parts) return Broken("an inode key of {} bytes", key.size());
      Inode inode{parts->parent, std::string(parts->name), Parsed<v1::INodeRecord>("inode", value)};
      const uint64_t id = inode.record.id();
      if (!inodes_.emplace(id, std::move(inode)).second) Broken("inode {} stands in two places", id);
    });
    for (const auto& [id, inode] : inodes_) children_[inode.parent.value()].push_back(InodeId(id));
    ForEach(Family::kInodeById, [&](const std::string& key, const std::string& value) {
      links_[namenode::DecodeU64(key).value_or(0)] = Parsed<v1::INodeLink>("inode_by_id", value);
    });
    ForEach(Family::kBlock, [&](const std::string& key, const std::string& value) {
      blocks_[namenode::DecodeU64(key).value_or(0)] = Parsed<v1::BlockRecord>("block", value);
    });
    ForEach(Family::kFileBlock,
            [&](const std::string& key, const std::string& value) { file_blocks_[key] = namenode::DecodeU64(value).value_or(0); });
    ForEach(Family::kWork, [&](const std::string&, const std::string& value) {
      const auto work = Parsed<v1::WorkRecord>("work", value);
      if (work.has_replication()) spreading_.insert(work.replication().inode_id());
      if (work.has_reclaim() && !reclaimed_.insert(work.reclaim().root_inode_id()).second)
        Broken("inode {} is freed by two works", work.reclaim().root_inode_id());
    });
    ForEach(Family::kUsage, [&](const std::string& key, const std::string& value) {
      usages_[namenode::DecodeU64(key).value_or(0)] = Parsed<v1::UsageRecord>("usage", value);
    });
  }

  void CheckLinks() {
    for (const auto& [id, inode] : inodes_) {
      const auto link = links_.find(id);
      if (link == links_.end())
        Broken("inode {} has no row in inode_by_id", id);
      else if (link->second.parent_id() != inode.parent.value() || link->second.name() != inode.name)
        Broken("inode {} stands at ({}, {}), inode_by_id says ({}, {})", id, inode.parent.value(), inode.name, link->second.parent_id(),
               link->second.name());
    }
    for (const auto& [id, link] : links_)
      if (!inodes_.contains(id)) Broken("inode_by_id knows {}, which is nowhere", id);
  }

  Totals Descend(InodeId id, const std::string& path, bool detached) {
    seen_.insert(id.value());
    const v1::INodeRecord& record = inodes_.at(id.value()).record;
    NodeFacts facts;
    facts.id = record.id();
    facts.is_directory = record.type() == v1::DIRECTORY;
    facts.mode = record.mode();
    facts.owner = record.owner();
    facts.group = record.group();
    facts.modified_ms = record.modification_time_ms();
    facts.accessed_ms = record.access_time_ms();
    Totals totals = facts.is_directory ? Directory(id, path, detached) : File(record, path, detached, &facts);
    facts.length = totals.length;
    facts.charged = totals.charged;
    facts.children = totals.children;
    facts.directories = totals.directories;
    facts.files = facts.is_directory ? totals.files : 0;
    if (record.delete_if_abandoned()) facts.more.emplace_back("vanishes");
    if (record.never_closed()) facts.more.emplace_back("never closed");
    for (const v1::Xattr& xattr : record.xattrs()) facts.more.push_back(XattrText(xattr.name_space(), xattr.name(), xattr.value()));
    if (const auto usage = usages_.find(id.value()); usage != usages_.end()) {
      if (usage->second.has_namespace_quota()) facts.more.push_back(fmt::format("names<={}", usage->second.namespace_quota()));
      if (usage->second.has_space_quota_bytes()) facts.more.push_back(fmt::format("charged<={}", usage->second.space_quota_bytes()));
    }
    if (!detached) dump_.lines[path] = NodeLine(facts);
    return totals;
  }

  Totals Directory(InodeId id, const std::string& path, bool detached) {
    Totals totals;
    const std::vector<InodeId> children = children_[id.value()];
    totals.children = children.size();
    for (const InodeId child : children) {
      const Inode& inode = inodes_.at(child.value());
      const bool is_directory = inode.record.type() == v1::DIRECTORY;
      const Totals below = Descend(child, (path == "/" ? "/" : path + "/") + inode.name, detached);
      totals.directories += below.directories + (is_directory ? 1 : 0);
      totals.files += below.files;
      totals.length += below.length;
      totals.charged += below.charged;
    }
    const auto usage = usages_.find(id.value());
    if (usage == usages_.end()) {
      Broken("{} has no usage row", path);
      return totals;
    }
    const v1::UsageRecord& kept = usage->second;
    const bool same = kept.children() == totals.children && kept.directories() == totals.directories && kept.files() == totals.files &&
                      kept.length_bytes() == totals.length && kept.charged_bytes() == totals.charged;
    if (!same && !detached)
      Broken("usage of {} is {} children, {} directories, {} files, {} bytes, {} charged; counted {}, {}, {}, {}, {}", path,
             kept.children(), kept.directories(), kept.files(), kept.length_bytes(), kept.charged_bytes(), totals.children,
             totals.directories, totals.files, totals.length, totals.charged);
    return totals;
  }

  Totals File(const v1::INodeRecord& record, const std::string& path, bool detached, NodeFacts* facts) {
    facts->replication = record.replication();
    facts->block_size = record.block_size_bytes();
    facts->holder = record.lease_holder();
    if (!record.lease_holder().empty()) (detached ? left_writers_ : writers_).emplace(record.lease_holder(), record.id());
    std::vector<uint64_t> ids(record.blocks().begin(), record.blocks().end());
    if (record.block_count() > namenode::kMaxInlineBlocks || ids.size() != record.block_count()) {
      for (uint64_t index = 0; index < record.block_count(); ++index) {
        const std::string key = namenode::FileBlockKey(InodeId(record.id()), index);
        const auto row = file_blocks_.find(key);
        if (row == file_blocks_.end()) {
          Broken("{} has no file_block row {} of {}", path, index, record.block_count());
          continue;
        }
        used_file_blocks_.insert(key);
        ids.push_back(row->second);
      }
    }
    Totals totals;
    totals.files = 1;
    for (size_t index = 0; index < ids.size(); ++index) {
      const v1::BlockRecord* block = Use(ids[index], record, path, detached, facts);
      if (block == nullptr) continue;
      if (block->index() != index) Broken("{}: block {} is at {}, its row says {}", path, ids[index], index, block->index());
      if (block->state() == v1::RESERVED) Broken("{}: block {} is reserved, and part of the file", path, ids[index]);
      if (block->state() != v1::COMMITTED && (index + 1 != ids.size() || (record.lease_holder().empty() && !detached)))
        Broken("{}: block {} at {} of {} is in state {}", path, ids[index], index, ids.size(), static_cast<int>(block->state()));
      totals.length += block->length_bytes();
      totals.charged += block->charged_bytes();
    }
    if (record.reserved_block_id() != 0) {
      const v1::BlockRecord* block = Use(record.reserved_block_id(), record, path, detached, facts);
      if (block != nullptr && block->state() != v1::RESERVED) Broken("{}: reserved block {} is not", path, record.reserved_block_id());
      if (block != nullptr) totals.charged += block->charged_bytes();
    }
    if (!detached && record.length_bytes() != totals.length)
      Broken("{}: its record says {} bytes, its blocks have {}", path, record.length_bytes(), totals.length);
    if (!detached && record.charged_bytes() != totals.charged)
      Broken("{}: its record charges {} bytes, its blocks {}", path, record.charged_bytes(), totals.charged);
    return totals;
  }

  const v1::BlockRecord* Use(uint64_t id, const v1::INodeRecord& file, const std::string& path, bool detached, NodeFacts* facts) {
    const auto found = blocks_.find(id);
    if (found == blocks_.end()) {
      Broken("{}: block {} has no row", path, id);
      return nullptr;
    }
    v1::BlockRecord& block = found->second;
    if (spreading_.contains(file.id())) namenode::SettleReplication(block, file.replication());
    if (!detached && block.replication() != file.replication())
      Broken("{}: block {} is to have {} replicas, the file {}", path, id, block.replication(), file.replication());
    if (!used_blocks_.insert(id).second) Broken("{}: block {} is in two places", path, id);
    if (block.inode_id() != file.id()) Broken("{}: block {} says it is of inode {}", path, id, block.inode_id());
    facts->blocks.push_back({.id = id,
                             .stamp = block.generation_stamp(),
                             .length = block.length_bytes(),
                             .replication = block.replication(),
                             .charged = block.charged_bytes(),
                             .state = v1::BlockUCState_Name(block.state()),
                             .storages = {block.expected_storages().begin(), block.expected_storages().end()},
                             .committed_ms = block.committed_ms(),
                             .recovery_id = block.recovery_id(),
                             .truncate_to = block.has_truncate_to_bytes() ? std::optional(block.truncate_to_bytes()) : std::nullopt,
                             .closed_length = block.closed_length_bytes(),
                             .append_from = block.append_from_stamp(),
                             .synced = block.synced_length_bytes()});
    return &block;
  }

  void CheckWork() {
    std::set<uint64_t> roots = reclaimed_;
    for (const auto& [id, inode] : inodes_) {
      if (inode.parent == kDetachedInodeId && !roots.contains(id)) Broken("inode {} is detached, and no work frees it", id);
      roots.erase(id);
    }
    for (const uint64_t id : roots) Broken("work is to free inode {}, which is not there", id);
  }

  void CheckLeases() {
    std::set<std::pair<std::string, uint64_t>> leases;
    ForEach(Family::kLease, [&](const std::string& key, const std::string&) {
      const auto parts = namenode::ParseLeaseKey(key);
      if (!parts) return Broken("a lease key of {} bytes", key.size());
      leases.emplace(std::string(parts->holder), parts->id.value());
    });
    for (const auto& [holder, id] : writers_)
      if (!leases.contains({holder, id})) Broken("inode {} is written by {}, without a lease", id, holder);
    for (const auto& [holder, id] : leases)
      if (!writers_.contains({holder, id}) && !left_writers_.contains({holder, id}))
        Broken("{} has a lease of inode {}, which it does not write", holder, id);
  }

  const ReadView& view_;
  NamespaceDump dump_;
  std::map<uint64_t, Inode> inodes_;
  std::map<uint64_t, std::vector<InodeId>> children_;
  std::map<uint64_t, v1::INodeLink> links_;
  std::map<uint64_t, v1::BlockRecord> blocks_;
  std::map<std::string, uint64_t> file_blocks_;
  std::map<uint64_t, v1::UsageRecord> usages_;
  std::set<uint64_t> spreading_;  // Files whose blocks' rows do not all have the file's replication yet.
  std::set<uint64_t> reclaimed_;  // Roots of what is being freed.
  std::set<uint64_t> seen_;
  std::set<uint64_t> used_blocks_;
  std::set<std::string> used_file_blocks_;
  std::set<std::pair<std::string, uint64_t>> writers_;
  std::set<std::pair<std::string, uint64_t>> left_writers_;  // In detached subtrees, where a lease may have gone before its file.
};

}  // namespace

std::string XattrText(int name_space, const std::string& name, const std::string& value) {
  return fmt::format("{}.{}={}", name_space, name, value);
}

std::string NodeLine(const NodeFacts& facts) {
  std::string line = fmt::format("{} {} {:o} {}:{} m{} a{} {} bytes {} charged", facts.is_directory ? "directory" : "file", facts.id,
                                 facts.mode, facts.owner, facts.group, facts.modified_ms, facts.accessed_ms, facts.length, facts.charged);
  if (facts.is_directory) {
    line += fmt::format(" {} children {} directories {} files", facts.children, facts.directories, facts.files);
  } else {
    line += fmt::format(" x{} of {} written by '{}'", facts.replication, facts.block_size, facts.holder);
    for (const NodeFacts::Block& block : facts.blocks) {
      line += fmt::format(" [{} {} {} {} x{} {} on {} c{}", block.id, block.stamp, block.length, block.state, block.replication,
                          block.charged, fmt::join(block.storages, ","), block.committed_ms);
      if (block.recovery_id != 0) line += fmt::format(" round {}", block.recovery_id);
      if (block.truncate_to) line += fmt::format(" cut to {}", *block.truncate_to);
      if (block.closed_length != 0) line += fmt::format(" closed {}", block.closed_length);
      if (block.synced != 0) line += fmt::format(" synced {}", block.synced);
      if (block.append_from != 0) line += fmt::format(" from {}", block.append_from);
      line += "]";
    }
  }
  for (const std::string& more : facts.more) line += " " + more;
  return line;
}

std::string StorageText(const std::string& uuid, const std::string& node, uint64_t number) {
  return fmt::format("{} of {} is {}", uuid, node, number);
}

std::string CounterLine(const CounterFacts& facts) {
  return fmt::format("inode {}, block {}, stamp {}, time {}, {} retry rows, keep unknown replicas '{}', storages {}", facts.next_inode,
                     facts.next_block, facts.next_stamp, facts.last_time_ms, facts.retry_rows, facts.keep_unknown_replicas,
                     fmt::join(facts.storages, ", "));
}

NamespaceDump DumpNamespace(const ReadView& view) { return Dumper(view).Run(); }

std::string FirstDifferences(const std::map<std::string, std::string>& expected, const std::map<std::string, std::string>& actual) {
  std::string text;
  int shown = 0;
  for (const auto& [path, line] : expected) {
    const auto found = actual.find(path);
    if (found != actual.end() && found->second == line) continue;
    if (++shown <= 4)
      text += fmt::format("{}\n  expected {}\n  is       {}\n", path, line, found == actual.end() ? "not there" : found->second);
  }
  for (const auto& [path, line] : actual)
    if (!expected.contains(path) && ++shown <= 4) text += fmt::format("{}\n  expected nothing\n  is       {}\n", path, line);
  return text;
}

}  // namespace cairn::testing
