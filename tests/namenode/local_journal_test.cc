#include "namenode/journal/local_journal.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "tests/namenode/store_world.h"

namespace cairn::namenode {
namespace {

class LocalJournalTest : public ::testing::Test {
 protected:
  LocalJournalTest() {
    MetaStore::Options options;
    options.directory = "/db";
    options.simulated = true;
    EXPECT_TRUE(MetaStore::Create(options, &world_).ok());
    store_ = MetaStore::Open(options, &world_).value();
  }
  absl::Status Commit(Journal& journal, std::string_view key) {
    const auto txn = store_->NewTransaction();
    txn->Put(Family::kInode, key, "value");
    std::optional<absl::Status> outcome;
    journal.Commit(txn->TakeEffects(), [&outcome](const absl::Status& status) { outcome = status; });
    return outcome.value_or(absl::InternalError("done was not called"));
  }
  bool Has(std::string_view key) {
    store_->Publish();
    return store_->Snapshot()->Get(Family::kInode, key)->has_value();
  }

  testing::StoreWorld world_;
  std::unique_ptr<MetaStore> store_;
};

TEST_F(LocalJournalTest, OneSyncForEachBatch) {
  LocalJournal journal(store_.get());
  ASSERT_TRUE(Commit(journal, "first").ok());  // Syncs the directory too, for the new log.
  for (int i = 0; i < 5; ++i) {
    const auto before = world_.disk().counters();
    ASSERT_TRUE(Commit(journal, "k" + std::to_string(i)).ok());
    EXPECT_EQ(world_.disk().counters().syncs, before.syncs + 1);
    EXPECT_EQ(world_.disk().counters().directory_syncs, before.directory_syncs);
  }
}

TEST_F(LocalJournalTest, TheFirstFailurePoisonsAllLaterCommits) {
  LocalJournal journal(store_.get());
  ASSERT_TRUE(Commit(journal, "before").ok());
  world_.disk().FailNextSync("/db/");
  const absl::Status failed = Commit(journal, "during");
  EXPECT_FALSE(failed.ok());
  const auto before = world_.disk().counters();
  const absl::Status later = Commit(journal, "after");
  EXPECT_FALSE(later.ok());
  EXPECT_NE(std::string(later.message()).find("earlier failure"), std::string::npos) << later;
  EXPECT_EQ(world_.disk().counters().written_bytes, before.written_bytes);
  EXPECT_FALSE(Has("after"));
}

TEST_F(LocalJournalTest, AFaultBeforeACommitPoisonsLikeAFailedSync) {
  LocalJournal journal(store_.get());
  EnableFaultPoints();
  ASSERT_TRUE(ArmFault("local_journal.before_commit", "error*1").ok());
  EXPECT_FALSE(Commit(journal, "during").ok());
  DisarmAllFaults();
  EXPECT_FALSE(Commit(journal, "after").ok());
  EXPECT_FALSE(Has("during"));
}

TEST_F(LocalJournalTest, ReadBarrierIsFree) {
  LocalJournal journal(store_.get());
  bool called = false;
  journal.ReadBarrier([&called](const absl::Status& status) { called = status.ok(); });
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace cairn::namenode
