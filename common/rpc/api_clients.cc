// The interfaces of common/api over GrpcChannel, made from their own lists of calls.

#include <algorithm>
#include <iterator>
#include <vector>

#include "common/mutex.h"
#include "common/rpc/grpc_client.h"
#include "common/rpc/service_names.h"

namespace cairn::rpc {
namespace {

#define CAIRN_DEFINE_CALL(Name)                                                                                             \
  void Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) override {             \
    channel_.Call<v1::Name##Request, v1::Name##Response>(std::string(kService) + #Name, context, request, std::move(done)); \
  }

class GrpcClientNamenode : public api::ClientNamenode {
 public:
  GrpcClientNamenode(HostPort namenode, Env* env) : channel_(std::move(namenode), "grpc-client", env) {}
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_DEFINE_CALL)

 private:
  static constexpr const char* kService = kClientNamenode;
  GrpcChannel channel_;
};

class GrpcDatanodeNamenode : public api::DatanodeNamenode {
 public:
  GrpcDatanodeNamenode(HostPort namenode, const std::string& lane, Env* env) : channel_(std::move(namenode), "grpc-" + lane, env) {}
  CAIRN_DATANODE_NAMENODE_CALLS(CAIRN_DEFINE_CALL)

  std::shared_ptr<api::MessageSink<v1::ReportUp>> Reports(api::CallContext context,
                                                          std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler) override {
    return channel_.OpenStream<v1::ReportUp, v1::ReportDown>(std::string(kService) + "Reports", context, std::move(handler));
  }
  std::shared_ptr<api::MessageSink<v1::CommandUp>> Commands(api::CallContext context,
                                                            std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler) override {
    return channel_.OpenStream<v1::CommandUp, v1::CommandDown>(std::string(kService) + "Commands", context, std::move(handler));
  }

 private:
  static constexpr const char* kService = kDatanodeNamenode;
  GrpcChannel channel_;
};

class GrpcNamenodeAdmin : public api::NamenodeAdmin {
 public:
  GrpcNamenodeAdmin(HostPort namenode, Env* env) : channel_(std::move(namenode), "grpc-admin", env) {}
  CAIRN_NAMENODE_ADMIN_CALLS(CAIRN_DEFINE_CALL)

 private:
  static constexpr const char* kService = kNamenodeAdmin;
  GrpcChannel channel_;
};

class GrpcDatanodeAdmin : public api::DatanodeAdmin {
 public:
  GrpcDatanodeAdmin(HostPort datanode, Env* env) : channel_(std::move(datanode), "grpc-admin", env) {}
  CAIRN_DATANODE_ADMIN_CALLS(CAIRN_DEFINE_CALL)

 private:
  static constexpr const char* kService = kDatanodeAdmin;
  GrpcChannel channel_;
};

class GrpcInterDatanode : public api::InterDatanode {
 public:
  GrpcInterDatanode(HostPort datanode, Env* env) : channel_(std::move(datanode), "grpc-peer", env) {}
  CAIRN_INTER_DATANODE_CALLS(CAIRN_DEFINE_CALL)

 private:
  static constexpr const char* kService = kInterDatanode;
  GrpcChannel channel_;
};

#undef CAIRN_DEFINE_CALL

// Channels to peers by address. Thread-safe.
class PeerChannels {
 public:
  explicit PeerChannels(Env* env) : env_(env) {}

  std::shared_ptr<api::InterDatanode> Find(const v1::Endpoint& admin) ABSL_LOCKS_EXCLUDED(mu_) {
    const HostPort address{admin.host(), static_cast<uint16_t>(admin.port())};
    std::vector<Peer> idle;  // Closed after the lock is let go of: closing waits for a thread.
    MutexLock lock(mu_);
    for (auto peer = peers_.begin(); peer != peers_.end(); ++peer) {
      if (peer->address.host != address.host || peer->address.port != address.port) continue;
      std::rotate(peers_.begin(), peer, std::next(peer));
      return peers_.front().channel;
    }
    peers_.insert(peers_.begin(), Peer{address, std::make_shared<GrpcInterDatanode>(address, env_)});
    for (size_t i = peers_.size(); i-- > 1 && peers_.size() > kMostKept;) {
      if (peers_[i].channel.use_count() > 1) continue;  // In use: by nobody else's hands could it become so, this lock is held.
      idle.push_back(std::move(peers_[i]));
      peers_.erase(peers_.begin() + static_cast<ptrdiff_t>(i));
    }
    return peers_.front().channel;
  }

 private:
  static constexpr size_t kMostKept = 16;
  struct Peer {
    HostPort address;
    std::shared_ptr<api::InterDatanode> channel;
  };
  Env* const env_;
  Mutex mu_;
  std::vector<Peer> peers_ ABSL_GUARDED_BY(mu_);  // The last used first.
};

}  // namespace

std::unique_ptr<api::ClientNamenode> NewClientNamenode(HostPort namenode, Env* env) {
  return std::make_unique<GrpcClientNamenode>(std::move(namenode), env);
}
std::unique_ptr<api::DatanodeNamenode> NewDatanodeNamenode(HostPort namenode, const std::string& lane, Env* env) {
  return std::make_unique<GrpcDatanodeNamenode>(std::move(namenode), lane, env);
}
std::unique_ptr<api::NamenodeAdmin> NewNamenodeAdmin(HostPort namenode, Env* env) {
  return std::make_unique<GrpcNamenodeAdmin>(std::move(namenode), env);
}
std::unique_ptr<api::DatanodeAdmin> NewDatanodeAdmin(HostPort datanode, Env* env) {
  return std::make_unique<GrpcDatanodeAdmin>(std::move(datanode), env);
}
std::unique_ptr<api::InterDatanode> NewInterDatanode(HostPort datanode, Env* env) {
  return std::make_unique<GrpcInterDatanode>(std::move(datanode), env);
}
api::InterDatanodeResolver NewInterDatanodeResolver(Env* env) {
  auto channels = std::make_shared<PeerChannels>(env);
  return [channels](const v1::Endpoint& admin) { return channels->Find(admin); };
}

}  // namespace cairn::rpc
