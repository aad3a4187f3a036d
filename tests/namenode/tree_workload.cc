#include "tests/namenode/tree_workload.h"

#include <algorithm>

#include <fmt/format.h>

#include "namenode/store/keys.h"
#include "tests/testing/builders.h"

namespace cairn::testing {
namespace {

constexpr size_t kEarlierKept = 40;
constexpr size_t kDeleteCalls = 3;
constexpr uint64_t kPathsAtOnce = 256;  // The most of one mutation.

}  // namespace

v1::Mutation TreeWorkload::RegisterStorages() {
  v1::Mutation mutation;
  mutation.set_time_ms(kTestStartMs);
  mutation.mutable_register_storages()->set_datanode_uuid("node-0");
  for (uint32_t i = 0; i < kStorages; ++i) mutation.mutable_register_storages()->add_storage_uuids(fmt::format("storage-{}", i));
  return mutation;
}

TreeWorkload::TreeWorkload(Options options, Random random) : options_(options), random_(std::move(random)), now_ms_(kTestStartMs) {
  for (size_t i = 0; i < options_.clients; ++i) {
    Client client;
    client.id = fmt::format("client-{:0>9}", i);
    client.name = fmt::format("holder{}", i);
    client.user = i == 0 ? "root" : fmt::format("user{}", i);
    client.slots.resize(options_.slots);
    clients_.push_back(std::move(client));
  }
  names_ = {
      "a", "b", "c", "d e", "%2f", "+:", "caf\u00e9", "\U0001f600", ".reserved", ".snapshot", std::string(255, 'x'), std::string(256, 'y')};
  for (int i = 0; i < 3 && options_.long_names > 0; ++i) names_[static_cast<size_t>(i)] += std::string(options_.long_names, '0');
}

std::string TreeWorkload::Name() { return names_[random_.Below(random_.OneIn(4) ? names_.size() : 4)]; }

std::string TreeWorkload::Existing(const TreeModel& model) {
  auto at = model.nodes().begin();
  std::advance(at, static_cast<ptrdiff_t>(random_.Below(model.nodes().size())));
  return at->first;
}

std::string TreeWorkload::NewPath(const TreeModel& model) {
  std::string directory = Existing(model);
  if (!model.nodes().at(directory).is_directory && !random_.OneIn(8)) directory = TreeModel::ParentOf(directory);
  std::string path = (directory == "/" ? "/" : directory + "/") + Name();
  while (random_.OneIn(5)) path += "/" + Name();
  return path;
}

std::string TreeWorkload::AnyPath(const TreeModel& model) {
  std::string path = random_.OneIn(2) ? Existing(model) : NewPath(model);
  if (random_.OneIn(25)) path += random_.OneIn(2) ? "/" : "//.";
  if (random_.OneIn(40)) path = random_.OneIn(2) ? "/" + path : path.substr(1);
  if (random_.OneIn(60)) path += "/..";
  return path;
}

v1::Mutation::Limits TreeWorkload::Limits() {
  v1::Mutation::Limits limits = DefaultLimits();
  limits.set_max_directory_entries(6);
  limits.set_max_depth(6);
  limits.set_max_path_bytes(700);
  limits.set_max_blocks_per_file(random_.OneIn(8) ? 2 * kLongFile : 7);
  limits.set_max_block_size_bytes(2 * kBlockSize);
  limits.set_max_replication(5);
  limits.set_max_xattrs(3);
  limits.set_max_xattr_bytes(50);
  limits.set_permissions_enabled(random_.OneIn(2));
  if (random_.OneIn(20)) limits.set_min_replication(2);
  limits.set_lease_soft_limit_ms(60'000);
  return limits;
}

void TreeWorkload::TreeCall(const TreeModel& model, const Client& client, v1::Mutation* m) {
  switch (random_.Below(10)) {
    case 0:
    case 1: {
      *m->mutable_mkdirs() = MkdirsMutation(AnyPath(model)).mkdirs();
      m->mutable_mkdirs()->set_create_parent(!random_.OneIn(5));
      m->mutable_mkdirs()->set_mode(random_.OneIn(2) ? static_cast<uint32_t>(random_.Below(02000)) : 0777);
      return;
    }
    case 2:
    case 3:
    case 4:
    case 5: {
      *m->mutable_create() = CreateMutation(random_.OneIn(4) ? AnyPath(model) : NewPath(model), client.name).create();
      v1::Mutation::Create& op = *m->mutable_create();
      op.set_overwrite(random_.OneIn(3));
      op.set_create_parent(!random_.OneIn(4));
      op.set_replication(static_cast<uint32_t>(1 + random_.Below(random_.OneIn(20) ? 8 : 3)));
      op.set_block_size_bytes(random_.OneIn(20) ? random_.Below(4 * kBlockSize) : kBlockSize);
      op.set_with_first_block(random_.OneIn(2));
      op.set_delete_if_abandoned(random_.OneIn(8));
      if (op.with_first_block())
        for (const uint32_t target : Targets()) op.add_targets(target);
      if (const auto there = model.nodes().find(op.path()); there != model.nodes().end())
        *op.mutable_lease_seen() = LeaseSeen(there->second);
      if (random_.OneIn(60)) m->clear_client_name();
      return;
    }
    case 6:
    case 7: {
      *m->mutable_rename() = RenameMutation(AnyPath(model), AnyPath(model), random_.OneIn(2)).rename();
      return;
    }
    case 8: {
      *m->mutable_delete_() = DeleteMutation(AnyPath(model), random_.OneIn(2)).delete_();
      return;
    }
    default: {
      v1::Mutation::DeleteMany& op = *m->mutable_delete_many();
      op.set_recursive(random_.OneIn(2));
      const uint64_t parts = random_.OneIn(2) ? 1 : 2 + random_.Below(3);
      const bool is_large = random_.OneIn(12);
      for (uint64_t part = 0; part < parts; ++part) {
        std::vector<std::string>& paths = parts_.emplace_back();
        for (uint64_t count = 1 + random_.Below(4); count > 0; --count) paths.push_back(AnyPath(model));
        while (is_large && paths.size() < kPathsAtOnce) paths.push_back(fmt::format("/none/{}", paths.size()));
        if (random_.OneIn(is_large ? 6 : 200)) paths.resize(kPathsAtOnce + 1, "/one too many");
      }
      op.mutable_paths()->Assign(parts_.front().begin(), parts_.front().end());
      parts_.pop_front();
      return;
    }
  }
}

// The next part of a call of deleteMany that is not through, as the front door makes it: with all that the first part had but the paths.
v1::Mutation TreeWorkload::NextPart() {
  const size_t which = random_.Below(calls_.size());
  DeleteCall& call = calls_[which];
  v1::Mutation::DeleteMany& op = *call.base.mutable_delete_many();
  op.set_from(op.from() + static_cast<uint32_t>(op.paths_size()));
  op.mutable_paths()->Assign(call.parts.front().begin(), call.parts.front().end());
  call.parts.pop_front();
  v1::Mutation m = call.base;
  m.set_time_ms(now_ms_);
  if (random_.OneIn(20)) m.mutable_delete_many()->set_from(op.from() + 1);  // Not where the row stands.
  if (call.parts.empty()) calls_.erase(calls_.begin() + static_cast<ptrdiff_t>(which));
  return m;
}

void TreeWorkload::AttributeCall(const TreeModel& model, const Client& client, v1::Mutation* m) {
  switch (random_.Below(9)) {
    case 0: {
      v1::Mutation::SetQuota& op = *m->mutable_set_quota();
      op.set_path(AnyPath(model));
      const auto quota = [this](uint64_t most) { return random_.OneIn(3) ? -1 : static_cast<int64_t>(random_.Below(most)); };
      if (random_.OneIn(2)) op.set_namespace_quota(quota(20));
      if (random_.OneIn(2)) op.set_space_quota_bytes(quota(30 * kBlockSize));
      if (random_.OneIn(30)) op.set_namespace_quota(-2);
      return;
    }
    case 1: {
      std::string path;
      if (SomeFile(model, random_.OneIn(2), &path) == nullptr || random_.OneIn(3)) path = AnyPath(model);
      m->mutable_set_replication()->set_path(path);
      m->mutable_set_replication()->set_replication(static_cast<uint32_t>(random_.Below(random_.OneIn(10) ? 8 : 4)));
      return;
    }
    case 2: {
      v1::Mutation::Concat& op = *m->mutable_concat();
      // Closed files that stand beside another one.
      const auto beside = [](const std::string& a, const std::string& b) {
        return a != b && a != "/" && b != "/" && TreeModel::ParentOf(a) == TreeModel::ParentOf(b);
      };
      const auto is_closed = [](const ModelNode& node) { return !node.is_directory && node.holder.empty(); };
      std::vector<std::string> targets;
      for (const auto& [at, node] : model.nodes())
        for (const auto& [other, source] : model.nodes())
          if (is_closed(node) && is_closed(source) && !source.blocks.empty() && beside(at, other)) targets.push_back(at);
      op.set_target(targets.empty() || random_.OneIn(8) ? Existing(model) : targets[random_.Below(targets.size())]);
      for (const auto& [other, node] : model.nodes())
        if (beside(op.target(), other) && is_closed(node) && random_.OneIn(node.blocks.empty() ? 8 : 2)) op.add_sources(other);
      if (random_.OneIn(6)) op.add_sources(AnyPath(model));
      return;
    }
    case 3: {
      m->mutable_set_permission()->set_path(AnyPath(model));
      // Mostly open: where nobody may do anything, nothing happens.
      m->mutable_set_permission()->set_mode(static_cast<uint32_t>(random_.OneIn(3) ? random_.Below(02010) : 0777 ^ random_.Below(8)));
      return;
    }
    case 4: {
      v1::Mutation::SetOwner& op = *m->mutable_set_owner();
      op.set_path(AnyPath(model));
      if (random_.OneIn(2)) op.set_owner(random_.OneIn(3) ? client.user : clients_[random_.Below(clients_.size())].user);
      if (random_.OneIn(2)) op.set_group(random_.OneIn(2) ? "staff" : "more");
      return;
    }
    case 5: {
      v1::Mutation::SetTimes& op = *m->mutable_set_times();
      op.set_path(AnyPath(model));
      if (random_.OneIn(2)) op.set_modification_time_ms(now_ms_ + static_cast<int64_t>(random_.Below(20'000)) - 10'000);
      if (random_.OneIn(2)) op.set_access_time_ms(random_.OneIn(20) ? -1 : now_ms_);
      return;
    }
    default: XattrCall(model, m); return;
  }
}

void TreeWorkload::XattrCall(const TreeModel& model, v1::Mutation* m) {
  std::string path = AnyPath(model);
  v1::Xattr xattr;
  xattr.set_name_space(random_.OneIn(4) ? static_cast<v1::XattrNamespace>(random_.Below(6)) : v1::XATTR_USER);
  if (!random_.OneIn(30)) xattr.set_name(std::string(1, static_cast<char>('a' + random_.Below(4))));
  // Mostly of one that is there.
  for (const auto& [at, node] : model.nodes()) {
    if (node.xattrs.empty() || random_.OneIn(3)) continue;
    const auto& key = node.xattrs.begin()->first;
    path = at;
    xattr.set_name_space(static_cast<v1::XattrNamespace>(key.first));
    if (!random_.OneIn(4)) xattr.set_name(key.second);
  }
  if (random_.OneIn(3)) {
    m->mutable_remove_xattr()->set_path(path);
    *m->mutable_remove_xattr()->mutable_xattr() = xattr;
    return;
  }
  xattr.set_value(std::string(random_.OneIn(20) ? 60 : random_.Below(5), 'v'));
  v1::Mutation::SetXattr& op = *m->mutable_set_xattr();
  op.set_path(random_.OneIn(3) ? AnyPath(model) : path);
  *op.mutable_xattr() = xattr;
  op.set_create(random_.OneIn(2));
  op.set_replace(random_.OneIn(2));
}

v1::Mutation TreeWorkload::Operation(const TreeModel& model) {
  v1::Mutation m;
  const Client& client = clients_[random_.Below(clients_.size())];
  m.set_user(client.user);
  m.set_client_id(client.id);
  m.set_client_name(client.name);
  *m.mutable_limits() = Limits();
  m.set_superuser(&client == &clients_.front());
  m.add_groups(&client == &clients_.back() ? "staff" : "others");
  if (random_.OneIn(6)) m.add_groups("more");
  const uint64_t kind = random_.Below(30);
  if (kind < 10) {
    TreeCall(model, client, &m);
  } else if (kind < 17) {
    AttributeCall(model, client, &m);
  } else if (kind < 20) {
    LeaseCall(model, &m);
  } else {
    WriterCall(model, &m);
  }
  return m;
}

void TreeWorkload::Background(const std::vector<uint64_t>& works, const TreeModel& model, v1::Mutation* m) {
  if (random_.OneIn(3) && Recovery(model, m)) return;
  const auto work = [&] { return works.empty() ? 1 : works[random_.Below(works.size())]; };
  switch (random_.Below(7)) {
    case 0: {
      std::string path;
      const ModelNode* file = nullptr;
      // Mostly one with synced bytes.
      for (int i = 0; i < 4 && (file == nullptr || file->blocks.empty() || file->blocks.back().length == 0); ++i)
        file = SomeFile(model, /*open=*/true, &path);
      m->mutable_expire_lease()->set_holder(file == nullptr || random_.OneIn(8) ? "nobody" : file->holder);
      m->mutable_expire_lease()->set_inode_id(file == nullptr ? 16386 : file->id);
      m->mutable_expire_lease()->set_observed_idle_ms(3'600'000);
      return;
    }
    case 1: {
      m->mutable_sweep_retries()->set_unused_since_ms(now_ms_ - 10 * 60 * 1000);
      m->mutable_sweep_retries()->set_max_rows(static_cast<uint32_t>(1 + random_.Below(10)));
      return;
    }
    case 2: {
      if (random_.OneIn(2)) {
        v1::Mutation::SetMeta& op = *m->mutable_set_meta();
        op.set_at_least_generation_stamp(1000 + random_.Below(200));
        op.set_at_least_block_id((1 << 30) + random_.Below(4000));
        if (random_.OneIn(3)) {
          op.set_name(std::string(random_.OneIn(3) ? namenode::kMetaNextInodeId : namenode::kMetaKeepUnknownReplicas));
          op.set_value(random_.OneIn(2) ? "1" : "");
        }
        if (random_.OneIn(20)) op.set_at_least_block_id(1ull << 63);
        return;
      }
      v1::Mutation::RegisterStorages& op = *m->mutable_register_storages();
      op.set_datanode_uuid(fmt::format("node-{}", random_.Below(2)));
      for (uint64_t count = 1 + random_.Below(2); count > 0; --count) op.add_storage_uuids(fmt::format("storage-{}", random_.Below(9)));
      if (random_.OneIn(10)) op.add_storage_uuids("");
      if (random_.OneIn(20)) op.clear_datanode_uuid();
      return;
    }
    case 3: {
      m->mutable_spread_replication()->set_work_id(work());
      m->mutable_spread_replication()->set_max_blocks(static_cast<uint32_t>(1 + random_.Below(30)));
      return;
    }
    default: {
      m->mutable_reclaim_step()->set_work_id(work());
      m->mutable_reclaim_step()->set_max_entries(static_cast<uint32_t>(1 + random_.Below(5)));
      if (random_.OneIn(3)) m->mutable_reclaim_step()->add_more_work_ids(work());
      return;
    }
  }
}

v1::Mutation TreeWorkload::Next(const TreeModel& model, const std::vector<uint64_t>& works) {
  now_ms_ += static_cast<int64_t>(random_.Below(2000));
  std::optional<v1::Mutation> next = LongFile(model);
  if (!next) next = ShortFile(model);
  if (next) {
    next->set_time_ms(now_ms_);
    return *std::move(next);
  }
  if (random_.OneIn(150)) now_ms_ += 10 * 60 * 1000;
  if (!calls_.empty() && random_.OneIn(4)) {
    v1::Mutation part = NextPart();
    if (part.sequence() != 0) earlier_.push_back(part);
    return part;
  }
  v1::Mutation m;
  parts_.clear();
  const bool background = random_.OneIn(6);
  if (background) {
    Background(works, model, &m);
  } else {
    m = Operation(model);
  }
  // The clock of the machine may step back; mutation time does not.
  m.set_time_ms(random_.OneIn(20) ? now_ms_ - static_cast<int64_t>(random_.Below(5000)) : now_ms_);
  const bool has_retry_id = !background && !random_.OneIn(5);
  if (has_retry_id) SetRetryId(&m);
  if (!parts_.empty()) calls_.push_back(DeleteCall{m, parts_});
  if (calls_.size() > kDeleteCalls) calls_.pop_front();  // A client that gave up.
  if (has_retry_id) earlier_.push_back(m);
  if (earlier_.size() > kEarlierKept) earlier_.pop_front();
  return m;
}

void TreeWorkload::SetRetryId(v1::Mutation* m) {
  Client& client = *std::find_if(clients_.begin(), clients_.end(), [&](const Client& c) { return c.id == m->client_id(); });
  const auto number = static_cast<uint32_t>(random_.Below(client.slots.size()));
  Slot& slot = client.slots[number];
  if (slot.opened_ms == 0 || (now_ms_ - slot.opened_ms > 8 * 60 * 1000 && !random_.OneIn(4))) slot.opened_ms = now_ms_;
  m->set_slot(number);
  m->set_sequence(++slot.sequence);
  m->set_slot_opened_ms(slot.opened_ms);
  m->set_request_hash(random_.Next() | 1);
}

v1::Mutation TreeWorkload::Earlier() {
  // Mostly the last ones: those are repeated at once.
  const size_t back = random_.OneIn(3) ? random_.Below(earlier_.size()) : random_.Below(std::min<size_t>(earlier_.size(), 4));
  v1::Mutation m = earlier_[earlier_.size() - 1 - back];
  now_ms_ += static_cast<int64_t>(random_.Below(2000));
  m.set_time_ms(now_ms_);
  if (random_.OneIn(30)) m.set_request_hash(m.request_hash() + 2);
  return m;
}

}  // namespace cairn::testing
