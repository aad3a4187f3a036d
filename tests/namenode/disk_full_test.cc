// Random changes through the writer on a disk that fills up at random operations, in the middle of a record too, and gets room again; also
// while the store is being opened anew. Reads go on all the time and show nothing unacknowledged; afterwards everything acknowledged is
// there, a batch of unknown outcome is there whole or not at all, retrying it acts once, and changes are taken again without a restart.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/disk_watch.h"
#include "namenode/journal/local_journal.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace_writer.h"
#include "namenode/store/keys.h"
#include "tests/namenode/store_world.h"
#include "tests/namenode/stored_rows.h"
#include "tests/testing/builders.h"
#include "tests/testing/namespace_check.h"

namespace cairn::namenode {
namespace {

using cairn::testing::DeleteMutation;
using cairn::testing::kTestStartMs;
using cairn::testing::MemoryState;
using cairn::testing::MkdirsMutation;
using cairn::testing::RenameMutation;
using cairn::testing::SimDisk;
using cairn::testing::TestNamespace;
using cairn::testing::WithRetry;

constexpr char kDirectory[] = "/nn";
constexpr uint64_t kRoom = 1ull << 40;
constexpr uint32_t kSlots = 8;

struct Tally {
  int full = 0, full_again = 0, noticed_in_background = 0;
  int unknown_kept = 0, unknown_lost = 0;
  int retried = 0, acknowledged = 0;
};

class DiskFull {
 public:
  explicit DiskFull(uint64_t seed) : random_(seed), world_(seed), executor_(&world_.clock()) {
    world_.disk().SetFaultHook([this](SimDisk::Op op, const std::string& path) { return BeforeOperation(op, path); });
  }
  ~DiskFull() { Close(); }

  // OK, or the first broken promise.
  absl::Status Run(int rounds) {
    RETURN_IF_ERROR(NamenodeDirectory::Format(kDirectory, {}, &world_));
    RETURN_IF_ERROR(Open());
    model_.state() = RowsOf(*Snapshot());
    for (int i = 0; i < rounds; ++i) RETURN_IF_ERROR(Annotate(Round(), fmt::format("round {}", i)));
    return absl::OkStatus();
  }
  const Tally& tally() const { return tally_; }

 private:
  struct Change {
    v1::Mutation mutation;
    std::optional<absl::StatusOr<v1::MutationResult>> answer;
  };

  absl::Status BeforeOperation(SimDisk::Op op, const std::string& path) {
    if (op != SimDisk::Op::kWrite && op != SimDisk::Op::kRename) return absl::OkStatus();
    if (writes_left_ == 0) return absl::OkStatus();
    if (writes_left_ > 1) {
      --writes_left_;
      return absl::OkStatus();
    }
    // The last one stands for all that follow, too.
    return MakeError(ErrorKind::kDiskFull, fmt::format("write {}: no space left on device", path));
  }
  void MakeRoom() {
    writes_left_ = 0;
    world_.disk().SetCapacity(kRoom);
  }
  // At the n-th write from now: at once and whole, or wherever a page is missing.
  void FillUp() {
    if (random_.OneIn(2)) {
      writes_left_ = 1 + random_.Below(random_.OneIn(3) ? 60 : 8);
    } else {
      world_.disk().SetCapacity(world_.disk().used_bytes() + 4096 * random_.Below(4));
    }
  }

  void Close() {
    watch_.reset();
    writer_.reset();
    journal_.reset();
    directory_.reset();
  }
  absl::Status Open() {
    MetaStore::Options options;
    options.simulated = true;
    ASSIGN_OR_RETURN(directory_, NamenodeDirectory::Open(kDirectory, options, &world_));
    MetaStore* const store = &directory_->store();
    journal_ = std::make_unique<LocalJournal>(store);
    NamespaceWriter::Options writer_options;
    writer_options.max_batch = 1 + random_.Below(kSlots);
    writer_ = std::make_unique<NamespaceWriter>(writer_options, store, journal_.get(), &executor_, &world_.clock());
    writer_->SetObserver([this](const std::vector<NamespaceWriter::Applied>& batch) {
      for (const NamespaceWriter::Applied& applied : batch)
        if (!observed_.insert(applied.mutation->time_ms()).second) twice_ = true;
    });
    DiskWatch::Options watch_options;
    watch_options.directory = kDirectory;
    watch_options.reserved_bytes = 1 << 20;
    watch_ = std::make_unique<DiskWatch>(watch_options, &world_.files(), store, journal_.get(), writer_.get(), &executor_);
    return absl::OkStatus();
  }
  std::shared_ptr<const ReadView> Snapshot() { return directory_->store().Snapshot(); }

