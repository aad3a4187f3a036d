#include "namenode/safe_mode.h"

#include <utility>

#include <fmt/format.h>

#include "common/error.h"

namespace cairn::namenode {
namespace {

constexpr char kExtensionKey[] = "dfs.namenode.safemode.extension";

// What who is refused can do: wait, and for how long, as far as that is known; or ask an operator.
std::string Outlook(const SafeMode::State& state) {
  if (!state.automatic)
    return fmt::format("It was turned on manually by {}. Use \"cairn dfsadmin -safemode leave\" to turn safe mode off.", state.user);
  if (state.ends == absl::InfiniteFuture())
    return fmt::format("{} of {} DataNodes have reported; it ends by itself ({}) when all have: try again.", state.nodes_reported,
                       state.nodes_expected, kExtensionKey);
  return fmt::format("All DataNodes that are awaited have reported. Safe mode will be turned off automatically at {}: try again then.",
                     absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", state.ends, absl::UTCTimeZone()));
}

}  // namespace

SafeMode::State SafeMode::state() const {
  MutexLock lock(mu_);
  return state_;
}

void SafeMode::SetListener(std::function<void(bool on)> listener) {
  MutexLock lock(mu_);
  listener_ = std::move(listener);
}

void SafeMode::BeLocked(State state) {
  state_ = std::move(state);
  if (listener_) listener_(state_.on);
}

void SafeMode::EnterAtStart(absl::Time now) {
  State state;
  state.on = state.automatic = true;
  state.since = now;
  MutexLock lock(mu_);
  BeLocked(std::move(state));
}

void SafeMode::Enter(const std::string& user, absl::Time now) {
  MutexLock lock(mu_);
  if (state_.on && !state_.automatic) return;
  State state;
  state.on = true;
  state.since = now;
  state.user = user;
  BeLocked(std::move(state));
}

void SafeMode::Leave() {
  MutexLock lock(mu_);
  BeLocked(State());
}

void SafeMode::Expect(uint32_t nodes_expected, uint32_t nodes_reported, absl::Time ends) {
  MutexLock lock(mu_);
  if (!state_.automatic) return;
  state_.nodes_expected = nodes_expected;
  state_.nodes_reported = nodes_reported;
  state_.ends = ends;
}

bool SafeMode::LeaveAutomatic() {
  MutexLock lock(mu_);
  if (!state_.automatic) return false;
  BeLocked(State());
  return true;
}

absl::Status SafeMode::Check(const v1::Mutation& mutation) const {
  MutexLock lock(mu_);
  if (!state_.on || mutation.has_register_storages() || mutation.has_set_meta()) return absl::OkStatus();
  const google::protobuf::FieldDescriptor* const op = v1::Mutation::descriptor()->FindFieldByNumber(static_cast<int>(mutation.op_case()));
  Error error;
  error.kind = ErrorKind::kSafeMode;
  error.reason = "SAFE_MODE";
  if (state_.automatic) error.key = kExtensionKey;
  error.message = fmt::format("Cannot {}. Name node is in safe mode. {}", op == nullptr ? "change anything" : op->name(), Outlook(state_));
  return MakeError(std::move(error));
}

}  // namespace cairn::namenode
