#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "datanode/lanes/namenode_lanes.h"
#include "datanode/storage/open_block_store.h"
#include "namenode/replicas/replica_plane.h"
#include "tests/namenode/fake_space.h"
#include "tests/testing/sim_rpc.h"
#include "tests/testing/sim_world.h"

namespace cairn::testing {

class StreamTap;

// A NameNode's replica plane and two DataNodes' stores and lanes, joined by a simulated network: whatever happens to them, the NameNode's
// rows, the DataNodes' maps, the files on their disks and what the namespace wants have to come to agree.
//
// There are no clients and no transfer ports: blocks are written into the stores by the test, and copies of a repair are made by hand.
class ConvergenceWorld {
 public:
  // What may happen. Each takes its details (which node, which block, how hard) from the seed.
  enum class Step : uint8_t {
    kNamenodeRestart,  // Clean, killed, or with its machine's power: then what was not synced is gone.
    kDatanodeRestart,  // The same.
    kConnectionCut,    // In the middle of its streams.
    kReportsDelayed,   // Nothing of what a DataNode says arrives for a while.
    kReportsRepeated,  // A message that was sent on the report stream comes again.
    kBlockDeleted,
    kBlockAdded,      // On one node, on one too many, or still being written.
    kBlockRecovered,  // To a newer stamp, on all nodes that have it or on one.
    kDiskAway,        // Every operation on it fails, for a while.
  };
  static constexpr size_t kSteps = 9;
  static const char* NameOf(Step step);

  explicit ConvergenceWorld(uint64_t seed);
  ~ConvergenceWorld();

  void Do(Step step);
  void RunFor(absl::Duration duration) { world_.RunFor(duration); }
  // Ends what attackers still hold up, and runs until all agree: empty, or else, after `limit`, what does not.
  std::string Converge(absl::Duration limit);
  // A byte of one replica changes, of each block that has two good ones: how many. Nobody reads or is told.
  size_t RotOneOfTwo();
  uint64_t scan_errors();  // What the scanners have found.
  // Every replica reads as it was written.
  bool AllVerify();
  Random& chance() { return random_; }
  // Everything that was done, for the message of a failure.
  const std::string& story() const { return story_; }
  absl::Duration longest() const { return longest_; }  // That any Converge took.
  absl::Duration last() const { return last_; }        // That the last one took.

 private:
  struct Node {
    SimMachine* machine = nullptr;
    SimProcess* process = nullptr;
    std::unique_ptr<datanode::EventLog> events;
    std::unique_ptr<datanode::BlockStore> store;
    datanode::NodeIdentity* identity = nullptr;
    std::unique_ptr<SimDatanodeNamenode> client;
    std::unique_ptr<StreamTap> tap;
    std::unique_ptr<datanode::NamenodeLanes> lanes;
    std::map<BlockId, std::shared_ptr<datanode::ReplicaWriter>> writers;  // Of blocks that are still being written.
  };

  void StartNamenode();
  void StopNamenode(uint64_t how);
  void StartDatanode(Node* node);
  void StopDatanode(Node* node, uint64_t how);
  void Transfer(Node* source, const v1::CommandDown::Transfer& command, datanode::CommandLane::TransferDone done);
  void Add();
  void Delete();
  void Recover();
  bool Finish(Node* node, BlockId id);
  bool Write(Node* node, BlockId id, uint64_t stamp, uint64_t length, bool finish);
  Node* AnyNode() { return &nodes_[random_.Below(nodes_.size())]; }
  BlockId AnyBlock();  // 0 if there is none.
  void SetRecord(BlockId id, const v1::BlockRecord& record);
  std::string Disagreement();
  std::string DisagreementOf(Node* node);

  SimWorld world_;
  Random random_;
  namenode::testing::FakeSpace space_;
  SimMachine* const namenode_machine_;
  SimProcess* namenode_process_ = nullptr;
  SimService<api::DatanodeNamenode> service_;
  std::unique_ptr<Executor> executor_, store_executor_;
  std::unique_ptr<namenode::ReplicaPlane> plane_;
  std::array<Node, 2> nodes_;
  std::vector<BlockId> blocks_;  // All that there ever were.
  uint64_t epoch_ = 0;
  uint64_t incarnation_ = 0;
  std::string story_;
  absl::Duration longest_, last_;
};

}  // namespace cairn::testing
