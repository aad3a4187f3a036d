#include "namenode/namespace_writer.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "namenode/journal/local_journal.h"
#include "tests/namenode/store_world.h"

namespace cairn::namenode {
namespace {

// Stores SetMeta's name and value; refuses the name "refused", answers "repeat" without a write, cannot read at "broken".
absl::StatusOr<v1::MutationResult> ApplyFake(const v1::Mutation& mutation, Transaction& txn) {
  const v1::Mutation::SetMeta& set = mutation.set_meta();
  v1::MutationResult result;
  if (set.name() == "broken") return MakeError(ErrorKind::kCorruptMetadata, "block 7 of a table is damaged");
  if (set.name() == "refused") {
    *result.mutable_error() = ToDetail(MakeError(ErrorKind::kNotFound, "no such thing"));
    return result;
  }
  if (set.name() != "repeat") txn.Put(Family::kInode, set.name(), set.value());
  result.set_path(set.name());
  return result;
}

v1::Mutation Set(const std::string& name, const std::string& value = "v") {
  v1::Mutation mutation;
  mutation.mutable_set_meta()->set_name(name);
  mutation.mutable_set_meta()->set_value(value);
  return mutation;
}

// Keeps commits until told what came of them.
class HeldJournal : public Journal {
 public:
  explicit HeldJournal(MetaStore* store) : store_(store) {}
  void Commit(EffectBatch batch, absl::AnyInvocable<void(absl::Status)> done) override {
    ASSERT_FALSE(done_) << "a second commit while one is under way";
    batch_ = std::move(batch);
    done_ = std::move(done);
  }
  void ReadBarrier(absl::AnyInvocable<void(absl::Status)> done) override { done(absl::OkStatus()); }
  bool holds() const { return static_cast<bool>(done_); }
  void Finish() {
    auto done = std::move(done_);
    done_ = nullptr;
    done(store_->Write(batch_, true));
  }
  void Fail(const absl::Status& status) {
    auto done = std::move(done_);
    done_ = nullptr;
    done(status);
  }

 private:
  MetaStore* store_;
  EffectBatch batch_;
  absl::AnyInvocable<void(absl::Status)> done_;
};

class NamespaceWriterTest : public ::testing::Test {
 protected:
  NamespaceWriterTest() : executor_(&world_.clock()) {
    MetaStore::Options options;
    options.directory = "/db";
    options.simulated = true;
    EXPECT_TRUE(MetaStore::Create(options, &world_).ok());
    store_ = MetaStore::Open(options, &world_).value();
    local_ = std::make_unique<LocalJournal>(store_.get());
    held_ = std::make_unique<HeldJournal>(store_.get());
  }
  ~NamespaceWriterTest() override { writer_.reset(); }
  void Start(NamespaceWriter::Options options, Journal* journal) {
    writer_ = std::make_unique<NamespaceWriter>(options, store_.get(), journal, &executor_, &world_.clock(), &ApplyFake);
    writer_->SetCommitObserver([this](const NamespaceWriter::CommitSample& sample) { samples_.push_back(sample); });
  }
  // Its answer lands in answers_, in the order of the answers.
  void Submit(v1::Mutation mutation) {
    const std::string name = mutation.set_meta().name();
    writer_->Submit(std::move(mutation),
                    [this, name](absl::StatusOr<v1::MutationResult> result) { answers_.emplace_back(name, result.status()); });
  }
  bool Published(std::string_view key) { return store_->Snapshot()->Get(Family::kInode, key)->has_value(); }

