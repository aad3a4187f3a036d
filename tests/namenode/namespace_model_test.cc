// Random changes to a namespace in memory against a model of whole paths, which knows nothing of ids, rows or totals: every answer, then
// all that is kept. The same over a disk that loses power: power_loss_test.cc.

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "tests/namenode/model_run.h"
#include "tests/testing/property_run.h"

namespace cairn::namenode {
namespace {

using cairn::testing::ModelRun;
using cairn::testing::NumberFromEnvironment;
using cairn::testing::OperationTally;
using cairn::testing::PropertyRun;

constexpr int kSteps = 600;

// CAIRN_TALLY=1: also how often each refusal was given.
void Print(const OperationTally& tally) { std::printf("%s", tally.ToString(NumberFromEnvironment("CAIRN_TALLY", 0) != 0).c_str()); }

TEST(NamespaceModel, EveryAnswerAndEverythingKeptIsAsTheModelSays) {
  PropertyRun runs("NamespaceModel.EveryAnswerAndEverythingKeptIsAsTheModelSays", absl::Seconds(10));
  OperationTally tally;
  while (const std::optional<uint64_t> seed = runs.NextSeed()) {
    ModelRun run(*seed);
    const std::string wrong = run.Run(kSteps);
    tally.Add(run.tally());
    ASSERT_TRUE(wrong.empty()) << wrong << "\n" << runs.Replay() << "\n" << tally.ToString(/*with_refusals=*/true);
  }
  Print(tally);
}

// What the test above is about: of these seeds, so that a change that takes something out of reach is seen.
TEST(NamespaceModel, ReachesEveryOperationBothWays) {
  OperationTally tally;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    ModelRun run(seed);
    ASSERT_EQ(run.Run(kSteps), "") << "seed " << seed;
    tally.Add(run.tally());
  }
  const google::protobuf::OneofDescriptor* operations = v1::Mutation::descriptor()->FindOneofByName("op");
  for (int i = 0; i < operations->field_count(); ++i) {
    const int number = operations->field(i)->number();
    const OperationTally::Counts& counts = tally.operations[number];
    EXPECT_GT(counts.acted, 0u) << operations->field(i)->name();
    switch (number) {
      case v1::Mutation::kExpireLease:  // The NameNode's own, of rows that may have gone: never refused.
      case v1::Mutation::kReclaimStep:
      case v1::Mutation::kSpreadReplication:
      case v1::Mutation::kSweepRetries: EXPECT_GT(counts.idle, 0u) << operations->field(i)->name(); break;
      default: EXPECT_GT(counts.refused, 0u) << operations->field(i)->name(); break;
    }
  }
  for (const char* refusal : {
           "abandon_block kInvalidArgument APPENDED",
           "add_block kQuota SPACE_QUOTA",
           "append kBeingWritten BUSY",
           "append kBeingWritten HELD_BY_OTHER",
           "append kBeingWritten MAY_BE_TAKEN_OVER",
           "append kBeingWritten RECOVERING",
           "append kNotReplicatedYet NOT_SUFFICIENTLY_REPLICATED",
           "append kRetriable CHANGED_MEANWHILE",
           "commit_block_recovery kInvalidArgument DATA_LOST",
           "commit_block_recovery kInvalidArgument NOT_ALL_ANSWERED",
           "commit_block_recovery kInvalidArgument NOT_EXPECTED_STORAGE",
           "commit_block_recovery kInvalidArgument SHORTER_THAN_SYNCED",
           "commit_block_recovery kInvalidArgument STAMP",
           "commit_block_recovery kInvalidArgument WRONG_LENGTH",
           "commit_block_recovery kLeaseExpired BLOCK_GONE",
           "commit_block_recovery kStaleGeneration RECOVERY_ID",
           "concat kInvalidArgument TARGET_OPEN",
           "create kBeingWritten ALREADY_OPEN_BY_YOU",
           "create kQuota NAMESPACE_QUOTA",
           "create kQuota SPACE_QUOTA",
           "delete_many kInvalidArgument ",  // More than 256 paths.
           "delete_many kInvalidArgument NO_EARLIER_PART",
           "delete_many kInvalidArgument OLD_SEQUENCE",
           "delete_many kInvalidArgument REQUEST_MISMATCH",
           "delete_many kSlotExpired SLOT_EXPIRED",
           "start_block_recovery kStaleGeneration NOT_UNDER_RECOVERY",
           "truncate kBeingWritten BUSY",
           "truncate kInvalidArgument LARGER_THAN_FILE",
           "truncate kNotReplicatedYet NOT_SUFFICIENTLY_REPLICATED",
           "truncate kRetriable CHANGED_MEANWHILE",
       })
    EXPECT_GT(tally.refusals[refusal], 0u) << refusal;
  if (HasFailure()) std::printf("%s", tally.ToString(/*with_refusals=*/true).c_str());
}

}  // namespace
}  // namespace cairn::namenode
