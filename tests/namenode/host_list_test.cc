#include "namenode/replicas/host_list.h"

#include <gtest/gtest.h>

#include "common/error.h"

namespace cairn::namenode {
namespace {

TEST(HostList, ReadsWordsCommentsAndPorts) {
  const absl::StatusOr<HostList> list = HostList::Parse("a b:9866\n# all of it\n\tC.Example.Com  # the last\n", "b");
  ASSERT_TRUE(list.ok()) << list.status();
  const auto at = [](const std::string& host, uint32_t port) {
    v1::Endpoint endpoint;
    endpoint.set_host(host);
    endpoint.set_port(port);
    return endpoint;
  };
  EXPECT_EQ(list->included(), 3u);
  EXPECT_TRUE(list->Allows(at("a", 1)));
  EXPECT_TRUE(list->Allows(at("b", 9866)));
  EXPECT_FALSE(list->Allows(at("b", 9867)));
  EXPECT_TRUE(list->Allows(at("c.example.com", 5)));
  EXPECT_FALSE(list->Allows(at("d", 1)));
  EXPECT_TRUE(list->Excludes(at("b", 9867)));
  EXPECT_FALSE(list->Excludes(at("a", 1)));
  EXPECT_TRUE(HostList::Parse("", "")->Allows(at("anyone", 1)));
  for (const char* bad : {"a:", ":1", "a:x", "a:0", "a:65536"})
    EXPECT_EQ(KindOf(HostList::Parse(bad, "").status()), ErrorKind::kInvalidArgument) << bad;
}

TEST(HostList, ReadsTheCombinedForm) {
  const absl::StatusOr<HostList> list = HostList::Parse(
      R"([{"hostName": "a"}, {"hostName": "b", "port": 9866, "adminState": "DECOMMISSIONED"},
          {"hostName": "c", "adminState": "IN_MAINTENANCE", "maintenanceExpireTimeInMS": 1767225600000}])",
      "");
  ASSERT_TRUE(list.ok()) << list.status();
  v1::Endpoint c;
  c.set_host("c");
  ASSERT_NE(list->MaintenanceOf(c), nullptr);
  EXPECT_EQ(*list->MaintenanceOf(c), 1'767'225'600'000);
  EXPECT_TRUE(list->Allows(c));
  v1::Endpoint b;
  b.set_host("b");
  b.set_port(9866);
  EXPECT_TRUE(list->Excludes(b));
  EXPECT_EQ(list->MaintenanceOf(b), nullptr);
  EXPECT_EQ(KindOf(HostList::Parse("[{}]", "").status()), ErrorKind::kInvalidArgument);
  EXPECT_EQ(KindOf(HostList::Parse("[{", "").status()), ErrorKind::kInvalidArgument);
  EXPECT_EQ(KindOf(HostList::Parse(R"([{"hostName": "a", "adminState": "GONE"}])", "").status()), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace cairn::namenode
