#pragma once

#include <functional>
#include <string>
#include <utility>

#include "common/api/admin.h"
#include "common/env/clock.h"

namespace cairn::datanode {

// What operators ask of this DataNode. Thread-safe; no call blocks, but for who a user is.
//
// To look is for all; SetFault and Reconfigure are for superusers (kPermission). SetFault is refused, too, unless the daemon runs with
// --fault-points; an empty action disarms.
class AdminService : public api::DatanodeAdmin {
 public:
  // Fills in all but the header. Thread-safe, memory only.
  using Describe = std::function<void(v1::GetDatanodeInfoResponse* info)>;

  // `clock` outlives this.
  AdminService(Describe describe, const Clock* clock) : describe_(std::move(describe)), clock_(clock) {}

  void GetDatanodeInfo(api::CallContext context, v1::GetDatanodeInfoRequest request, api::Done<v1::GetDatanodeInfoResponse> done) override;
  void SetFault(api::CallContext context, v1::SetFaultRequest request, api::Done<v1::SetFaultResponse> done) override;
  void Reconfigure(api::CallContext context, v1::ReconfigureRequest request, api::Done<v1::ReconfigureResponse> done) override;

  // Who carries out Reconfigure; without it, it is refused with kUnsupported. Must not block. Before calls come.
  using Reconfigurer = std::function<void(v1::ReconfigureRequest request, api::Done<v1::ReconfigureResponse> done)>;
  void SetReconfigurer(Reconfigurer reconfigure) { reconfigure_ = std::move(reconfigure); }

  // Before the first call: who may change things; unless it is set, everyone. Thread-safe.
  void SetSuperuserCheck(std::function<bool(const std::string& user)> is_superuser) { is_superuser_ = std::move(is_superuser); }

 private:
  absl::Status CheckSuperuser(const v1::RequestHeader& header) const;

  std::function<bool(const std::string& user)> is_superuser_;
  Reconfigurer reconfigure_;
  const Describe describe_;
  const Clock* const clock_;
};

}  // namespace cairn::datanode
