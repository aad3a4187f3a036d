#include "tests/testing/mini_cluster.h"

#include <map>
#include <utility>

#include "common/check.h"
#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace/checker.h"
#include "namenode/namespace_copy.h"

namespace cairn::testing {
namespace {

class DirectDatanodeNamenode : public api::DatanodeNamenode {
 public:
  explicit DirectDatanodeNamenode(api::DatanodeNamenode* target) : target_(target) {}
#define CAIRN_FORWARD_CALL(Name)                                                                                \
  void Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) override { \
    target_->Name(std::move(context), std::move(request), std::move(done));                                     \
  }
  CAIRN_DATANODE_NAMENODE_CALLS(CAIRN_FORWARD_CALL)
#undef CAIRN_FORWARD_CALL
  std::shared_ptr<api::MessageSink<v1::ReportUp>> Reports(api::CallContext context,
                                                          std::shared_ptr<api::MessageHandler<v1::ReportDown>> handler) override {
    return target_->Reports(std::move(context), std::move(handler));
  }
  std::shared_ptr<api::MessageSink<v1::CommandUp>> Commands(api::CallContext context,
                                                            std::shared_ptr<api::MessageHandler<v1::CommandDown>> handler) override {
    return target_->Commands(std::move(context), std::move(handler));
  }

 private:
  api::DatanodeNamenode* const target_;
};

// Where DataNodes find one another, by made-up ports. Thread-safe; a call holds the lock, so that none is under way after Withdraw.
class PeerBook {
 public:
  HostPort Add(api::InterDatanode* peer) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    peers_[++last_port_] = peer;
    return {"127.0.0.1", last_port_};
  }
  void Remove(const HostPort& address) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    peers_.erase(address.port);
  }
  template <class Request, class Response>
  void Call(uint32_t port, void (api::InterDatanode::*method)(api::CallContext, Request, api::Done<Response>), api::CallContext context,
            Request request, api::Done<Response> done) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      MutexLock lock(mu_);
      const auto found = peers_.find(port);
      if (found != peers_.end()) return (found->second->*method)(std::move(context), std::move(request), std::move(done));
    }
    done(absl::UnavailableError("connection refused"));
  }

 private:
  Mutex mu_;
  std::map<uint32_t, api::InterDatanode*> peers_ ABSL_GUARDED_BY(mu_);
  uint16_t last_port_ ABSL_GUARDED_BY(mu_) = 0;
};

class DirectInterDatanode : public api::InterDatanode {
 public:
  DirectInterDatanode(std::shared_ptr<PeerBook> book, uint32_t port) : book_(std::move(book)), port_(port) {}
#define CAIRN_FORWARD_CALL(Name)                                                                                      \
  void Name(api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) override {       \
    book_->Call<v1::Name##Request, v1::Name##Response>(port_, &api::InterDatanode::Name, std::move(context), std::move(request), \
                                                       std::move(done));                                              \
  }
  CAIRN_INTER_DATANODE_CALLS(CAIRN_FORWARD_CALL)
#undef CAIRN_FORWARD_CALL

 private:
  const std::shared_ptr<PeerBook> book_;
  const uint32_t port_;
};

class DirectTransport : public MiniClusterTransport {
 public:
  absl::Status Serve(namenode::Namenode* namenode) override {
    namenode_ = namenode;
    return absl::OkStatus();
  }
  void Withdraw() override { namenode_ = nullptr; }
  datanode::NamenodeChannels Channels() override {
    const auto channel = [this] { return std::make_unique<DirectDatanodeNamenode>(namenode_->datanode_api()); };
    return {channel(), channel(), channel(), channel()};
  }
  datanode::DatanodePeers Peers() override {
    datanode::DatanodePeers peers;
    auto address = std::make_shared<HostPort>();
    peers.serve = [book = book_, address](api::DatanodeAdmin*, api::InterDatanode* peer) -> absl::StatusOr<HostPort> {
      *address = book->Add(peer);
      return *address;
    };
    peers.withdraw = [book = book_, address] { book->Remove(*address); };
    peers.resolve = [book = book_](const v1::Endpoint& admin) { return std::make_shared<DirectInterDatanode>(book, admin.port()); };
    return peers;
  }

 private:
  const std::shared_ptr<PeerBook> book_ = std::make_shared<PeerBook>();
  namenode::Namenode* namenode_ = nullptr;
};

}  // namespace

std::unique_ptr<MiniClusterTransport> NewDirectTransport() { return std::make_unique<DirectTransport>(); }