  testing::StoreWorld world_;
  testing::QueueExecutor executor_;
  std::unique_ptr<MetaStore> store_;
  std::unique_ptr<LocalJournal> local_;
  std::unique_ptr<HeldJournal> held_;
  std::unique_ptr<NamespaceWriter> writer_;
  std::vector<NamespaceWriter::CommitSample> samples_;
  std::vector<std::pair<std::string, absl::Status>> answers_;
};

TEST_F(NamespaceWriterTest, FewWaitForHalfOfTheCompanyThatTheLastCommitHad) {
  NamespaceWriter::Options options;
  options.gather = absl::Milliseconds(1);
  Start(options, local_.get());
  for (int i = 0; i < 8; ++i) Submit(Set("first"));
  executor_.RunAll();
  EXPECT_EQ(answers_.size(), 8u);
  for (int i = 0; i < 3; ++i) Submit(Set("few"));
  executor_.RunAll();
  EXPECT_EQ(answers_.size(), 8u);  // They wait for a fourth.
  Submit(Set("fourth"));
  executor_.RunAll();
  EXPECT_EQ(answers_.size(), 12u);
  EXPECT_EQ(samples_.size(), 2u);
}

TEST_F(NamespaceWriterTest, FewWaitNoLongerThanTheyMay) {
  NamespaceWriter::Options options;
  options.gather = absl::Milliseconds(1);
  Start(options, local_.get());
  for (int i = 0; i < 8; ++i) Submit(Set("first"));
  executor_.RunAll();
  Submit(Set("one"));
  executor_.RunAll();
  world_.manual_clock().Advance(absl::Microseconds(999));
  executor_.RunAll();
  EXPECT_EQ(answers_.size(), 8u);
  world_.manual_clock().Advance(absl::Microseconds(1));
  executor_.RunAll();
  EXPECT_EQ(answers_.size(), 9u);
  // Now it knows that it is alone.
  Submit(Set("two"));
  executor_.RunAll();
  EXPECT_EQ(answers_.size(), 10u);
}

TEST_F(NamespaceWriterTest, StopEndsTheWaitForCompany) {
  NamespaceWriter::Options options;
  options.gather = absl::Milliseconds(1);
  Start(options, local_.get());
  for (int i = 0; i < 8; ++i) Submit(Set("first"));
  executor_.RunAll();
  Submit(Set("one"));
  executor_.RunAll();
  bool stopped = false;
  writer_->Stop([&] { stopped = true; });
  executor_.RunAll();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(answers_.size(), 9u);
}

TEST_F(NamespaceWriterTest, WhatIsQueuedTogetherIsOneBatchWithOneSync) {
  Start({}, local_.get());
  Submit(Set("warm"));
  executor_.RunAll();
  const auto before = world_.disk().counters();
  for (int i = 0; i < 100; ++i) Submit(Set("k" + std::to_string(i)));
  EXPECT_EQ(answers_.size(), 1u);  // Nothing is answered inside Submit.
  executor_.RunAll();
  EXPECT_EQ(world_.disk().counters().syncs, before.syncs + 1);
  ASSERT_EQ(answers_.size(), 101u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(answers_[static_cast<size_t>(i) + 1].first, "k" + std::to_string(i));
    EXPECT_TRUE(answers_[static_cast<size_t>(i) + 1].second.ok());
  }
  ASSERT_EQ(samples_.size(), 2u);
  EXPECT_EQ(samples_[1].mutations, 100u);
  EXPECT_EQ(writer_->stats().batches, 2u);
  EXPECT_EQ(writer_->stats().acted, 101u);
}

TEST_F(NamespaceWriterTest, BatchesAreBoundedInMutationsAndBytes) {
  Start({.max_batch = 4, .max_batch_bytes = 1000}, local_.get());
  for (int i = 0; i < 9; ++i) Submit(Set("k" + std::to_string(i)));
  for (int i = 0; i < 4; ++i) Submit(Set("big" + std::to_string(i), std::string(600, 'b')));
  executor_.RunAll();
  std::vector<size_t> sizes;
  for (const auto& sample : samples_) sizes.push_back(sample.mutations);
  EXPECT_EQ(sizes, (std::vector<size_t>{4, 4, 3, 2}));  // k8 rides with two big ones.
  EXPECT_EQ(answers_.size(), 13u);
}

TEST_F(NamespaceWriterTest, NobodyLearnsOfABatchBeforeItIsDurable) {
  Start({}, held_.get());
  std::vector<std::string> observed;
  writer_->SetObserver([&](const std::vector<NamespaceWriter::Applied>& applied) {
    EXPECT_TRUE(answers_.empty());
    for (const auto& one : applied) {
      EXPECT_TRUE(Published(one.mutation->set_meta().name()));
      observed.push_back(one.result->path());
    }
  });
  Submit(Set("a"));
  Submit(Set("refused"));
  Submit(Set("repeat"));
  Submit(Set("b"));
  executor_.RunAll();
  ASSERT_TRUE(held_->holds());
  EXPECT_TRUE(answers_.empty());
  EXPECT_FALSE(Published("a"));
  held_->Finish();
  EXPECT_EQ(observed, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(answers_.size(), 4u);
  EXPECT_EQ(KindOf(answers_[1].second), ErrorKind::kNotFound);
  EXPECT_TRUE(answers_[2].second.ok());
}

TEST_F(NamespaceWriterTest, QueuesWhileACommitIsUnderWay) {
  Start({}, held_.get());
  Submit(Set("a"));
  executor_.RunAll();
  Submit(Set("b"));
  Submit(Set("c"));
  executor_.RunAll();
  world_.manual_clock().Advance(absl::Seconds(2));
  EXPECT_EQ(writer_->stats().queued, 2u);
  EXPECT_EQ(writer_->stats().oldest_age, absl::Seconds(2));
  held_->Finish();
  EXPECT_EQ(samples_[0].commit_time, absl::Seconds(2));
  executor_.RunAll();
  held_->Finish();
  EXPECT_EQ(answers_.size(), 3u);
  EXPECT_EQ(samples_[1].mutations, 2u);
  EXPECT_EQ(writer_->stats().queued, 0u);
}

TEST_F(NamespaceWriterTest, RefusalsAndRepeatsAloneCommitNothing) {
  Start({}, held_.get());
  Submit(Set("refused"));
  Submit(Set("repeat"));
  executor_.RunAll();
  EXPECT_FALSE(held_->holds());
  ASSERT_EQ(answers_.size(), 2u);
  EXPECT_EQ(KindOf(answers_[0].second), ErrorKind::kNotFound);
  EXPECT_TRUE(answers_[1].second.ok());
  EXPECT_EQ(writer_->stats().refused, 1u);
  EXPECT_EQ(writer_->stats().acted, 0u);
}

TEST_F(NamespaceWriterTest, AFullQueueAnswersAtOnce) {
  Start({.max_queued = 2}, local_.get());
  for (const char* name : {"a", "b", "c"}) Submit(Set(name));
  executor_.RunAll();
  ASSERT_EQ(answers_.size(), 3u);
  for (const auto& [name, status] : answers_) EXPECT_EQ(KindOf(status), name == "c" ? ErrorKind::kRetriable : ErrorKind::kNone) << name;
  EXPECT_FALSE(Published("c"));
}

TEST_F(NamespaceWriterTest, AnOversizeMutationIsRefused) {
  Start({.max_mutation_bytes = 100}, local_.get());
  Submit(Set("big", std::string(100, 'b')));
  executor_.RunAll();
  EXPECT_EQ(KindOf(answers_.at(0).second), ErrorKind::kInvalidArgument);
}

TEST_F(NamespaceWriterTest, AFailedCommitIsOfUnknownOutcomeAndEndsAllChanges) {
  Start({}, held_.get());
  Submit(Set("a"));
  Submit(Set("refused"));
  executor_.RunAll();
  Submit(Set("waiting"));
  held_->Fail(absl::InternalError("fdatasync: input/output error"));
  Submit(Set("later"));
  executor_.RunAll();
  ASSERT_EQ(answers_.size(), 4u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(answers_[i].second.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(KindOf(answers_[i].second), ErrorKind::kNone);
  }
  for (size_t i = 2; i < 4; ++i) {
    EXPECT_EQ(KindOf(answers_[i].second), ErrorKind::kReadOnly) << answers_[i].first;
    EXPECT_NE(std::string(answers_[i].second.message()).find("fdatasync"), std::string::npos);
  }
  EXPECT_TRUE(writer_->read_only());
  EXPECT_FALSE(Published("a"));
}

TEST_F(NamespaceWriterTest, AnswersLostAfterTheCommitLeaveItDone) {
  Start({}, local_.get());
  EnableFaultPoints();
  ASSERT_TRUE(ArmFault("namespace_writer.before_answer", "error*1").ok());
  Submit(Set("a"));
  executor_.RunAll();
  DisarmAllFaults();
  Submit(Set("b"));
  executor_.RunAll();
  ASSERT_EQ(answers_.size(), 2u);
  EXPECT_EQ(answers_[0].second.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Published("a"));
  EXPECT_TRUE(answers_[1].second.ok());
}

TEST_F(NamespaceWriterTest, AStoreThatCannotBeReadEndsAllChanges) {
  Start({}, local_.get());
  Submit(Set("a"));
  Submit(Set("broken"));
  Submit(Set("b"));
  executor_.RunAll();
  ASSERT_EQ(answers_.size(), 3u);
  for (const auto& [name, status] : answers_) EXPECT_EQ(KindOf(status), ErrorKind::kReadOnly) << name;
  store_->Publish();
  EXPECT_FALSE(Published("a"));
}

TEST_F(NamespaceWriterTest, StampsTheTimeOfMutationsWithoutOne) {
  Start({}, local_.get());
  std::vector<int64_t> times;
  writer_->SetObserver([&](const std::vector<NamespaceWriter::Applied>& applied) {
    for (const auto& one : applied) times.push_back(one.mutation->time_ms());
  });
  v1::Mutation timed = Set("b");
  timed.set_time_ms(5);
  Submit(Set("a"));
  Submit(timed);
  executor_.RunAll();
  EXPECT_EQ(times, (std::vector<int64_t>{absl::ToUnixMillis(world_.clock().WallNow()), 5}));
}

TEST_F(NamespaceWriterTest, StopFinishesWhatIsQueuedAndRefusesTheRest) {
  Start({}, held_.get());
  Submit(Set("a"));
  executor_.RunAll();
  Submit(Set("b"));
  bool stopped = false;
  writer_->Stop([&] { stopped = true; });
  Submit(Set("c"));
  executor_.RunAll();
  EXPECT_FALSE(stopped);
  held_->Finish();
  executor_.RunAll();
  EXPECT_FALSE(stopped);
  held_->Finish();
  executor_.RunAll();
  EXPECT_TRUE(stopped);
  ASSERT_EQ(answers_.size(), 3u);
  for (const auto& [name, status] : answers_) EXPECT_EQ(KindOf(status), name == "c" ? ErrorKind::kRetriable : ErrorKind::kNone) << name;
}

TEST_F(NamespaceWriterTest, StopOfAnIdleWriterCallsBack) {
  Start({}, local_.get());
  bool stopped = false;
  writer_->Stop([&] { stopped = true; });
  EXPECT_FALSE(stopped);
  executor_.RunAll();
  EXPECT_TRUE(stopped);
}

TEST_F(NamespaceWriterTest, ATurnThatComesAfterTheWriterIsGoneDoesNothing) {
  Start({}, local_.get());
  Submit(Set("a"));
  writer_.reset();
  executor_.RunAll();
  EXPECT_TRUE(answers_.empty());
}

}  // namespace
}  // namespace cairn::namenode
