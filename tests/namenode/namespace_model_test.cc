// Random changes to a namespace in memory against a model of whole paths, which knows nothing of ids, rows or totals: every answer, then
// all that is kept. The same over a disk that loses power: power_loss_test.cc.

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "namenode/store/keys.h"
#include "tests/namenode/namespace_dump.h"
#include "tests/namenode/tree_model.h"
#include "tests/namenode/tree_workload.h"
#include "tests/testing/builders.h"
#include "tests/testing/property_run.h"

namespace cairn::namenode {
namespace {

using cairn::testing::Difference;
using cairn::testing::DumpNamespace;
using cairn::testing::Expected;
using cairn::testing::FirstDifferences;
using cairn::testing::NamespaceDump;
using cairn::testing::PropertyRun;
using cairn::testing::TestNamespace;
using cairn::testing::TreeModel;
using cairn::testing::TreeWorkload;

class ModelRun {
 public:
  explicit ModelRun(uint64_t seed) : random_(seed), workload_({}, Random(seed + 1)) {}

  // "" or what differed first.
  std::string Steps(int count) {
    for (; count > 0; --count) {
      const bool repeat = workload_.HasEarlier() && random_.OneIn(8);
      const v1::Mutation mutation = repeat ? workload_.Earlier() : workload_.Next(model_, Works());
      const absl::StatusOr<v1::MutationResult> actual = space_.Apply(mutation);
      const Expected expected = model_.Apply(mutation);
      if (expected.unpredictable && space_.rows_written() > 0) model_.ActedAt(mutation.time_ms());
      ++(actual.ok() ? done_ : refused_)[mutation.op_case()];
      const std::string difference = Difference(expected, actual);
      if (!difference.empty()) return fmt::format("{}\nof {}", difference, mutation.ShortDebugString());
      // A deleteMany that found nothing acts all the same, for its row of the retry table: without one, and in the past, it writes nothing.
      if (expected.acted != (space_.rows_written() > 0) && !expected.unpredictable && !mutation.has_delete_many())
        return fmt::format("wrote {} rows, expected {}\nof {}", space_.rows_written(), expected.acted ? "some" : "none",
                           mutation.ShortDebugString());
      if (random_.OneIn(10)) {
        if (std::string kept = CompareRows(); !kept.empty()) return fmt::format("{}\nafter {}", kept, mutation.ShortDebugString());
      }
    }
    return "";
  }

  std::string CompareRows() const {
    const NamespaceDump dump = DumpNamespace(space_.view());
    std::string text = FirstDifferences(model_.Lines(), dump.lines);
    if (!dump.broken.empty()) text += fmt::format("{}\n", fmt::join(dump.broken, "\n"));
    if (dump.counters != model_.Counters()) text += fmt::format("{}, expected {}", dump.counters, model_.Counters());
    return text;
  }

  // What the readers' questions say of every path.
  std::string CompareQueries() const {
    for (const auto& [path, node] : model_.nodes()) {
      const absl::StatusOr<v1::FileStatus> status = StatusOfPath(space_.view(), path);
      if (!status.ok()) return status.status().ToString();
      if (status->inode_id() != node.id || status->is_directory() != node.is_directory || status->length_bytes() != node.length() ||
          status->under_construction() != !node.holder.empty())
        return fmt::format("status of {}: {}", path, status->ShortDebugString());
      const absl::StatusOr<std::string> where = PathOf(space_.view(), InodeId(node.id));
      if (!where.ok() || *where != path) return fmt::format("inode {} is not at {}", node.id, path);
      if (!node.is_directory) continue;
      std::vector<std::string> expected, listed;
      for (const auto& [other, below] : model_.nodes())
        if (other != "/" && TreeModel::ParentOf(other) == path) expected.push_back(other.substr(other.rfind('/') + 1));
      std::sort(expected.begin(), expected.end());
      for (bool more = true; more;) {  // In pages of two.
        const absl::StatusOr<Listing> page = ListDirectory(space_.view(), path, listed.empty() ? "" : listed.back(), 2);
        if (!page.ok()) return page.status().ToString();
        for (const v1::FileStatus& entry : page->entries) listed.push_back(entry.path());
        more = page->has_more;
      }
      if (listed != expected) return fmt::format("{} lists {}, expected {}", path, fmt::join(listed, " "), fmt::join(expected, " "));
    }
    return "";
  }

  // Frees what is deleted; then the rows are just those of what is there.
  std::string Drain() {
    for (int steps = 0; !Works().empty(); ++steps) {
      if (steps > 10'000) return "the work does not end";
      v1::Mutation step;
      step.mutable_reclaim_step()->set_work_id(Works().front());
      step.mutable_reclaim_step()->set_max_entries(7);
      const absl::StatusOr<v1::MutationResult> done = space_.Apply(step);
      if (!done.ok()) return done.status().ToString();
    }
    if (space_.view().rows(Family::kInode).size() != model_.nodes().size())
      return fmt::format("{} inode rows for {} paths", space_.view().rows(Family::kInode).size(), model_.nodes().size());
    return CompareRows();
  }

  // Operations that were done at least once, and refused at least once.
  const std::map<int, int>& done() const { return done_; }
  const std::map<int, int>& refused() const { return refused_; }

 private:
  std::vector<uint64_t> Works() const {
    std::vector<uint64_t> works;
    for (const auto& [key, value] : space_.view().rows(Family::kWork)) works.push_back(*ParseWorkKey(key));
    return works;
  }

  Random random_;
  TestNamespace space_;
  TreeModel model_;
  TreeWorkload workload_;
  std::map<int, int> done_;
  std::map<int, int> refused_;
};

TEST(NamespaceModel, EveryAnswerAndEverythingKeptIsAsTheModelSays) {
  PropertyRun runs("NamespaceModel.EveryAnswerAndEverythingKeptIsAsTheModelSays", absl::Seconds(10));
  std::map<int, int> done;
  std::map<int, int> refused;
  while (const std::optional<uint64_t> seed = runs.NextSeed()) {
    ModelRun run(*seed);
    std::string wrong;
    for (int round = 0; round < 4 && wrong.empty(); ++round) {
      wrong = run.Steps(150);
      if (wrong.empty()) wrong = run.CompareRows();
      if (wrong.empty()) wrong = run.CompareQueries();
    }
    if (wrong.empty()) wrong = run.Drain();
    ASSERT_TRUE(wrong.empty()) << wrong << "\n" << runs.Replay();
    for (const auto& [op, count] : run.done()) done[op] += count;
    for (const auto& [op, count] : run.refused()) refused[op] += count;
  }
  // The run was about something: every change that the workload knows was done and refused.
  const google::protobuf::OneofDescriptor* ops = v1::Mutation::descriptor()->FindOneofByName("op");
  for (int i = 0; i < ops->field_count(); ++i) {
    const int number = ops->field(i)->number();
    if (done[number] + refused[number] > 0)
      std::printf("%-28s %7d done %7d refused\n", ops->field(i)->name().c_str(), done[number], refused[number]);
  }
  for (const int op :
       {v1::Mutation::kCreate, v1::Mutation::kAddBlock, v1::Mutation::kAbandonBlock, v1::Mutation::kUpdatePipeline, v1::Mutation::kFsync,
        v1::Mutation::kComplete, v1::Mutation::kMkdirs, v1::Mutation::kRename, v1::Mutation::kDelete}) {
    EXPECT_GT(done[op], 5) << op;
    EXPECT_GT(refused[op], 5) << op;
  }
}

}  // namespace
}  // namespace cairn::namenode
