#pragma once

// The api interfaces over the simulated network: what common/rpc is in production. Requests, answers and stream messages are serialized
// and parsed again, delayed, held back and lost as bytes of a connection are. Who serves is said by a SimService:
//
//   SimService<api::ClientNamenode> service(namenode_machine);      // As a name and port that clients know.
//   service.Serve(process, &namenode_api);                          // While that process lives, or until Withdraw().
//   SimClientNamenode client(client_process, &service);             // An api::ClientNamenode like any other.
//
// A call on a service that nobody serves, or whose process dies or link is cut before the answer is back, gets UNAVAILABLE; one
// without an answer at its deadline DEADLINE_EXCEEDED, and is gone for its caller. A call of a dead process gets UNAVAILABLE at once. The
// server gets the caller's address as CallContext::peer. Done callbacks of a server that has died may be called or destroyed: nobody hears
// them.

#include <memory>
#include <vector>

#include "common/api/admin.h"
#include "common/api/client_namenode.h"
#include "common/api/datanode_namenode.h"
#include "common/api/inter_datanode.h"
#include "tests/testing/sim_network.h"
#include "tests/testing/sim_world.h"

namespace cairn::testing {

// Where an api is served. Outlives the clients that point to it; one thread.
template <class Api>
class SimService {
 public:
  explicit SimService(SimMachine* machine) : machine_(machine) {}
  ~SimService() { Withdraw(); }
  SimService(const SimService&) = delete;
  SimService& operator=(const SimService&) = delete;

  // `api` outlives the process's death or Withdraw().
  void Serve(SimProcess* process, Api* api) {
    Withdraw();
    process_ = process;
    api_ = api;
  }
  // A clean stop: open calls and streams break.
  void Withdraw() {
    process_ = nullptr;
    api_ = nullptr;
    std::vector<std::weak_ptr<SimFlow>> open;
    open.swap(open_);
    for (const std::weak_ptr<SimFlow>& weak : open) {
      if (std::shared_ptr<SimFlow> flow = weak.lock()) flow->Abandon(1);
    }
  }

  SimMachine* machine() const { return machine_; }
  SimProcess* process() const { return process_; }
  // Null when nobody serves.
  Api* api() const { return process_ != nullptr && process_->alive() ? api_ : nullptr; }
  // Notes a call that is being served.
  void Begin(const std::shared_ptr<SimFlow>& flow) {
    flow->Attach(process_);
    std::erase_if(open_, [](const std::weak_ptr<SimFlow>& weak) { return weak.expired(); });
    open_.push_back(flow);
  }

 private:
  SimMachine* const machine_;
  SimProcess* process_ = nullptr;
  Api* api_ = nullptr;
  std::vector<std::weak_ptr<SimFlow>> open_;  // Open calls and streams, oldest first.
};

class SimClientNamenode final : public api::ClientNamenode {
 public:
  SimClientNamenode(SimProcess* caller, SimService<api::ClientNamenode>* service) : caller_(caller), service_(service) {}
#define CAIRN_DECLARE_CALL(Name) \
  void Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) override;
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL

 private:
  SimProcess* const caller_;
  SimService<api::ClientNamenode>* const service_;
};

class SimNamenodeAdmin final : public api::NamenodeAdmin {
 public:
  SimNamenodeAdmin(SimProcess* caller, SimService<api::NamenodeAdmin>* service) : caller_(caller), service_(service) {}
#define CAIRN_DECLARE_CALL(Name) \
  void Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) override;
  CAIRN_NAMENODE_ADMIN_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL

 private:
  SimProcess* const caller_;
  SimService<api::NamenodeAdmin>* const service_;
};

class SimInterDatanode final : public api::InterDatanode {
 public:
  SimInterDatanode(SimProcess* caller, SimService<api::InterDatanode>* service) : caller_(caller), service_(service) {}
#define CAIRN_DECLARE_CALL(Name) \
  void Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) override;
  CAIRN_INTER_DATANODE_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL

 private:
  SimProcess* const caller_;
  SimService<api::InterDatanode>* const service_;
};

class SimDatanodeNamenode final : public api::DatanodeNamenode {
 public:
  SimDatanodeNamenode(SimProcess* caller, SimService<api::DatanodeNamenode>* service) : caller_(caller), service_(service) {}
#define CAIRN_DECLARE_CALL(Name) \
  void Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) override;
  CAIRN_DATANODE_NAMENODE_CALLS(CAIRN_DECLARE_CALL)
#undef CAIRN_DECLARE_CALL
  std::shared_ptr<api::MessageSink<v1::ReportUp>> Reports(api::CallContext context,
                                                          std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler) override;
  std::shared_ptr<api::MessageSink<v1::CommandUp>> Commands(api::CallContext context,
                                                            std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler) override;

 private:
  SimProcess* const caller_;
  SimService<api::DatanodeNamenode>* const service_;
};

}  // namespace cairn::testing
