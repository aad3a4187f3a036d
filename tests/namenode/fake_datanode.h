#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cairn/datanode_namenode.pb.h"
#include "common/api/datanode_namenode.h"
#include "common/env/executor.h"
#include "common/ids.h"

namespace cairn::namenode::testing {

// A DataNode's side of the protocol, without disks: replica maps, a numbered log, walks, commands. Written
// from the rules of the report stream, not from the server's code. One thread; all that it is told is kept for
// tests to look at.
class FakeDatanode {
 public:
  struct Replica {
    uint64_t stamp = 0;
    uint64_t length = 0;
    v1::ReplicaState state = v1::FINALIZED;
    bool corrupt = false;
  };
  using Peers = std::function<FakeDatanode*(const std::string& uuid)>;

  FakeDatanode(std::string uuid, std::vector<std::string> storages, Executor* executor, Peers peers);
  ~FakeDatanode();

  // --- the process
  void Connect(api::DatanodeNamenode* namenode);  // Registers, opens both streams, heartbeats.
  void Disconnect();                              // The network is gone; the process lives.
  void Restart();                                 // A new incarnation with the same replicas; RBW become RWR. Disconnected.
  void OpenReports();
  void OpenCommands();

  // --- its replicas: each change and its event at once
  void Create(BlockId block, uint64_t stamp, size_t storage = 0);
  void Finalize(BlockId block, uint64_t stamp, uint64_t length, size_t storage = 0);
  void MarkCorrupt(BlockId block, size_t storage = 0);
  void ChangeStamp(BlockId block, uint64_t stamp, size_t storage = 0);
  void Drop(BlockId block, size_t storage = 0);
  void ReportStorage(v1::StorageState state, size_t storage = 0);
  void Send(v1::ReportEvent event);  // Numbered and logged as it is.
  void SendRaw(v1::ReportUp message) { reports_->Send(std::move(message)); }
  // Behind the protocol's back: no event, as if one had been lost.
  std::map<BlockId, Replica>& replicas(size_t storage = 0) { return maps_[storages_[storage]]; }
  bool Has(BlockId block) const;
  std::optional<Replica> Find(BlockId block) const;

  const std::string& uuid() const { return uuid_; }
  const std::string& storage(size_t i = 0) const { return storages_[i]; }
  uint64_t incarnation() const { return incarnation_; }
  uint64_t last() const { return first_kept_ + log_.size() - 1; }
  uint64_t first_kept() const { return first_kept_; }
  void ForgetLog() {  // As after an overflow: what was not sent is gone.
    first_kept_ = last() + 1;
    log_.clear();
  }

  // --- how it behaves
  bool marks = true;      // Numbers a mark when it meets a higher epoch.
  bool obeys = true;      // Invalidations act at once; else they wait in `invalidations`.
  bool transfers = true;  // Transfers land at once; else they are only noted.
  // Orders to recover a block: carried out at once over all peers that are connected; answered by a failure; or only noted.
  enum class Recovers { kWell, kFails, kSilent };
  Recovers recovers = Recovers::kWell;
  bool heartbeats = true;
  std::string host = "host";
  std::string rack;
  uint64_t remaining_bytes = uint64_t{1} << 40;
  uint64_t capacity_bytes = 0;  // Of each volume. Not 0: used and remaining bytes are those of its replicas' lengths.
  uint64_t highest_block_id = 0;
  std::string cluster_id;
  size_t range_size = 3;    // Replicas of one range.
  size_t ranges_ahead = 1;  // Unapplied ones.
  uint32_t invalidation_credit = 1000;

  void ActOn(const v1::InvalidateReplica& replica, uint64_t incarnation);
  void AnswerInvalidations();  // Acts on what waits.
  // As the primary of a round: asks the peers, brings them to one length, tells the NameNode.
  absl::Status FinishRecovery(const v1::CommandDown::Recover& order);

  // --- what it was told
  std::vector<v1::InvalidateReplica> invalidations;  // All that ever came; those that wait are the last `waiting`.
  size_t waiting = 0;
  std::vector<v1::CommandDown> commands;  // Others.
  std::vector<v1::ReportDown> downs;      // Everything but acknowledgements.
  uint64_t applied = 0;
  uint64_t durable = 0;
  absl::Status registered;
  absl::Status committed;  // What the NameNode said to the last recovery.
  size_t Count(v1::ReportDown::KindCase kind) const;
  bool connected() const { return namenode_ != nullptr; }
  bool reports_open() const { return reports_ != nullptr; }

 private:
  struct Link;
  struct WalkState {
    std::deque<std::string> storages;
    uint64_t end = UINT64_MAX;
    std::deque<uint64_t> unapplied;  // Numbers of ranges.
    uint64_t number = 0;
  };
  void Unlink();
  void Heartbeat();
  void Meet(uint64_t epoch);
  v1::RegisterRequest Registration() const;
  void OnDown(v1::ReportDown message);
  void OnCommand(v1::CommandDown command);
  void OnRecover(const v1::CommandDown::Recover& order);
  void Ship();
  void WalkStep();
  uint64_t SendRange(const std::string& storage, uint64_t first, uint64_t end, bool expanded);
  v1::ReportEvent EventOf(v1::ReportEventType type, BlockId block, size_t storage) const;

  const std::string uuid_;
  const std::vector<std::string> storages_;
  Executor* const executor_;
  const Peers peers_;
  std::map<std::string, std::map<BlockId, Replica>> maps_;
  uint64_t incarnation_;
  uint64_t epoch_ = 0;
  std::deque<v1::ReportEvent> log_;
  uint64_t first_kept_ = 1;
  uint64_t next_to_send_ = 0;  // 0: the NameNode has not said from where.
  WalkState walk_;
  api::DatanodeNamenode* namenode_ = nullptr;
  // Of the connection and the streams that are open; what older ones bring is dropped.
  std::shared_ptr<Link> link_, reports_link_, commands_link_;
  std::shared_ptr<api::MessageSink<v1::ReportUp>> reports_;
  std::shared_ptr<api::MessageSink<v1::CommandUp>> command_sink_;
};

}  // namespace cairn::namenode::testing
