#include "namenode/audit_log.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "common/error.h"
#include "namenode/frontdoor/audited_call.h"
#include "namenode/frontdoor/client_service.h"
#include "tests/namenode/front_door.h"
#include "tests/namenode/store_world.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> LinesOf(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Without the time that the log puts before.
std::string WithoutTime(const std::string& line) {
  const size_t at = line.find("FSNamesystem.audit: ");
  return at == std::string::npos ? line : line.substr(at + 20);
}

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() : executor_(&clock_) { options_.file = directory_.path() + "/audit.log"; }
  std::unique_ptr<AuditLog> Open() { return AuditLog::Open(options_, &executor_).value(); }

  const TemporaryDirectory directory_;
  ManualClock clock_;
  QueueExecutor executor_;
  AuditLog::Options options_;
};

TEST_F(AuditLogTest, LinesAreHdfss) {
  const auto log = Open();
  AuditLog::Event event;
  event.time = absl::FromUnixMillis(1'764'417'600'123);
  event.user = "ada";
  event.address = "10.0.0.1";
  event.command = "create";
  event.source = "/a b";
  event.permission = "ada:staff:" + PermissionText(0644);
  log->Write(event);
  event.command = "rename";
  event.destination = "/evil\nname\t";
  event.permission.clear();
  event.allowed = false;
  event.error = "kPermission";
  log->Write(event);
  EXPECT_TRUE(LinesOf(options_.file).empty());  // Not on the caller's thread.
  executor_.RunAll();
  EXPECT_THAT(
      LinesOf(options_.file),
      ElementsAre("2025-11-29 12:00:00,123 INFO FSNamesystem.audit: allowed=true\tugi=ada (auth:SIMPLE)\tip=/10.0.0.1\tcmd=create\t"
                  "src=/a b\tdst=null\tperm=ada:staff:rw-r--r--\tproto=rpc",
                  "2025-11-29 12:00:00,123 INFO FSNamesystem.audit: allowed=false\tugi=ada (auth:SIMPLE)\tip=/10.0.0.1\tcmd=rename\t"
                  "src=/a b\tdst=/evil\\x0aname\\x09\tperm=null\tproto=rpc\terror=kPermission"));
  EXPECT_EQ(log->written(), 2u);
  EXPECT_EQ(log->dropped(), 0u);
}

TEST_F(AuditLogTest, PermissionsReadAsLsHasThem) {
  EXPECT_EQ(PermissionText(0755), "rwxr-xr-x");
  EXPECT_EQ(PermissionText(0000), "---------");
  EXPECT_EQ(PermissionText(01777), "rwxrwxrwt");
  EXPECT_EQ(PermissionText(01770), "rwxrwx--T");
}

TEST_F(AuditLogTest, DropsAndCountsWhatADiskIsTooSlowForAndNeverWaits) {
  options_.max_queued = 10;
  const auto log = Open();
  for (int i = 0; i < 25; ++i) {
    AuditLog::Event event;
    event.source = fmt::format("/{}", i);
    log->Write(event);
  }
  EXPECT_EQ(log->dropped(), 15u);
  bool flushed = false;
  log->Flush([&] { flushed = true; });
  executor_.RunAll();
  EXPECT_TRUE(flushed);
  const auto lines = LinesOf(options_.file);
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_THAT(lines.back(), HasSubstr("src=/9\t"));
  log->Write(AuditLog::Event());
  executor_.RunAll();
  EXPECT_EQ(log->written(), 11u);
}

TEST_F(AuditLogTest, RotatesAndKeepsABoundedNumber) {
  options_.max_file_bytes = 2000;
  options_.max_files = 2;
  const auto log = Open();
  for (int i = 0; i < 100; ++i) {
    AuditLog::Event event;
    event.source = fmt::format("/{:0>100}", i);
    log->Write(event);
    executor_.RunAll();
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 3);
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) EXPECT_LE(entry.file_size(), 2300u);
}

TEST_F(AuditLogTest, AFileThatCannotBeWrittenIsNamedWithItsKey) {
  options_.file = "/proc/none/audit.log";
  const auto log = AuditLog::Open(options_, &executor_);
  EXPECT_EQ(KindOf(log.status()), ErrorKind::kInvalidArgument);
  EXPECT_THAT(std::string(log.status().message()), HasSubstr("/proc/none/audit.log"));
  EXPECT_EQ(ErrorOf(log.status())->key, "cairn.namenode.audit.file");
}

// The front door with an audit log.
class AuditedService : public AuditLogTest, protected FrontDoor {
 protected:
  AuditedService() : FrontDoor(4), log_(Open()) { service_.SetAuditLog(log_.get()); }

