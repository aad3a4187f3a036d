#include "client/cli/balancer.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/balancer_bandwidth.h"
#include "common/error.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BalancerVerbTest : public ::testing::Test {
 protected:
  BalancerVerbTest() {
    target_.ask = [this](const v1::BalanceRequest& request) -> absl::StatusOr<v1::BalanceResponse> {
      asked_.push_back(request);
      if (interrupt_at_ != 0 && asked_.size() == interrupt_at_) interrupted_ = true;
      return asked_.size() <= answers_.size() ? answers_[asked_.size() - 1] : answers_.back();
    };
    target_.namenode = "cairn://nn:8021";
    target_.run = 77;
    shell_.out = &out_;
    shell_.err = &err_;
    shell_.interrupted = &interrupted_;
    shell_.now = [this] { return now_; };
    shell_.wait = [this](absl::Duration time) { now_ += time; };
  }
  int Run(const std::vector<std::string>& words) { return RunBalancer(target_, &shell_, words); }
  void Answer(v1::BalanceResponse::Outcome outcome, uint32_t iteration, uint64_t moved, uint64_t left, uint64_t being_moved,
              uint64_t epoch = 1) {
    v1::BalanceResponse response;
    response.set_outcome(outcome);
    response.set_iteration(iteration);
    response.set_moved_bytes(moved);
    response.set_left_bytes(left);
    response.set_being_moved_bytes(being_moved);
    response.set_epoch(epoch);
    answers_.emplace_back(std::move(response));
  }
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    std::istringstream text(out_.str());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  BalancerTarget target_;
  std::vector<v1::BalanceRequest> asked_;
  std::vector<absl::StatusOr<v1::BalanceResponse>> answers_;
  size_t interrupt_at_ = 0;
  std::atomic<bool> interrupted_ = false;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15 08:00:00 UTC.
  std::ostringstream out_, err_;
  Shell shell_;
};

constexpr char kHeader[] = "Time Stamp               Iteration#  Bytes Already Moved  Bytes Left To Move  Bytes Being Moved  NameNode";

TEST_F(BalancerVerbTest, PrintsHdfsTableAndEndsWithZeroWhenTheClusterIsBalanced) {
  Answer(v1::BalanceResponse::RUNNING, 1, 0, 5 << 20, 10 << 20);
  Answer(v1::BalanceResponse::RUNNING, 1, 1 << 20, 5 << 20, 10 << 20);
  Answer(v1::BalanceResponse::BALANCED, 2, 10 << 20, 0, 0);
  EXPECT_EQ(Run({}), 0);
  EXPECT_THAT(
      Lines(),
      ElementsAre(kHeader,  //
                  "Jan 15, 2027 8:00:00 AM           1                  0 B             5.00 MB           10.00 MB  cairn://nn:8021",
                  "Jan 15, 2027 8:00:02 AM           2             10.00 MB                 0 B                0 B  cairn://nn:8021",
                  "The cluster is balanced. Exiting...", "Jan 15, 2027 8:00:02 AM  Balancing took 2.000 seconds"));
  ASSERT_EQ(asked_.size(), 3u);
  EXPECT_EQ(asked_[0].run(), 77u);
  EXPECT_EQ(asked_[0].threshold(), 10);
  EXPECT_EQ(asked_[2].SerializeAsString(), asked_[0].SerializeAsString());
}

TEST_F(BalancerVerbTest, ALongIterationShowsARowNowAndThen) {
  for (uint64_t second = 0; second < 70; ++second) Answer(v1::BalanceResponse::RUNNING, 1, second << 10, 1 << 30, 1 << 30);
  Answer(v1::BalanceResponse::BALANCED, 2, 70 << 10, 0, 0);
  EXPECT_EQ(Run({}), 0);
  EXPECT_EQ(Lines().size(), 1 + 1 + 2 + 1 + 2u);
  EXPECT_THAT(Lines()[2], HasSubstr("30.00 KB"));
}

TEST_F(BalancerVerbTest, EndsWithHdfsWordsAndCodes) {
  const std::pair<v1::BalanceResponse::Outcome, std::pair<int, std::string>> cases[] = {
      {v1::BalanceResponse::NO_MOVE_BLOCK, {254, "No block can be moved. Exiting..."}},
      {v1::BalanceResponse::NO_MOVE_PROGRESS, {253, "No block has been moved for 5 iterations. Exiting..."}},
      {v1::BalanceResponse::STOPPED, {252, "The run was stopped.  Exiting ..."}}};
  for (const auto& [outcome, end] : cases) {
    answers_.clear();
    asked_.clear();
    out_.str("");
    Answer(outcome, 1, 0, 1, 0);
    EXPECT_EQ(Run({}), end.first);
    EXPECT_THAT(Lines(), ::testing::Contains(end.second));
  }
}

