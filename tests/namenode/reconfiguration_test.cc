#include "common/reconfiguration.h"

#include <optional>

#include "common/error.h"
#include "tests/namenode/store_world.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ManualClock;
using ::testing::Not;

class ReconfigurationTest : public ::testing::Test {
 protected:
  ReconfigurationTest() {
    reconfiguration_.SetTaker([this](const Config& config) {
      ++taken_;
      now_ = config;
    });
  }
  static Config Parsed(const std::string& yaml) {
    Config config;
    EXPECT_TRUE(config.AddYaml(yaml, "cairn.yaml").ok());
    return config;
  }
  absl::StatusOr<Config> Load() {
    Config config;
    if (absl::Status status = config.AddYaml(file_, "cairn.yaml"); !status.ok()) return status;
    return config;
  }

  ManualClock clock_;
  std::string file_ = "dfs.replication: 2\ndfs.heartbeat.interval: 1s\n";
  Reconfiguration reconfiguration_{Parsed(file_), [this] { return Load(); }, &clock_};
  int taken_ = 0;
  Config now_;
};

TEST_F(ReconfigurationTest, TakesReloadableKeysAndNamesTheOthers) {
  EXPECT_FALSE(reconfiguration_.last().ever);
  file_ = "dfs.replication: 4\ndfs.namenode.fs-limits.max-component-length: 100\ndfs.heartbeat.interval: 2s\n";
  clock_.Advance(absl::Seconds(7));
  const Reconfiguration::Outcome outcome = reconfiguration_.Reload();
  EXPECT_TRUE(outcome.status.ok());
  ASSERT_EQ(outcome.changes.size(), 3u);
  EXPECT_EQ(outcome.changes[0].key, "dfs.replication");
  EXPECT_EQ(outcome.changes[0].from, "2");
  EXPECT_EQ(outcome.changes[0].to, "4");
  EXPECT_TRUE(outcome.changes[0].taken);
  EXPECT_EQ(outcome.changes[1].key, "dfs.heartbeat.interval");
  EXPECT_FALSE(outcome.changes[1].taken);
  EXPECT_EQ(outcome.changes[2].from, "255");  // The default.
  EXPECT_EQ(taken_, 1);
  EXPECT_EQ(now_.GetInt("dfs.replication"), 4);
  EXPECT_EQ(now_.GetInt("dfs.namenode.fs-limits.max-component-length"), 100);
  EXPECT_EQ(now_.GetDuration("dfs.heartbeat.interval"), absl::Seconds(1));  // As the process runs.
  EXPECT_EQ(reconfiguration_.last().changes.size(), 3u);
  EXPECT_EQ(reconfiguration_.last().started, clock_.WallNow());

  // Again: what was taken is the present state; a key that goes from the file falls back to its default.
  file_ = "dfs.heartbeat.interval: 1s\n";
  const Reconfiguration::Outcome back = reconfiguration_.Reload();
  ASSERT_EQ(back.changes.size(), 2u);
  EXPECT_EQ(back.changes[0].to, "3");
  EXPECT_EQ(now_.GetInt("dfs.replication"), 3);
  EXPECT_TRUE(reconfiguration_.Reload().changes.empty());
  EXPECT_EQ(taken_, 2);
}

TEST_F(ReconfigurationTest, ABadFileChangesNothingAndNamesTheLine) {
  for (const char* bad :
       {"dfs.replication: 4\ndfs.replicaton: 5\n", "dfs.replication: 4\ndfs.namenode.fs-limits.max-directory-items: many\n",
        "dfs.replication: 4\ndfs.replication.max: 0\n"}) {
    file_ = bad;
    const Reconfiguration::Outcome outcome = reconfiguration_.Reload();
    EXPECT_EQ(KindOf(outcome.status), ErrorKind::kInvalidArgument);
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("cairn.yaml:2"));
    EXPECT_THAT(outcome.changes, IsEmpty());
    EXPECT_FALSE(reconfiguration_.last().status.ok());
  }
  EXPECT_EQ(taken_, 0);
}

TEST_F(ReconfigurationTest, LimitsAreReloadableAndAddressesAreNot) {
  const std::vector<std::string> keys = reconfiguration_.ReloadableKeys();
  EXPECT_THAT(keys, Contains("dfs.namenode.fs-limits.max-directory-items"));
  EXPECT_THAT(keys, Contains("dfs.namenode.resource.du.reserved"));
  EXPECT_THAT(keys, Not(Contains("cairn.namenode.grpc-address")));
  EXPECT_THAT(keys, Not(Contains("dfs.namenode.name.dir")));
}

}  // namespace
}  // namespace cairn::namenode
