#include "namenode/safe_mode.h"

#include <fmt/format.h>

#include "common/error.h"

namespace cairn::namenode {

SafeMode::State SafeMode::state() const {
  MutexLock lock(mu_);
  return state_;
}

void SafeMode::Enter(const std::string& user, absl::Time now) {
  MutexLock lock(mu_);
  if (!state_.on) state_ = {true, now, user};
}

void SafeMode::Leave() {
  MutexLock lock(mu_);
  state_ = State();
}

absl::Status SafeMode::Check(const v1::Mutation& mutation) const {
  MutexLock lock(mu_);
  if (!state_.on || mutation.has_register_storages() || mutation.has_set_meta()) return absl::OkStatus();
  const google::protobuf::FieldDescriptor* const op = v1::Mutation::descriptor()->FindFieldByNumber(static_cast<int>(mutation.op_case()));
  Error error;
  error.kind = ErrorKind::kSafeMode;
  error.reason = "SAFE_MODE";
  error.message = fmt::format(
      "Cannot {}. Name node is in safe mode. It was turned on manually by {}. Use \"cairn dfsadmin -safemode leave\" to turn safe mode "
      "off.",
      op == nullptr ? "change anything" : op->name(), state_.user);
  return MakeError(std::move(error));
}

}  // namespace cairn::namenode