  template <class Request, class Response>
  absl::Status Call(void (ClientService::*call)(api::CallContext, Request, api::Done<Response>), Request request,
                    const std::string& client_id = std::string(kTestClientId)) {
    request = From("ada", "me", std::move(request));
    request.mutable_header()->set_client_id(client_id);
    api::CallContext context;
    context.peer = "ipv4:10.1.2.3:4567";
    return Send(call, std::move(request), std::move(context)).status();
  }
  absl::Status Mkdirs(const std::string& path) {
    v1::MkdirsRequest request;
    request.set_path(path);
    return Call(&ClientService::Mkdirs, request);
  }
  std::vector<std::string> Lines() {
    executor_.RunAll();
    std::vector<std::string> lines;
    for (const std::string& line : LinesOf(options_.file)) lines.push_back(WithoutTime(line));
    return lines;
  }
  static std::string Line(const std::string& command, const std::string& source, const std::string& rest) {
    return fmt::format("allowed=true\tugi=ada (auth:SIMPLE)\tip=/10.1.2.3\tcmd={}\tsrc={}\t{}", command, source, rest);
  }

  std::unique_ptr<AuditLog> log_;
};

TEST_F(AuditedService, OneLineForEachOperationAlsoForRefusedOnes) {
  ASSERT_THAT(Mkdirs("/a"), IsOk());
  v1::CreateRequest create;
  create.set_path("/a/f");
  create.set_umask(022);
  ASSERT_THAT(Call(&ClientService::Create, create), IsOk());
  v1::RenameRequest rename;
  rename.set_source("/a/f");
  rename.set_destination("/a/g");
  ASSERT_THAT(Call(&ClientService::Rename, rename), IsOk());
  v1::GetFileInfoRequest info;
  info.set_path("/none");
  EXPECT_FALSE(Call(&ClientService::GetFileInfo, info).ok());
  EXPECT_FALSE(Call(&ClientService::Create, create, "short id").ok());  // Refused before anything looks at the path.
  v1::RenewLeaseRequest renew;
  ASSERT_THAT(Call(&ClientService::RenewLease, renew), IsOk());  // Not audited, as in HDFS.
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], Line("mkdirs", "/a", "dst=null\tperm=null\tproto=rpc"));
  EXPECT_THAT(lines[1], HasSubstr("cmd=create\tsrc=/a/f\tdst=null\tperm=ada:"));
  EXPECT_THAT(lines[1], HasSubstr(":rw-r--r--\tproto=rpc"));
  EXPECT_EQ(lines[2], Line("rename", "/a/f", "dst=/a/g\tperm=null\tproto=rpc"));
  EXPECT_EQ(lines[3], Line("getfileinfo", "/none", "dst=null\tperm=null\tproto=rpc\terror=kNotFound"));
  EXPECT_EQ(lines[4], Line("create", "/a/f", "dst=null\tperm=null\tproto=rpc\terror=kInvalidArgument"));
}

TEST_F(AuditedService, DeleteManyHasALineForEachPath) {
  ASSERT_THAT(Mkdirs("/a"), IsOk());
  v1::DeleteManyRequest remove;
  remove.add_paths("/a");
  remove.add_paths("/none");
  ASSERT_THAT(Call(&ClientService::DeleteMany, remove), IsOk());
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], Line("delete", "/a", "dst=null\tperm=null\tproto=rpc"));
  EXPECT_EQ(lines[2], Line("delete", "/none", "dst=null\tperm=null\tproto=rpc\terror=kNotFound"));
}

TEST(AuditedCall, RefusalsForWantOfRightsAreNotAllowed) {
  ManualClock clock;
  QueueExecutor executor(&clock);
  const TemporaryDirectory directory;
  AuditLog::Options options;
  options.file = directory.path() + "/audit.log";
  const auto log = AuditLog::Open(options, &executor).value();
  v1::RenameRequest request;
  request.mutable_header()->set_user("eve");
  request.set_source("/s");
  request.set_destination("/d");
  request.set_overwrite(true);
  api::Done<v1::RenameResponse> done = Audited<v1::RenameRequest, v1::RenameResponse>(
      log.get(), &clock, "Rename", true, api::CallContext(), request, [](const absl::StatusOr<v1::RenameResponse>&) {});
  done(MakeError(ErrorKind::kPermission, "Permission denied"));
  executor.RunAll();
  EXPECT_THAT(LinesOf(options.file)[0],
              HasSubstr("allowed=false\tugi=eve (auth:SIMPLE)\tip=/\tcmd=rename (options=[OVERWRITE])\tsrc=/s\tdst=/d"
                        "\tperm=null\tproto=rpc\terror=kPermission"));
}

}  // namespace
}  // namespace cairn::namenode