TEST_F(BalancerVerbTest, AnotherRunAndOtherErrorsEndItAtOnce) {
  Error other;
  other.kind = ErrorKind::kAlreadyExists;
  other.reason = "BALANCER_RUNNING";
  other.message = "another balancer is running, of user bob";
  answers_.emplace_back(MakeError(other));
  EXPECT_EQ(Run({}), 255);
  EXPECT_THAT(Lines(), ElementsAre(kHeader, "Another balancer is running. Exiting..."));
  for (const ErrorKind kind : {ErrorKind::kPermission, ErrorKind::kSafeMode, ErrorKind::kBusy, ErrorKind::kNotFound}) {
    answers_.clear();
    asked_.clear();
    out_.str("");
    answers_.emplace_back(MakeError(kind, "why not"));
    EXPECT_EQ(Run({}), 252);
    EXPECT_EQ(asked_.size(), 1u);
    EXPECT_THAT(Lines(), ElementsAre(kHeader, "why not.  Exiting ..."));
  }
}

TEST_F(BalancerVerbTest, ANamenodeThatRestartsIsWaitedForAndCountsOn) {
  Answer(v1::BalanceResponse::RUNNING, 3, 4 << 20, 5 << 20, 9 << 20);
  answers_.emplace_back(absl::UnavailableError("connection refused"));
  answers_.emplace_back(MakeError(ErrorKind::kSafeMode, "for a while"));
  Answer(v1::BalanceResponse::RUNNING, 0, 0, 0, 0);
  Answer(v1::BalanceResponse::BALANCED, 1, 2 << 20, 0, 0);
  EXPECT_EQ(Run({}), 0);
  EXPECT_THAT(Lines()[2], HasSubstr("         4              6.00 MB"));
  // One that does not come back is given up.
  answers_.assign(1, absl::UnavailableError("connection refused"));
  asked_.clear();
  EXPECT_EQ(Run({}), 252);
  EXPECT_EQ(asked_.size(), 121u);
}

TEST_F(BalancerVerbTest, ARestartInTheSameIterationCountsOn) {
  Answer(v1::BalanceResponse::RUNNING, 1, 4 << 20, 5 << 20, 9 << 20, 1);
  Answer(v1::BalanceResponse::RUNNING, 1, 5 << 20, 4 << 20, 9 << 20, 2);  // As far as that, and more, by itself.
  Answer(v1::BalanceResponse::BALANCED, 2, 6 << 20, 0, 0, 2);
  EXPECT_EQ(Run({}), 0);
  ASSERT_EQ(Lines().size(), 6u);
  EXPECT_THAT(Lines()[1], HasSubstr("         1              4.00 MB"));
  EXPECT_THAT(Lines()[2], HasSubstr("         2              9.00 MB"));
  EXPECT_THAT(Lines()[3], HasSubstr("         3             10.00 MB"));
  // Bytes that become fewer say the same.
  answers_.clear();
  asked_.clear();
  out_.str("");
  Answer(v1::BalanceResponse::RUNNING, 1, 4 << 20, 5 << 20, 9 << 20, 0);
  Answer(v1::BalanceResponse::BALANCED, 1, 1 << 20, 0, 0, 0);
  EXPECT_EQ(Run({}), 0);
  EXPECT_THAT(Lines()[2], HasSubstr("         2              5.00 MB"));
}

TEST_F(BalancerVerbTest, ANamenodeInSafeModeIsThereHoweverLongItTakes) {
  Answer(v1::BalanceResponse::RUNNING, 1, 0, 5 << 20, 9 << 20);
  for (int second = 0; second < 300; ++second) answers_.emplace_back(MakeError(ErrorKind::kSafeMode, "for a while"));
  for (int second = 0; second < 100; ++second) answers_.emplace_back(absl::UnavailableError("connection refused"));
  Answer(v1::BalanceResponse::BALANCED, 1, 2 << 20, 0, 0, 2);
  EXPECT_EQ(Run({}), 0);
  EXPECT_THAT(Lines(), ::testing::Contains("The cluster is balanced. Exiting..."));
}

TEST_F(BalancerVerbTest, AnInterruptStopsTheRun) {
  Answer(v1::BalanceResponse::RUNNING, 1, 0, 5, 10);
  interrupt_at_ = 3;
  EXPECT_NE(Run({}), 0);
  ASSERT_EQ(asked_.size(), 4u);
  EXPECT_FALSE(asked_[2].stop());
  EXPECT_TRUE(asked_[3].stop());
  EXPECT_EQ(err_.str(), "balancer: Interrupted; what is under way ends by itself\n");
}

