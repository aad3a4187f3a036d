// The front door with permissions on: who a call's user is, and that reads ask for his rights.

#include "namenode/frontdoor/client_service.h"
#include "tests/namenode/front_door.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

// The root is root's, who runs the NameNode. ada is in staff, sue in the supergroup, eve in nothing.
class ClientPermissions : public ::testing::Test, protected FrontDoor {
 protected:
  ClientPermissions() : FrontDoor(3, Options(&groups_)) { EXPECT_THAT(Mkdirs("root", "/home"), IsOk()); }

  template <class Request, class Response>
  absl::StatusOr<Response> Call(const std::string& user, void (ClientService::*call)(api::CallContext, Request, api::Done<Response>),
                                Request request) {
    return Send(call, From(user, "me", std::move(request)));
  }
  absl::Status Mkdirs(const std::string& user, const std::string& path, uint32_t mode = 0, uint32_t umask = 022) {
    v1::MkdirsRequest request;
    request.set_path(path);
    request.set_mode(mode);
    request.set_umask(umask);
    return Call(user, &ClientService::Mkdirs, request).status();
  }
  absl::Status Create(const std::string& user, const std::string& path, uint32_t mode = 0) {
    v1::CreateRequest request;
    request.set_path(path);
    request.set_mode(mode);
    request.set_umask(022);
    return Call(user, &ClientService::Create, request).status();
  }
  template <class Request, class Response>
  absl::Status Path(const std::string& user, void (ClientService::*call)(api::CallContext, Request, api::Done<Response>),
                    const std::string& path) {
    Request request;
    request.set_path(path);
    return Call(user, call, request).status();
  }

  static ClientService::Options Options(GroupMapping* groups) {
    ClientService::Options options;
    options.limits.permissions_enabled = true;
    options.superuser = "root";
    options.groups = groups;
    return options;
  }

  GroupMapping groups_{{.overrides = *ParseGroupOverrides("ada=staff;sue=supergroup,x;eve=")},
                       [](const std::string&) { return std::vector<std::string>(); },
                       &process_->clock()};
};

TEST_F(ClientPermissions, OnlySuperusersWriteWhereOthersMayNot) {
  const absl::Status denied = Mkdirs("ada", "/home/ada");
  EXPECT_THAT(denied, HasKind(ErrorKind::kPermission));
  EXPECT_EQ(denied.message(), "Permission denied: user=ada, access=WRITE, inode=\"/home\":root:staff:drwxr-xr-x");
  EXPECT_THAT(Mkdirs("sue", "/home/sue"), IsOk());
  EXPECT_THAT(Create("eve", "/f"), HasKind(ErrorKind::kPermission));
  EXPECT_THAT(Path("eve", &ClientService::Delete, "/home"), HasKind(ErrorKind::kPermission));
}

TEST_F(ClientPermissions, GroupsComeWithTheUser) {
  EXPECT_THAT(Mkdirs("root", "/shared", 0775, 0), IsOk());  // Of group staff, as the root.
  EXPECT_THAT(Mkdirs("ada", "/shared/a"), IsOk());
  EXPECT_THAT(Mkdirs("eve", "/shared/e"), HasKind(ErrorKind::kPermission));
}

TEST_F(ClientPermissions, ReadsAskForTheirRights) {
  EXPECT_THAT(Mkdirs("root", "/secret", 0711, 0), IsOk());
  EXPECT_THAT(Create("root", "/secret/f", 0640), IsOk());
  for (const char* user : {"root", "sue"}) {
    EXPECT_THAT(Path(user, &ClientService::List, "/secret"), IsOk());
    EXPECT_THAT(Path(user, &ClientService::GetContentSummary, "/secret"), IsOk());
    EXPECT_THAT(Path(user, &ClientService::GetBlockLocations, "/secret/f"), IsOk());
  }
  EXPECT_THAT(Path("eve", &ClientService::GetFileInfo, "/secret/f"), IsOk());  // x is enough.
  EXPECT_THAT(Path("eve", &ClientService::List, "/secret"), HasKind(ErrorKind::kPermission));
  EXPECT_THAT(Path("eve", &ClientService::GetContentSummary, "/secret"), HasKind(ErrorKind::kPermission));
  EXPECT_THAT(Path("eve", &ClientService::GetBlockLocations, "/secret/f"), HasKind(ErrorKind::kPermission));
  EXPECT_THAT(Path("", &ClientService::GetBlockLocations, "/secret/f"), HasKind(ErrorKind::kPermission));
  EXPECT_THAT(Path("ada", &ClientService::GetBlockLocations, "/secret/f"), IsOk());  // By her group.
}

}  // namespace
}  // namespace cairn::namenode
