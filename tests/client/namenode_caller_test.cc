#include "client/src/namenode_caller.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/errors.h"
#include "client/src/blocking.h"
#include "common/error.h"
#include "tests/client/client_cluster.h"

namespace cairn::client {
namespace {

TEST(NamenodeCaller, RepeatsACallWhoseAnswerWasLostWithTheSameIdAndActsOnce) {
  ClientCluster cluster;
  ASSERT_TRUE(cluster.Put("/a", "x").ok());
  cluster.namenode().headers.clear();
  cluster.namenode().lose_answers["Rename"] = 3;
  ASSERT_TRUE(cluster.files().Rename("/a", "/b").ok());
  EXPECT_EQ(cluster.namenode().calls["Rename"], 4);
  EXPECT_EQ(cluster.namenode().acted["Rename"], 1);
  const auto& headers = cluster.namenode().headers;
  ASSERT_EQ(headers.size(), 4u);
  for (const v1::RequestHeader& header : headers) {
    EXPECT_EQ(header.slot(), headers[0].slot());
    EXPECT_EQ(header.sequence(), headers[0].sequence());
    EXPECT_EQ(header.slot_opened_ms(), headers[0].slot_opened_ms());
    EXPECT_EQ(header.user(), "flink");
  }
}

TEST(NamenodeCaller, NewCallTakesTheNextSequenceOfAFewSlots) {
  ClientCluster cluster;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(cluster.files().MakeDirectories("/d").ok());
  EXPECT_EQ(cluster.namenode().rows(), 1u);
  EXPECT_EQ(cluster.namenode().headers.back().sequence(), 10u);
  EXPECT_EQ(cluster.namenode().headers.back().slot_opened_ms(), cluster.namenode().headers.front().slot_opened_ms());
}

TEST(NamenodeCaller, WaitsWhileTheNameNodeAsksForPatience) {
  ClientCluster cluster;
  cluster.namenode().refuse["Mkdirs"] = {MakeError(ErrorKind::kSafeMode, "safe mode"), MakeError(ErrorKind::kBusy, "busy"),
                                         MakeError(ErrorKind::kRetriable, "later")};
  EXPECT_TRUE(cluster.files().MakeDirectories("/d").ok());
  EXPECT_EQ(cluster.namenode().calls["Mkdirs"], 4);
}

TEST(NamenodeCaller, DefiniteErrorsAreNotRepeated) {
  ClientCluster cluster;
  cluster.namenode().refuse["Mkdirs"] = {MakeError(ErrorKind::kQuota, "quota")};
  EXPECT_TRUE(errors::IsLimitExceeded(cluster.files().MakeDirectories("/d")));
  EXPECT_EQ(cluster.namenode().calls["Mkdirs"], 1);
}

TEST(NamenodeCaller, GivesUpAfterTheBudgetWithTheLastErrorAndTheKey) {
  ClientOptions options = ClientCluster::Quick();
  options.retry_budget = absl::Seconds(10);
  ClientCluster cluster(1, options);
  ASSERT_TRUE(cluster.files().MakeDirectories("/d").ok());
  cluster.StopNamenode();
  const SteadyTime began = cluster.world().Now();
  const absl::Status status = cluster.files().MakeDirectories("/d");
  EXPECT_TRUE(errors::IsOutcomeUnknown(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("cairn.client.retry.budget"));
  EXPECT_NEAR(absl::ToDoubleSeconds(cluster.world().Now() - began), 10, 2);
}

TEST(NamenodeCaller, TellsOnceThatItWaitsAndHowLongItWill) {
  ClientOptions options = ClientCluster::Quick();
  options.retry_budget = absl::Seconds(60);
  std::vector<std::pair<std::string, absl::Duration>> told;
  options.on_waiting = [&told](const std::string& why, absl::Duration left) { told.emplace_back(why, left); };
  ClientCluster cluster(1, options);
  ASSERT_TRUE(cluster.files().MakeDirectories("/d").ok());
  EXPECT_TRUE(told.empty());
  cluster.StopNamenode();
  EXPECT_FALSE(cluster.files().MakeDirectories("/d").ok());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_FALSE(told[0].first.empty());
  EXPECT_LE(told[0].second, absl::Seconds(58));
  EXPECT_GE(told[0].second, absl::Seconds(50));
}

TEST(NamenodeCaller, TellsAlsoWhileOneTryHangs) {
  ClientOptions options = ClientCluster::Quick();
  options.retry_budget = absl::Seconds(60);
  std::vector<absl::Duration> told;
  options.on_waiting = [&told](const std::string&, absl::Duration left) { told.push_back(left); };
  ClientCluster cluster(1, options);
  ASSERT_TRUE(cluster.files().MakeDirectories("/d").ok());
  cluster.namenode().swallow["Mkdirs"] = 1;
  EXPECT_TRUE(cluster.files().MakeDirectories("/e").ok());
  EXPECT_EQ(told, std::vector<absl::Duration>{absl::Seconds(58)});
}

TEST(NamenodeCaller, FirstTryOnAnExpiredSlotOpensItAfresh) {
  ClientCluster cluster;
  ASSERT_TRUE(cluster.files().MakeDirectories("/d").ok());
  cluster.world().RunFor(absl::Minutes(20));
  cluster.namenode().forget_rows = true;
  ASSERT_TRUE(cluster.files().MakeDirectories("/e").ok());
  const auto& headers = cluster.namenode().headers;
  EXPECT_GT(headers.back().sequence(), headers.front().sequence());
  EXPECT_GT(headers.back().slot_opened_ms(), headers.front().slot_opened_ms() + 19 * 60 * 1000);
}

TEST(NamenodeCaller, RetryOnAnExpiredSlotTellsThatTheOutcomeIsUnknown) {
  ClientOptions options = ClientCluster::Quick();
  ClientCluster cluster(1, options);
  ASSERT_TRUE(cluster.files().MakeDirectories("/d").ok());
  cluster.world().RunFor(absl::Minutes(20));
  cluster.namenode().lose_answers["Mkdirs"] = 1;  // It acted, and its row is dropped before the retry.
  ASSERT_TRUE(cluster.files().MakeDirectories("/e").ok());
  cluster.namenode().refuse["Mkdirs"] = {absl::UnavailableError("lost"), MakeError(ErrorKind::kSlotExpired, "too old")};
  const absl::Status status = cluster.files().MakeDirectories("/f");
  EXPECT_EQ(KindOf(status), ErrorKind::kSlotExpired);
  EXPECT_TRUE(errors::IsOutcomeUnknown(status));
}

TEST(NamenodeCaller, DeletesThousandsInBoundedCalls) {
  ClientCluster cluster;
  std::vector<std::string> paths;
  for (int i = 0; i < 5000; ++i) paths.push_back("/none-" + std::to_string(i));
  ASSERT_TRUE(cluster.Put("/none-7", "x").ok());
  const std::vector<absl::Status> results = cluster.files().DeleteMany(paths).value();
  ASSERT_EQ(results.size(), 5000u);
  EXPECT_TRUE(results[7].ok());
  EXPECT_TRUE(errors::IsNotFound(results[8]));
  EXPECT_EQ(cluster.namenode().calls["DeleteMany"], 2);
}

TEST(NamenodeCaller, ListFetchesPagesAsNeeded) {
  ClientCluster cluster;
  for (int i = 0; i < 2500; ++i) cluster.namenode().files["/" + std::to_string(10000 + i)];
  const std::vector<FileStatus> all = cluster.files().List("/").value();
  ASSERT_EQ(all.size(), 2500u);
  EXPECT_EQ(all[0].path, "/10000");
  EXPECT_EQ(all[2499].path, "/12499");
  EXPECT_EQ(cluster.namenode().calls["List"], 3);
}

TEST(NamenodeCaller, AFileIsListedAsItself) {
  ClientCluster cluster;
  ASSERT_TRUE(cluster.Put("/d/a", "x").ok());
  const std::vector<FileStatus> listed = cluster.files().List("/d/a").value();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].path, "/d/a");
}

// Slots, with executors of a world of their own.
class RetrySlotsTest : public ::testing::Test {
 protected:
  testing::SimWorld world_{testing::SimOptions{}};
  std::unique_ptr<Executor> executor_ = world_.executors().NewExecutor("calls");
  TaskGroup group_{executor_.get()};
  Scope scope_{executor_.get(), &group_};
  RetrySlots slots_{2, std::make_shared<ExecutorGate>()};
};

TEST_F(RetrySlotsTest, CallsBeyondTheSlotsWaitInOrder) {
  const SteadyTime began = world_.Now();
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    group_.Spawn("call", [this, i, &order]() -> Awaitable<void> {
      absl::StatusOr<RetrySlots::Lease> lease = co_await slots_.Take(scope_, 1000, SteadyTime::Infinite());
      EXPECT_TRUE(lease.ok());
      order.push_back(i);
      co_await SleepUntil(executor_.get(), world_.Now() + absl::Seconds(1));
    });
  }
  ASSERT_TRUE(world_.RunUntil([&] { return order.size() == 5; }, absl::Minutes(1)));
  ASSERT_TRUE(world_.RunUntil([&] { return group_.running() == 0; }, absl::Minutes(1)));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(world_.Now() - began, absl::Seconds(3));
}

