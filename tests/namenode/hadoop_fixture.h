#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "common/api/admin.h"
#include "common/hadoop_ipc/call.h"
#include "hdfs/client_protocol.pb.h"
#include "namenode/frontdoor/hadoop_door.h"
#include "tests/namenode/front_door.h"

namespace cairn::namenode {

// Has a report of the cluster, and refuses everything else.
class ReportingAdmin : public api::NamenodeAdmin {
 public:
#define CAIRN_ANSWER(Name) \
  void Name(api::CallContext, v1::Name##Request, api::Done<v1::Name##Response> done) override { Answer(std::move(done)); }
  CAIRN_NAMENODE_ADMIN_CALLS(CAIRN_ANSWER)
#undef CAIRN_ANSWER

  absl::StatusOr<v1::ClusterReportResponse> report = v1::ClusterReportResponse();

 private:
  void Answer(api::Done<v1::ClusterReportResponse> done) { done(report); }
  template <class Response>
  void Answer(api::Done<Response> done) {
    done(absl::UnimplementedError("not here"));
  }
};

// For a fixture to be made of: the front door of stock clients over that of native ones.
class HadoopFixture : protected FrontDoor {
 protected:
  explicit HadoopFixture(uint32_t storages, const ClientService::Options& options = {}) : FrontDoor(storages, options), door_(Parts()) {}

  // Under the next call id unless one is given.
  ipc::Call NewCall(const std::string& method, const google::protobuf::MessageLite& request, std::optional<int32_t> id = std::nullopt) {
    ipc::Call call;
    call.id = id.value_or(next_id_++);
    call.client_id = "0123456789abcdef";
    call.protocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
    call.version = 1;
    call.method = method;
    call.request = request.SerializeAsString();
    return call;
  }
  // A call of root. `retry_count` as the client counts.
  ipc::Answer Send(const std::string& method, const google::protobuf::MessageLite& request, std::optional<int32_t> id = std::nullopt,
                   int32_t retry_count = 0) {
    ipc::Call call = NewCall(method, request, id);
    call.retry_count = retry_count;
    return Send(std::move(call));
  }
  ipc::Answer Send(ipc::Call call, const std::string& user = "root") {
    std::optional<ipc::Answer> answer;
    api::CallContext context;
    context.peer = "10.0.0.9:1234";
    door_.Handle({user, ""}, std::move(call), std::move(context), [&](ipc::Answer given) { answer = std::move(given); });
    world_.RunUntil([&] { return answer.has_value(); }, absl::Seconds(10));
    EXPECT_TRUE(answer.has_value()) << "not answered";
    return answer.value_or(ipc::Answer(ipc::Failure{"", "not answered"}));
  }

  // The response, which has to be complete; of an error an empty one, after a failed expectation.
  template <class Response>
  Response Ask(const std::string& method, const google::protobuf::MessageLite& request, std::optional<int32_t> id = std::nullopt,
               int32_t retry_count = 0) {
    const ipc::Answer answer = Send(method, request, id, retry_count);
    Response response;
    if (const auto* failure = std::get_if<ipc::Failure>(&answer)) {
      ADD_FAILURE() << method << ": " << failure->exception << ": " << failure->message;
    } else {
      EXPECT_TRUE(response.ParseFromString(std::get<std::string>(answer))) << method;
    }
    return response;
  }
  bool AskBool(const std::string& method, const google::protobuf::MessageLite& request, std::optional<int32_t> id = std::nullopt,
               int32_t retry_count = 0) {
    return Ask<hdfs::BoolResponseProto>(method, request, id, retry_count).result();
  }
  // The simple name of the exception, or "none".
  std::string ExceptionOf(const std::string& method, const google::protobuf::MessageLite& request) {
    const ipc::Answer answer = Send(method, request);
    if (!std::holds_alternative<ipc::Failure>(answer)) return "none";
    const std::string& name = std::get<ipc::Failure>(answer).exception;
    return name.substr(name.rfind('.') + 1);
  }

  static hdfs::PathRequestProto Path(const std::string& path) {
    hdfs::PathRequestProto request;
    request.set_src(path);
    return request;
  }
  bool Mkdirs(const std::string& path) {
    hdfs::MkdirsRequestProto request;
    request.set_src(path);
    request.mutable_masked()->set_perm(0755);
    request.set_createparent(true);
    return AskBool("mkdirs", request);
  }
  static hdfs::CreateRequestProto Create(const std::string& path, uint32_t flags = 1, const std::string& client = "writer") {
    hdfs::CreateRequestProto request;
    request.set_src(path);
    request.mutable_masked()->set_perm(0644);
    request.set_clientname(client);
    request.set_createflag(flags);
    request.set_createparent(true);
    request.set_replication(3);
    request.set_blocksize(1 << 20);
    return request;
  }
  static hdfs::AddBlockRequestProto AddBlock(const std::string& path, uint64_t file, const hdfs::ExtendedBlockProto* previous) {
    hdfs::AddBlockRequestProto request;
    request.set_src(path);
    request.set_clientname("writer");
    request.set_fileid(file);
    if (previous != nullptr) *request.mutable_previous() = *previous;
    return request;
  }
  static hdfs::CompleteRequestProto Complete(const std::string& path, uint64_t file, const hdfs::ExtendedBlockProto* last) {
    hdfs::CompleteRequestProto request;
    request.set_src(path);
    request.set_clientname("writer");
    request.set_fileid(file);
    if (last != nullptr) *request.mutable_last() = *last;
    return request;
  }
  // A file of one block of so many bytes; 0: of none.
  void WriteFile(const std::string& path, uint64_t bytes = 0) {
    const uint64_t file = Ask<hdfs::FileStatusResponseProto>("create", Create(path)).fs().fileid();
    if (bytes == 0) {
      EXPECT_TRUE(AskBool("complete", Complete(path, file, nullptr)));
      return;
    }
    hdfs::ExtendedBlockProto block = Ask<hdfs::LocatedBlockResponseProto>("addBlock", AddBlock(path, file, nullptr)).block().b();
    block.set_numbytes(bytes);
    EXPECT_TRUE(AskBool("complete", Complete(path, file, &block)));
  }
  hdfs::FileStatusResponseProto StatusOf(const std::string& path) { return Ask<hdfs::FileStatusResponseProto>("getFileInfo", Path(path)); }
  bool Exists(const std::string& path) { return StatusOf(path).has_fs(); }
  hdfs::LocatedBlocksProto LocationsOf(const std::string& path, uint64_t offset, uint64_t length) {
    hdfs::GetBlockLocationsRequestProto request;
    request.set_src(path);
    request.set_offset(offset);
    request.set_length(length);
    return Ask<hdfs::GetBlockLocationsResponseProto>("getBlockLocations", request).locations();
  }

  HadoopDoor::Parts Parts() {
    HadoopDoor::Parts parts;
    parts.clients = &service_;
    parts.admin = &admin_;
    parts.space = &access_;
    parts.replicas = &replicas_;
    parts.reader = reader_.get();
    parts.clock = &process_->clock();
    parts.pool_id = Identity().pool_id;
    return parts;
  }

  ReportingAdmin admin_;
  HadoopDoor door_;
  int32_t next_id_ = 0;
};

}  // namespace cairn::namenode
