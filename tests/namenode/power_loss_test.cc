// Random changes through the writer on a disk that loses power at random operations: also inside a commit, a flush, the opening of the
// database. After each cut everything acknowledged is there, nothing refused is, a batch of unknown outcome is there whole
// or not at all, and retrying it acts once.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/journal/local_journal.h"
#include "namenode/journal/wal_scan.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace_writer.h"
#include "namenode/store/keys.h"
#include "tests/namenode/namespace_dump.h"
#include "tests/namenode/store_world.h"
#include "tests/namenode/stored_rows.h"
#include "tests/namenode/tree_model.h"
#include "tests/namenode/tree_workload.h"
#include "tests/testing/builders.h"
#include "tests/testing/namespace_check.h"
#include "tests/testing/property_run.h"

namespace cairn::namenode {
namespace {

using cairn::testing::Difference;
using cairn::testing::DumpNamespace;
using cairn::testing::Expected;
using cairn::testing::FirstDifferences;
using cairn::testing::MemoryState;
using cairn::testing::NamespaceDump;
using cairn::testing::SimDisk;
using cairn::testing::TestNamespace;
using cairn::testing::TreeModel;
using cairn::testing::TreeWorkload;
using cairn::testing::ViolationsOf;

constexpr char kDirectory[] = "/nn";
constexpr uint32_t kSlots = 8;

struct Plan {
  uint64_t seed = 1;
  int cuts = 200;
  bool sync = true;  // Controls that must fail:
  bool ignore_directory_syncs = false;
};

struct Tally {
  int cuts_in_use = 0, cuts_while_opening = 0;
  int unknown_kept = 0, unknown_lost = 0;  // Batches of unknown outcome.
  int torn_logs = 0;
  uint64_t acknowledged = 0, refused = 0, retried = 0;
  std::map<int, int> unknown_operations;  // By their numbers.
  int unknown_parts = 0;                  // Later parts of a call of deleteMany.
  std::string ToString() const {
    return fmt::format(
        "{} cuts in use, {} while opening; unknown batches: {} kept, {} lost, of {} kinds of change, {} later parts of deleteMany; {} torn "
        "logs; {} changes acknowledged, {} refused, {} retried",
        cuts_in_use, cuts_while_opening, unknown_kept, unknown_lost, unknown_operations.size(), unknown_parts, torn_logs, acknowledged,
        refused, retried);
  }
};

class PowerLoss {
 public:
  explicit PowerLoss(const Plan& plan)
      : plan_(plan),
        random_(plan.seed),
        world_(plan.seed),
        executor_(&world_.clock()),
        workload_({.clients = 3, .slots = kSlots, .long_names = 90, .long_file_one_in = 4000}, Random(plan.seed + 1)) {
    world_.disk().SetFaultHook([this](SimDisk::Op op, const std::string& path) { return BeforeOperation(op, path); });
  }

  // OK, or the first broken promise.
  absl::Status Run() {
    NamenodeDirectory::FormatOptions format;
    format.owner = "root";  // As the model begins.
    format.group = "staff";
    RETURN_IF_ERROR(NamenodeDirectory::Format(kDirectory, format, &world_));
    world_.disk().IgnoreDirectorySyncs(plan_.ignore_directory_syncs);
    Cut();
    RETURN_IF_ERROR(Annotate(Open(), "opening what was just formatted"));
    model_.state() = Stored();
    if (const absl::Status fits = CheckTree(); !fits.ok()) return Annotate(fits, "the tree that was just formatted");
    std::vector<Change> storages = {{TreeWorkload::RegisterStorages(), std::nullopt}};
    Submit(storages);
    RETURN_IF_ERROR(Learn(storages.front()));
    for (int i = 0; i < plan_.cuts; ++i) {
      operations_left_ = 1 + random_.Below(random_.OneIn(4) ? 300 : 40);
      while (!dead_) RETURN_IF_ERROR(ChangeSomething());
      ++tally_.cuts_in_use;
      Cut();
      RETURN_IF_ERROR(Annotate(Recover(), fmt::format("seed {}, after cut {}", plan_.seed, i)));
    }
    Close();
    return absl::OkStatus();
  }
  const Tally& tally() const { return tally_; }

 private:
  struct Change {
    v1::Mutation mutation;
    std::optional<absl::StatusOr<v1::MutationResult>> answer;
  };

  absl::Status BeforeOperation(SimDisk::Op op, const std::string& path) {
    if (op == SimDisk::Op::kRead || op == SimDisk::Op::kList || op == SimDisk::Op::kLock || operations_left_ == 0) return absl::OkStatus();
    if (--operations_left_ > 0) return absl::OkStatus();
    dead_ = true;
    world_.Kill();
    return absl::InternalError("power is lost at " + path);
  }

  void Close() {
    writer_.reset();
    journal_.reset();
    directory_.reset();
  }
  void Cut() {
    operations_left_ = 0;
    world_.Kill();
    Close();
    world_.LosePowerAndBoot();
    dead_ = false;
  }

