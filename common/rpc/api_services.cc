#include "common/rpc/api_services.h"

#include "common/rpc/service_names.h"

namespace cairn::rpc {
namespace {

// Both ends of a stream see the api's one shape (a handler in, a sink out), so the server joins its own pair crosswise.
template <class Down>
class DownToCaller : public api::MessageHandler<Down> {
 public:
  explicit DownToCaller(std::shared_ptr<api::MessageSink<Down>> caller) : caller_(std::move(caller)) {}
  void OnMessage(Down message) override { caller_->Send(std::move(message)); }
  void OnClosed(absl::Status status) override { caller_->Close(std::move(status)); }

 private:
  std::shared_ptr<api::MessageSink<Down>> caller_;
};

template <class Up>
class UpToApi : public api::MessageHandler<Up> {
 public:
  explicit UpToApi(std::shared_ptr<api::MessageSink<Up>> api) : api_(std::move(api)) {}
  void OnMessage(Up message) override { api_->Send(std::move(message)); }
  void OnClosed(absl::Status status) override { api_->Close(std::move(status)); }

 private:
  std::shared_ptr<api::MessageSink<Up>> api_;
};

}  // namespace

#define CAIRN_SERVE_CALL(Name)                                                                                                       \
  server->AddUnary<v1::Name##Request, v1::Name##Response>(                                                                           \
      std::string(service) + #Name, [api](api::CallContext context, v1::Name##Request request, api::Done<v1::Name##Response> done) { \
        api->Name(std::move(context), std::move(request), std::move(done));                                                          \
      });

void Serve(GrpcServer* server, api::ClientNamenode* api) {
  const char* const service = kClientNamenode;
  CAIRN_CLIENT_NAMENODE_CALLS(CAIRN_SERVE_CALL)
}

void Serve(GrpcServer* server, api::DatanodeNamenode* api) {
  const char* const service = kDatanodeNamenode;
  CAIRN_DATANODE_NAMENODE_CALLS(CAIRN_SERVE_CALL)
  server->AddStream<v1::ReportUp, v1::ReportDown>(
      std::string(service) + "Reports", [api](api::CallContext context, std::shared_ptr<api::MessageSink<v1::ReportDown>> sink) {
        return std::make_shared<UpToApi<v1::ReportUp>>(
            api->Reports(std::move(context), std::make_shared<DownToCaller<v1::ReportDown>>(std::move(sink))));
      });
  server->AddStream<v1::CommandUp, v1::CommandDown>(
      std::string(service) + "Commands", [api](api::CallContext context, std::shared_ptr<api::MessageSink<v1::CommandDown>> sink) {
        return std::make_shared<UpToApi<v1::CommandUp>>(
            api->Commands(std::move(context), std::make_shared<DownToCaller<v1::CommandDown>>(std::move(sink))));
      });
}

void Serve(GrpcServer* server, api::NamenodeAdmin* api) {
  const char* const service = kNamenodeAdmin;
  CAIRN_NAMENODE_ADMIN_CALLS(CAIRN_SERVE_CALL)
}

void Serve(GrpcServer* server, api::DatanodeAdmin* api) {
  const char* const service = kDatanodeAdmin;
  CAIRN_DATANODE_ADMIN_CALLS(CAIRN_SERVE_CALL)
}

void Serve(GrpcServer* server, api::InterDatanode* api) {
  const char* const service = kInterDatanode;
  CAIRN_INTER_DATANODE_CALLS(CAIRN_SERVE_CALL)
}

#undef CAIRN_SERVE_CALL

}  // namespace cairn::rpc
