#include "tests/namenode/fake_datanode.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace cairn::namenode::testing {
namespace {
uint64_t next_incarnation = 1000;
}  // namespace

// What callbacks of one connection reach the DataNode through.
struct FakeDatanode::Link {
  FakeDatanode* node;

  template <class In>
  class Handler : public api::MessageHandler<In> {
   public:
    Handler(std::shared_ptr<Link> link, void (FakeDatanode::*on_message)(In), void (*on_closed)(FakeDatanode&))
        : link_(std::move(link)), on_message_(on_message), on_closed_(on_closed) {}
    void OnMessage(In message) override {
      if (link_->node != nullptr) (link_->node->*on_message_)(std::move(message));
    }
    void OnClosed(absl::Status) override {
      if (link_->node != nullptr) on_closed_(*link_->node);
    }

   private:
    std::shared_ptr<Link> link_;
    void (FakeDatanode::*on_message_)(In);
    void (*on_closed_)(FakeDatanode&);
  };
};

FakeDatanode::FakeDatanode(std::string uuid, std::vector<std::string> storages, Executor* executor, Peers peers)
    : uuid_(std::move(uuid)),
      storages_(std::move(storages)),
      executor_(executor),
      peers_(std::move(peers)),
      incarnation_(next_incarnation++) {
  host = uuid_;
}

FakeDatanode::~FakeDatanode() { Unlink(); }

void FakeDatanode::Unlink() {
  for (std::shared_ptr<Link>* link : {&link_, &reports_link_, &commands_link_}) {
    if (*link) (*link)->node = nullptr;
    *link = nullptr;
  }
}

v1::RegisterRequest FakeDatanode::Registration() const {
  v1::RegisterRequest request;
  request.set_datanode_uuid(uuid_);
  request.set_incarnation(incarnation_);
  request.mutable_info()->mutable_transfer()->set_host(host);
  request.mutable_info()->mutable_transfer()->set_port(9866);
  request.mutable_info()->set_rack(rack);
  request.set_cluster_id(cluster_id);
  request.set_highest_epoch(epoch_);
  request.set_highest_block_id(highest_block_id);
  for (const std::string& storage : storages_) {
    v1::StorageStatistics* statistics = request.add_storages();
    statistics->set_storage_uuid(storage);
    statistics->set_state(v1::HEALTHY);
    statistics->set_remaining_bytes(remaining_bytes);
    statistics->set_capacity_bytes(remaining_bytes);
    if (capacity_bytes == 0) continue;
    uint64_t used = 0;
    if (const auto map = maps_.find(storage); map != maps_.end())
      for (const auto& [block, replica] : map->second) used += replica.length;
    statistics->set_capacity_bytes(capacity_bytes);
    statistics->set_used_bytes(used);
    statistics->set_remaining_bytes(capacity_bytes - std::min(capacity_bytes, used));
  }
  return request;
}

void FakeDatanode::Connect(api::DatanodeNamenode* namenode) {
  Disconnect();
  namenode_ = namenode;
  link_ = std::make_shared<Link>(Link{this});
  namenode_->Register({}, Registration(), [link = link_](absl::StatusOr<v1::RegisterResponse> answer) {
    FakeDatanode* node = link->node;
    if (node == nullptr) return;
    node->registered = answer.status();
    if (!answer.ok()) return;
    node->cluster_id = answer->cluster_id();
    node->Meet(answer->epoch());
    node->OpenReports();
    node->OpenCommands();
    node->Heartbeat();
  });
}

void FakeDatanode::Meet(uint64_t epoch) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  if (!marks) return;
  while (waiting > 0) {  // Voided.
    const v1::InvalidateReplica& voided = invalidations[invalidations.size() - waiting];
    v1::ReportEvent kept;
    kept.set_type(v1::KEPT);
    kept.set_storage_uuid(voided.storage_uuid());
    kept.mutable_replica()->set_block_id(voided.block_id());
    kept.set_command_id(voided.command_id());
    --waiting;
    Send(std::move(kept));
  }
  v1::ReportEvent mark;
  mark.set_type(v1::EPOCH_MARK);
  mark.set_epoch(epoch);
  Send(std::move(mark));
}

