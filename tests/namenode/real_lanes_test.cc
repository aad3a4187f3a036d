// The replica plane with the DataNodes' own lanes and block stores, joined by a simulated network: both ends
// of the streams as they are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datanode/lanes/namenode_lanes.h"
#include "tests/namenode/replica_cluster.h"
#include "tests/testing/sim_rpc.h"

namespace cairn::namenode::testing {
namespace {

using cairn::testing::SimDatanodeNamenode;
using cairn::testing::SimMachine;
using cairn::testing::SimProcess;
using cairn::testing::SimService;

// A DataNode without a transfer server: its replicas are written by the test.
class RealDatanode {
 public:
  RealDatanode(ReplicaCluster* cluster, const std::string& name, SimService<api::DatanodeNamenode>* service)
      : machine_(cluster->world.AddMachine(name)), name_(name), service_(service) {}
  ~RealDatanode() { Stop(); }

  void Start(uint64_t incarnation) {
    SimProcess* process = machine_->StartProcess();
    events_ = std::make_unique<datanode::EventLog>(&process->clock());
    datanode::BlockStoreOptions options;
    options.directories = {"/data"};
    absl::StatusOr<datanode::OpenedBlockStore> opened = datanode::OpenBlockStore(options, process, events_.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = std::move(opened->store);
    client_ = std::make_unique<SimDatanodeNamenode>(process, service_);
    datanode::NamenodeLanes::Options lanes;
    lanes.identity = {opened->identity->Get().datanode_uuid, Incarnation(incarnation)};
    lanes.registration.info.mutable_transfer()->set_host(name_);
    lanes.registration.info.mutable_transfer()->set_port(9866);
    datanode::NamenodeLanes::Callbacks callbacks;
    callbacks.active_streams = [] { return 0u; };
    callbacks.keys = [](std::vector<v1::BlockTokenKey>) {};
    callbacks.transfer = [](v1::CommandDown::Transfer, datanode::CommandLane::TransferDone done) {
      done(absl::UnavailableError("no transfer server here"));
    };
    lanes_ = std::make_unique<datanode::NamenodeLanes>(
        std::move(lanes), process, datanode::NamenodeLanes::Channels{client_.get(), client_.get(), client_.get(), client_.get()},
        store_.get(), opened->identity, events_.get(), std::move(callbacks));
    lanes_->Start();
  }
  void Stop() {
    lanes_.reset();
    store_.reset();
    client_.reset();
    events_.reset();
  }
  void Kill() {
    machine_->Kill();
    Stop();
  }
  void Write(BlockId id, uint64_t stamp, uint64_t length) {
    datanode::BlockStore::CreateOptions options;
    options.capacity = 1 << 20;
    absl::StatusOr<datanode::BlockStore::Placement> placement = store_->Place(options);
    ASSERT_TRUE(placement.ok()) << placement.status();
    absl::StatusOr<std::shared_ptr<datanode::ReplicaWriter>> writer = store_->CreateRbw(*placement, id, GenerationStamp(stamp), options);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const std::string bytes(length, 'x');
    datanode::PacketToWrite packet;
    packet.data = bytes;
    packet.verify = false;
    ASSERT_TRUE((*writer)->Write(packet).ok());
    (*writer)->SetVisibleLength(length);
    ASSERT_TRUE((*writer)->Finalize(length, true).ok());
  }
  bool Has(BlockId id) { return store_->Describe(id).has_value(); }
  const datanode::NamenodeLanes& lanes() const { return *lanes_; }

 private:
  SimMachine* const machine_;
  const std::string name_;
  SimService<api::DatanodeNamenode>* const service_;
  std::unique_ptr<datanode::EventLog> events_;
  std::unique_ptr<datanode::BlockStore> store_;
  std::unique_ptr<SimDatanodeNamenode> client_;
  std::unique_ptr<datanode::NamenodeLanes> lanes_;
};

TEST(RealLanes, ReportsWalksMarksAndInvalidationsMeet) {
  ReplicaCluster cluster(0);
  cluster.options.acknowledged_grace = absl::Seconds(1);
  cluster.StartNamenode();
  SimService<api::DatanodeNamenode> service(cluster.machine());
  service.Serve(cluster.process(), cluster.plane.get());
  std::vector<std::unique_ptr<RealDatanode>> nodes;
  for (uint64_t i = 0; i < 3; ++i) {
    nodes.push_back(std::make_unique<RealDatanode>(&cluster, "dn" + std::to_string(i), &service));
    nodes[i]->Start(100 + i);
  }
  cluster.Settle();
  for (auto& node : nodes) ASSERT_TRUE(node->lanes().report().streaming());

  std::vector<BlockId> blocks;
  for (int i = 0; i < 20; ++i) {
    const BlockId block = cluster.Commit({}, 2, 1001, 1000);
    for (auto& node : nodes) node->Write(block, 1001, 1000);  // One copy more than wanted.
    blocks.push_back(block);
  }
  const auto copies = [&](BlockId block) {
    size_t count = 0;
    for (auto& node : nodes) count += node->Has(block);
    return count;
  };
  cluster.world.RunFor(absl::Seconds(20));
  for (BlockId block : blocks) {
    EXPECT_EQ(copies(block), 2u);
    EXPECT_EQ(cluster.Locate(block).size(), 2u);
  }

  // The NameNode restarts: streams go on, nobody walks.
  const uint64_t walks = nodes[0]->lanes().report().walks_done();
  service.Withdraw();
  cluster.StopNamenode();
  cluster.StartNamenode();
  service.Serve(cluster.process(), cluster.plane.get());
  cluster.world.RunFor(absl::Seconds(30));
  EXPECT_EQ(nodes[0]->lanes().report().walks_done(), walks);
  for (BlockId block : blocks) EXPECT_EQ(cluster.Locate(block).size(), 2u);

  // A DataNode is killed and comes back: it walks, and what was freed meanwhile goes there too.
  nodes[1]->Kill();
  for (size_t i = 0; i < 10; ++i) cluster.Free(blocks[i]);
  cluster.Settle();
  nodes[1]->Start(200);
  cluster.world.RunFor(absl::Seconds(30));
  EXPECT_GE(nodes[1]->lanes().report().walks_done(), 1u);
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(copies(blocks[i]), i < 10 ? 0u : 2u) << i;
  for (size_t i = 10; i < blocks.size(); ++i) EXPECT_EQ(cluster.Locate(blocks[i]).size(), 2u) << i;
  EXPECT_EQ(cluster.plane->figures().invalidations_told, 0u);
  service.Withdraw();
  nodes.clear();
}

}  // namespace
}  // namespace cairn::namenode::testing
