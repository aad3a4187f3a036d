#include "tests/namenode/model_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "namenode/store/keys.h"
#include "tests/namenode/namespace_dump.h"
#include "tests/testing/namespace_check.h"

namespace cairn::testing {
namespace {

using namenode::Family;

const google::protobuf::OneofDescriptor* Operations() { return v1::Mutation::descriptor()->FindOneofByName("op"); }

std::string NameOf(int operation) { return v1::Mutation::descriptor()->FindFieldByNumber(operation)->name(); }

}  // namespace

void OperationTally::Add(const OperationTally& other) {
  for (const auto& [operation, counts] : other.operations) {
    operations[operation].acted += counts.acted;
    operations[operation].idle += counts.idle;
    operations[operation].refused += counts.refused;
  }
  for (const auto& [refusal, count] : other.refusals) refusals[refusal] += count;
}

std::string OperationTally::ToString(bool with_refusals) const {
  std::string text;
  for (int i = 0; i < Operations()->field_count(); ++i) {
    const auto found = operations.find(Operations()->field(i)->number());
    const Counts counts = found == operations.end() ? Counts() : found->second;
    text += fmt::format("{:<28} {:>8} acted {:>8} idle {:>8} refused\n", Operations()->field(i)->name(), counts.acted, counts.idle,
                        counts.refused);
  }
  if (!with_refusals) return text;
  for (const auto& [refusal, count] : refusals) text += fmt::format("{:>8} {}\n", count, refusal);
  return text;
}

ModelRun::ModelRun(uint64_t seed, Bug bug) : bug_(std::move(bug)), random_(seed), workload_({}, Random(seed + 1)) {
  const v1::Mutation storages = TreeWorkload::RegisterStorages();
  space_.Must(storages);
  model_.Apply(storages);
  space_.tamper = bug_.tamper;
}

std::string ModelRun::Run(int steps) {
  constexpr int kRounds = 4;
  std::string wrong;
  for (int round = 0; round < kRounds && wrong.empty(); ++round) {
    wrong = Steps(steps / kRounds);
    if (wrong.empty()) wrong = CompareRows();
    if (wrong.empty()) wrong = CompareQueries();
  }
  return wrong.empty() ? Drain() : wrong;
}

std::string ModelRun::Steps(int count) {
  for (; count > 0; --count) {
    const bool repeat = workload_.HasEarlier() && random_.OneIn(8);
    const v1::Mutation mutation = repeat ? workload_.Earlier() : workload_.Next(model_, Works());
    v1::Mutation applied = mutation;
    if (bug_.bend) bug_.bend(space_.view(), &applied);
    const absl::StatusOr<v1::MutationResult> actual = space_.Apply(applied);
    const Expected expected = model_.Apply(mutation);
    const bool acted = space_.rows_written() > 0;
    if (expected.unpredictable && acted) model_.Acted(mutation);
    Count(mutation, actual);
    const std::string difference = Difference(expected, actual);
    if (!difference.empty()) return fmt::format("{}\nof {}", difference, mutation.ShortDebugString());
    // A deleteMany that found nothing acts all the same, for its row of the retry table: without one, and in the past, it writes nothing.
    if (expected.acted != acted && !expected.unpredictable && !mutation.has_delete_many())
      return fmt::format("wrote {} rows, expected {}\nof {}", space_.rows_written(), expected.acted ? "some" : "none",
                         mutation.ShortDebugString());
    if (!random_.OneIn(10)) continue;
    if (std::string kept = CompareRows(); !kept.empty()) return fmt::format("{}\nafter {}", kept, mutation.ShortDebugString());
  }
  return "";
}

void ModelRun::Count(const v1::Mutation& mutation, const absl::StatusOr<v1::MutationResult>& result) {
  OperationTally::Counts& counts = tally_.operations[mutation.op_case()];
  if (result.ok()) {
    ++(space_.rows_written() > 0 ? counts.acted : counts.idle);
    return;
  }
  ++counts.refused;
  ++tally_.refusals[fmt::format("{} {} {}", NameOf(mutation.op_case()), KindName(KindOf(result.status())), ReasonOf(result.status()))];
}

std::string ModelRun::CompareRows() const {
  const NamespaceDump dump = DumpNamespace(space_.view());
  std::string text = FirstDifferences(model_.Lines(), dump.lines);
  if (!dump.broken.empty()) text += fmt::format("{}\n", fmt::join(dump.broken, "\n"));
  if (dump.counters != model_.Counters()) text += fmt::format("{}\nexpected {}\n", dump.counters, model_.Counters());
  // By other rules than the dump's: those of an operator's check.
  if (const std::vector<std::string> violations = ViolationsOf(space_.view()); !violations.empty())
    text += fmt::format("{}\n", fmt::join(violations, "\n"));
  return text;
}

std::string ModelRun::CompareQueries() const {
  for (const auto& [path, node] : model_.nodes()) {
    const absl::StatusOr<v1::FileStatus> status = namenode::StatusOfPath(space_.view(), path);
    if (!status.ok()) return status.status().ToString();
    if (status->inode_id() != node.id || status->is_directory() != node.is_directory || status->length_bytes() != node.length() ||
        status->under_construction() != !node.holder.empty())
      return fmt::format("status of {}: {}", path, status->ShortDebugString());
    const absl::StatusOr<std::string> where = namenode::PathOf(space_.view(), InodeId(node.id));
    if (!where.ok() || *where != path) return fmt::format("inode {} is not at {}", node.id, path);
    if (!node.is_directory) continue;
    std::vector<std::string> expected, listed;
    for (const auto& [other, below] : model_.nodes())
      if (other != "/" && TreeModel::ParentOf(other) == path) expected.push_back(other.substr(other.rfind('/') + 1));
    std::sort(expected.begin(), expected.end());
    for (bool more = true; more;) {  // In pages of two.
      const absl::StatusOr<namenode::Listing> page = namenode::ListDirectory(space_.view(), path, listed.empty() ? "" : listed.back(), 2);
      if (!page.ok()) return page.status().ToString();
      for (const v1::FileStatus& entry : page->entries) listed.push_back(entry.path());
      more = page->has_more;
    }
    if (listed != expected) return fmt::format("{} lists {}, expected {}", path, fmt::join(listed, " "), fmt::join(expected, " "));
  }
  return "";
}

std::string ModelRun::Drain() {
  for (int steps = 0; !Works().empty(); ++steps) {
    if (steps > 10'000) return "the work does not end";
    v1::WorkRecord work;
    const uint64_t id = Works().front();
    if (!work.ParseFromString(space_.view().rows(Family::kWork).begin()->second)) return "a row of work does not parse";
    v1::Mutation step;
    if (work.has_replication()) {
      step.mutable_spread_replication()->set_work_id(id);
      step.mutable_spread_replication()->set_max_blocks(7);
    } else {
      step.mutable_reclaim_step()->set_work_id(id);
      step.mutable_reclaim_step()->set_max_entries(7);
    }
    const absl::StatusOr<v1::MutationResult> done = space_.Apply(step);
    if (!done.ok()) return done.status().ToString();
  }
  if (space_.view().rows(Family::kInode).size() != model_.nodes().size())
    return fmt::format("{} inode rows for {} paths", space_.view().rows(Family::kInode).size(), model_.nodes().size());
  if (space_.view().rows(Family::kBlock).size() != model_.blocks())
    return fmt::format("{} block rows for {} blocks", space_.view().rows(Family::kBlock).size(), model_.blocks());
  return CompareRows();
}

std::vector<uint64_t> ModelRun::Works() const {
  std::vector<uint64_t> works;
  for (const auto& [key, value] : space_.view().rows(Family::kWork)) works.push_back(*namenode::ParseWorkKey(key));
  return works;
}

}  // namespace cairn::testing