void FakeDatanode::Disconnect() {
  Unlink();
  if (reports_) reports_->Close(absl::CancelledError("disconnected"));
  if (command_sink_) command_sink_->Close(absl::CancelledError("disconnected"));
  reports_ = nullptr;
  command_sink_ = nullptr;
  namenode_ = nullptr;
  next_to_send_ = 0;
}

void FakeDatanode::Restart() {
  Disconnect();
  incarnation_ = next_incarnation++;
  log_.clear();
  first_kept_ = 1;
  waiting = 0;
  walk_ = {};
  for (auto& [storage, map] : maps_)
    for (auto& [block, replica] : map)
      if (replica.state == v1::RBW) replica.state = v1::RWR;
}

void FakeDatanode::OpenReports() {
  const auto closed = [](FakeDatanode& node) { node.reports_ = nullptr; };
  next_to_send_ = 0;
  if (reports_link_) reports_link_->node = nullptr;
  reports_link_ = std::make_shared<Link>(Link{this});
  reports_ = namenode_->Reports({}, std::make_shared<Link::Handler<v1::ReportDown>>(reports_link_, &FakeDatanode::OnDown, closed));
  v1::ReportUp hello;
  hello.mutable_hello()->set_datanode_uuid(uuid_);
  hello.mutable_hello()->set_incarnation(incarnation_);
  hello.mutable_hello()->set_first_kept(first_kept_);
  hello.mutable_hello()->set_last(last());
  reports_->Send(std::move(hello));
}

void FakeDatanode::OpenCommands() {
  const auto closed = [](FakeDatanode& node) { node.command_sink_ = nullptr; };
  if (commands_link_) commands_link_->node = nullptr;
  commands_link_ = std::make_shared<Link>(Link{this});
  command_sink_ =
      namenode_->Commands({}, std::make_shared<Link::Handler<v1::CommandDown>>(commands_link_, &FakeDatanode::OnCommand, closed));
  v1::CommandUp hello;
  hello.mutable_hello()->set_datanode_uuid(uuid_);
  hello.mutable_hello()->set_incarnation(incarnation_);
  hello.mutable_hello()->set_epoch(epoch_);
  command_sink_->Send(std::move(hello));
  v1::CommandUp credit;
  credit.mutable_credit()->set_invalidations(invalidation_credit);
  credit.mutable_credit()->set_commands(1000);
  command_sink_->Send(std::move(credit));
}

void FakeDatanode::Heartbeat() {
  if (!link_) return;
  if (heartbeats) {
    v1::HeartbeatRequest request;
    request.set_datanode_uuid(uuid_);
    request.set_incarnation(incarnation_);
    const v1::RegisterRequest registration = Registration();
    *request.mutable_storages() = registration.storages();
    namenode_->Heartbeat({}, std::move(request), [](const absl::StatusOr<v1::HeartbeatResponse>&) {});
  }
  executor_->PostAt(executor_->clock().Now() + absl::Seconds(3), [link = link_] {
    if (link->node != nullptr) link->node->Heartbeat();
  });
}

// --- replicas

v1::ReportEvent FakeDatanode::EventOf(v1::ReportEventType type, BlockId block, size_t storage) const {
  v1::ReportEvent event;
  event.set_type(type);
  event.set_storage_uuid(storages_[storage]);
  event.mutable_replica()->set_block_id(block.value());
  const auto map = maps_.find(storages_[storage]);
  if (map == maps_.end()) return event;
  if (const auto found = map->second.find(block); found != map->second.end()) {
    event.mutable_replica()->set_generation_stamp(found->second.stamp);
    event.mutable_replica()->set_length_bytes(found->second.length);
    event.mutable_replica()->set_state(found->second.state);
    event.mutable_replica()->set_corrupt(found->second.corrupt);
  }
  return event;
}