TEST_F(RetrySlotsTest, WaitingEndsAtTheDeadlineAndLosesNoSlot) {
  std::vector<absl::Status> results;
  for (int i = 0; i < 3; ++i) {
    group_.Spawn("call", [this, &results]() -> Awaitable<void> {
      absl::StatusOr<RetrySlots::Lease> lease = co_await slots_.Take(scope_, 1000, world_.Now() + absl::Seconds(1));
      results.push_back(lease.status());
      if (lease.ok()) co_await SleepUntil(executor_.get(), world_.Now() + absl::Seconds(5));
    });
  }
  ASSERT_TRUE(world_.RunUntil([&] { return results.size() == 3 && group_.running() == 0; }, absl::Minutes(1)));
  EXPECT_EQ(results[2].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(slots_.waiting(), 0u);
  int taken = 0;
  for (int i = 0; i < 2; ++i) {
    group_.Spawn("call", [this, &taken]() -> Awaitable<void> {
      absl::StatusOr<RetrySlots::Lease> lease = co_await slots_.Take(scope_, 1000, world_.Now() + absl::Seconds(1));
      if (lease.ok()) ++taken;
      co_await SleepUntil(executor_.get(), world_.Now() + absl::Seconds(1));
    });
  }
  ASSERT_TRUE(world_.RunUntil([&] { return taken == 2 && group_.running() == 0; }, absl::Minutes(1)));
}

}  // namespace
}  // namespace cairn::client
