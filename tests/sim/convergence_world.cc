#include "tests/sim/convergence_world.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "datanode/storage/replica_format.h"
#include "tests/testing/sim_network.h"

namespace cairn::testing {
namespace {

constexpr char kDirectory[] = "/data";
constexpr uint64_t kCapacity = 1 << 16;
enum How : uint64_t { kClean, kKilled, kPowerCut, kHows };

std::string BytesOf(uint64_t length) { return std::string(length, 'x'); }

}  // namespace

// Passes everything on, and can say again on the report stream what was said before.
class StreamTap final : public api::DatanodeNamenode {
 public:
  explicit StreamTap(api::DatanodeNamenode* next) : next_(next) {}

  void Repeat(uint64_t chance) {
    const std::shared_ptr<Sink> sink = newest_.lock();
    if (sink != nullptr && !sink->sent.empty()) static_cast<void>(sink->next->Send(sink->sent[chance % sink->sent.size()]));
  }

  void Register(api::CallContext context, v1::RegisterRequest request, api::Done<v1::RegisterResponse> done) override {
    next_->Register(std::move(context), std::move(request), std::move(done));
  }
  void Heartbeat(api::CallContext context, v1::HeartbeatRequest request, api::Done<v1::HeartbeatResponse> done) override {
    next_->Heartbeat(std::move(context), std::move(request), std::move(done));
  }
  void CommitBlockRecovery(api::CallContext context, v1::CommitBlockRecoveryRequest request,
                           api::Done<v1::CommitBlockRecoveryResponse> done) override {
    next_->CommitBlockRecovery(std::move(context), std::move(request), std::move(done));
  }
  std::shared_ptr<api::MessageSink<v1::ReportUp>> Reports(api::CallContext context,
                                                          std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler) override {
    auto sink = std::make_shared<Sink>();
    sink->next = next_->Reports(std::move(context), std::move(handler));
    newest_ = sink;
    return sink->next == nullptr ? nullptr : sink;
  }
  std::shared_ptr<api::MessageSink<v1::CommandUp>> Commands(api::CallContext context,
                                                            std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler) override {
    return next_->Commands(std::move(context), std::move(handler));
  }

 private:
  struct Sink : api::MessageSink<v1::ReportUp> {
    bool Send(v1::ReportUp message) override {
      sent.push_back(message);
      if (sent.size() > 8) sent.pop_front();
      return next->Send(std::move(message));
    }
    size_t Queued() const override { return next->Queued(); }
    void Close(absl::Status status) override { next->Close(std::move(status)); }
    std::shared_ptr<api::MessageSink<v1::ReportUp>> next;
    std::deque<v1::ReportUp> sent;
  };
  api::DatanodeNamenode* const next_;
  std::weak_ptr<Sink> newest_;
};

const char* ConvergenceWorld::NameOf(Step step) {
  constexpr const char* kNames[kSteps] = {"NamenodeRestart", "DatanodeRestart", "ConnectionCut",  "ReportsDelayed", "ReportsRepeated",
                                          "BlockDeleted",    "BlockAdded",      "BlockRecovered", "DiskAway"};
  return kNames[static_cast<size_t>(step)];
}

ConvergenceWorld::ConvergenceWorld(uint64_t seed)
    : world_({.seed = seed, .shuffle_executors = true}),
      random_(world_.NewRandom()),
      namenode_machine_(world_.AddMachine("nn")),
      service_(namenode_machine_) {
  StartNamenode();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].machine = world_.AddMachine(fmt::format("dn{}", i));
    StartDatanode(&nodes_[i]);
  }
  world_.RunFor(absl::Milliseconds(50));
}

ConvergenceWorld::~ConvergenceWorld() {
  for (Node& node : nodes_) StopDatanode(&node, kClean);
  StopNamenode(kClean);
}

// --- the daemons

void ConvergenceWorld::StartNamenode() {
  namenode_process_ = namenode_machine_->StartProcess();
  executor_ = namenode_process_->executors().NewExecutor("replicas");
  store_executor_ = namenode_process_->executors().NewExecutor("store");
  namenode::ReplicaPlane::Options options;
  options.directory = "/nn/replicas";
  options.simulated = true;
  options.acknowledged_grace = absl::ZeroDuration();  // Only what streams say.
  const namenode::ReplicaPlane::Identity identity{"cluster", "0123456789abcdef", Epoch(++epoch_), {}};
  absl::StatusOr<std::unique_ptr<namenode::ReplicaPlane>> opened =
      namenode::ReplicaPlane::Open(options, identity, &space_, namenode_process_, executor_.get(), store_executor_.get());
  ASSERT_TRUE(opened.ok()) << opened.status();
  plane_ = *std::move(opened);
  service_.Serve(namenode_process_, plane_.get());
}

