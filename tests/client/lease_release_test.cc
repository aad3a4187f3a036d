// What a client does about files that it leaves unfinished, and files that it opens for more.

#include <stop_token>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/errors.h"
#include "client/src/blocking.h"
#include "common/error.h"
#include "tests/client/client_cluster.h"

namespace cairn::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kBlock = 1 << 20;

// A call whose answers are lost comes to its end soon.
ClientOptions Impatient() {
  ClientOptions options = ClientCluster::Quick();
  options.retry_budget = absl::Seconds(2);
  options.call_timeout = absl::Seconds(1);
  return options;
}

TEST(LeaseRelease, AnAbortedWriterGivesUpItsFileWhileOthersGoOn) {
  ClientCluster cluster;
  auto kept = cluster.files().Create("/kept").value();
  auto given_up = cluster.files().Create("/given-up").value();
  const uint64_t inode = cluster.namenode().files["/given-up"].inode_id;
  given_up->Abort();
  cluster.world().RunFor(absl::Seconds(1));
  EXPECT_THAT(cluster.namenode().released, ElementsAre(inode));
  EXPECT_EQ(cluster.core().leases().writers(), 1);
  given_up.reset();
  cluster.world().RunFor(absl::Seconds(1));
  EXPECT_THAT(cluster.namenode().released, SizeIs(1));  // Once.
  ASSERT_TRUE(kept->Append("x").ok());
  ASSERT_TRUE(kept->Close().ok());
  EXPECT_THAT(cluster.namenode().released, SizeIs(1));
}

TEST(LeaseRelease, AWriterWhoseCloseFailsGivesUpItsFile) {
  ClientCluster cluster;
  auto writer = cluster.files().Create("/f").value();
  ASSERT_TRUE(writer->Append(Pattern(1000)).ok());
  cluster.namenode().refuse["Complete"] = {MakeError(ErrorKind::kInvalidArgument, "no")};
  EXPECT_FALSE(writer->Close().ok());
  cluster.world().RunFor(absl::Seconds(1));
  EXPECT_THAT(cluster.namenode().released, ElementsAre(cluster.namenode().files["/f"].inode_id));
}

TEST(LeaseRelease, AClosedFileIsNotGivenUp) {
  ClientCluster cluster;
  ASSERT_TRUE(cluster.Put("/f", Pattern(1000)).ok());
  cluster.world().RunFor(absl::Seconds(1));
  EXPECT_THAT(cluster.namenode().released, IsEmpty());
}

TEST(LeaseRelease, AClientThatGoesSaysSoBeforeItIsGone) {
  ClientCluster cluster;
  auto writer = cluster.files().Create("/f").value();
  ASSERT_TRUE(writer->Append(Pattern(1000)).ok());
  writer.reset();
  cluster.CloseClient();
  EXPECT_THAT(cluster.namenode().released, ElementsAre(cluster.namenode().files["/f"].inode_id));
}

TEST(LeaseRelease, AClientWhoseCreateMayHaveActedGivesUpAllWhenItGoes) {
  ClientCluster cluster(4, Impatient());
  cluster.namenode().lose_answers["Create"] = 100;
  EXPECT_TRUE(errors::IsOutcomeUnknown(cluster.files().Create("/f").status()));
  cluster.CloseClient();
  EXPECT_THAT(cluster.namenode().released, ElementsAre(0u));
}

TEST(LeaseRelease, ACreateThatMayHaveActedIsLookedForLaterAndGivenUpWhileOthersGoOn) {
  ClientCluster cluster(4, Impatient());
  auto kept = cluster.files().Create("/kept").value();
  cluster.namenode().lose_answers["Create"] = 100;
  EXPECT_TRUE(errors::IsOutcomeUnknown(cluster.files().Create("/f").status()));
  cluster.namenode().lose_answers.clear();
  const uint64_t lost = cluster.namenode().files.at("/f").inode_id;
  EXPECT_TRUE(cluster.core().opens().any());
  cluster.world().RunFor(absl::Seconds(40));
  EXPECT_THAT(cluster.namenode().released, ElementsAre(lost));
  EXPECT_FALSE(cluster.core().opens().any());
  ASSERT_TRUE(kept->Append("x").ok());
  ASSERT_TRUE(kept->Close().ok());
  cluster.CloseClient();
  EXPECT_THAT(cluster.namenode().released, ElementsAre(lost));  // And no more when it goes.
}

TEST(LeaseRelease, WhatASecondTryHasMadeOfThatNameIsLeftAlone) {
  ClientCluster cluster(4, Impatient());
  cluster.namenode().lose_answers["Create"] = 100;
  EXPECT_TRUE(errors::IsOutcomeUnknown(cluster.files().Create("/f").status()));
  cluster.namenode().lose_answers.clear();
  CreateOptions overwrite;
  overwrite.overwrite = true;
  auto again = cluster.files().Create("/f", overwrite).value();
  cluster.world().RunFor(absl::Minutes(2));
  EXPECT_THAT(cluster.namenode().released, IsEmpty());
  ASSERT_TRUE(again->Append("x").ok());
  ASSERT_TRUE(again->Close().ok());
  EXPECT_FALSE(cluster.core().opens().any());
}

