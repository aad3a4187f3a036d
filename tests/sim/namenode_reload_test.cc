// Keys that a NameNode takes over while it runs: the file is changed, `-reconfig ... start` is asked for, and calls behave accordingly.

#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config.h"
#include "common/error.h"
#include "common/metrics.h"
#include "common/reconfiguration.h"
#include "namenode/namenode.h"
#include "namenode/namenode_directory.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sim_world.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::HasSubstr;

constexpr char kBase[] = "hadoop.user.group.static.mapping.overrides: ada=users;root2=wheel\n";

class NamenodeReload : public ::testing::Test {
 protected:
  NamenodeReload() {
    EXPECT_THAT(NamenodeDirectory::Format("/namenode", {}, process_), IsOk());
    Config config = *Load();
    NamenodeOptions options = NamenodeOptionsFrom(config);
    options.directory = "/namenode";
    options.store.simulated = true;
    options.store.block_cache_bytes = 8 << 20;
    options.replicas.block_cache_bytes = 4 << 20;
    options.clients.superuser = "operator";
    namenode_ = Namenode::Start(std::move(options), process_, &registry_).value();
    reconfiguration_ = std::make_unique<Reconfiguration>(std::move(config), [this] { return Load(); }, &process_->clock());
    namenode_->UseReconfiguration(reconfiguration_.get());
    v1::MkdirsRequest open;
    open.set_path("/open");
    open.set_mode(0777);
    EXPECT_THAT(Mutate("operator", &api::ClientNamenode::Mkdirs, open), IsOk());
  }
  ~NamenodeReload() override { namenode_.reset(); }

  absl::StatusOr<Config> Load() {
    Config config;
    if (absl::Status status = config.AddYaml(kBase + file_, "cairn.yaml"); !status.ok()) return status;
    return config;
  }
  // Changes the file and has it taken over, as the command line does. Every key in it must have been taken.
  void Reload(const std::string& file, const std::string& user = "operator") {
    file_ = file;
    v1::ReconfigureRequest request;
    request.mutable_header()->set_user(user);
    request.set_action(v1::ReconfigureRequest::START);
    std::optional<absl::StatusOr<v1::ReconfigureResponse>> answer;
    namenode_->admin_api()->Reconfigure(api::CallContext(), request,
                                        [&](absl::StatusOr<v1::ReconfigureResponse> response) { answer = std::move(response); });
    world_.RunUntil([&] { return answer.has_value(); }, absl::Minutes(1));
    ASSERT_TRUE(answer && answer->ok());
    EXPECT_EQ((*answer)->error(), "");
    EXPECT_GT((*answer)->changes_size(), 0);
    for (const v1::ReconfigureResponse::Change& change : (*answer)->changes()) EXPECT_TRUE(change.taken()) << change.key();
  }

  template <class Request, class Response>
  absl::StatusOr<Response> Ask(const std::string& user, void (api::ClientNamenode::*call)(api::CallContext, Request, api::Done<Response>),
                               Request request, const std::string& client = "") {
    request.mutable_header()->set_client_id(std::string(kTestClientId));
    request.mutable_header()->set_user(user);
    request.mutable_header()->set_client_name(client);
    std::optional<absl::StatusOr<Response>> answer;
    (namenode_->client_api()->*call)(api::CallContext(), std::move(request),
                                     [&](absl::StatusOr<Response> response) { answer = std::move(response); });
    world_.RunUntil([&] { return answer.has_value(); }, absl::Seconds(10));
    return answer ? *std::move(answer) : absl::DeadlineExceededError("not answered");
  }
  template <class Request, class Response>
  absl::Status Mutate(const std::string& user, void (api::ClientNamenode::*call)(api::CallContext, Request, api::Done<Response>),
                      Request request, const std::string& client = "") {
    return Ask(user, call, std::move(request), client).status();
  }
  absl::Status Mkdirs(const std::string& user, const std::string& path) {
    v1::MkdirsRequest request;
    request.set_path(path);
    request.set_create_parent(true);
    return Mutate(user, &api::ClientNamenode::Mkdirs, request);
  }
  absl::Status Create(const std::string& client, const std::string& path) {
    v1::CreateRequest request;
    request.set_path(path);
    return Mutate("ada", &api::ClientNamenode::Create, request, client);
  }
  absl::Status Append(const std::string& client, const std::string& path) {
    v1::AppendRequest request;
    request.set_path(path);
    return Mutate("ada", &api::ClientNamenode::Append, request, client);
  }
  // Says below what the client's silences stay; the limit that it is told.
  absl::Duration Renew(const std::string& client, absl::Duration renews_within) {
    v1::RenewLeaseRequest request;
    request.set_renews_within_ms(absl::ToInt64Milliseconds(renews_within));
    const auto renewed = Ask("ada", &api::ClientNamenode::RenewLease, request, client);
    EXPECT_THAT(renewed, IsOk());
    return renewed.ok() ? absl::Milliseconds(renewed->lease_soft_limit_ms()) : absl::ZeroDuration();
  }
  bool IsOpen(const std::string& path) {
    v1::GetFileInfoRequest request;
    request.set_path(path);
    const auto info = Ask("ada", &api::ClientNamenode::GetFileInfo, request);
    return info.ok() && info->status().under_construction();
  }

