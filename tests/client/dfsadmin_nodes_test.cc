#include "client/cli/dfsadmin_nodes.h"

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/dfsadmin_safe_mode.h"
#include "client/cli/report.h"
#include "common/error.h"

namespace cairn::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NodeVerbsTest : public ::testing::Test {
 protected:
  NodeVerbsTest() {
    AskNodes ask;
    ask.set = [this](v1::SetNodeAdminRequest request) -> absl::StatusOr<v1::SetNodeAdminResponse> {
      set_.push_back(std::move(request));
      if (!error_.ok()) return error_;
      v1::SetNodeAdminResponse response;
      response.mutable_datanode()->mutable_transfer()->set_host("h");
      response.mutable_datanode()->mutable_transfer()->set_port(9866);
      response.set_state(answer_);
      return response;
    };
    ask.refresh = [this]() -> absl::StatusOr<v1::RefreshNodesResponse> {
      if (!error_.ok()) return error_;
      return v1::RefreshNodesResponse();
    };
    ask.blockers = [this](v1::ListNodeBlockersRequest) -> absl::StatusOr<v1::ListNodeBlockersResponse> { return blockers_; };
    ask.bad = [](v1::ListBadBlocksRequest request) -> absl::StatusOr<v1::ListBadBlocksResponse> {
      v1::ListBadBlocksResponse page;
      v1::BadBlock& block = *page.add_blocks();
      block.mutable_block()->set_id(request.start_after() + 16);
      block.mutable_block()->set_generation_stamp(1001);
      block.mutable_block()->set_length_bytes(7);
      block.set_path("/a");
      if (request.kind() == v1::ListBadBlocksRequest::PARKED) block.set_reason("NO_TARGET");
      if (request.start_after() == 0) page.set_next(16);
      return page;
    };
    ask.report = [this]() -> absl::StatusOr<v1::ClusterReportResponse> { return report_; };
    verbs_ = NodeVerbs(std::move(ask), [] { return absl::FromUnixSeconds(1'800'000'000); });
    verbs_.push_back(SafeModeVerb([this](const v1::SafeModeRequest& request) -> absl::StatusOr<v1::SafeModeResponse> {
      if (!error_.ok()) return error_;
      if (request.action() == v1::SafeModeRequest::ENTER) safe_ = 3;
      if (request.action() == v1::SafeModeRequest::LEAVE) safe_ = 0;
      v1::SafeModeResponse response;
      response.set_on(safe_ > 0);
      response.set_missing_blocks(2);
      response.add_missing()->set_path("/lost");
      if (request.action() == v1::SafeModeRequest::GET && safe_ > 0) --safe_;
      return response;
    }));
    shell_.out = &out_;
    shell_.err = &err_;
  }
  int Run(const std::vector<std::string>& words) { return RunVerb("cairn dfsadmin", verbs_, words, &shell_); }

  std::vector<v1::SetNodeAdminRequest> set_;
  v1::NodeAdminState answer_ = v1::DECOMMISSIONING;
  v1::ListNodeBlockersResponse blockers_;
  v1::ClusterReportResponse report_;
  int safe_ = 0;  // Looks until it is off again.
  absl::Status error_;
  std::ostringstream out_, err_;
  Shell shell_;
  std::vector<Verb> verbs_;
};

TEST_F(NodeVerbsTest, DecommissionAndBack) {
  EXPECT_EQ(Run({"-decommission", "h:9866"}), kSuccess);
  EXPECT_EQ(set_[0].node(), "h:9866");
  EXPECT_EQ(set_[0].action(), v1::SetNodeAdminRequest::DECOMMISSION);
  EXPECT_EQ(out_.str(), "h:9866: Decommission in progress\n");
  answer_ = v1::NODE_NORMAL;
  EXPECT_EQ(Run({"-recommission", "some-uuid"}), kSuccess);
  EXPECT_EQ(set_[1].action(), v1::SetNodeAdminRequest::RECOMMISSION);
  EXPECT_THAT(out_.str(), HasSubstr("h:9866: Normal\n"));
  error_ = MakeError(ErrorKind::kNotFound, "no DataNode 'x' is known here");
  EXPECT_EQ(Run({"-decommission", "x"}), kFailure);
  EXPECT_EQ(err_.str(), "decommission: no DataNode 'x' is known here\n");
  EXPECT_EQ(Run({"-decommission"}), kUsage);
  EXPECT_EQ(Run({"-refreshNodes"}), kFailure);
  error_ = absl::OkStatus();
  EXPECT_EQ(Run({"-refreshNodes"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("Refresh nodes successful\n"));
}

TEST_F(NodeVerbsTest, MaintenanceHasAnEndBeforeOrBehindTheNode) {
  answer_ = v1::ENTERING_MAINTENANCE;
  EXPECT_EQ(Run({"-maintenance", "h:9866", "-for", "2h"}), kSuccess);
  EXPECT_EQ(set_[0].until_ms(), 1'800'007'200'000);
  EXPECT_FALSE(set_[0].force());
  EXPECT_EQ(out_.str(), "h:9866: Entering maintenance\n");
  EXPECT_EQ(Run({"-maintenance", "--until", "2027-01-15T09:00:00Z", "h:9866", "--force"}), kSuccess);
  EXPECT_EQ(set_[1].until_ms(), 1'800'003'600'000);
  EXPECT_TRUE(set_[1].force());
  EXPECT_EQ(Run({"-maintenance", "h:9866", "-until", "2027-01-15 09:00:00"}), kSuccess);
  EXPECT_EQ(set_[2].until_ms(), 1'800'003'600'000);
  EXPECT_EQ(Run({"-maintenance", "h:9866"}), kSuccess);
  EXPECT_EQ(set_[3].until_ms(), 0);
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{{"-maintenance", "h", "-for", "soon"},
                                                                                     {"-maintenance", "h", "-until", "soon"},
                                                                                     {"-maintenance", "h", "-for", "1h", "-until", "x"},
                                                                                     {"-maintenance", "h", "i"},
                                                                                     {"-maintenance", "h", "-for"}})
    EXPECT_EQ(Run(wrong), kUsage) << wrong.back();
  EXPECT_EQ(set_.size(), 4u);
}

TEST_F(NodeVerbsTest, NodesShowsHowFarADrainIsAndWhatHoldsItBack) {
  v1::DatanodeReport& draining = *report_.add_datanodes();
  draining.mutable_info()->set_uuid("u1");
  draining.mutable_info()->mutable_transfer()->set_host("h");
  draining.mutable_info()->mutable_transfer()->set_port(9866);
  draining.set_state(v1::LIVE);
  draining.set_admin_state(v1::DECOMMISSIONING);
  draining.set_blocks_left(3);
  draining.set_open_blocks_left(1);
  draining.set_looked_once(true);
  blockers_.set_blocks_left(3);
  v1::NodeBlocker& blocker = *blockers_.add_blockers();
  blocker.mutable_block()->set_id(1024);
  blocker.set_path("/open");
  blocker.set_reason("OPEN");
  blocker.set_age_ms(61'000);
  blocker.set_wanted(1);
  EXPECT_EQ(Run({"-nodes"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("h:9866  live   Decommission in progress  3     1     u1\n"));
  EXPECT_THAT(out_.str(),
              HasSubstr("\nh:9866 waits for 3 blocks:\n  blk_1024 OPEN: 0 of 1 live copies elsewhere, for 61 s, /open\n  and 2 more\n"));
  out_.str("");
  EXPECT_EQ(Run({"-nodes", "-C"}), kSuccess);
  EXPECT_THAT(out_.str(), Not(HasSubstr("waits for")));
}

TEST_F(NodeVerbsTest, BadBlocksArePagedAndKindsAreChecked) {
  EXPECT_EQ(Run({"-badBlocks"}), kSuccess);
  EXPECT_EQ(out_.str(), "blk_16_1001 7 bytes /a\nblk_32_1001 7 bytes /a\n2 blocks are missing\n");
  out_.str("");
  EXPECT_EQ(Run({"-badBlocks", "parked"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("blk_16_1001 7 bytes NO_TARGET /a\n"));
  EXPECT_EQ(Run({"-badBlocks", "ugly"}), kUsage);
}

TEST_F(NodeVerbsTest, SafeModeSpeaksHdfssWords) {
  EXPECT_EQ(Run({"-safemode", "get"}), kSuccess);
  EXPECT_EQ(out_.str(), "Safe mode is OFF\n");
  out_.str("");
  EXPECT_EQ(Run({"-safemode", "enter"}), kSuccess);
  EXPECT_EQ(out_.str(), "Safe mode is ON\n");
  out_.str("");
  EXPECT_EQ(Run({"-safemode", "wait"}), kSuccess);
  EXPECT_EQ(out_.str(), "Safe mode is OFF\n");
  out_.str("");
  EXPECT_EQ(Run({"-safemode", "get", "--json"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("\"missing_blocks\":\"2\""));
  EXPECT_THAT(out_.str(), HasSubstr("\"path\":\"/lost\""));
  EXPECT_EQ(Run({"-safemode", "leave"}), kSuccess);
  EXPECT_EQ(Run({"-safemode", "dance"}), kUsage);
  EXPECT_EQ(Run({"-safemode"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("[-safemode enter | leave | get | wait | forceExit]"));
  error_ = MakeError(ErrorKind::kPermission, "Access denied for user ann. Superuser privilege is required");
  EXPECT_EQ(Run({"-safemode", "enter"}), kFailure);
}

TEST(ReportText, ShowsWhatIsWantedOfNodesAndHowRepairStands) {
  v1::ClusterReportResponse report;
  report.set_repairs_waiting(1);
  report.set_repairs_parked(2);
  v1::ClusterReportResponse::Parked& parked = *report.add_parked();
  parked.set_reason("NO_TARGET");
  parked.set_blocks(2);
  v1::DatanodeReport& node = *report.add_datanodes();
  node.set_state(v1::LIVE);
  node.set_admin_state(v1::IN_MAINTENANCE);
  node.set_maintenance_until_ms(1'800'000'000'000);
  const std::string text = ReportText(report, absl::UnixEpoch(), {});
  EXPECT_THAT(text, HasSubstr("Repairs: waiting 1, in flight 0, timed out 0, parked 2 (NO_TARGET 2)\n"));
  EXPECT_THAT(text, HasSubstr("Decommission Status : In maintenance\n"));
  EXPECT_THAT(text, HasSubstr("Maintenance until: Fri Jan 15 08:00:00 UTC 2027\n"));
  EXPECT_THAT(text, HasSubstr("Live datanodes (1):"));
  EXPECT_THAT(text, HasSubstr("In maintenance datanodes (1):"));
  const std::string only = ReportText(report, absl::UnixEpoch(), {.decommissioning = true});
  EXPECT_THAT(only, HasSubstr("Decommissioning datanodes (0):"));
  EXPECT_THAT(only, Not(HasSubstr("Live datanodes")));
}

}  // namespace
}  // namespace cairn::cli
