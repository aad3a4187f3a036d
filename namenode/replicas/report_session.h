#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "cairn/datanode_namenode.pb.h"
#include "common/api/stream.h"
#include "common/env/executor.h"
#include "common/ids.h"
#include "namenode/replicas/datanode_registry.h"
#include "namenode/replicas/report_applier.h"
#include "namenode/store/replica_store.h"

namespace cairn::namenode {

class ReportSession;

// Who hears what the report streams meant. Called on the sessions' executor; must only hand over.
class ReportObserver {
 public:
  virtual ~ReportObserver() = default;
  virtual void OnReportsOpened(const std::shared_ptr<ReportSession>& session) = 0;
  virtual void OnReportEffects(const std::string& datanode_uuid, Incarnation incarnation, ReportEffects effects) = 0;
  // The stream could not go on where it was: answers to commands may be among what was lost.
  virtual void OnReportsLost(const std::string& datanode_uuid) = 0;
  virtual void OnReportsClosed(const ReportSession& session) = 0;
};

// Server end of one DataNode's report stream: Hello, then Resume or Walk; events strictly by number, each
// message acknowledged; what does not fit is rejected with a class and ends this stream only.
//
// The sink itself is thread-safe; all other calls belong to `executor`, which also writes the store.
class ReportSession : public api::MessageSink<v1::ReportUp>, public std::enable_shared_from_this<ReportSession> {
 public:
  struct Parts {  // All outlive the session's handling of messages, which ends with `observer`.
    Epoch epoch;
    ReplicaStore* store = nullptr;
    DatanodeRegistry* registry = nullptr;
    const Clock* clock = nullptr;
    absl::Duration walk_period;
  };
  ReportSession(Parts parts, std::weak_ptr<ReportObserver> observer, Executor* executor,
                std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler);

  bool Send(v1::ReportUp message) override;
  size_t Queued() const override { return queued_.load(std::memory_order_relaxed); }
  void Close(absl::Status status) override;

  const std::string& datanode_uuid() const { return datanode_uuid_; }
  Incarnation incarnation() const { return incarnation_; }
  uint64_t applied() const { return applier_ ? applier_->applied() : 0; }

  // The node registered (again): new storages are walked.
  void OnRegistered();
  // Asks what the storage has of one block.
  void RequestBlock(const std::string& storage_uuid, BlockId block);
  // Everything up to `durable` is synced.
  void OnDurable(uint64_t durable);
  // Asks for walks that are due: every walk_period, and where one has stood still.
  void Tick();
  void End(absl::Status status);

 private:
  static constexpr size_t kMaxUnhandled = 4096;  // Messages; a DataNode sends far fewer ahead.
  static constexpr int kMaxEvents = 1000;
  static constexpr int kMaxUnappliedRanges = 8;        // Of walks; what we asked to be listed comes on top.
  static constexpr size_t kMaxMessageBytes = 1 << 20;  // Of the 64 KiB that are agreed, with room for one large range on top.

  void Handle(const v1::ReportUp& message);
  void HandleHello(const v1::ReportHello& hello);
  void HandleEvents(const v1::ReportUp::Events& events);
  void Reject(v1::RejectionClass reject, const absl::Status& why);
  void RequestWalk(const std::vector<std::string>& storage_uuids, uint64_t from);
  void Acknowledge();

  const Parts parts_;
  const std::weak_ptr<ReportObserver> observer_;
  Executor* const executor_;
  std::atomic<size_t> queued_ = 0;
  std::atomic<int> unapplied_ranges_ = 0;
  std::atomic<bool> closed_ = false;
  // The rest belongs to executor_.
  std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler_;
  std::string datanode_uuid_;
  Incarnation incarnation_;
  std::optional<ReportApplier> applier_;
  uint64_t durable_ = 0;
  absl::btree_map<StorageNumber, SteadyTime> asked_;  // When a walk was asked for, or last came on.
};

}  // namespace cairn::namenode
