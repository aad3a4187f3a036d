#include "client/cli/dfsadmin_reconfig.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"

namespace cairn::cli {
namespace {

using ::testing::HasSubstr;

class ReconfigVerbTest : public ::testing::Test {
 protected:
  ReconfigVerbTest() {
    const auto ask = [this](const std::string& kind) {
      return [this, kind](const HostPort& node, const v1::ReconfigureRequest& request) {
        kind_ = kind;
        asked_ = node;
        action_ = request.action();
        return answer_;
      };
    };
    verbs_.push_back(ReconfigVerb(ask("namenode"), ask("datanode")));
    shell_.out = &out_;
    shell_.err = &err_;
  }
  int Run(const std::vector<std::string>& words) {
    out_.str("");
    err_.str("");
    return RunVerb("cairn dfsadmin", verbs_, words, &shell_);
  }
  void AddChange(const std::string& key, bool taken) {
    v1::ReconfigureResponse::Change& change = *answer_->add_changes();
    change.set_key(key);
    change.set_from("1");
    change.set_to("2");
    change.set_taken(taken);
  }

  absl::StatusOr<v1::ReconfigureResponse> answer_ = v1::ReconfigureResponse();
  std::string kind_;
  HostPort asked_;
  int action_ = -1;
  std::ostringstream out_, err_;
  Shell shell_;
  std::vector<Verb> verbs_;
};

TEST_F(ReconfigVerbTest, StartsAtTheAddressGiven) {
  EXPECT_EQ(Run({"-reconfig", "namenode", "nn1:8021", "start"}), kSuccess);
  EXPECT_EQ(out_.str(), "Started reconfiguration task on node [nn1:8021].\n");
  EXPECT_EQ(asked_.host, "nn1");
  EXPECT_EQ(asked_.port, 8021);
  EXPECT_EQ(action_, v1::ReconfigureRequest::START);
  answer_->set_error("cairn.yaml:2: unknown key dfs.replicaton");
  EXPECT_EQ(Run({"-reconfig", "namenode", "nn1:8021", "start"}), kFailure);
  EXPECT_THAT(err_.str(), HasSubstr("changed nothing: cairn.yaml:2: unknown key dfs.replicaton"));
}

TEST_F(ReconfigVerbTest, StatusSaysWhatWasChangedAndWhatWasNot) {
  EXPECT_EQ(Run({"-reconfig", "namenode", "nn1:8021", "status"}), kSuccess);
  EXPECT_EQ(out_.str(), "Reconfiguring status for node [nn1:8021]: no task was found.\n");
  answer_->set_started_ms(1'764'417'600'000);
  answer_->set_ended_ms(1'764'417'601'000);
  AddChange("dfs.replication", true);
  AddChange("dfs.heartbeat.interval", false);
  EXPECT_EQ(Run({"-reconfig", "namenode", "nn1:8021", "status"}), kSuccess);
  EXPECT_EQ(out_.str(),
            "Reconfiguring status for node [nn1:8021]: started at Sat Nov 29 12:00:00 UTC 2025 and finished at Sat Nov 29 12:00:01 UTC "
            "2025.\nSUCCESS: Changed property dfs.replication\n\tFrom: \"1\"\n\tTo: \"2\"\n"
            "FAILED: Change property dfs.heartbeat.interval\n\tFrom: \"1\"\n\tTo: \"2\"\n\tError: it is taken over at a restart only.\n");
}

TEST_F(ReconfigVerbTest, DatanodeIsAskedItselfAndSaysWhatItCouldNotDo) {
  EXPECT_EQ(Run({"-reconfig", "datanode", "dn1:9868", "start"}), kSuccess);
  EXPECT_EQ(kind_, "datanode");
  EXPECT_EQ(asked_.port, 9868);
  AddChange("dfs.datanode.data.dir", true);
  answer_->set_error("data directory /x: does not exist");
  answer_->set_started_ms(1);
  EXPECT_EQ(Run({"-reconfig", "datanode", "dn1:9868", "start"}), kFailure);
  EXPECT_EQ(err_.str(), "reconfig: node [dn1:9868]: data directory /x: does not exist\n");
  EXPECT_EQ(Run({"-reconfig", "datanode", "dn1:9868", "status"}), kSuccess);
  EXPECT_THAT(out_.str(), HasSubstr("FAILED: data directory /x: does not exist\nSUCCESS: Changed property dfs.datanode.data.dir"));
  EXPECT_EQ(Run({"-reconfig", "namenode", "nn1:8021", "status"}), kSuccess);
  EXPECT_EQ(kind_, "namenode");
}

TEST_F(ReconfigVerbTest, ListsProperties) {
  answer_->add_properties("dfs.replication");
  EXPECT_EQ(Run({"-reconfig", "namenode", "nn1:8021", "properties"}), kSuccess);
  EXPECT_EQ(out_.str(), "Node [nn1:8021] Reconfigurable properties:\ndfs.replication\n");
}

TEST_F(ReconfigVerbTest, RefusesNonsense) {
  EXPECT_EQ(Run({"-reconfig", "namenode", "nn1:8021", "stop"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("Unknown operation: stop"));
  EXPECT_EQ(Run({"-reconfig", "balancer", "nn1:8021", "start"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("Node type balancer does not support reconfiguration."));
  EXPECT_EQ(Run({"-reconfig", "namenode", "nn1", "start"}), kUsage);
  EXPECT_EQ(Run({"-reconfig", "namenode", "nn1:8021"}), kUsage);
  answer_ = MakeError(ErrorKind::kPermission, "Access denied for user eve. Superuser privilege is required");
  EXPECT_EQ(Run({"-reconfig", "namenode", "nn1:8021", "start"}), kFailure);
  EXPECT_THAT(err_.str(), HasSubstr("Superuser privilege is required"));
}

}  // namespace
}  // namespace cairn::cli