  v1::Mutation RandomMutation(uint32_t slot) {
    const auto path = [this] {
      std::string made;
      for (uint64_t depth = 1 + random_.Below(3); depth > 0; --depth) made += fmt::format("/{:0>150}", random_.Below(4));
      return made;
    };
    v1::Mutation mutation;
    switch (random_.Below(5)) {
      case 0: mutation = DeleteMutation(path(), random_.OneIn(2)); break;
      case 1: mutation = RenameMutation(path(), path()); break;
      default: mutation = MkdirsMutation(path()); break;
    }
    mutation.set_time_ms(kTestStartMs + static_cast<int64_t>(++sequence_));
    mutation = WithRetry(std::move(mutation), slot, sequence_, sequence_);
    mutation.set_slot_opened_ms(kTestStartMs);
    return mutation;
  }

  void Submit(std::vector<Change>& changes) {
    for (Change& change : changes)
      writer_->Submit(change.mutation, [&change](absl::StatusOr<v1::MutationResult> answer) { change.answer.emplace(std::move(answer)); });
    executor_.RunAll();
  }

  absl::Status ChangeSomething() {
    std::vector<Change> changes(1 + random_.Below(kSlots));
    for (uint32_t slot = 0; slot < changes.size(); ++slot) changes[slot].mutation = RandomMutation(slot);
    Submit(changes);
    for (const Change& change : changes) RETURN_IF_ERROR(Learn(change));
    if (random_.OneIn(5)) IgnoreError(directory_->store().StartFlush(), "a full disk refuses it");
    if (random_.OneIn(3)) world_.rocksdb().Pump(1 + random_.Below(4));
    return absl::OkStatus();
  }

  absl::Status Learn(const Change& change) {
    if (!change.answer) return absl::InternalError("a change was not answered");
    const absl::Status& status = change.answer->status();
    const bool full = !writer_->failure().ok();
    if (KindOf(status) == ErrorKind::kReadOnly) return full ? absl::OkStatus() : status;
    if (status.code() == absl::StatusCode::kUnavailable && KindOf(status) == ErrorKind::kNone) {
      if (!full) return status;
      unknown_.push_back(change.mutation);
      return absl::OkStatus();
    }
    if (!unknown_.empty()) return absl::InternalError("a change was answered after one of unknown outcome");
    const auto expected = model_.Apply(change.mutation);
    if (KindOf(expected.status()) != KindOf(status))
      return absl::InternalError(fmt::format("answered {}, expected {}", status.ToString(), expected.status().ToString()));
    if (expected.ok() && expected->SerializeAsString() != (*change.answer)->SerializeAsString())
      return absl::InternalError("another answer than the model's");
    ++tally_.acknowledged;
    return absl::OkStatus();
  }

  absl::Status Round() {
    FillUp();
    for (int step = 0; step < 200 && writer_->failure().ok(); ++step) {
      RETURN_IF_ERROR(ChangeSomething());
      if (writer_->failure().ok() && !directory_->store().health().ok()) {
        watch_->Look();  // Background work found it first.
        ++tally_.noticed_in_background;
      }
    }
    if (writer_->failure().ok()) {  // It needed no more of the disk.
      MakeRoom();
      return absl::OkStatus();
    }
    ++tally_.full;
    if (KindOf(writer_->failure()) != ErrorKind::kDiskFull) return writer_->failure();
    for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(ChangeSomething());
    if (!(RowsOf(*Snapshot()) == model_.state())) return absl::InternalError("a reader sees what was not acknowledged");
    RETURN_IF_ERROR(Recover());
    if (random_.OneIn(5)) RETURN_IF_ERROR(PowerCut());
    return absl::OkStatus();
  }

