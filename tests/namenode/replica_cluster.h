#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "namenode/replicas/replica_plane.h"
#include "tests/namenode/fake_datanode.h"
#include "tests/namenode/fake_space.h"
#include "tests/testing/sim_world.h"

namespace cairn::namenode::testing {

// A replica plane over a fake namespace, with fake DataNodes, in a simulated world. The plane may stop, crash
// and start again on the same disk.
class ReplicaCluster {
 public:
  explicit ReplicaCluster(size_t datanodes, uint64_t seed = 1) : world({.seed = seed}), machine_(world.AddMachine("nn")) {
    datanode_executor_ = world.executors().NewExecutor("datanodes");
    for (size_t i = 0; i < datanodes; ++i) AddDatanode("dn" + std::to_string(i), {"s" + std::to_string(i)});
    options.directory = "/nn/replicas";
    options.simulated = true;
  }
  ~ReplicaCluster() {
    for (auto& node : nodes) node->Disconnect();
    if (plane) StopNamenode();
    nodes.clear();
    datanode_executor_.reset();
  }

  FakeDatanode* AddDatanode(const std::string& uuid, std::vector<std::string> storages) {
    nodes.push_back(std::make_unique<FakeDatanode>(uuid, std::move(storages), datanode_executor_.get(), [this](const std::string& wanted) {
      for (auto& node : nodes)
        if (node->uuid() == wanted) return node.get();
      return static_cast<FakeDatanode*>(nullptr);
    }));
    return nodes.back().get();
  }

  void StartNamenode() {
    process_ = machine_->StartProcess();
    executor_ = process_->executors().NewExecutor("replicas");
    store_executor_ = process_->executors().NewExecutor("store");
    ReplicaPlane::Identity identity{"cluster", "0123456789abcdef", Epoch(++epoch), {}};
    absl::StatusOr<std::unique_ptr<ReplicaPlane>> opened =
        ReplicaPlane::Open(options, identity, &space, process_, executor_.get(), store_executor_.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    plane = *std::move(opened);
  }
  void StopNamenode() {
    bool stopped = false;
    plane->Stop([&] { stopped = true; });
    EXPECT_TRUE(world.RunUntil([&] { return stopped; }, absl::Seconds(10)));
    Destroy();
  }
  // kill -9, or with the machine's power.
  void CrashNamenode(bool power_cut) {
    for (auto& node : nodes) node->Disconnect();
    if (power_cut) {
      machine_->PowerCut();
    } else {
      machine_->Kill();
    }
    Destroy();
  }
  void RestartNamenode() {
    for (auto& node : nodes) node->Disconnect();
    StopNamenode();
    StartNamenode();
  }
  void ConnectAll() {
    for (auto& node : nodes) node->Connect(plane.get());
  }
  // Long enough for walks, scans, a few ticks.
  void Settle() { world.RunFor(absl::Seconds(5)); }

  // A COMMITTED block whose acknowledged storages are those of `on`; nothing is stored anywhere yet.
  BlockId Commit(std::vector<size_t> on, uint32_t replication, uint64_t stamp = 1001, uint64_t length = 100) {
    const BlockId id = space.NextBlock();
    v1::BlockRecord record;
    record.set_state(v1::COMMITTED);
    record.set_generation_stamp(stamp);
    record.set_length_bytes(length);
    record.set_replication(replication);
    record.set_committed_ms(absl::ToUnixMillis(process_->clock().WallNow()));
    for (size_t i : on)
      if (std::optional<StorageNumber> number = plane->NumberOf(nodes[i]->storage()))
        record.add_expected_storages(static_cast<uint32_t>(number->value()));
    space.SetBlock(id, record);
    plane->OnBlocksChanged({id});
    return id;
  }
  // The same, and stored there.
  BlockId Write(const std::vector<size_t>& on, uint32_t replication, uint64_t stamp = 1001, uint64_t length = 100) {
    const BlockId id = Commit(on, replication, stamp, length);
    for (size_t i : on) nodes[i]->Finalize(id, stamp, length);
    return id;
  }
  void Free(BlockId id) {
    v1::FreedBlock freed;
    freed.mutable_block()->set_id(id.value());
    space.RemoveBlock(id);
    plane->OnBlocksFreed({freed});
  }
  std::vector<std::string> Locate(BlockId id, bool* retry = nullptr) {
    const std::optional<v1::BlockRecord> record = space.Block(id);
    if (!record) return {};
    const ReplicaPlane::Locations located = plane->Locate(id, *record, "");
    if (retry != nullptr) *retry = located.retry;
    std::vector<std::string> uuids;
    for (const v1::StorageLocation& location : located.locations) uuids.push_back(location.datanode().uuid());
    std::sort(uuids.begin(), uuids.end());
    return uuids;
  }
  size_t Copies(BlockId id) const {
    size_t copies = 0;
    for (const auto& node : nodes) copies += node->Has(id);
    return copies;
  }

  cairn::testing::SimMachine* machine() { return machine_; }
  cairn::testing::SimProcess* process() { return process_; }

  cairn::testing::SimWorld world;
  FakeSpace space;
  ReplicaPlane::Options options;
  std::unique_ptr<ReplicaPlane> plane;
  std::vector<std::unique_ptr<FakeDatanode>> nodes;
  uint64_t epoch = 0;

 private:
  void Destroy() {
    plane.reset();
    executor_.reset();
    store_executor_.reset();
  }
  cairn::testing::SimMachine* const machine_;
  cairn::testing::SimProcess* process_ = nullptr;
  std::unique_ptr<Executor> datanode_executor_, executor_, store_executor_;
};

}  // namespace cairn::namenode::testing