  SimWorld world_{SimOptions{.seed = 1}};
  SimProcess* process_ = world_.AddMachine("namenode")->StartProcess();
  metrics::Registry registry_;
  std::string file_;
  std::unique_ptr<Reconfiguration> reconfiguration_;
  std::unique_ptr<Namenode> namenode_;
};

TEST_F(NamenodeReload, TheSoftLimitOfLeases) {
  ASSERT_THAT(Create("writer", "/open/f"), IsOk());
  world_.RunFor(absl::Seconds(20));
  EXPECT_THAT(std::string(Append("other", "/open/f").message()), HasSubstr("it may be taken over after 60 s"));
  Reload("cairn.namenode.lease-soft-limit: 30s\n");
  // Its writer has not heard of it yet.
  EXPECT_THAT(std::string(Append("other", "/open/f").message()), HasSubstr("it may be taken over after 60 s"));
  EXPECT_EQ(Renew("writer", absl::Seconds(60)), absl::Seconds(30));
  EXPECT_THAT(std::string(Append("other", "/open/f").message()), HasSubstr("it may be taken over after 60 s"));
  EXPECT_EQ(Renew("writer", absl::Seconds(30)), absl::Seconds(30));
  EXPECT_THAT(std::string(Append("other", "/open/f").message()), HasSubstr("it may be taken over after 30 s"));
  world_.RunFor(absl::Seconds(29));
  EXPECT_THAT(std::string(Append("other", "/open/f").message()), HasSubstr("it may be taken over after 30 s"));
  world_.RunFor(absl::Seconds(2));
  EXPECT_THAT(Append("other", "/open/f"), IsOk());
}

TEST_F(NamenodeReload, TheHardLimitOfLeases) {
  ASSERT_THAT(Create("writer", "/open/f"), IsOk());
  world_.RunFor(absl::Minutes(3));
  EXPECT_TRUE(IsOpen("/open/f"));
  Reload("dfs.namenode.lease-hard-limit-sec: 120s\n");
  world_.RunFor(absl::Seconds(30));
  EXPECT_FALSE(IsOpen("/open/f"));
  // And up again.
  Reload("dfs.namenode.lease-hard-limit-sec: 600s\n");
  ASSERT_THAT(Create("writer", "/open/g"), IsOk());
  world_.RunFor(absl::Minutes(9));
  EXPECT_TRUE(IsOpen("/open/g"));
  world_.RunFor(absl::Minutes(2));
  EXPECT_FALSE(IsOpen("/open/g"));
}

TEST_F(NamenodeReload, HowMuchOneListingAnswers) {
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_THAT(Mkdirs("ada", std::string("/open/") + name), IsOk());
  v1::ListRequest request;
  request.set_path("/open");
  EXPECT_EQ(Ask("ada", &api::ClientNamenode::List, request)->entries_size(), 4);
  Reload("dfs.ls.limit: 3\n");
  auto listing = Ask("ada", &api::ClientNamenode::List, request);
  EXPECT_EQ(listing->entries_size(), 3);
  EXPECT_TRUE(listing->has_more());
  request.set_limit(100);
  EXPECT_EQ(Ask("ada", &api::ClientNamenode::List, request)->entries_size(), 3);
}

TEST_F(NamenodeReload, WhenANodeIsSlow) {
  const auto beat = [this](uint64_t node, const std::string& slow_peer) {
    v1::HeartbeatRequest request;
    request.set_datanode_uuid("u" + std::to_string(node));
    request.set_incarnation(node);
    if (!slow_peer.empty()) request.add_slow_peers()->set_datanode_uuid(slow_peer);
    std::optional<absl::StatusOr<v1::HeartbeatResponse>> answer;
    namenode_->datanode_api()->Heartbeat(api::CallContext(), request,
                                         [&](absl::StatusOr<v1::HeartbeatResponse> r) { answer = std::move(r); });
    world_.RunUntil([&] { return answer.has_value(); }, absl::Seconds(1));
    EXPECT_THAT(answer->status(), IsOk());
    return answer->ok() && (*answer)->slow();
  };
  for (uint64_t node = 1; node <= 4; ++node) {
    v1::RegisterRequest request;
    request.set_datanode_uuid("u" + std::to_string(node));
    request.set_incarnation(node);
    request.mutable_info()->mutable_transfer()->set_host("h" + std::to_string(node));
    bool registered = false;
    namenode_->datanode_api()->Register(api::CallContext(), request, [&](const auto& answer) { registered = answer.ok(); });
    world_.RunUntil([&] { return registered; }, absl::Seconds(1));
  }
  const auto is_slow = [&] {
    for (int i = 0; i < 3; ++i) {
      beat(1, "u3");
      world_.RunFor(absl::Seconds(1));
    }
    return beat(3, "");
  };
  EXPECT_FALSE(is_slow());
  Reload("cairn.namenode.slow-node.reporters: 1\n");
  EXPECT_TRUE(is_slow());
  Reload("cairn.namenode.slow-node.reporters: 1\ndfs.namenode.max.slowpeer.collect.nodes: 0\n");
  EXPECT_FALSE(is_slow());
  // Whether it is avoided is another matter.
  Reload("cairn.namenode.slow-node.reporters: 1\ndfs.namenode.block-placement-policy.exclude-slow-nodes.enabled: false\n");
  EXPECT_TRUE(is_slow());
}