  absl::Status Recover() {
    std::shared_ptr<const ReadView> held = random_.OneIn(2) ? Snapshot() : nullptr;
    for (int look = 0; !writer_->failure().ok(); ++look) {
      if (look == 50) return absl::InternalError("it does not recover: " + watch_->status().ToString());
      if (random_.OneIn(2) && look < 20) {
        FillUp();  // Room goes again in the middle of it.
        if (writes_left_ == 0) world_.disk().SetCapacity(world_.disk().used_bytes() + (2 << 20));
        ++tally_.full_again;
      } else {
        MakeRoom();
      }
      watch_->Look();
      if (held != nullptr && !(RowsOf(*held) == model_.state())) return absl::InternalError("a reader's snapshot changed");
      if (look >= 2) held.reset();
    }
    MakeRoom();
    if (watch_->stats().state != DiskWatch::State::kWell || !watch_->status().ok()) return absl::InternalError("recovered, but not well");

    const MemoryState stored = RowsOf(*Snapshot());
    const std::vector<std::string> violations = testing::ViolationsOf(*Snapshot());
    if (!violations.empty()) return absl::InternalError("the namespace is not sound: " + violations.front());
    TestNamespace with_unknown = model_;
    for (const v1::Mutation& mutation : unknown_) static_cast<void>(with_unknown.Apply(mutation));
    if (stored == model_.state()) {
      tally_.unknown_lost += unknown_.empty() ? 0 : 1;
    } else if (stored == with_unknown.state()) {
      ++tally_.unknown_kept;
      model_ = with_unknown;
    } else {
      return absl::InternalError("the store is neither as acknowledged nor so with the whole batch of unknown outcome");
    }
    std::vector<Change> retries;
    for (v1::Mutation& mutation : unknown_) retries.push_back(Change{std::move(mutation), std::nullopt});
    unknown_.clear();
    Submit(retries);
    for (const Change& retry : retries) RETURN_IF_ERROR(Annotate(Learn(retry), "retry"));
    tally_.retried += static_cast<int>(retries.size());
    if (!(RowsOf(*Snapshot()) == model_.state())) return absl::InternalError("a retry has acted twice, or not at all");
    // Changes that acted were all observed, none twice: what was kept is not hidden from those who follow the commits.
    if (twice_) return absl::InternalError("a change was observed twice");
    return absl::OkStatus();
  }

  // What was shown after a recovery outlives the machine.
  absl::Status PowerCut() {
    world_.Kill();
    Close();
    world_.LosePowerAndBoot();
    RETURN_IF_ERROR(Annotate(Open(), "opening after a power cut"));
    if (!(RowsOf(*Snapshot()) == model_.state())) return absl::InternalError("a power cut after a recovery took something");
    return absl::OkStatus();
  }