void ConvergenceWorld::StopNamenode(uint64_t how) {
  if (how == kClean) {
    service_.Withdraw();
    bool stopped = false;
    plane_->Stop([&stopped] { stopped = true; });
    EXPECT_TRUE(world_.RunUntil([&stopped] { return stopped; }, absl::Seconds(10)));
  } else if (how == kKilled) {
    namenode_machine_->Kill();
  } else {
    namenode_machine_->PowerCut();
  }
  service_.Withdraw();
  plane_.reset();
  executor_.reset();
  store_executor_.reset();
}

void ConvergenceWorld::StartDatanode(Node* node) {
  node->machine->disk().SetFaultHook(nullptr);  // A node without its only disk does not start.
  node->process = node->machine->StartProcess();
  node->events = std::make_unique<datanode::EventLog>(&node->process->clock());
  datanode::BlockStoreOptions options;
  options.directories = {kDirectory};
  options.max_block_bytes = kCapacity;
  options.scanner.period = absl::Minutes(10);
  options.keeper.check_interval = absl::Seconds(1);
  options.keeper.first_return = absl::Seconds(1);
  options.keeper.last_return = absl::Seconds(4);
  absl::StatusOr<datanode::OpenedBlockStore> opened = datanode::OpenBlockStore(options, node->process, node->events.get());
  ASSERT_TRUE(opened.ok()) << opened.status();
  node->store = std::move(opened->store);
  node->identity = opened->identity;
  node->client = std::make_unique<SimDatanodeNamenode>(node->process, &service_);
  node->tap = std::make_unique<StreamTap>(node->client.get());
  datanode::NamenodeLanes::Options lanes;
  lanes.identity = {node->identity->Get().datanode_uuid, Incarnation(++incarnation_)};
  lanes.registration.info.mutable_transfer()->set_host(node->machine->name());
  lanes.registration.info.mutable_transfer()->set_port(9866);
  datanode::NamenodeLanes::Callbacks callbacks;
  callbacks.active_streams = [] { return 0u; };
  callbacks.keys = [](const std::vector<v1::BlockTokenKey>&) {};
  callbacks.transfer = [this, node](const v1::CommandDown::Transfer& command, datanode::CommandLane::TransferDone done) {
    Transfer(node, command, std::move(done));
  };
  node->lanes = std::make_unique<datanode::NamenodeLanes>(
      std::move(lanes), node->process,
      datanode::NamenodeLanes::Channels{node->tap.get(), node->tap.get(), node->tap.get(), node->tap.get()}, node->store.get(),
      node->identity, node->events.get(), std::move(callbacks));
  node->lanes->Start();
}

void ConvergenceWorld::StopDatanode(Node* node, uint64_t how) {
  if (how == kKilled) node->machine->Kill();
  if (how == kPowerCut) node->machine->PowerCut();
  node->writers.clear();
  node->lanes.reset();
  node->store.reset();
  node->tap.reset();
  node->client.reset();
  node->events.reset();
}

void ConvergenceWorld::Transfer(Node* source, const v1::CommandDown::Transfer& command, datanode::CommandLane::TransferDone done) {
  const BlockId id(command.block().id());
  const std::optional<datanode::ReplicaDescription> replica = source->store->Describe(id);
  const bool good = replica && replica->state == datanode::ReplicaState::kFinalized && !replica->corrupt &&
                    replica->stamp.value() == command.block().generation_stamp();
  bool copied = good;
  for (const v1::StorageLocation& target : command.targets()) {
    for (Node& node : nodes_) {
      if (!good || node.store == nullptr || node.identity->Get().datanode_uuid != target.datanode().uuid()) continue;
      copied = copied && Write(&node, id, replica->stamp.value(), replica->length, /*finish=*/true);
    }
  }
  done(copied ? absl::OkStatus() : absl::UnavailableError("not copied"));
}

// --- blocks

BlockId ConvergenceWorld::AnyBlock() {
  std::vector<BlockId> known;
  for (const BlockId id : blocks_)
    if (space_.Block(id)) known.push_back(id);
  return known.empty() ? BlockId(0) : known[random_.Below(known.size())];
}

void ConvergenceWorld::SetRecord(BlockId id, const v1::BlockRecord& record) {
  space_.SetBlock(id, record);
  if (plane_ != nullptr) plane_->OnBlocksChanged({id});
}

