#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/env/network.h"
#include "common/env/wait.h"
#include "common/hadoop_ipc/request_parser.h"
#include "common/hadoop_ipc/server.h"
#include "common/task_group.h"

namespace cairn::ipc {

// A share of a sum that others have shares of too: given back at its end.
class ByteShare {
 public:
  explicit ByteShare(std::atomic<size_t>* sum) : sum_(sum) {}
  ~ByteShare() { Set(0); }
  ByteShare(const ByteShare&) = delete;
  ByteShare& operator=(const ByteShare&) = delete;
  void Set(size_t bytes) {
    sum_->fetch_add(bytes - share_);  // Wraps round for less, and comes out right.
    share_ = bytes;
  }

 private:
  std::atomic<size_t>* const sum_;
  size_t share_ = 0;
};

// What is to be written to one client. Outlives its connection as long as a call of it is under way. The executor's only, but for Deliver.
class Outbox {
 public:
  explicit Outbox(Executor* executor) : executor_(executor), changed_(executor), room_(executor) {}

  // The answer of a call, from any thread; dropped if the connection is gone.
  static void Deliver(const std::shared_ptr<Outbox>& outbox, std::string frame);

  void BeginCall() { ++unanswered_; }
  size_t unanswered() const { return unanswered_; }
  // What is no call's answer.
  void Add(std::string_view bytes);
  // No call's answer is added any more: what is there is written, and that is the end.
  void End();
  bool ended() const { return ended_; }
  // True once fewer than `most` calls are under way or unwritten, and fewer than `most_bytes` unwritten; false if it ended meanwhile.
  Awaitable<bool> WaitForRoom(size_t most, size_t most_bytes);
  // All that is to be written now; empty at the end.
  Awaitable<std::string> Take();
  // So many bytes of what was taken have been written.
  void WrotePiece(size_t bytes);
  // All that was taken has been written.
  void Written();

 private:
  void Push(std::string_view frame);

  Executor* const executor_;
  Event changed_;
  Event room_;
  std::string bytes_;
  size_t unwritten_bytes_ = 0;  // Of bytes_, and of what was taken.
  size_t answers_ = 0;          // In bytes_.
  size_t in_writing_ = 0;       // Answers that were taken and are not yet written.
  size_t unanswered_ = 0;       // Calls whose answer is not written.
  bool ended_ = false;
};

// One connection: reads and handles requests, while a second coroutine writes the answers. Owned by the coroutine that runs it.
class Session {
 public:
  Session(std::shared_ptr<ServerState> server, TaskGroup* owner, std::unique_ptr<Connection> connection);
  Awaitable<void> Run();

 private:
  Awaitable<void> ReadLoop();
  Awaitable<void> WriteLoop();
  // False: read no more.
  bool Take(RequestParser::Event event);
  void Begin(Call call);
  // Whether a request of so many bytes is too much now for all that the server holds.
  bool IsTooMuch(size_t bytes) const;
  // Until when the next bytes have to come.
  SteadyTime ReadDeadline();

  const std::shared_ptr<ServerState> server_;
  TaskGroup* const owner_;
  const std::unique_ptr<Connection> connection_;
  Executor* const executor_;
  const std::shared_ptr<Outbox> outbox_;
  TaskGroup parts_;
  RequestParser parser_;
  ByteShare buffered_;  // What parser_ holds.
  Caller caller_;
  const SteadyTime began_;
  SteadyTime frame_began_;  // Of the frame that is on its way, if in_frame_.
  bool in_frame_ = false;
};

}  // namespace cairn::ipc
