#pragma once

// The four lanes over a real store, against a NameNode that says what a test tells it to.

#include <algorithm>
#include <string>
#include <vector>

#include "datanode/lanes/namenode_lanes.h"
#include "tests/datanode/fake_namenode.h"
#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {

class LanesTest : public StorageTest {
 protected:
  void SetUp() override {
    OpenWithoutAdopting();
    options_lanes_.identity = {.datanode_uuid = identity().Get().datanode_uuid, .incarnation = Incarnation(42)};
  }
  ~LanesTest() override { lanes_.reset(); }

  void Start() {
    NamenodeLanes::Callbacks callbacks;
    callbacks.active_streams = [] { return 3u; };
    callbacks.transfer = [this](v1::CommandDown::Transfer transfer, CommandLane::TransferDone done) {
      transfers_.emplace_back(std::move(transfer), std::move(done));
    };
    callbacks.recover = [this](v1::CommandDown::Recover recover, CommandLane::RecoverDone done) {
      recoveries_.emplace_back(std::move(recover), std::move(done));
    };
    callbacks.slow = [this](bool slow) { slow_ = slow; };
    callbacks.keys = [this](std::vector<v1::BlockTokenKey> keys) { keys_ = std::move(keys); };
    callbacks.shutdown = [this](std::string reason) { shutdown_ = std::move(reason); };
    callbacks.refused = [this](absl::Status status) { refused_ = std::move(status); };
    callbacks.other_cluster = [this](absl::Status status) { other_cluster_ = std::move(status); };
    lanes_ = std::make_unique<NamenodeLanes>(
        options_lanes_, process_,
        NamenodeLanes::Channels{.registration = &namenode_, .heartbeat = &namenode_, .report = &namenode_, .command = &namenode_},
        opened_.store.get(), opened_.identity, events_.get(), std::move(callbacks));
    lanes_->Start();
    world_.RunFor(absl::Milliseconds(1));
  }
  // A log that holds fifty events, and a stream that takes them.
  void StartWithRoomForFiftyEvents() {
    events_limit_ = 50;
    Close();
    OpenWithoutAdopting();
    options_lanes_.identity.datanode_uuid = identity().Get().datanode_uuid;
    Start();
    Resume();
  }
  // Answers the newest Hello so that events flow from `from` on.
  void Resume(uint64_t from = 1) {
    v1::ReportDown down;
    down.mutable_resume()->set_from(from);
    namenode_.reports.back()->Say(down);
    Run();
  }
  void Walk(std::vector<std::string> storages, uint64_t from = 1) {
    v1::ReportDown down;
    down.mutable_walk()->set_from(from);
    for (std::string& storage : storages) down.mutable_walk()->add_storage_uuids(std::move(storage));
    namenode_.reports.back()->Say(down);
    Run();
  }
  void Acknowledge(uint64_t applied, uint64_t durable) {
    v1::ReportDown down;
    down.mutable_acknowledgement()->set_applied(applied);
    down.mutable_acknowledgement()->set_durable(durable);
    namenode_.reports.back()->Say(down);
    Run();
  }
  void Run() { world_.RunFor(absl::Milliseconds(20)); }
  // Events heard on the newest report stream.
  std::vector<v1::ReportEvent> Heard() {
    std::vector<v1::ReportEvent> events;
    for (const v1::ReportUp& up : namenode_.reports.back()->heard) {
      for (const v1::ReportEvent& event : up.events().events()) events.push_back(event);
    }
    return events;
  }
  v1::CommandDown Command(v1::CommandClass command_class, uint64_t epoch = 5, uint64_t incarnation = 42) {
    v1::CommandDown command;
    command.set_epoch(epoch);
    command.set_incarnation(incarnation);
    command.set_command_class(command_class);
    return command;
  }
  v1::CommandDown InvalidateOf(std::vector<BlockId> blocks, uint64_t epoch = 5, uint64_t incarnation = 42) {
    v1::CommandDown command = Command(v1::RECLAIM, epoch, incarnation);
    for (const BlockId block : blocks) {
      v1::InvalidateReplica* replica = command.mutable_invalidate()->add_replicas();
      replica->set_storage_uuid(storage());
      replica->set_block_id(block.value());
      replica->set_generation_stamp(kStamp.value());
      replica->set_command_id(block.value());
    }
    return command;
  }
  std::vector<v1::CommandUp::Outcome> Outcomes() {
    std::vector<v1::CommandUp::Outcome> outcomes;
    for (const v1::CommandUp& up : namenode_.commands.back()->heard) {
      if (up.has_outcome()) outcomes.push_back(up.outcome());
    }
    return outcomes;
  }

  NamenodeLanes::Options options_lanes_;
  FakeNamenode namenode_{&world_.clock()};
  std::vector<std::pair<v1::CommandDown::Transfer, CommandLane::TransferDone>> transfers_;
  std::vector<std::pair<v1::CommandDown::Recover, CommandLane::RecoverDone>> recoveries_;
  std::vector<v1::BlockTokenKey> keys_;
  bool slow_ = false;
  std::string shutdown_;
  absl::Status refused_;
  absl::Status other_cluster_;
  std::unique_ptr<NamenodeLanes> lanes_;
};

}  // namespace cairn::datanode::testing