  absl::Status Open() {
    NoteTornLog();
    MetaStore::Options options;
    options.simulated = true;
    ASSIGN_OR_RETURN(directory_, NamenodeDirectory::Open(kDirectory, options, &world_));
    if (directory_->epoch() <= last_epoch_)
      return absl::InternalError(fmt::format("epoch {} after epoch {}", directory_->epoch().value(), last_epoch_.value()));
    last_epoch_ = directory_->epoch();
    journal_ = std::make_unique<LocalJournal>(&directory_->store(), plan_.sync);
    NamespaceWriter::Options writer_options;
    writer_options.max_batch = 1 + random_.Below(kSlots);
    writer_ = std::make_unique<NamespaceWriter>(writer_options, &directory_->store(), journal_.get(), &executor_, &world_.clock());
    return absl::OkStatus();
  }

  void NoteTornLog() {
    const auto names = world_.files().List(std::string(kDirectory) + "/namespace");
    if (!names.ok()) return;
    for (const std::string& name : *names) {
      if (!name.ends_with(".log")) continue;
      const auto bytes = world_.files().ReadWhole(fmt::format("{}/namespace/{}", kDirectory, name));
      if (!bytes.ok()) continue;
      const auto scan = ScanLog(*bytes, name);
      tally_.torn_logs += scan.ok() && scan->torn_at.has_value() ? 1 : 0;
    }
  }

  v1::Mutation RandomMutation() {
    if (workload_.HasEarlier() && random_.OneIn(8)) return workload_.Earlier();
    std::vector<uint64_t> works;
    for (const auto& [key, value] : model_.view().rows(Family::kWork)) works.push_back(*ParseWorkKey(key));
    return workload_.Next(tree_, works);
  }

  void Submit(std::vector<Change>& changes) {
    for (Change& change : changes) {
      writer_->Submit(change.mutation, [&change](absl::StatusOr<v1::MutationResult> answer) { change.answer.emplace(std::move(answer)); });
    }
    executor_.RunAll();
  }

  // A group of changes, and sometimes work in the background.
  absl::Status ChangeSomething() {
    std::vector<Change> changes(1 + random_.Below(kSlots));
    for (Change& change : changes) change.mutation = RandomMutation();
    Submit(changes);
    for (const Change& change : changes) RETURN_IF_ERROR(Learn(change));
    if (!dead_ && random_.OneIn(6)) {
      const absl::Status flush = directory_->store().StartFlush();
      if (!flush.ok() && !dead_) return flush;
    }
    if (!dead_ && random_.OneIn(3)) world_.rocksdb().Pump(1 + random_.Below(4));
    return absl::OkStatus();
  }

  // Puts what an answer says into the model.
  absl::Status Learn(const Change& change) {
    if (!change.answer) return absl::InternalError("a change was not answered");
    const absl::Status& status = change.answer->status();
    if (KindOf(status) == ErrorKind::kReadOnly) return dead_ ? absl::OkStatus() : status;
    if (status.code() == absl::StatusCode::kUnavailable && KindOf(status) == ErrorKind::kNone) {
      if (!dead_) return status;
      unknown_.push_back(change.mutation);
      ++tally_.unknown_operations[change.mutation.op_case()];
      tally_.unknown_parts += change.mutation.delete_many().from() > 0 ? 1 : 0;
      return absl::OkStatus();
    }
    if (!unknown_.empty()) return absl::InternalError("a change was answered after one of unknown outcome");
    const absl::StatusOr<v1::MutationResult> expected = model_.Apply(change.mutation);
    const Expected by_tree = tree_.Apply(change.mutation);
    if (by_tree.unpredictable && model_.rows_written() > 0) tree_.Acted(change.mutation);
    if (const std::string difference = Difference(by_tree, expected); !difference.empty())
      return absl::InternalError(fmt::format("{} of {}", difference, change.mutation.ShortDebugString()));
    if (KindOf(expected.status()) != KindOf(status))
      return absl::InternalError(fmt::format("answered {}, expected {}", status.ToString(), expected.status().ToString()));
    if (expected.ok() && expected->SerializeAsString() != (*change.answer)->SerializeAsString())
      return absl::InternalError(
          fmt::format("answered {}, expected {}", (*change.answer)->ShortDebugString(), expected->ShortDebugString()));
    ++(expected.ok() ? tally_.acknowledged : tally_.refused);
    return absl::OkStatus();
  }

  // All rows, but for those that the store itself keeps.
  MemoryState Stored() { return RowsOf(*directory_->store().Snapshot()); }

