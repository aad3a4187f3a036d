// Mistakes that the product could make, each behind a fault point: with one of them switched on a
// simulation finds something wrong within 20 seeds; without it the same simulation finds nothing.
// So that the checks are known to check.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/functional/function_ref.h"
#include "common/fault_points.h"
#include "tests/sim/report_watch.h"
#include "tests/sim/workload.h"
#include "tests/testing/seeds.h"
#include "tests/testing/sim_cluster.h"
#include "tests/testing/sim_network.h"

namespace cairn::testing {
namespace {

using ::testing::IsEmpty;

using Wrong = std::vector<std::string>;
using Scenario = absl::FunctionRef<Wrong(uint64_t seed)>;

void Append(Wrong more, Wrong* wrong) {
  for (std::string& one : more) wrong->push_back(std::move(one));
}

class SwitchableBugs : public ::testing::Test {
 protected:
  SwitchableBugs() { EnableFaultPoints(); }
  ~SwitchableBugs() override { DisarmAllFaults(); }

  // `actions` arms the bug for a seed.
  static void ExpectNoticed(const char* fault, const std::function<std::string(uint64_t seed)>& action, Scenario scenario) {
    uint64_t noticed = 0;
    for (uint64_t seed = 1; seed <= 20 && noticed == 0; ++seed) {
      SCOPED_TRACE(ReplayHint(seed));
      EXPECT_THAT(scenario(seed), IsEmpty()) << "without the bug";
      if (HasFailure()) return;
      ASSERT_TRUE(ArmFault(fault, action(seed)).ok());
      const Wrong wrong = scenario(seed);
      DisarmAllFaults();
      if (wrong.empty()) continue;
      noticed = seed;
      fmt::print("{}: noticed in seed {}: {}\n", fault, seed, wrong.front());
    }
    EXPECT_GT(FaultHits(fault), 0u) << fault << " was never reached";
    EXPECT_GT(noticed, 0u) << "nothing notices " << fault;
  }
  static std::string Always(uint64_t) { return "error"; }
};

Wrong PowerLossAfterClose(uint64_t seed) {
  Wrong wrong;
  SimCluster cluster({.seed = seed, .retry_budget = absl::Minutes(1)});
  Random random = cluster.world().NewRandom();
  Workload workload(&cluster);
  for (int i = 0; i < 3; ++i) {
    const std::string path = fmt::format("/power/{}", i);
    workload.Write(path, 1 + random.Below(1'500'000));
    workload.WaitForAll(absl::Minutes(10));
    if (!workload.file(path).written.ok()) wrong.push_back(path + " was not written");
    cluster.PowerCutAll(absl::Seconds(3));
    if (std::string verdict = workload.Compare(path); !verdict.empty()) wrong.push_back(std::move(verdict));
  }
  return wrong;
}

TEST_F(SwitchableBugs, CloseAcknowledgedBeforeFsync) { ExpectNoticed("datanode.finalize.skip_sync", Always, PowerLossAfterClose); }

// The first node of a pipeline dies for good right after it acknowledged a flush, while the links behind it are slow.
Wrong FirstNodeDiesAfterAFlush(uint64_t seed) {
  SimCluster cluster({.seed = seed, .retry_budget = absl::Minutes(1)});
  Random random = cluster.world().NewRandom();
  for (size_t i = 0; i < cluster.datanode_count(); ++i)
    for (size_t j = 0; j < i; ++j)
      cluster.world().network().SetLink(cluster.datanode_machine(i), cluster.datanode_machine(j),
                                        {.latency = absl::Milliseconds(5 + random.Below(40))});
  Workload workload(&cluster);
  const uint64_t dies_at = 60'000 * (1 + random.Below(4));
  workload.SetAfterFlush([&](const std::string&, uint64_t bytes, const v1::GetBlockLocationsResponse& located) {
    if (bytes != dies_at || located.blocks().empty()) return;
    const std::string& first = located.blocks(0).locations(0).datanode().transfer().host();
    for (size_t i = 0; i < cluster.datanode_count(); ++i)
      if (cluster.datanode_machine(i)->name() == first) cluster.KillDatanode(i, absl::Hours(10));
  });
  workload.Start("/flushed", {.size = 400'000, .part_bytes = 60'000, .flush = true});
  workload.WaitForAll(absl::Minutes(30));
  if (cluster.AllUp()) return {"no node died"};
  const absl::Status& written = workload.file("/flushed").written;
  if (!written.ok()) return {std::string(written.message())};
  if (std::string verdict = workload.Compare("/flushed"); !verdict.empty()) return {std::move(verdict)};
  return {};
}

TEST_F(SwitchableBugs, AcknowledgementBeforeDownstream) {
  ExpectNoticed("datanode.receiver.ack_before_downstream", Always, FirstNodeDiesAfterAFlush);
}

// Files are written while nobody disturbs, and the NameNode ends up knowing exactly the replicas
// that there are, from the events alone: it never has to ask a DataNode for its replicas again.
Wrong FilesAreWritten(uint64_t seed) {
  Wrong wrong;
  SimCluster cluster({.seed = seed, .retry_budget = absl::Minutes(1)});
  Random random = cluster.world().NewRandom();
  cluster.RunFor(absl::Seconds(5));  // The walks of the start.
  ReportWatch watch(&cluster);
  Workload workload(&cluster);
  for (int i = 0; i < 4; ++i) workload.Write(fmt::format("/file-{}", i), 1 + random.Below(2'000'000));
  const auto look = [&watch] {
    watch.Look();
    return false;
  };
  cluster.RunUntil(look, absl::Seconds(30));  // Longer than a client's word holds off repair.
  if (watch.ranges() > 0) wrong.push_back("the NameNode had to ask for replicas that events had told of");
  if (!workload.WaitForAll(absl::Minutes(10))) wrong.push_back("the writers do not end");
  if (!cluster.Settle(absl::Minutes(5))) wrong.push_back("the cluster does not settle");
  Append(CheckFiles(&cluster, &workload), &wrong);
  return wrong;
}

TEST_F(SwitchableBugs, LostReportEvent) {
  ExpectNoticed("replicas.lose_event", [](uint64_t seed) { return fmt::format("error*1@{}", seed % 10); }, FilesAreWritten);
}

// Closed files stay readable.
Wrong FilesStay(uint64_t seed) {
  Wrong wrong;
  SimCluster cluster({.seed = seed, .retry_budget = absl::Minutes(1)});
  Random random = cluster.world().NewRandom();
  Workload workload(&cluster);
  for (int i = 0; i < 4; ++i) workload.Write(fmt::format("/file-{}", i), 1 + random.Below(2'000'000));
  if (!workload.WaitForAll(absl::Minutes(10))) wrong.push_back("the writers do not end");
  cluster.RunFor(absl::Seconds(30));
  for (const auto& [path, life] : workload.files())
    if (std::string verdict = workload.Compare(path); !verdict.empty()) wrong.push_back(std::move(verdict));
  return wrong;
}

TEST_F(SwitchableBugs, InvalidationOfTheLastGoodReplica) { ExpectNoticed("replicas.invalidate_last", Always, FilesStay); }

// A node dies while a file is written, and returns with what it had then. Until the NameNode has
// told it to delete that, everybody who asks it for the file's block has to be sent away.
Wrong NodeReturnsWithAnOlderReplica(uint64_t seed) {
  Wrong wrong;
  SimCluster cluster({.seed = seed});
  Random random = cluster.world().NewRandom();
  Workload workload(&cluster);
  const size_t victim = random.Below(cluster.datanode_count());
  const absl::Duration dies_at = absl::Milliseconds(100 + random.Below(1000));
  // What the NameNode has to say comes late enough for others to be there first.
  cluster.world().network().SetLink(cluster.namenode_machine(), cluster.datanode_machine(victim), {.latency = absl::Milliseconds(100)});
  workload.Start("/stale", {.size = 900'000, .part_bytes = 50'000, .pause = absl::Milliseconds(100), .flush = true});
  cluster.RunFor(dies_at);
  cluster.KillDatanode(victim, absl::Seconds(3));
  if (!workload.WaitForAll(absl::Minutes(10)) || !workload.file("/stale").written.ok()) wrong.push_back("the file was not written");
  v1::GetBlockLocationsRequest request;
  request.set_path("/stale");
  request.set_length_bytes(~0ull >> 1);
  const auto located = cluster.Ask(&api::ClientNamenode::GetBlockLocations, request);
  if (!located.ok() || located->blocks_size() != 1) return {"the file has no block"};
  const v1::Block& block = located->blocks(0).block();
  for (int i = 0; i < 500; ++i) {
    for (size_t node = 0; node < cluster.datanode_count(); ++node) {
      if (cluster.datanode(node) == nullptr) continue;
      const auto reader = cluster.datanode(node)->store().OpenForRead(BlockId(block.id()), GenerationStamp(block.generation_stamp()));
      if (reader.ok() && (**reader).length() < block.length_bytes())
        return {fmt::format("node {} serves {} of {} bytes", node, (**reader).length(), block.length_bytes())};
    }
    cluster.RunFor(absl::Milliseconds(10));
  }
  if (!cluster.Settle(absl::Minutes(5))) wrong.push_back("the cluster does not settle");
  Append(CheckFiles(&cluster, &workload), &wrong);
  return wrong;
}

TEST_F(SwitchableBugs, OlderStampAccepted) { ExpectNoticed("datanode.stamp.accept_older", Always, NodeReturnsWithAnOlderReplica); }

// Creates, renames and deletes whose answers are lost now and then.
Wrong AnswersAreLost(uint64_t seed) {
  Wrong wrong;
  SimCluster cluster({.seed = seed});
  Random random = cluster.world().NewRandom();
  SimNetwork& network = cluster.world().network();
  network.SetLink(cluster.client_machine(), cluster.namenode_machine(), {.latency = absl::Milliseconds(10)});
  Workload workload(&cluster);
  bool stopped = false;
  std::function<void()> cut = [&] {
    if (stopped) return;
    network.Cut(cluster.client_machine(), cluster.namenode_machine());
    cluster.world().executor().PostAt(cluster.world().Now() + absl::Milliseconds(5 + random.Below(200)), cut);
  };
  cut();
  for (int i = 0; i < 10; ++i) {
    const std::string path = fmt::format("/f/{}", i);
    workload.Start(path, {.size = random.Below(3000), .rename_to = path + ".moved", .remove = random.OneIn(2)});
  }
  if (!workload.WaitForAll(absl::Minutes(30))) wrong.push_back("the calls do not end");
  stopped = true;
  if (!cluster.Settle(absl::Minutes(5))) wrong.push_back("the cluster does not settle");
  for (const auto& [path, life] : workload.files())
    if (!life.written.ok()) wrong.push_back(fmt::format("{}: {}", path, std::string(life.written.message())));
  Append(CheckFiles(&cluster, &workload), &wrong);
  return wrong;
}

TEST_F(SwitchableBugs, RetryAppliedTwice) { ExpectNoticed("namespace.retry_ignored", Always, AnswersAreLost); }

}  // namespace
}  // namespace cairn::testing
