// The interfaces of common/api over GrpcChannel, made from their own lists of calls.

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

#undef CAIRN_DEFINE_CALL

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

}  // namespace cairn::rpc