TEST_F(BalancerVerbTest, OptionsReachTheNamenode) {
  Answer(v1::BalanceResponse::BALANCED, 1, 0, 0, 0);
  EXPECT_EQ(Run({"-policy", "datanode", "-threshold", "2.5", "-bandwidth", "10m", "-max-moves", "7", "-source", "a,b", "-exclude", "c:9866",
                 "-idleiterations", "-1", "-runDuringUpgrade"}),
            0);
  const v1::BalanceRequest& asked = asked_.at(0);
  EXPECT_EQ(asked.threshold(), 2.5);
  EXPECT_EQ(asked.bytes_per_second(), 10u << 20);
  EXPECT_EQ(asked.max_moves(), 7u);
  EXPECT_THAT(asked.sources(), ElementsAre("a", "b"));
  EXPECT_THAT(asked.exclude(), ElementsAre("c:9866"));
  EXPECT_EQ(asked.idle_iterations(), -1);
}

TEST_F(BalancerVerbTest, HostsMayComeFromAFile) {
  const cairn::testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/hosts";
  std::ofstream(path) << "a  # the old one\n# b\n\nc,d\n";
  Answer(v1::BalanceResponse::BALANCED, 1, 0, 0, 0);
  EXPECT_EQ(Run({"-include", "-f", path}), 0);
  EXPECT_THAT(asked_.at(0).include(), ElementsAre("a", "c", "d"));
  EXPECT_EQ(Run({"-include", "-f", path + ".not"}), 251);
  EXPECT_THAT(err_.str(), HasSubstr("cannot be read"));
  std::ofstream(path) << "# nobody\n";
  EXPECT_EQ(Run({"-source", "-f", path}), 251);  // Not "all".
}

TEST_F(BalancerVerbTest, WhatMakesNoSenseIsIllegalAndNothingIsAsked) {
  const std::vector<std::vector<std::string>> wrong = {{"-threshold"},
                                                       {"-threshold", "0"},
                                                       {"-threshold", "101"},
                                                       {"-threshold", "x"},
                                                       {"-policy", "rack"},
                                                       {"-bandwidth", "12"},
                                                       {"-bandwidth", "65535"},
                                                       {"-bandwidth", "0"},
                                                       {"-bandwidth", "-1"},
                                                       {"-idleiterations", "0"},
                                                       {"-max-moves", "33"},
                                                       {"-max-moves", "0"},
                                                       {"-source"},
                                                       {"-source", ","},
                                                       {"-blockpools", "p"},
                                                       {"-asService"},
                                                       {"-what", "1"},
                                                       {"5"},
                                                       {"-exclude", "a", "-include", "b"}};
  for (const std::vector<std::string>& words : wrong) {
    err_.str("");
    EXPECT_EQ(Run(words), 251) << ::testing::PrintToString(words);
    EXPECT_THAT(err_.str(), HasSubstr("Usage: cairn balancer"));
  }
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(Run({"-help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("-threshold"));
}

TEST_F(BalancerVerbTest, BandwidthIsSetAndShown) {
  std::vector<uint64_t> set;
  absl::Status answer;
  v1::GetDatanodeInfoResponse info;
  info.set_balancer_bytes_per_second(1048576);
  std::vector<std::string> addresses;
  const std::vector<Verb> verbs = BandwidthVerbs(
      [&](uint64_t bandwidth) {
        set.push_back(bandwidth);
        return answer;
      },
      [&](const HostPort& datanode) -> absl::StatusOr<v1::GetDatanodeInfoResponse> {
        addresses.push_back(datanode.ToString());
        if (!answer.ok()) return answer;
        return info;
      });
  const auto run = [&](const std::vector<std::string>& words) { return RunVerb("cairn dfsadmin", verbs, words, &shell_); };
  EXPECT_EQ(run({"-setBalancerBandwidth", "10m"}), 0);
  EXPECT_EQ(run({"-setBalancerBandwidth", "0"}), 0);
  EXPECT_THAT(set, ElementsAre(10u << 20, 0u));
  EXPECT_EQ(run({"-getBalancerBandwidth", "dn"}), 0);
  EXPECT_THAT(addresses, ElementsAre("dn:9868"));
  EXPECT_EQ(out_.str(),
            "Balancer bandwidth is set to 10485760\nBalancer bandwidth is set to 0\nBalancer bandwidth is 1048576 bytes per second.\n");
  EXPECT_EQ(run({"-setBalancerBandwidth", "-5"}), kUsage);
  EXPECT_EQ(run({"-setBalancerBandwidth", "much"}), kUsage);
  EXPECT_EQ(run({"-setBalancerBandwidth", "65535"}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("Bandwidth should be 0, or at least 65536 bytes per second\n"));
  EXPECT_THAT(err_.str(), HasSubstr("Bandwidth should be a non-negative integer"));
  answer = MakeError(ErrorKind::kPermission, "Access denied");
  EXPECT_EQ(run({"-setBalancerBandwidth", "1m"}), kFailure);
  EXPECT_EQ(run({"-getBalancerBandwidth", "dn:1"}), kFailure);
  EXPECT_THAT(err_.str(), HasSubstr("setBalancerBandwidth: Access denied"));
  EXPECT_THAT(err_.str(), HasSubstr("Datanode unreachable."));
}

}  // namespace
}  // namespace cairn::cli