  absl::Status Recover() {
    for (;;) {
      if (random_.OneIn(3)) operations_left_ = 1 + random_.Below(120);
      const absl::Status opened = Open();
      if (opened.ok() && !dead_) break;
      if (!dead_) return opened;
      ++tally_.cuts_while_opening;
      Cut();
    }
    operations_left_ = 0;

    const MemoryState stored = Stored();
    TestNamespace with_unknown = model_;
    TreeModel tree_with_unknown = tree_;
    for (const v1::Mutation& mutation : unknown_) {
      static_cast<void>(with_unknown.Apply(mutation));
      if (tree_with_unknown.Apply(mutation).unpredictable && with_unknown.rows_written() > 0) tree_with_unknown.Acted(mutation);
    }
    if (stored == model_.state()) {
      tally_.unknown_lost += unknown_.empty() ? 0 : 1;
    } else if (stored == with_unknown.state()) {
      ++tally_.unknown_kept;
      model_ = with_unknown;
      tree_ = tree_with_unknown;
    } else {
      return absl::InternalError("the store is neither as acknowledged nor so with the whole batch of unknown outcome");
    }

    // The clients try again: what was kept is answered from the retry table, what was lost is done now.
    std::vector<Change> retries;
    for (v1::Mutation& mutation : unknown_)
      if (mutation.sequence() != 0) retries.push_back(Change{std::move(mutation), std::nullopt});
    unknown_.clear();
    Submit(retries);
    for (const Change& retry : retries) RETURN_IF_ERROR(Annotate(Learn(retry), "retry"));
    tally_.retried += retries.size();
    if (!(Stored() == model_.state())) return absl::InternalError("a retry has acted twice, or not at all");
    return CheckTree();
  }

  // The rows fit together and say what the model of whole paths says.
  absl::Status CheckTree() {
    const NamespaceDump dump = DumpNamespace(*directory_->store().Snapshot());
    if (!dump.broken.empty()) return absl::InternalError(fmt::format("{} faults: {}", dump.broken.size(), fmt::join(dump.broken, "; ")));
    if (dump.counters != tree_.Counters()) return absl::InternalError(fmt::format("{}, expected {}", dump.counters, tree_.Counters()));
    if (const std::vector<std::string> violations = ViolationsOf(*directory_->store().Snapshot()); !violations.empty())
      return absl::InternalError(fmt::format("{} violations: {}", violations.size(), fmt::join(violations, "; ")));
    const std::string differences = FirstDifferences(tree_.Lines(), dump.lines);
    return differences.empty() ? absl::OkStatus() : absl::InternalError(differences);
  }

  const Plan plan_;
  Random random_;
  testing::StoreWorld world_;
  testing::QueueExecutor executor_;
  std::unique_ptr<NamenodeDirectory> directory_;
  std::unique_ptr<LocalJournal> journal_;
  std::unique_ptr<NamespaceWriter> writer_;
  TestNamespace model_;  // The same Apply, on rows in memory: what is stored must be equal to the byte.
  TreeModel tree_;       // Knows nothing of rows.
  TreeWorkload workload_;
  std::vector<v1::Mutation> unknown_;
  Epoch last_epoch_;
  uint64_t operations_left_ = 0;  // Until power is lost; 0: it is not.
  bool dead_ = false;
  Tally tally_;
};

TEST(PowerLoss, LosesNothingAcknowledgedInTwoHundredCuts) {
  PowerLoss run({.seed = 1, .cuts = 200});
  const absl::Status outcome = run.Run();
  EXPECT_TRUE(outcome.ok()) << outcome;
  const Tally& tally = run.tally();
  std::printf("%s\n", tally.ToString().c_str());
  // The run was about something.
  EXPECT_GT(tally.cuts_while_opening, 20);
  EXPECT_GT(tally.unknown_kept, 5);
  EXPECT_GT(tally.unknown_lost, 10);
  EXPECT_GT(tally.torn_logs, 4);
  EXPECT_GT(tally.refused, 100u);
  EXPECT_GT(tally.retried, 20u);
  EXPECT_GT(tally.unknown_parts, 0);
  EXPECT_GT(tally.unknown_operations.size(), 24u);
  for (const int operation : {v1::Mutation::kAppend, v1::Mutation::kTruncate, v1::Mutation::kDeleteMany, v1::Mutation::kConcat})
    EXPECT_TRUE(tally.unknown_operations.contains(operation)) << operation;
}

TEST(PowerLoss, LosesNothingAcknowledgedFromOtherSeeds) {
  cairn::testing::PropertyRun runs("PowerLoss.LosesNothingAcknowledgedFromOtherSeeds", absl::Seconds(10));
  while (const std::optional<uint64_t> seed = runs.NextSeed()) {
    PowerLoss run({.seed = *seed, .cuts = 30});
    const absl::Status outcome = run.Run();
    ASSERT_TRUE(outcome.ok()) << outcome << "\n" << runs.Replay();
  }
}

TEST(PowerLoss, ControlWithoutSyncIsCaught) {
  PowerLoss run({.seed = 1, .cuts = 200, .sync = false});
  const absl::Status outcome = run.Run();
  EXPECT_FALSE(outcome.ok());
  EXPECT_GT(run.tally().cuts_in_use, 0) << "caught before anything was lost: " << outcome;
  std::printf("caught: %s\n", outcome.ToString().c_str());
}

TEST(PowerLoss, ControlWithDirectorySyncsIgnoredIsCaught) {
  PowerLoss run({.seed = 1, .cuts = 200, .ignore_directory_syncs = true});
  const absl::Status outcome = run.Run();
  EXPECT_FALSE(outcome.ok());
  EXPECT_GT(run.tally().cuts_in_use, 0) << "caught before anything was lost: " << outcome;
  std::printf("caught: %s\n", outcome.ToString().c_str());
}

}  // namespace
}  // namespace cairn::namenode