  Random random_;
  testing::StoreWorld world_;
  testing::QueueExecutor executor_;
  std::unique_ptr<NamenodeDirectory> directory_;
  std::unique_ptr<LocalJournal> journal_;
  std::unique_ptr<NamespaceWriter> writer_;
  std::unique_ptr<DiskWatch> watch_;
  TestNamespace model_;
  std::vector<v1::Mutation> unknown_;
  std::set<int64_t> observed_;  // By time, which is each change's own.
  bool twice_ = false;
  uint64_t sequence_ = 0;
  uint64_t writes_left_ = 0;  // Until the disk is full; 0: it is not.
  Tally tally_;
};

TEST(DiskFull, IsOvercomeWithoutARestartAndLosesNothing) {
  Tally sum;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    DiskFull run(seed);
    const absl::Status outcome = run.Run(40);
    ASSERT_TRUE(outcome.ok()) << "seed " << seed << ": " << outcome;
    const Tally& tally = run.tally();
    sum.full += tally.full;
    sum.full_again += tally.full_again;
    sum.noticed_in_background += tally.noticed_in_background;
    sum.unknown_kept += tally.unknown_kept;
    sum.unknown_lost += tally.unknown_lost;
    sum.retried += tally.retried;
    sum.acknowledged += tally.acknowledged;
  }
  std::printf(
      "%d times full, %d again while opening, %d noticed in the background; unknown batches: %d kept, %d lost; %d retried, %d done\n",
      sum.full, sum.full_again, sum.noticed_in_background, sum.unknown_kept, sum.unknown_lost, sum.retried, sum.acknowledged);
  EXPECT_GT(sum.full, 60);
  EXPECT_GT(sum.full_again, 20);
  EXPECT_GT(sum.noticed_in_background, 3);
  EXPECT_GT(sum.unknown_lost, 10);
  EXPECT_GT(sum.retried, 20);
}

class DiskWatchTest : public ::testing::Test {
 protected:
  DiskWatchTest() : executor_(&world_.clock()) {
    EXPECT_TRUE(NamenodeDirectory::Format("/nn", {}, &world_).ok());
    MetaStore::Options options;
    options.simulated = true;
    directory_ = NamenodeDirectory::Open("/nn", options, &world_).value();
    journal_ = std::make_unique<LocalJournal>(&directory_->store());
    writer_ =
        std::make_unique<NamespaceWriter>(NamespaceWriter::Options(), &directory_->store(), journal_.get(), &executor_, &world_.clock());
    DiskWatch::Options watch;
    watch.directory = "/nn";
    watch.reserved_bytes = 80 << 10;
    watch_ = std::make_unique<DiskWatch>(watch, &world_.files(), &directory_->store(), journal_.get(), writer_.get(), &executor_);
  }
  ~DiskWatchTest() override { writer_.reset(); }
  void LeaveFree(uint64_t bytes) { world_.disk().SetCapacity(world_.disk().used_bytes() + bytes); }
  absl::Status Mkdir(const std::string& path) {
    absl::Status status = absl::UnknownError("not answered");
    writer_->Submit(MkdirsMutation(path), [&](const absl::StatusOr<v1::MutationResult>& result) { status = result.status(); });
    executor_.RunAll();
    return status;
  }
  bool IsThere(const std::string& path) { return ResolvePath(*directory_->store().Snapshot(), path).ok(); }

