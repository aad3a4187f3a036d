#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cairn/datanode_namenode.pb.h"
#include "common/api/stream.h"
#include "common/env/executor.h"
#include "common/ids.h"

namespace cairn::namenode {

class CommandSession;

// Who gives a command session its work and hears its news. Called on the session's executor.
class CommandSource {
 public:
  virtual ~CommandSource() = default;
  // kUnregistered ends the stream. The session may be used until OnCommandsClosed.
  virtual absl::Status OnCommandsOpened(const std::shared_ptr<CommandSession>& session) = 0;
  // At most `limit` replicas to be invalidated by this DataNode now; from here on they are told to go.
  virtual std::vector<v1::InvalidateReplica> TakeInvalidations(const CommandSession& session, size_t limit) = 0;
  virtual void OnOutcome(const CommandSession& session, const v1::CommandUp::Outcome& outcome) = 0;
  virtual void OnCommandsClosed(const CommandSession& session) = 0;
};

// Server end of one DataNode's command stream. The DataNode pulls: nothing is sent beyond the credit it
// granted. CONTROL goes before REPAIR_WORK, that before RECLAIM. The queues are bounded; who queues checks
// `room()`.
//
// The sink itself is thread-safe; all other calls belong to `executor`. A message that makes no sense ends
// this stream and nothing else.
class CommandSession : public api::MessageSink<v1::CommandUp>, public std::enable_shared_from_this<CommandSession> {
 public:
  // `source` may die before this: it is asked through a weak pointer.
  CommandSession(Epoch epoch, std::weak_ptr<CommandSource> source, Executor* executor,
                 std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler);

  bool Send(v1::CommandUp message) override;
  size_t Queued() const override { return queued_.load(std::memory_order_relaxed); }
  void Close(absl::Status status) override;

  const std::string& datanode_uuid() const { return datanode_uuid_; }
  Incarnation incarnation() const { return incarnation_; }
  // Room for one more CONTROL or REPAIR_WORK command.
  bool room() const { return open_ && control_.size() + repair_.size() < kMaxQueued; }
  void Queue(v1::CommandDown command);  // Epoch and incarnation are filled in.
  void Pump();                          // Sends what credit allows.
  void End(absl::Status status);

 private:
  static constexpr size_t kMaxQueued = 256;
  static constexpr size_t kMaxUnhandled = 4096;
  static constexpr uint64_t kMaxCredit = 1 << 20;
  static constexpr size_t kReplicasPerCommand = 500;

  void Handle(v1::CommandUp message);
  void HandleHello(const v1::CommandUp::Hello& hello);
  void Deliver(v1::CommandDown command);

  const Epoch epoch_;
  const std::weak_ptr<CommandSource> source_;
  Executor* const executor_;
  std::atomic<size_t> queued_ = 0;
  std::atomic<bool> closed_ = false;
  // The rest belongs to executor_.
  std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler_;
  bool open_ = false;  // Between an accepted Hello and the end.
  std::string datanode_uuid_;
  Incarnation incarnation_;
  uint64_t invalidation_credit_ = 0;
  uint64_t command_credit_ = 0;
  std::deque<v1::CommandDown> control_;
  std::deque<v1::CommandDown> repair_;
};

}  // namespace cairn::namenode