bool ConvergenceWorld::Write(Node* node, BlockId id, uint64_t stamp, uint64_t length, bool finish) {
  if (node->store == nullptr) return false;
  datanode::BlockStore::CreateOptions options;
  options.capacity = kCapacity;
  const absl::StatusOr<datanode::BlockStore::Placement> placement = node->store->Place(options);
  if (!placement.ok()) return false;
  absl::StatusOr<std::shared_ptr<datanode::ReplicaWriter>> writer = node->store->CreateRbw(*placement, id, GenerationStamp(stamp), options);
  if (!writer.ok()) return false;
  const std::string bytes = BytesOf(length);
  datanode::PacketToWrite packet;
  packet.data = bytes;
  packet.verify = false;
  packet.sync = true;
  if (!(*writer)->Write(packet).ok()) return false;
  (*writer)->SetVisibleLength(length);
  node->writers[id] = *std::move(writer);
  return !finish || Finish(node, id);
}

bool ConvergenceWorld::Finish(Node* node, BlockId id) {
  const auto writer = node->writers.find(id);
  if (writer == node->writers.end()) return false;
  const absl::Status finished = writer->second->Finalize(writer->second->received(), /*sync=*/true);
  node->writers.erase(writer);
  return finished.ok();
}

void ConvergenceWorld::Add() {
  // A node that has not registered with a cluster yet takes no blocks.
  Node* const node = AnyNode();
  const uint64_t kind = random_.Below(4);
  const uint64_t stamp = space_.TakeStamp();
  const uint64_t length = 1 + random_.Below(3000);
  const bool both = kind == 1 || kind == 2;
  const BlockId id = space_.NextBlock();
  blocks_.push_back(id);
  v1::BlockRecord record;
  record.set_state(v1::COMMITTED);
  record.set_generation_stamp(stamp);
  record.set_length_bytes(length);
  record.set_replication(kind == 2 ? 2 : 1);  // Both nodes, and one of them is one too many; or both are wanted.
  bool written = false;
  if (kind == 3) {  // Still being written; that it ends some day is up to a later step.
    record.set_state(v1::UNDER_CONSTRUCTION);
    SetRecord(id, record);
    written = Write(node, id, stamp, length, /*finish=*/false);
  } else {
    SetRecord(id, record);
    for (Node& other : nodes_)
      if (&other == node || both) written = Write(&other, id, stamp, length, /*finish=*/true) || written;
  }
  story_ += fmt::format("(block {} stamp {} kind {}{})", id.value(), stamp, kind, written ? "" : " not written");
  if (!written) space_.RemoveBlock(id);
}

void ConvergenceWorld::Delete() {
  const BlockId id = AnyBlock();
  if (id == BlockId(0)) return;
  story_ += fmt::format("(block {})", id.value());
  v1::FreedBlock freed;
  freed.mutable_block()->set_id(id.value());
  space_.RemoveBlock(id);
  plane_->OnBlocksFreed({freed});
}

void ConvergenceWorld::Recover() {
  const BlockId id = AnyBlock();
  if (id == BlockId(0)) return;
  v1::BlockRecord record = *space_.Block(id);
  const GenerationStamp stamp(space_.TakeStamp());
  const bool one_only = random_.Below(2) == 0;
  bool recovered = false;
  bool failed = false;  // What its disk has of it now, nobody knows.
  for (Node& node : nodes_) {
    if (recovered && one_only) break;
    const absl::StatusOr<datanode::ReplicaDescription> found = node.store->InitReplicaRecovery(id, stamp);
    if (!found.ok() || found->stamp.value() < record.generation_stamp() || found->corrupt) continue;
    if (!recovered) record.set_length_bytes(found->length);
    if (!node.store->UpdateReplicaUnderRecovery(id, stamp, record.length_bytes()).ok()) {
      failed = true;
      continue;
    }
    recovered = true;
    node.writers.erase(id);
  }
  story_ += fmt::format("(block {} to stamp {}{}{})", id.value(), stamp.value(), one_only ? " on one" : "", recovered ? "" : ": none");
  if (!recovered && !failed) return;
  // Another round would follow, until one succeeds; here the block stays open, and counts for nothing.
  record.set_state(recovered ? v1::COMMITTED : v1::UNDER_CONSTRUCTION);
  record.set_generation_stamp(stamp.value());
  SetRecord(id, record);
}