  testing::StoreWorld world_;
  testing::QueueExecutor executor_;
  std::unique_ptr<NamenodeDirectory> directory_;
  std::unique_ptr<LocalJournal> journal_;
  std::unique_ptr<NamespaceWriter> writer_;
  std::unique_ptr<DiskWatch> watch_;
};

TEST_F(DiskWatchTest, LowSpaceRefusesChangesInTimeAndEndsByItself) {
  ASSERT_TRUE(Mkdir("/a").ok());
  LeaveFree(80 << 10);
  watch_->Look();
  EXPECT_TRUE(watch_->status().ok());
  EXPECT_TRUE(Mkdir("/b").ok());
  LeaveFree((80 << 10) - 1);
  watch_->Look();
  const absl::Status refused = Mkdir("/c");
  EXPECT_EQ(KindOf(refused), ErrorKind::kReadOnly);
  EXPECT_EQ(ReasonOf(refused), "LOW_SPACE");
  EXPECT_EQ(ErrorOf(refused)->key, "dfs.namenode.resource.du.reserved");
  const std::string words(refused.message());
  for (const char* word : {"safe mode", "/nn has 81919 bytes free", "dfs.namenode.resource.du.reserved asks for 81920"})
    EXPECT_NE(words.find(word), std::string::npos) << words;
  EXPECT_TRUE(writer_->read_only());
  EXPECT_TRUE(writer_->failure().ok());
  EXPECT_EQ(watch_->stats().state, DiskWatch::State::kLowSpace);
  EXPECT_EQ(watch_->stats().available_bytes, 81919u);
  EXPECT_EQ(KindOf(watch_->status()), ErrorKind::kReadOnly);
  EXPECT_TRUE(IsThere("/a") && IsThere("/b") && !IsThere("/c"));

  LeaveFree(85 << 10);  // More than reserved, but not an eighth more.
  watch_->Look();
  EXPECT_EQ(KindOf(Mkdir("/c")), ErrorKind::kReadOnly);
  LeaveFree(90 << 10);
  watch_->Look();
  EXPECT_TRUE(Mkdir("/c").ok());
  EXPECT_TRUE(watch_->status().ok());
  EXPECT_FALSE(writer_->read_only());
  EXPECT_EQ(watch_->stats().recoveries, 0u);
}

TEST_F(DiskWatchTest, FullDiskIsOvercomeWhenReadersHaveLetGo) {
  ASSERT_TRUE(Mkdir("/a").ok());
  LeaveFree(0);
  absl::Status failed;
  for (int i = 0; failed.ok() && i < 1000; ++i) failed = Mkdir(fmt::format("/{:0>200}", i));
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(KindOf(failed), ErrorKind::kNone);  // Outcome unknown.
  EXPECT_EQ(KindOf(Mkdir("/b")), ErrorKind::kReadOnly);
  EXPECT_FALSE(watch_->Look());
  EXPECT_EQ(watch_->stats().state, DiskWatch::State::kFull);
  auto held = directory_->store().Snapshot();
  world_.disk().SetCapacity(kRoom);
  EXPECT_TRUE(watch_->Look());  // Somebody reads what is to be closed.
  EXPECT_TRUE(IsThere("/a"));
  EXPECT_TRUE(ResolvePath(*held, "/a").ok());
  EXPECT_EQ(KindOf(Mkdir("/b")), ErrorKind::kReadOnly);
  EXPECT_TRUE(watch_->Look());
  held.reset();
  EXPECT_FALSE(watch_->Look());
  EXPECT_EQ(watch_->stats().state, DiskWatch::State::kWell);
  EXPECT_EQ(watch_->stats().recoveries, 1u);
  EXPECT_TRUE(Mkdir("/b").ok());
  EXPECT_TRUE(IsThere("/a") && IsThere("/b"));
}

TEST_F(DiskWatchTest, FailedSyncIsNeverBelievedAgain) {
  for (const bool no_space : {false, true}) {
    SCOPED_TRACE(no_space);
    ASSERT_TRUE(Mkdir("/a").ok());
    if (no_space) {
      world_.disk().SetFaultHook([](SimDisk::Op op, const std::string& path) {
        return op == SimDisk::Op::kSync ? MakeError(ErrorKind::kDiskFull, fmt::format("fdatasync {}: no space left on device", path))
                                        : absl::OkStatus();
      });
    } else {
      world_.disk().FailNextSync("/nn/namespace/");
    }
    EXPECT_EQ(Mkdir("/lost").code(), absl::StatusCode::kUnavailable);
    world_.disk().SetFaultHook(nullptr);
    for (int i = 0; i < 3; ++i) watch_->Look();
    EXPECT_EQ(watch_->stats().state, DiskWatch::State::kFailed);
    EXPECT_NE(std::string(watch_->status().message()).find("until a restart"), std::string::npos) << watch_->status();
    EXPECT_EQ(KindOf(Mkdir("/b")), ErrorKind::kReadOnly);
    EXPECT_TRUE(IsThere("/a") && !IsThere("/lost"));

    // A restart finds out what is on the disk.
    writer_.reset();
    watch_.reset();
    journal_.reset();
    world_.Kill();
    directory_.reset();
    world_.LosePowerAndBoot();
    MetaStore::Options options;
    options.simulated = true;
    auto reopened = NamenodeDirectory::Open("/nn", options, &world_);
    ASSERT_TRUE(reopened.ok()) << reopened.status();
    directory_ = *std::move(reopened);
    EXPECT_TRUE(IsThere("/a"));
    journal_ = std::make_unique<LocalJournal>(&directory_->store());
    writer_ =
        std::make_unique<NamespaceWriter>(NamespaceWriter::Options(), &directory_->store(), journal_.get(), &executor_, &world_.clock());
    DiskWatch::Options watch;
    watch.directory = "/nn";
    watch_ = std::make_unique<DiskWatch>(watch, &world_.files(), &directory_->store(), journal_.get(), writer_.get(), &executor_);
  }
}

}  // namespace
}  // namespace cairn::namenode