TEST_F(NamenodeReload, WhetherRightsAreChecked) {
  EXPECT_THAT(Mkdirs("ada", "/mine"), HasKind(ErrorKind::kPermission));
  Reload("dfs.permissions.enabled: false\n");
  EXPECT_THAT(Mkdirs("ada", "/mine"), IsOk());
  Reload("dfs.permissions.enabled: true\n");
  EXPECT_THAT(Mkdirs("ada", "/yours"), HasKind(ErrorKind::kPermission));
}

TEST_F(NamenodeReload, TheGroupOfSuperusers) {
  EXPECT_THAT(Mkdirs("root2", "/mine"), HasKind(ErrorKind::kPermission));
  Reload("dfs.permissions.superusergroup: wheel\n");
  EXPECT_THAT(Mkdirs("root2", "/mine"), IsOk());
  EXPECT_THAT(Mkdirs("ada", "/yours"), HasKind(ErrorKind::kPermission));
  EXPECT_THAT(Mkdirs("operator", "/ours"), IsOk());             // Who runs it stays one.
  Reload("dfs.permissions.superusergroup: nobody\n", "root2");  // Also of the administration, while he is one.
  EXPECT_THAT(Mkdirs("root2", "/again"), HasKind(ErrorKind::kPermission));
}

TEST_F(NamenodeReload, TheTrash) {
  ASSERT_THAT(Mkdirs("operator", "/user/ada/.Trash/Current/x"), IsOk());
  const auto current = [&] {
    v1::GetFileInfoRequest request;
    request.set_path("/user/ada/.Trash/Current");
    return Ask("operator", &api::ClientNamenode::GetFileInfo, request).status();
  };
  world_.RunFor(absl::Hours(2));
  EXPECT_THAT(current(), IsOk());  // No trash, so nobody empties it.
  EXPECT_EQ(Ask("ada", &api::ClientNamenode::GetServerDefaults, v1::GetServerDefaultsRequest())->trash_interval_ms(), 0);
  Reload("fs.trash.interval: 120m\nfs.trash.checkpoint.interval: 60m\n");
  EXPECT_EQ(Ask("ada", &api::ClientNamenode::GetServerDefaults, v1::GetServerDefaultsRequest())->trash_interval_ms(), 7'200'000);
  world_.RunFor(absl::Minutes(61));
  EXPECT_THAT(current(), HasKind(ErrorKind::kNotFound));  // A checkpoint now.
  Reload("fs.trash.interval: 0\n");
  ASSERT_THAT(Mkdirs("operator", "/user/ada/.Trash/Current/y"), IsOk());
  world_.RunFor(absl::Hours(3));
  EXPECT_THAT(current(), IsOk());
}

TEST_F(NamenodeReload, LimitsOfNamesAndAttributes) {
  v1::SetXattrRequest attribute;
  attribute.set_path("/open");
  attribute.mutable_xattr()->set_name_space(v1::XATTR_USER);
  attribute.mutable_xattr()->set_name("origin");
  attribute.mutable_xattr()->set_value("a value of some length");
  attribute.set_create(true);
  attribute.set_replace(true);
  EXPECT_THAT(Mkdirs("ada", "/open/a:b"), IsOk());
  EXPECT_THAT(Mutate("operator", &api::ClientNamenode::SetXattr, attribute), IsOk());
  Reload("cairn.namenode.fs-limits.forbidden-characters: ':'\ndfs.namenode.fs-limits.max-xattr-size: 10\n");
  EXPECT_THAT(Mkdirs("ada", "/open/c:d"), HasReason("FORBIDDEN_CHARACTER"));
  EXPECT_THAT(Mutate("operator", &api::ClientNamenode::SetXattr, attribute), HasKind(ErrorKind::kQuota));
}

}  // namespace
}  // namespace cairn::namenode
