// What is asked of a large tree or a long file costs as little as of a small one: counted in rows read and written, so that the size at
// which it is shown may be small.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/env/random.h"
#include "namenode/namespace/checker.h"
#include "namenode/store/keys.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeds.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

// Counts what is read through it.
class CountingView : public ReadView {
 public:
  explicit CountingView(const ReadView* view) : view_(view) {}
  absl::StatusOr<std::optional<std::string>> Get(Family family, std::string_view key) const override {
    ++gets_;
    return view_->Get(family, key);
  }
  std::unique_ptr<Cursor> Scan(Family family, std::string_view begin, std::string_view end) const override {
    ++scans_;
    return view_->Scan(family, begin, end);
  }
  int gets() const { return gets_; }
  int scans() const { return scans_; }

 private:
  const ReadView* view_;
  mutable int gets_ = 0;
  mutable int scans_ = 0;
};

TEST(LargeTrees, CountingATreeReadsOneRowADirectoryOfItsPathHoweverLargeItIs) {
  const int files = Scaled(10'000, 1'000'000);
  TestNamespace space;
  space.WriteFile("/small/d/one", {100});
  for (int i = 0; i < files; ++i) {
    const v1::MutationResult file = space.Must(CreateMutation(fmt::format("/large/d/{}/{}", i / 1000, i), "writer"));
    space.Must(CompleteMutation(file, "writer"));
  }
  space.WriteFile("/large/d/0/with-bytes", {1000, 24});

  const CountingView small(&space.view());
  ASSERT_THAT(SummaryOfPath(small, "/small/d"), IsOk());
  const CountingView large(&space.view());
  const auto summary = SummaryOfPath(large, "/large/d");
  ASSERT_THAT(summary, IsOk());
  EXPECT_EQ(large.gets(), small.gets());
  EXPECT_EQ(large.scans(), 0);
  EXPECT_EQ(summary->files(), static_cast<uint64_t>(files) + 1);
  EXPECT_EQ(summary->directories(), static_cast<uint64_t>((files + 999) / 1000) + 1);
  EXPECT_EQ(summary->length_bytes(), 1024u);
  EXPECT_EQ(summary->charged_bytes(), 3 * 1024u);

  // And a create beside it writes no more rows for the size of the tree.
  space.Must(CreateMutation("/small/d/two", "writer"));
  const size_t rows = space.rows_written();
  space.Must(CreateMutation("/large/d/two", "writer"));
  EXPECT_EQ(space.rows_written(), rows);
}

TEST(LargeTrees, MkdirsOfWhatIsThereWritesNothing) {
  TestNamespace space;
  int written = 0;
  for (int client = 0; client < 2000; ++client) {
    for (const char* path : {"/job", "/job/shared", "/job/taskowned"}) {
      space.Must(MkdirsMutation(path));
      written += space.rows_written() > 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(written, 3);
}

TEST(LargeFiles, AnotherBlockWritesAsFewRowsAtTheEndAsInTheBeginning) {
  constexpr uint64_t kBlock = 64 << 10;
  const uint64_t blocks = Scaled<uint64_t>(10'000, 100'000);
  TestNamespace space;
  v1::Mutation create = CreateMutation("/long", "writer");
  create.mutable_create()->set_block_size_bytes(kBlock);
  const v1::MutationResult file = space.Must(create);
  v1::Mutation add = AddBlockMutation(file, "writer", {1, 2, 3});
  v1::Mutation complete = CompleteMutation(file, "writer");
  for (v1::Mutation* mutation : {&add, &complete}) mutation->mutable_limits()->set_max_blocks_per_file(blocks);
  std::vector<uint64_t> ids;
  size_t rows_in_the_beginning = 0;
  size_t record_in_the_beginning = 0;
  const auto record_bytes = [&] { return ResolvePath(space.view(), "/long")->record.ByteSizeLong(); };
  for (uint64_t i = 0; i < blocks; ++i) {
    const v1::Block block = space.Must(add).block();
    ids.push_back(block.id());
    *add.mutable_add_block()->mutable_previous() = MakeCommit(block, kBlock, {1, 2, 3});
    if (i != 10) continue;
    rows_in_the_beginning = space.rows_written();
    record_in_the_beginning = record_bytes();
  }
  EXPECT_EQ(space.rows_written(), rows_in_the_beginning);
  EXPECT_LE(record_bytes(), record_in_the_beginning + 16);  // Larger numbers, no list.
  EXPECT_THAT(space.Apply(add), HasKind(ErrorKind::kQuota));
  *complete.mutable_complete()->mutable_last() = add.add_block().previous();
  space.Must(complete);

  const auto found = ResolvePath(space.view(), "/long");
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->record.length_bytes(), blocks * kBlock);
  Random random(1);
  for (int i = 0; i < 20; ++i) {
    const uint64_t index = random.Below(blocks);
    const auto at = BlocksOfFile(space.view(), found->record, index * kBlock + random.Below(kBlock), 1, 10);
    ASSERT_THAT(at, IsOk());
    ASSERT_EQ(at->size(), 1u);
    EXPECT_EQ((*at)[0].id.value(), ids[index]);
    EXPECT_EQ((*at)[0].offset_bytes, index * kBlock);
  }

  ASSERT_THAT(space.Apply(DeleteMutation("/long", false)), IsOk());
  v1::Mutation step;
  step.mutable_reclaim_step()->set_work_id(*ParseWorkKey(space.view().rows(Family::kWork).begin()->first));
  while (!space.Must(step).done()) EXPECT_LE(space.rows_written(), 2100u);
  EXPECT_TRUE(space.view().rows(Family::kBlock).empty());
  EXPECT_TRUE(space.view().rows(Family::kFileBlock).empty());
}

// Ten blocks with each append, each closed by its writer.
TEST(LargeFiles, AnAppendWritesAsFewRowsAtTheEndAsInTheBeginning) {
  constexpr uint64_t kBlock = 64 << 10;
  constexpr int kBlocksOfAnAppend = 10;
  const int appends = Scaled(1'000, 10'000);
  TestNamespace space;
  v1::Mutation create = CreateMutation("/long", "writer");
  create.mutable_create()->set_block_size_bytes(kBlock);
  v1::MutationResult file = space.Must(create);
  size_t in_the_beginning = 0, at_the_end = 0;
  for (int i = 0; i < appends; ++i) {
    size_t rows = 0;
    if (i > 0) {
      v1::Mutation append = MutationOf("writer");
      append.mutable_append()->set_path("/long");
      file = space.Must(append);
      EXPECT_FALSE(file.has_block());  // The last one is full.
      rows += space.rows_written();
    }
    v1::Mutation add = AddBlockMutation(file, "writer", {1, 2, 3});
    v1::Mutation complete = CompleteMutation(file, "writer");
    for (v1::Mutation* mutation : {&add, &complete}) mutation->mutable_limits()->set_max_blocks_per_file(1 << 20);
    add.mutable_add_block()->clear_previous();
    for (int block = 0; block < kBlocksOfAnAppend; ++block) {
      const v1::Block added = space.Must(add).block();
      rows += space.rows_written();
      *add.mutable_add_block()->mutable_previous() = MakeCommit(added, kBlock, {1, 2, 3});
    }
    *complete.mutable_complete()->mutable_last() = add.add_block().previous();
    space.Must(complete);
    rows += space.rows_written();
    if (i == 2) in_the_beginning = rows;
    at_the_end = rows;
  }
  EXPECT_EQ(at_the_end, in_the_beginning);
  const auto found = ResolvePath(space.view(), "/long");
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->record.block_count(), static_cast<uint64_t>(appends) * kBlocksOfAnAppend);
  EXPECT_EQ(found->record.length_bytes(), static_cast<uint64_t>(appends) * kBlocksOfAnAppend * kBlock);
  const auto sound = CheckNamespace(space.view(), [](const Violation& violation) { ADD_FAILURE() << ToString(violation); });
  ASSERT_THAT(sound, IsOk());
  EXPECT_EQ(sound->violations, 0u);
}

}  // namespace
}  // namespace cairn::namenode
