#include "common/hadoop_ipc/session.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/hadoop_ipc/answers.h"
#include "common/log.h"

namespace cairn::ipc {
namespace {

constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kPieceBytes = 256 << 10;  // Of answers, for which write_timeout is each.
// Requests up to here are taken however much is held: their number is bounded, and who floods the server shuts out nobody else.
constexpr size_t kSmallBytes = 64 << 10;

// Counts a call as under way while it lives, and wakes a server that waits for the last one.
class CallTicket {
 public:
  CallTicket(std::shared_ptr<ServerState> server, size_t bytes) : server_(std::move(server)), bytes_(bytes) {
    server_->request_bytes.fetch_add(bytes_);
  }
  CallTicket(CallTicket&&) = default;
  CallTicket& operator=(CallTicket&&) = delete;
  ~CallTicket() {
    if (server_ == nullptr) return;
    server_->request_bytes.fetch_sub(bytes_);
    server_->calls.fetch_sub(1);
    if (server_->stopping.load()) server_->env->Wake();
  }

 private:
  std::shared_ptr<ServerState> server_;  // Null: moved from.
  size_t bytes_;
};

}  // namespace

void Outbox::Deliver(const std::shared_ptr<Outbox>& outbox, std::string frame) {
  Executor* const executor = outbox->executor_;
  if (executor->IsCurrent()) return outbox->Push(frame);
  executor->Post([outbox, frame = std::move(frame)] { outbox->Push(frame); });
}

void Outbox::Push(std::string_view frame) {
  if (ended_) return;
  ++answers_;
  Add(frame);
}

void Outbox::Add(std::string_view bytes) {
  if (ended_) return;
  bytes_ += bytes;
  unwritten_bytes_ += bytes.size();
  changed_.Set();
}

void Outbox::End() {
  ended_ = true;
  changed_.Set();
  room_.Set();
}

Awaitable<bool> Outbox::WaitForRoom(size_t most, size_t most_bytes) {
  while (!ended_ && (unanswered_ >= most || unwritten_bytes_ >= most_bytes)) {
    room_.Reset();
    const bool woken = co_await room_.Wait(SteadyTime::Infinite());
    static_cast<void>(woken);
  }
  co_return !ended_;
}

Awaitable<std::string> Outbox::Take() {
  while (bytes_.empty() && !ended_) {
    changed_.Reset();
    const bool woken = co_await changed_.Wait(SteadyTime::Infinite());
    static_cast<void>(woken);
  }
  in_writing_ = std::exchange(answers_, 0);
  co_return std::exchange(bytes_, std::string());
}

void Outbox::WrotePiece(size_t bytes) {
  unwritten_bytes_ -= bytes;
  room_.Set();
}

void Outbox::Written() {
  unanswered_ -= std::exchange(in_writing_, 0);
  room_.Set();
}

Session::Session(std::shared_ptr<ServerState> server, TaskGroup* owner, std::unique_ptr<Connection> connection)
    : server_(std::move(server)),
      owner_(owner),
      connection_(std::move(connection)),
      executor_(&connection_->executor()),
      outbox_(std::make_shared<Outbox>(executor_)),
      parts_(executor_),
      parser_(server_->options.max_frame_bytes),
      buffered_(&server_->request_bytes),
      began_(executor_->clock().Now()) {}

Awaitable<void> Session::Run() {
  const std::unique_ptr<TaskGroup::StopHook> hook = owner_->OnStop([this] {
    outbox_->End();
    connection_->Close();
  });
  parts_.Spawn("answers", [this] { return WriteLoop(); });
  co_await ReadLoop();
  outbox_->End();
  co_await parts_.Join();
  connection_->Close();
}

SteadyTime Session::ReadDeadline() {
  const SteadyTime now = executor_->clock().Now();
  if (!parser_.ready()) return began_ + server_->options.handshake_timeout;
  if (!parser_.midway()) {
    in_frame_ = false;
    return now + server_->options.idle_timeout;
  }
  if (!in_frame_) {
    in_frame_ = true;
    frame_began_ = now;
  }
  return frame_began_ + server_->options.frame_timeout;
}

Awaitable<void> Session::ReadLoop() {
  std::vector<char> bytes(kReadBytes);
  while (!outbox_->ended()) {
    RequestParser::Event event = parser_.Next();
    if (std::holds_alternative<RequestParser::NeedsMore>(event)) {
      const SteadyTime deadline = ReadDeadline();
      const absl::StatusOr<size_t> count = co_await connection_->Read(bytes, 1, deadline);
      // A client that waits for an answer may be silent as long as that takes.
      const bool waits = absl::IsDeadlineExceeded(count.status()) && parser_.ready() && !parser_.midway() && outbox_->unanswered() > 0;
      if (waits) continue;
      if (!count.ok() || *count == 0) break;
      parser_.Feed(std::string_view(bytes.data(), *count));
      buffered_.Set(parser_.held_bytes());
      if (!IsTooMuch(parser_.held_bytes())) continue;
      server_->refused_connections.fetch_add(1, std::memory_order_relaxed);
      log::Warning("Hadoop IPC: {}: closed the connection in the midst of a large request: too much is held already", connection_->peer());
      break;
    }
    buffered_.Set(parser_.held_bytes());
    in_frame_ = false;
    if (!Take(std::move(event))) break;
    const bool goes_on = co_await outbox_->WaitForRoom(server_->options.max_calls_per_connection, server_->options.max_unwritten_bytes);
    if (!goes_on) break;
  }
}

bool Session::IsTooMuch(size_t bytes) const {
  return bytes > kSmallBytes && server_->request_bytes.load() > server_->options.max_request_bytes;
}

bool Session::Take(RequestParser::Event event) {
  if (auto* call = std::get_if<Call>(&event)) {
    Begin(std::move(*call));
    return true;
  }
  if (auto* ready = std::get_if<RequestParser::Ready>(&event)) {
    caller_ = std::move(ready->caller);
    return true;
  }
  if (const auto* reply = std::get_if<RequestParser::Reply>(&event)) {
    outbox_->Add(reply->bytes);
    return true;
  }
  if (const auto* refused = std::get_if<RequestParser::Refused>(&event)) {
    server_->refused_connections.fetch_add(1, std::memory_order_relaxed);
    log::Debug("Hadoop IPC: {}: what it sends is not understood; closed the connection", connection_->peer());
    outbox_->Add(refused->answer);
    return false;
  }
  return true;  // A ping.
}

void Session::Begin(Call call) {
  outbox_->BeginCall();
  server_->calls_begun.fetch_add(1, std::memory_order_relaxed);
  const size_t under_way = server_->calls.fetch_add(1);
  const bool is_too_much = IsTooMuch(call.request.size());
  Done done = [outbox = outbox_, ticket = CallTicket(server_, call.request.size()), id = call.id, client_id = call.client_id,
               retry_count = call.retry_count](const Answer& answer) {
    Outbox::Deliver(outbox, EncodeAnswer(id, client_id, retry_count, answer));
  };
  if (under_way >= server_->options.max_calls || is_too_much) {
    server_->refused_calls.fetch_add(1, std::memory_order_relaxed);
    return done(Failure{kRetriableException, "the server is too busy: too many calls are under way, or too many bytes of them; come again",
                        hdfs::RpcResponseHeaderProto::ERROR_APPLICATION});
  }
  api::CallContext context;
  context.peer = connection_->peer();
  context.deadline = executor_->clock().Now() + server_->options.call_timeout;
  context.home = executor_;
  server_->handler->Handle(caller_, std::move(call), std::move(context), std::move(done));
}

Awaitable<void> Session::WriteLoop() {
  for (;;) {
    const std::string batch = co_await outbox_->Take();
    if (batch.empty()) break;
    absl::Status written;
    for (size_t at = 0; written.ok() && at < batch.size();) {
      const size_t count = std::min(batch.size() - at, kPieceBytes);
      std::vector<std::span<const char>> parts;
      parts.emplace_back(batch.data() + at, count);
      const SteadyTime deadline = executor_->clock().Now() + server_->options.write_timeout;
      written = co_await connection_->Write(std::move(parts), deadline);
      outbox_->WrotePiece(count);
      at += count;
    }
    outbox_->Written();
    if (written.ok()) continue;
    outbox_->End();
    connection_->Close();  // Ends the read that waits.
    break;
  }
}

}  // namespace cairn::ipc
