#include "datanode/transfer/transfer_context.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/env/wait.h"
#include "common/error.h"
#include "common/fault_points.h"
#include "common/status.h"

namespace cairn::datanode {
namespace {

constexpr absl::Duration kKeyPatience = absl::Seconds(5);
constexpr absl::Duration kFaultPoll = absl::Milliseconds(10);
constexpr absl::Duration kKeyPoll = absl::Milliseconds(100);

}  // namespace

void ServedPool::Set(std::string pool_id) {
  MutexLock lock(mu_);
  pool_id_ = std::move(pool_id);
}

std::string ServedPool::Get() const {
  MutexLock lock(mu_);
  return pool_id_;
}

std::string NameOf(const hdfs::ExtendedBlockProto& block) { return fmt::format("block {}_{}", block.blockid(), block.generationstamp()); }

Awaitable<absl::Status> CheckAccess(const TransferContext* context, Executor* executor, const hdfs::BaseHeaderProto* header,
                                    GenerationStamp stamp, uint8_t modes) {
  const hdfs::ExtendedBlockProto& block = header->block();
  const std::string pool = context->pool.Get();
  if (pool.empty()) co_return MakeError(ErrorKind::kRetriable, "this DataNode has not registered with a cluster yet");
  if (const std::string name = transfer::PoolName(pool); block.poolid() != name)
    co_return MakeError(ErrorKind::kInvalidArgument,
                        fmt::format("{} is of pool {}; this node serves {}", NameOf(block), block.poolid(), name));
  const SteadyTime patience = executor->clock().Now() + kKeyPatience;
  for (;;) {
    absl::Status status;
    for (const TokenMode mode : {TokenMode::kRead, TokenMode::kWrite, TokenMode::kTransfer}) {
      if ((modes & static_cast<uint8_t>(mode)) == 0) continue;
      status = context->tokens->Check(header->token().identifier(), pool, BlockId(block.blockid()), stamp, mode);
      if (status.ok()) co_return status;
    }
    if (ReasonOf(status) != "UNKNOWN_KEY" || executor->clock().Now() >= patience) co_return status;
    co_await SleepUntil(executor, executor->clock().Now() + kKeyPoll);
  }
}

Awaitable<void> HoldAtFault(Executor* executor, const char* name) {
  for (;;) {
    const std::optional<absl::Duration> hold = FaultHold(name);
    if (!hold.has_value()) co_return;
    const bool blocked = *hold == absl::InfiniteDuration();
    co_await SleepUntil(executor, executor->clock().Now() + (blocked ? kFaultPoll : *hold));
    if (!blocked) co_return;
  }
}

}  // namespace cairn::datanode