void FakeDatanode::Create(BlockId block, uint64_t stamp, size_t storage) {
  replicas(storage)[block] = {stamp, 0, v1::RBW, false};
  Send(EventOf(v1::RBW_CREATED, block, storage));
}

void FakeDatanode::Finalize(BlockId block, uint64_t stamp, uint64_t length, size_t storage) {
  replicas(storage)[block] = {stamp, length, v1::FINALIZED, false};
  Send(EventOf(v1::REPLICA_FINALIZED, block, storage));
}

void FakeDatanode::MarkCorrupt(BlockId block, size_t storage) {
  replicas(storage)[block].corrupt = true;
  Send(EventOf(v1::CORRUPT, block, storage));
}

void FakeDatanode::ChangeStamp(BlockId block, uint64_t stamp, size_t storage) {
  replicas(storage)[block].stamp = stamp;
  Send(EventOf(v1::STAMP_CHANGED, block, storage));
}

void FakeDatanode::Drop(BlockId block, size_t storage) {
  v1::ReportEvent event = EventOf(v1::DROPPED, block, storage);
  replicas(storage).erase(block);
  Send(std::move(event));
}

void FakeDatanode::ReportStorage(v1::StorageState state, size_t storage) {
  v1::ReportEvent event;
  event.set_type(v1::STORAGE_STATE_CHANGED);
  event.set_storage_uuid(storages_[storage]);
  event.set_storage_state(state);
  Send(std::move(event));
}

bool FakeDatanode::Has(BlockId block) const { return Find(block).has_value(); }

std::optional<FakeDatanode::Replica> FakeDatanode::Find(BlockId block) const {
  for (const auto& [storage, map] : maps_)
    if (const auto found = map.find(block); found != map.end()) return found->second;
  return std::nullopt;
}

// --- the report stream

void FakeDatanode::Send(v1::ReportEvent event) {
  event.set_number(last() + 1);
  log_.push_back(std::move(event));
  Ship();
}

void FakeDatanode::Ship() {
  if (!reports_ || next_to_send_ == 0 || next_to_send_ > last()) return;
  v1::ReportUp message;
  while (next_to_send_ <= last() && message.events().events_size() < 1000)
    *message.mutable_events()->add_events() = log_[next_to_send_++ - first_kept_];
  reports_->Send(std::move(message));
}

void FakeDatanode::OnDown(v1::ReportDown message) {
  if (message.has_acknowledgement()) {
    applied = message.acknowledgement().applied();
    durable = message.acknowledgement().durable();
    while (!walk_.unapplied.empty() && walk_.unapplied.front() <= applied) walk_.unapplied.pop_front();
    WalkStep();
    return;
  }
  downs.push_back(message);
  if (message.has_resume()) {
    next_to_send_ = message.resume().from();
    Ship();
    WalkStep();
  } else if (message.has_walk()) {
    const v1::ReportDown::Walk& walk = message.walk();
    if (walk.from() != 0) next_to_send_ = walk.from();
    Ship();
    if (walk.end_id() != 0) {
      for (const std::string& storage : walk.storage_uuids()) SendRange(storage, walk.first_id(), walk.end_id(), false);
      return;
    }
    ++walk_.number;
    walk_.storages.clear();
    walk_.end = UINT64_MAX;
    walk_.unapplied.clear();
    if (walk.storage_uuids().empty()) {
      walk_.storages.assign(storages_.begin(), storages_.end());
    } else {
      walk_.storages.assign(walk.storage_uuids().begin(), walk.storage_uuids().end());
    }
    WalkStep();
  } else if (message.has_expand()) {
    const v1::ReportDown::Expand& expand = message.expand();
    const uint64_t number = SendRange(expand.storage_uuid(), expand.first_id(), expand.end_id(), true);
    walk_.unapplied.push_back(number);
  }
}