void ConvergenceWorld::Do(Step step) {
  story_ += fmt::format("\n  {} {}", absl::FormatDuration(world_.Now().since_start()), NameOf(step));
  const auto index = [this](const Node* node) { return node - nodes_.data(); };
  switch (step) {
    case Step::kNamenodeRestart: {
      const uint64_t how = random_.Below(kHows);
      story_ += fmt::format("({})", how);
      StopNamenode(how);
      StartNamenode();
      return;
    }
    case Step::kDatanodeRestart: {
      Node* const node = AnyNode();
      const uint64_t how = random_.Below(kHows);
      story_ += fmt::format("(dn{} {})", index(node), how);
      StopDatanode(node, how);
      StartDatanode(node);
      return;
    }
    case Step::kConnectionCut: return world_.network().Cut(AnyNode()->machine, namenode_machine_);
    case Step::kReportsDelayed: {
      SimMachine* const machine = AnyNode()->machine;
      world_.network().Block(machine, namenode_machine_);
      const absl::Duration held = absl::Milliseconds(1) * random_.Below(random_.Below(2) == 0 ? 50 : 4000);
      world_.executor().PostAt(world_.Now() + held, [this, machine] { world_.network().Unblock(machine, namenode_machine_); });
      return;
    }
    case Step::kReportsRepeated: return AnyNode()->tap->Repeat(random_.Next());
    case Step::kBlockDeleted: return Delete();
    case Step::kBlockAdded: return Add();
    case Step::kBlockRecovered: return Recover();
    case Step::kDiskAway: {
      SimDisk* const disk = &AnyNode()->machine->disk();
      disk->SetFaultHook([](SimDisk::Op, const std::string& path) { return absl::InternalError(path + ": Input/output error"); });
      world_.executor().PostAt(world_.Now() + absl::Milliseconds(1) * random_.Below(4000), [disk] { disk->SetFaultHook(nullptr); });
      return;
    }
  }
}

// --- rot

size_t ConvergenceWorld::RotOneOfTwo() {
  size_t rotten = 0;
  for (const BlockId id : blocks_) {
    if (!std::all_of(nodes_.begin(), nodes_.end(), [id](const Node& node) {
          const std::optional<datanode::ReplicaDescription> replica = node.store->Describe(id);
          return replica && replica->state == datanode::ReplicaState::kFinalized && !replica->corrupt;
        })) {
      continue;
    }
    const std::string path = fmt::format("{}/blocks/{}/{}/blk_{}", kDirectory, id.value() >> 20 & 255, id.value() >> 12 & 255, id.value());
    rotten += AnyNode()->machine->disk().FlipByte(path, datanode::DataOffset(kCapacity, 512)).ok() ? 1 : 0;
  }
  return rotten;
}

uint64_t ConvergenceWorld::scan_errors() {
  uint64_t errors = 0;
  for (Node& node : nodes_) errors += node.store->Statistics()[0].scan_errors();
  return errors;
}

bool ConvergenceWorld::AllVerify() {
  for (const BlockId id : blocks_) {
    for (Node& node : nodes_) {
      const std::optional<datanode::ReplicaDescription> replica = node.store->Describe(id);
      if (replica && replica->state == datanode::ReplicaState::kFinalized && !node.store->Verify(id, replica->stamp).ok()) return false;
    }
  }
  return true;
}

// --- do all agree?

std::string ConvergenceWorld::Converge(absl::Duration limit) {
  world_.network().Heal();
  for (Node& node : nodes_) node.machine->disk().SetFaultHook(nullptr);
  for (Node& node : nodes_) {  // Writers that live finish; clients commit.
    while (!node.writers.empty()) {
      const BlockId id = node.writers.begin()->first;
      const bool finished = Finish(&node, id);
      const std::optional<datanode::ReplicaDescription> replica = node.store->Describe(id);
      std::optional<v1::BlockRecord> record = space_.Block(id);
      if (!finished || !record || record->state() != v1::UNDER_CONSTRUCTION || !replica ||
          replica->stamp.value() != record->generation_stamp())
        continue;
      record->set_state(v1::COMMITTED);
      record->set_length_bytes(replica->length);
      SetRecord(id, *record);
    }
  }
  const SteadyTime from = world_.Now();
  std::string wrong;
  while (!(wrong = Disagreement()).empty() && world_.Now() - from < limit) world_.RunFor(absl::Milliseconds(100));
  last_ = world_.Now() - from;
  longest_ = std::max(longest_, last_);
  story_ +=
      fmt::format("\n  {} converged in {}", absl::FormatDuration(world_.Now().since_start()), absl::FormatDuration(world_.Now() - from));
  return wrong;
}

