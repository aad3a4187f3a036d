#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/file_system.h"
#include "client/src/client_core.h"
#include "client/src/file_system.h"
#include "tests/client/fake_datanode.h"
#include "tests/client/fake_namenode.h"
#include "tests/testing/sim_rpc.h"
#include "tests/testing/sim_world.h"

namespace cairn::client {

// A client on the simulated network with a NameNode and DataNodes in memory.
class ClientCluster {
 public:
  explicit ClientCluster(size_t datanodes = 4, ClientOptions options = Quick()) {
    for (size_t i = 0; i < datanodes; ++i) {
      datanodes_.push_back(std::make_unique<FakeDatanode>(&world_, "dn" + std::to_string(i), 9866));
      namenode_.nodes.push_back(datanodes_.back()->location());
    }
    service_.Serve(namenode_process_, &namenode_);
    core_ = std::make_shared<ClientCore>(options, client_process_, &stub_, nullptr);
    files_ = NewFileSystem(core_);
  }

  static ClientOptions Quick() {
    ClientOptions options;
    options.user = "flink";
    options.packet_bytes = 64 << 10;
    options.window_bytes = 256 << 10;
    return options;
  }

  FileSystem& files() { return *files_; }
  ClientCore& core() { return *core_; }
  FakeNamenode& namenode() { return namenode_; }
  FakeDatanode& datanode(size_t i) { return *datanodes_[i]; }
  testing::SimWorld& world() { return world_; }
  SteadyTime began() const { return began_; }

  // The client goes; its writers and readers must be gone.
  void CloseClient() {
    files_.reset();
    core_.reset();
  }
  // One way between client and NameNode.
  void SetDelay(absl::Duration latency) {
    testing::SimLinkOptions link;
    link.latency = latency;
    world_.network().SetLink(namenode_machine_, client_machine_, link);
  }
  void StopNamenode() { service_.Withdraw(); }
  void StartNamenode() { service_.Serve(namenode_process_, &namenode_); }

  // The data of every finalized replica of a file's block; checks that each has the stamp and
  // length that the NameNode holds.
  std::vector<std::string> Replicas(const std::string& path, size_t block) {
    std::vector<std::string> found;
    const v1::Block& expected = namenode_.files[path].blocks[block].block;
    for (const auto& datanode : datanodes_) {
      const auto it = datanode->replicas.find(expected.id());
      if (it == datanode->replicas.end() || !it->second.finalized || it->second.stamp != expected.generation_stamp()) continue;
      if (it->second.data.size() == expected.length_bytes()) found.push_back(it->second.data);
    }
    return found;
  }
  std::vector<std::string> Complaints() const {
    std::vector<std::string> all;
    for (const auto& datanode : datanodes_) all.insert(all.end(), datanode->complaints.begin(), datanode->complaints.end());
    return all;
  }
  // Writes a whole file.
  absl::Status Put(const std::string& path, const std::string& data) {
    auto writer = files_->Create(path);
    if (!writer.ok()) return writer.status();
    const absl::Status appended = (*writer)->Append(data);
    return appended.ok() ? (*writer)->Close() : appended;
  }
  absl::StatusOr<std::string> Get(const std::string& path) {
    auto reader = files_->Open(path);
    if (!reader.ok()) return reader.status();
    std::string data;
    std::vector<char> part(100'000);
    for (;;) {
      const absl::StatusOr<size_t> count = (*reader)->Read(part);
      if (!count.ok()) return count.status();
      if (*count == 0) return data;
      data.append(part.data(), *count);
    }
  }

 private:
  testing::SimWorld world_{testing::SimOptions{}};
  const SteadyTime began_ = world_.Now();
  testing::SimMachine* namenode_machine_ = world_.AddMachine("nn");
  testing::SimMachine* client_machine_ = world_.AddMachine("client");
  testing::SimProcess* namenode_process_ = namenode_machine_->StartProcess();
  testing::SimProcess* client_process_ = client_machine_->StartProcess();
  FakeNamenode namenode_{&namenode_process_->clock()};
  testing::SimService<api::ClientNamenode> service_{namenode_machine_};
  testing::SimClientNamenode stub_{client_process_, &service_};
  std::vector<std::unique_ptr<FakeDatanode>> datanodes_;
  std::shared_ptr<ClientCore> core_;
  std::unique_ptr<FileSystem> files_;
};

// Bytes that differ at every place and between files.
inline std::string Pattern(size_t size, uint64_t seed = 1) {
  Random random(seed);
  return random.Bytes(size);
}

}  // namespace cairn::client