void FakeDatanode::WalkStep() {
  while (!walk_.storages.empty() && walk_.unapplied.size() < ranges_ahead) {
    const std::string storage = walk_.storages.front();
    const std::map<BlockId, Replica>& map = maps_[storage];
    uint64_t first = 0;
    auto at = walk_.end == UINT64_MAX ? map.end() : map.lower_bound(BlockId(walk_.end));
    if (walk_.end == UINT64_MAX && !map.empty()) {
      first = map.rbegin()->first.value() + 1;  // Above the highest.
    } else {
      for (size_t i = 0; i < range_size && at != map.begin(); ++i) first = (--at)->first.value();
      if (at == map.begin()) first = 0;
    }
    walk_.unapplied.push_back(SendRange(storage, first, walk_.end, false));
    walk_.end = first;
    if (first != 0) continue;
    walk_.storages.pop_front();
    walk_.end = UINT64_MAX;
  }
}

uint64_t FakeDatanode::SendRange(const std::string& storage, uint64_t first, uint64_t end, bool expanded) {
  v1::ReportEvent event;
  event.set_type(v1::RANGE);
  event.set_storage_uuid(storage);
  v1::ReportRange* range = event.mutable_range();
  range->set_first_id(first);
  range->set_end_id(end);
  range->set_expanded(expanded);
  range->set_walk(walk_.number);
  range->set_last(first == 0);
  std::string covered;
  uint32_t finalized = 0;
  for (const auto& [block, replica] : maps_[storage]) {
    if (block.value() < first || block.value() >= end) continue;
    const bool plain = replica.state == v1::FINALIZED && !replica.corrupt;
    if (plain) {
      ++finalized;
      for (uint64_t word : {block.value(), replica.stamp, replica.length})
        for (int byte = 7; byte >= 0; --byte) covered.push_back(static_cast<char>(word >> (8 * byte) & 0xff));
    }
    if (plain && !expanded) continue;
    v1::ReplicaEntry* entry = plain ? range->add_entries() : range->add_others();
    entry->set_block_id(block.value());
    entry->set_generation_stamp(replica.stamp);
    entry->set_length_bytes(replica.length);
    entry->set_state(replica.state);
    entry->set_corrupt(replica.corrupt);
  }
  range->set_finalized(finalized);
  range->set_digest(XXH3_64bits(covered.data(), covered.size()));
  Send(std::move(event));
  return last();
}

size_t FakeDatanode::Count(v1::ReportDown::KindCase kind) const {
  size_t count = 0;
  for (const v1::ReportDown& message : downs) count += message.kind_case() == kind;
  return count;
}

// --- the command stream

void FakeDatanode::OnCommand(v1::CommandDown command) {
  if (command.has_invalidate()) {
    for (const v1::InvalidateReplica& replica : command.invalidate().replicas()) {
      invalidations.push_back(replica);
      if (obeys) {
        ActOn(replica, command.incarnation());
      } else {
        ++waiting;
      }
    }
    if (command_sink_) {
      v1::CommandUp credit;
      credit.mutable_credit()->set_invalidations(obeys ? static_cast<uint32_t>(command.invalidate().replicas_size()) : 0);
      command_sink_->Send(std::move(credit));
    }
    return;
  }
  commands.push_back(command);
  if (command.has_recover()) return OnRecover(command.recover());
  if (!command.has_transfer() || !transfers) return;
  const v1::CommandDown::Transfer& transfer = command.transfer();
  const std::optional<Replica> source = Find(BlockId(transfer.block().id()));
  const bool ok = source && source->state == v1::FINALIZED && !source->corrupt && source->stamp == transfer.block().generation_stamp();
  if (ok) {
    for (const v1::StorageLocation& target : transfer.targets())
      if (FakeDatanode* peer = peers_(target.datanode().uuid()))
        peer->Finalize(BlockId(transfer.block().id()), source->stamp, source->length);
  }
  v1::CommandUp outcome;
  outcome.mutable_outcome()->set_command_id(transfer.command_id());
  outcome.mutable_outcome()->set_ok(ok);
  if (command_sink_) command_sink_->Send(std::move(outcome));
}