std::string ConvergenceWorld::Disagreement() {
  for (Node& node : nodes_)
    if (std::string wrong = DisagreementOf(&node); !wrong.empty()) return wrong;
  for (const BlockId id : blocks_) {
    const std::optional<v1::BlockRecord> record = space_.Block(id);
    size_t good = 0, all = 0;
    for (Node& node : nodes_) {
      const std::optional<datanode::ReplicaDescription> replica = node.store->Describe(id);
      if (!replica) continue;
      ++all;
      good += record && replica->state == datanode::ReplicaState::kFinalized && replica->stamp.value() == record->generation_stamp() &&
              replica->length == record->length_bytes() && !replica->corrupt;
    }
    if (!record && all > 0) return fmt::format("block {} is of no file, and {} replicas are there", id.value(), all);
    // What was being written when its node died waits for a recovery, which only the namespace could order.
    if (!record || record->state() != v1::COMMITTED) continue;
    if (good != record->replication() || all != good)
      return fmt::format("block {} has {} replicas, {} of them good, {} wanted", id.value(), all, good, record->replication());
    const size_t located = plane_->Locate(id, *record, "").locations.size();
    if (located != good) return fmt::format("block {} is located {} times, it is there {} times", id.value(), located, good);
  }
  return "";
}

std::string ConvergenceWorld::DisagreementOf(Node* node) {
  const std::string& name = node->machine->name();
  if (!node->lanes->registered()) return name + " is not registered";
  if (!node->lanes->report().streaming()) return name + " has no report stream";
  if (node->lanes->report().applied() != node->events->last()) {
    return fmt::format("{}: {} events were applied, {} happened", name, node->lanes->report().applied(), node->events->last());
  }
  const std::string storage = node->store->Statistics()[0].storage_uuid();
  if (node->store->Statistics()[0].state() != v1::HEALTHY) return name + "'s volume has failed";
  const absl::StatusOr<std::vector<namenode::ReplicaRow>> rows = plane_->RowsOn(storage);
  if (!rows.ok()) return std::string(rows.status().message());
  std::map<BlockId, namenode::ReplicaRow> told;
  for (const namenode::ReplicaRow& row : *rows) told.emplace(row.block, row);
  std::set<std::string> files;
  const std::string root = std::string(kDirectory) + "/blocks";
  const auto list = [node](const std::string& path) { return node->process->files().List(path).value_or(std::vector<std::string>()); };
  for (const std::string& first : list(root))
    for (const std::string& second : list(root + "/" + first))
      for (const std::string& file : list(root + "/" + first + "/" + second)) files.insert(file);
  size_t replicas = 0;
  for (const BlockId id : blocks_) {
    const std::optional<datanode::ReplicaDescription> replica = node->store->Describe(id);
    const auto row = told.find(id);
    if (!replica) {
      if (row != told.end()) return fmt::format("{}: the NameNode has a row of block {}, the node has no replica", name, id.value());
      continue;
    }
    ++replicas;
    if (!files.contains(fmt::format("blk_{}", id.value()))) return fmt::format("{}: block {} has no file", name, id.value());
    if (row == told.end()) return fmt::format("{}: the NameNode has no row of block {}", name, id.value());
    const namenode::ReplicaRow& said = row->second;
    // The length of one that is being written is told when it is finished; a recovery that comes to nothing leaves it so.
    const bool unfinished =
        replica->state == datanode::ReplicaState::kRbw || (replica->state == datanode::ReplicaState::kRur && said.state == v1::RBW);
    const bool same_length = said.length_bytes == replica->length || unfinished;
    // That a recovery has put it under its hand is memory of the DataNode alone.
    const bool same_state =
        replica->state == datanode::ReplicaState::kRur || static_cast<int>(said.state) == static_cast<int>(replica->state);
    if (said.stamp != replica->stamp || !same_length || said.corrupt != replica->corrupt || !same_state) {
      return fmt::format("{}: block {} is of stamp {}, {} bytes, state {}; the NameNode has stamp {}, {} bytes, state {}", name, id.value(),
                         replica->stamp.value(), replica->length, static_cast<int>(replica->state), said.stamp.value(), said.length_bytes,
                         static_cast<int>(said.state));
    }
  }
  if (told.size() != replicas) return fmt::format("{}: {} rows of {} replicas", name, told.size(), replicas);
  if (files.size() != replicas) return fmt::format("{}: {} files of {} replicas", name, files.size(), replicas);
  return "";
}

}  // namespace cairn::testing
