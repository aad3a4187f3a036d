#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/env/network.h"
#include "common/task_group.h"
#include "common/transfer/wire_reader.h"
#include "datanode/transfer/transfer_context.h"

namespace cairn::datanode {

// One connection to the transfer port: reads operations, one after another, and serves them. After a read whose verdict came, the
// connection waits a little for another; every other operation ends it, and so does anything that is not the protocol. Belongs to the
// connection's executor.
class TransferSession {
 public:
  TransferSession(TransferContext* context, TaskGroup* owner, std::unique_ptr<Connection> connection);

  // To the end of the connection. One line in the log for what went wrong.
  Awaitable<void> Run();
  // Instead: answers the first operation that there are too many streams.
  Awaitable<void> TurnAway();

 private:
  Awaitable<absl::StatusOr<bool>> Serve(transfer::Opcode opcode);
  Awaitable<absl::StatusOr<bool>> ServeWrite();
  Awaitable<absl::StatusOr<bool>> ServeRead();
  Awaitable<absl::StatusOr<bool>> ServeTransfer();
  Awaitable<void> RefuseBusy(std::string why);
  Awaitable<absl::Status> Answer(std::string bytes);

  TransferContext* const context_;
  TaskGroup* const owner_;
  const std::unique_ptr<Connection> connection_;
  Executor* const executor_;
  transfer::WireReader reader_;
};

}  // namespace cairn::datanode