void FakeDatanode::OnRecover(const v1::CommandDown::Recover& order) {
  if (recovers == Recovers::kSilent) return;
  const absl::Status done = recovers == Recovers::kFails ? absl::InternalError("told to fail") : FinishRecovery(order);
  v1::CommandUp outcome;
  outcome.mutable_outcome()->set_command_id(order.command_id());
  outcome.mutable_outcome()->set_ok(done.ok());
  outcome.mutable_outcome()->set_message(std::string(done.message()));
  if (command_sink_) command_sink_->Send(std::move(outcome));
}

absl::Status FakeDatanode::FinishRecovery(const v1::CommandDown::Recover& order) {
  const BlockId block(order.block().id());
  v1::CommitBlockRecoveryRequest request;
  request.set_datanode_uuid(uuid_);
  request.set_incarnation(incarnation_);
  request.set_recovery_id(order.recovery_id());
  request.mutable_block()->set_id(order.block().id());
  request.mutable_block()->set_generation_stamp(order.recovery_id());
  uint64_t newest = 0, length = UINT64_MAX;
  std::vector<std::pair<FakeDatanode*, Replica>> found;
  bool all_empty = order.unreachable() == 0;
  for (const v1::StorageLocation& location : order.replicas()) {
    FakeDatanode* const peer = peers_(location.datanode().uuid());
    v1::CommitBlockRecoveryRequest::StorageOutcome& outcome = *request.add_outcomes();
    outcome.set_storage_uuid(location.storage_uuid());
    outcome.set_answered(peer != nullptr && peer->connected());
    all_empty = all_empty && outcome.answered();
    if (!outcome.answered()) continue;
    const std::optional<Replica> replica = peer->Find(block);
    outcome.set_found(replica.has_value());
    if (!replica) continue;
    outcome.mutable_replica()->set_length_bytes(replica->length);
    all_empty = all_empty && replica->length == 0;
    newest = std::max(newest, replica->stamp);
    found.emplace_back(peer, *replica);
  }
  for (const auto& [peer, replica] : found)
    if (replica.stamp == newest) length = std::min(length, replica.length);
  if (found.empty() && !all_empty) return absl::UnavailableError("nobody has it, but not all have been asked");
  request.set_drop(all_empty);
  if (!all_empty) {
    if (order.has_new_length_bytes()) length = order.new_length_bytes();
    request.mutable_block()->set_length_bytes(length);
    for (const auto& [peer, replica] : found) {
      if (replica.stamp != newest) continue;
      peer->Finalize(block, order.recovery_id(), length);
      request.add_storage_uuids(peer->storage());
    }
  }
  if (namenode_ == nullptr) return absl::UnavailableError("not connected");
  namenode_->CommitBlockRecovery({}, std::move(request), [link = link_](const absl::StatusOr<v1::CommitBlockRecoveryResponse>& answer) {
    if (link->node != nullptr) link->node->committed = answer.status();
  });
  return absl::OkStatus();
}

void FakeDatanode::ActOn(const v1::InvalidateReplica& replica, uint64_t incarnation) {
  std::map<BlockId, Replica>& map = maps_[replica.storage_uuid()];
  const BlockId block(replica.block_id());
  const auto found = map.find(block);
  v1::ReportEvent event;
  event.set_storage_uuid(replica.storage_uuid());
  event.mutable_replica()->set_block_id(replica.block_id());
  event.set_command_id(replica.command_id());
  if (found != map.end() && found->second.stamp == replica.generation_stamp() && incarnation == incarnation_) {
    event.set_type(v1::DROPPED);
    event.mutable_replica()->set_generation_stamp(found->second.stamp);
    map.erase(found);
  } else {
    event.set_type(v1::KEPT);
  }
  Send(std::move(event));
}

void FakeDatanode::AnswerInvalidations() {
  while (waiting > 0) {
    const v1::InvalidateReplica replica = invalidations[invalidations.size() - waiting];
    --waiting;
    ActOn(replica, incarnation_);
  }
}

}  // namespace cairn::namenode::testing