TEST(LeaseRelease, ACreateThatIsRefusedInTheEndLeavesNothingToLookFor) {
  ClientCluster cluster;
  cluster.namenode().refuse["Create"] = {absl::UnavailableError("cut off"), MakeError(ErrorKind::kAlreadyExists, "it exists")};
  EXPECT_FALSE(cluster.files().Create("/f").ok());
  EXPECT_FALSE(cluster.core().opens().any());
}

TEST(LeaseRelease, ACreateThatIsCancelledBeforeItIsAnsweredIsGivenUpWhenItsAnswerComes) {
  ClientCluster cluster;
  auto kept = cluster.files().Create("/kept").value();  // Renews the lease of all that this client has open.
  cluster.SetDelay(absl::Seconds(5));
  std::stop_source cancel;
  cluster.world().executor().PostAt(cluster.world().Now() + absl::Seconds(1), [&cancel] { cancel.request_stop(); });
  CreateOptions options;
  options.delete_if_abandoned = true;
  options.cancel = cancel.get_token();
  const SteadyTime began = cluster.world().Now();
  EXPECT_TRUE(errors::IsCancelled(cluster.files().Create("/late", options).status()));
  EXPECT_LE(cluster.world().Now() - began, absl::Seconds(2));
  EXPECT_THAT(cluster.namenode().released, IsEmpty());
  cluster.world().RunFor(absl::Seconds(30));
  EXPECT_THAT(cluster.namenode().released, ElementsAre(cluster.namenode().files.at("/late").inode_id));
  EXPECT_TRUE(cluster.namenode().files.at("/late").deleted_if_abandoned);
  EXPECT_FALSE(cluster.namenode().files.at("/kept").deleted_if_abandoned);
  EXPECT_EQ(cluster.core().leases().writers(), 1);
}

TEST(LeaseRelease, ACallThatNobodyWantsAnyMoreIsNotSent) {
  ClientCluster cluster;
  ASSERT_TRUE(cluster.Put("/f", "x").ok());
  const Scope scope = cluster.core().CallScope();
  NamenodeCaller::Fate fate{.unwanted = true};
  v1::CreateRequest request;
  request.set_path("/never");
  const auto created = RunBlocking<absl::StatusOr<v1::CreateResponse>>(cluster.core().env(), scope.group, "create", [&] {
    return cluster.core().namenode().Mutate(scope, &api::ClientNamenode::Create, request, &fate);
  });
  EXPECT_TRUE(errors::IsCancelled(created.status())) << created.status();
  EXPECT_FALSE(cluster.namenode().files.contains("/never"));
}

TEST(LeaseRelease, AnAbsentNamenodeHoldsAClientThatGoesForAMomentOnly) {
  ClientCluster cluster;
  auto writer = cluster.files().Create("/f").value();
  cluster.StopNamenode();
  writer.reset();
  const SteadyTime began = cluster.world().Now();
  cluster.CloseClient();
  EXPECT_LE(cluster.world().Now() - began, absl::Seconds(3));
  cluster.StartNamenode();
}

TEST(Append, ABlockOfItsOwnFollowsAShortOne) {
  ClientCluster cluster;
  const std::string first = Pattern(1000, 1), second = Pattern(kBlock + 7, 2);
  ASSERT_TRUE(cluster.Put("/f", first).ok());
  AppendOptions options;
  options.new_block = true;
  auto writer = cluster.files().Append("/f", options);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_EQ(errors::Reason(cluster.files().Append("/f", options).status()), "ALREADY_OPEN_BY_YOU");
  ASSERT_TRUE((*writer)->Append(second).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  EXPECT_EQ(cluster.Get("/f").value(), first + second);
  EXPECT_THAT(cluster.namenode().files["/f"].blocks, SizeIs(3));
  EXPECT_TRUE(errors::IsNotFound(cluster.files().Append("/none").status()));
}

TEST(Append, RecoverLeaseAndTruncateTellWhetherTheyAreDone) {
  ClientCluster cluster;
  auto writer = cluster.files().Create("/open").value();
  cluster.namenode().recovers_at_once = false;
  EXPECT_FALSE(cluster.files().RecoverLease("/open").value());
  cluster.namenode().recovers_at_once = true;
  EXPECT_TRUE(cluster.files().RecoverLease("/open").value());
  EXPECT_TRUE(errors::IsNotFound(cluster.files().RecoverLease("/none").status()));
  ASSERT_TRUE(cluster.Put("/f", Pattern(kBlock + 10)).ok());
  EXPECT_TRUE(cluster.files().Truncate("/f", kBlock).value());
  EXPECT_FALSE(cluster.files().Truncate("/f", 5).value());
}

}  // namespace
}  // namespace cairn::client