MiniCluster::MiniCluster(MiniClusterOptions options, MiniClusterTransport* transport, Env* env)
    : options_(std::move(options)), transport_(transport), env_(env), nodes_(options_.datanodes) {}

MiniCluster::~MiniCluster() {
  for (size_t i = 0; i < nodes_.size(); ++i) StopDatanode(i);
  StopNamenode();
  if (options_.check_namespace) CheckNamespace();
}

void MiniCluster::CheckNamespace() const {
  const auto copy = namenode::NamespaceCopy::Open(options_.directory + "/namenode", env_);
  if (KindOf(copy.status()) == ErrorKind::kNotFound) return;  // It never came so far.
  CAIRN_CHECK(copy.ok(), "the namespace does not open: " + copy.status().ToString());
  std::string first;
  const auto summary = namenode::CheckNamespace(copy->view(), [&first](const namenode::Violation& violation) {
    if (first.empty()) first = namenode::ToString(violation);
  });
  CAIRN_CHECK(summary.ok(), "the namespace cannot be read: " + summary.status().ToString());
  CAIRN_CHECK(summary->violations == 0, "the namespace is not sound: " + first);
}

absl::StatusOr<std::unique_ptr<MiniCluster>> MiniCluster::Start(MiniClusterOptions options, MiniClusterTransport* transport, Env* env) {
  std::unique_ptr<MiniCluster> cluster(new MiniCluster(std::move(options), transport, env));
  const std::string directory = cluster->options_.directory + "/namenode";
  ASSIGN_OR_RETURN(const bool formatted, env->files().Exists(directory + "/VERSION"));
  if (!formatted) RETURN_IF_ERROR(namenode::NamenodeDirectory::Format(directory, {}, env));
  RETURN_IF_ERROR(cluster->StartNamenode());
  for (size_t i = 0; i < cluster->nodes_.size(); ++i) RETURN_IF_ERROR(cluster->StartDatanode(i));
  RETURN_IF_ERROR(cluster->WaitReady(absl::Minutes(1)));
  return cluster;
}

std::string MiniCluster::data_directory(size_t index) const { return options_.directory + "/datanode" + std::to_string(index) + "/data"; }

absl::Status MiniCluster::StartNamenode() {
  namenode::NamenodeOptions options;
  options.directory = options_.directory + "/namenode";
  options.store.block_cache_bytes = 32 << 20;
  options.replicas.block_cache_bytes = 16 << 20;
  options.replicas.heartbeat_interval = absl::Seconds(1);
  options.clients.limits.min_block_size_bytes = 4096;
  options.software_version = "minicluster";
  if (options_.namenode) options_.namenode(&options);
  namenode_registry_ = std::make_unique<metrics::Registry>();
  ASSIGN_OR_RETURN(namenode_, namenode::Namenode::Start(std::move(options), env_, namenode_registry_.get()));
  return transport_->Serve(namenode_.get());
}

void MiniCluster::StopNamenode() {
  if (namenode_ == nullptr) return;
  transport_->Withdraw();
  namenode_.reset();
}

absl::Status MiniCluster::StartDatanode(size_t index) {
  datanode::DatanodeOptions options;
  options.storage.directories = {data_directory(index)};
  options.transfer_bind = {"127.0.0.1", 0};
  options.transfer_advertised = {"127.0.0.1", 0};
  options.http_advertised = {"127.0.0.1", 0};
  options.admin_advertised = {"127.0.0.1", 0};
  options.peers = transport_->Peers();
  if (options_.datanode) options_.datanode(index, &options);
  nodes_[index].registry = std::make_unique<metrics::Registry>();
  ASSIGN_OR_RETURN(nodes_[index].datanode,
                   datanode::Datanode::Start(std::move(options), transport_->Channels(), env_, nodes_[index].registry.get()));
  return absl::OkStatus();
}

void MiniCluster::StopDatanode(size_t index) { nodes_[index].datanode.reset(); }

absl::Status MiniCluster::WaitReady(absl::Duration limit) {
  const SteadyTime deadline = env_->clock().Now() + limit;
  for (const Node& node : nodes_) {
    if (node.datanode == nullptr) continue;
    // Nobody wakes us when a lane has registered: look again now and then.
    while (!node.datanode->Ready().ok()) {
      if (env_->clock().Now() > deadline) return node.datanode->Ready();
      env_->BlockUntil([] { return false; }, env_->clock().Now() + absl::Milliseconds(10));
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn::testing
