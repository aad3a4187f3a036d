// The simulated cluster: client, NameNode and DataNodes in one thread from a seed. Workload: writers of files whose bytes derive from
// their names. Attackers: crashes, power cuts, cut and slow links, within what has to be survived. Then all heals, settles, and every file
// that was acknowledged is there, identical, with all its replicas.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/src/file_reader_core.h"
#include "client/src/file_writer_core.h"
#include "common/error.h"
#include "common/fault_points.h"
#include "tests/testing/seeds.h"
#include "tests/testing/sim_cluster.h"

namespace cairn::testing {
namespace {

// Bytes of a file: different at every offset of every file.
std::string ContentOf(const std::string& path, uint64_t size) {
  uint64_t seed = 14695981039346656037ull;
  for (const char c : path) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  Random random(seed ^ size);
  return random.Bytes(size);
}

// What came of one file.
struct Written {
  uint64_t size = 0;
  absl::Status status = absl::UnknownError("not finished");
  bool done = false;
  bool maybe_there = false;  // The call that failed may have acted.
};

// Writers and readers as coroutines on the client's executors.
class Workload {
 public:
  explicit Workload(SimCluster* cluster) : cluster_(cluster), core_(cluster->NewClientCore()), group_(core_->NextExecutor()) {}
  ~Workload() {
    bool ended = false;
    group_.StopAndThen([&] { ended = true; });
    cluster_->RunUntil([&] { return ended; }, absl::Minutes(20));
  }

  void Write(const std::string& path, uint64_t size) {
    files_[path].size = size;
    group_.Spawn("write", [this, path, size] { return WriteFile(path, size); });
  }
  bool WaitForAll(absl::Duration limit) {
    return cluster_->RunUntil([this] { return AllDone(); }, limit);
  }
  bool AllDone() const {
    for (const auto& [path, file] : files_)
      if (!file.done) return false;
    return true;
  }
  const std::map<std::string, Written>& files() const { return files_; }

  // Empty if the file reads back identical, else what is wrong.
  std::string Compare(const std::string& path, uint64_t size) {
    verdict_.reset();
    group_.Spawn("read", [this, path, size] { return ReadFile(path, size); });
    if (!cluster_->RunUntil([this] { return verdict_.has_value(); }, absl::Minutes(20))) return path + ": the read does not end";
    return *verdict_;
  }

 private:
  Awaitable<void> WriteFile(std::string path, uint64_t size) {
    Written& file = files_[path];
    CreateOptions options;
    auto writer = std::make_unique<client::FileWriterCore>(core_.get(), path, options);
    const std::string content = ContentOf(path, size);
    absl::Status status = co_await writer->Open();
    for (uint64_t at = 0; status.ok() && at < size;) {
      const uint64_t part = std::min<uint64_t>(100'000, size - at);
      const std::span<const char> data(content.data() + at, part);
      status = co_await writer->Append(data);
      at += part;
    }
    if (status.ok()) {
      status = co_await writer->Close();
      file.maybe_there = !status.ok();
    }
    co_await writer->Shutdown();
    file.status = std::move(status);
    file.done = true;
  }

  Awaitable<void> ReadFile(std::string path, uint64_t size) {
    auto reader = std::make_unique<client::FileReaderCore>(core_.get(), path);
    std::string found;
    absl::Status status = co_await reader->Open();
    while (status.ok() && found.size() <= size) {
      absl::StatusOr<client::Slice> slice = co_await reader->Next();
      status = slice.status();
      if (!status.ok() || slice->empty()) break;
      found.append(slice->data().data(), slice->size());
    }
    co_await reader->Shutdown();
    if (!status.ok())
      verdict_ = fmt::format("{}: {}", path, std::string(status.message()));
    else if (found.size() != size)
      verdict_ = fmt::format("{}: {} bytes instead of {}", path, found.size(), size);
    else if (found != ContentOf(path, size))
      verdict_ = path + ": other bytes";
    else
      verdict_ = std::string();
  }

  SimCluster* const cluster_;
  std::shared_ptr<client::ClientCore> core_;
  TaskGroup group_;
  std::map<std::string, Written> files_;
  std::optional<std::string> verdict_;
};

// Attackers of a run, chosen from the seed. At most one daemon of the data path is down at a time: what replication 3 has to survive.
class Attackers {
 public:
  Attackers(SimCluster* cluster, Random random) : cluster_(cluster), random_(random) {}

  void Start() {
    // One of each kind for certain, soon; then by chance.
    const SteadyTime now = cluster_->world().Now();
    cluster_->world().executor().PostAt(now + absl::Milliseconds(20 + random_.Below(60)), [this] { Crash(); });
    cluster_->world().executor().PostAt(now + absl::Milliseconds(10 + random_.Below(200)), [this] { Cut(); });
    cluster_->world().executor().PostAt(now + absl::Milliseconds(5 + random_.Below(50)), [this] { Slow(); });
    Next();
  }
  void Stop() {
    stopped_ = true;
    cluster_->world().network().Heal();
    cluster_->world().network().SetDefaultLink({});
    for (size_t i = 0; i < cluster_->datanode_count(); ++i)
      cluster_->world().network().SetLink(cluster_->client_machine(), cluster_->datanode_machine(i), {});
  }
  int crashes = 0;
  int cuts = 0;
  int delays = 0;

 private:
  void Next() {
    cluster_->world().executor().PostAt(cluster_->world().Now() + absl::Seconds(1 + random_.Below(8)), [this] {
      if (stopped_) return;
      switch (random_.Below(3)) {
        case 0: Crash(); break;
        case 1: Cut(); break;
        default: Slow(); break;
      }
      Next();
    });
  }
  void Crash() {
    if (stopped_ || !cluster_->AllUp()) return;
    const absl::Duration down = absl::Seconds(2 + random_.Below(10));
    const bool power = random_.OneIn(2);
    if (random_.OneIn(3)) {
      if (power)
        cluster_->PowerCutNamenode(down);
      else
        cluster_->KillNamenode(down);
    } else {
      const size_t victim = random_.Below(cluster_->datanode_count());
      if (power)
        cluster_->PowerCutDatanode(victim, down);
      else
        cluster_->KillDatanode(victim, down);
    }
    ++crashes;
  }
  SimMachine* AnyDatanode() { return cluster_->datanode_machine(random_.Below(cluster_->datanode_count())); }
  void Cut() {
    if (stopped_) return;
    if (random_.OneIn(2))
      cluster_->world().network().Cut(cluster_->client_machine(), AnyDatanode());
    else
      cluster_->world().network().Cut(cluster_->namenode_machine(), random_.OneIn(2) ? AnyDatanode() : cluster_->client_machine());
    ++cuts;
  }
  void Slow() {
    if (stopped_) return;
    SimLinkOptions link;
    link.latency = absl::Milliseconds(1 + random_.Below(30));
    link.jitter = absl::Milliseconds(random_.Below(20));
    cluster_->world().network().SetLink(cluster_->client_machine(), AnyDatanode(), link);
    ++delays;
  }

  SimCluster* const cluster_;
  Random random_;
  bool stopped_ = false;
};

// Every acknowledged file is there and whole, on as many nodes as it should. Returns what is wrong.
std::vector<std::string> CheckFiles(SimCluster* cluster, Workload* workload) {
  std::vector<std::string> wrong;
  for (const auto& [path, file] : workload->files()) {
    if (!file.status.ok()) continue;
    if (std::string verdict = workload->Compare(path, file.size); !verdict.empty()) wrong.push_back(verdict);
    v1::GetBlockLocationsRequest request;
    request.set_path(path);
    request.set_length_bytes(~0ull >> 1);
    const auto located = cluster->Ask(&api::ClientNamenode::GetBlockLocations, request);
    if (!located.ok()) {
      wrong.push_back(fmt::format("{}: {}", path, std::string(located.status().message())));
      continue;
    }
    for (const v1::LocatedBlock& block : located->blocks()) {
      const size_t replicas = cluster->FinalizedReplicas(block.block().id());
      if (replicas < 3) wrong.push_back(fmt::format("{}: block {} has {} replicas", path, block.block().id(), replicas));
    }
  }
  return wrong;
}

struct RunResult {
  std::vector<std::string> wrong;
  int acknowledged = 0;
  int failed = 0;
  int crashes = 0;
  int cuts = 0;
  int delays = 0;
};

RunResult RunSeed(uint64_t seed, int files) {
  RunResult result;
  SimCluster cluster({.seed = seed});
  Workload workload(&cluster);
  Random random = cluster.world().NewRandom();
  Attackers attackers(&cluster, cluster.world().NewRandom());
  attackers.Start();
  static constexpr uint64_t kSizes[] = {0, 1, 511, 512, 513, 65536, 65537, 1 << 20, (1 << 20) + 1, (3 << 20) + 777};
  for (int i = 0; i < files; ++i) {
    const uint64_t size = random.OneIn(2) ? kSizes[random.Below(std::size(kSizes))] : random.Below(4 << 20);
    workload.Write(fmt::format("/job/chk-{}/file-{}", i / 4, i), size);
    cluster.RunUntil([] { return false; }, absl::Milliseconds(random.Below(1500)));
  }
  if (!workload.WaitForAll(absl::Minutes(30))) result.wrong.push_back("the writers do not end");
  attackers.Stop();
  if (!cluster.Settle(absl::Minutes(30))) result.wrong.push_back("the cluster does not settle: " + cluster.Report().ShortDebugString());
  for (const auto& [path, file] : workload.files()) {
    if (file.status.ok())
      ++result.acknowledged;
    else
      ++result.failed;
  }
  for (std::string& wrong : CheckFiles(&cluster, &workload)) result.wrong.push_back(std::move(wrong));
  result.crashes = attackers.crashes;
  result.cuts = attackers.cuts;
  result.delays = attackers.delays;
  return result;
}

TEST(ClusterSim, AcknowledgedFilesSurviveCrashesCutsAndDelays) {
  for (const uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayHint(seed));
    const RunResult result = RunSeed(seed, 10);
    fmt::print("seed {}: {} files acknowledged, {} failed; {} crashes, {} cuts, {} delays\n", seed, result.acknowledged, result.failed,
               result.crashes, result.cuts, result.delays);
    EXPECT_THAT(result.wrong, ::testing::IsEmpty());
    EXPECT_GE(result.crashes, 1);
    EXPECT_GE(result.cuts, 1);
    EXPECT_GE(result.delays, 1);
    EXPECT_GE(result.acknowledged, 8);
    if (HasFailure()) break;
  }
}

TEST(ClusterSim, AFileSurvivesPowerLossOfAllNodesRightAfterItsClose) {
  for (const uint64_t seed : Seeds(3)) {
    SCOPED_TRACE(ReplayHint(seed));
    SimCluster cluster({.seed = seed});
    Workload workload(&cluster);
    for (const uint64_t size : {0ull, 1ull, 511ull, 512ull, 513ull, 65537ull, 1ull << 20, (1ull << 20) + 1, 2'500'000ull}) {
      const std::string path = fmt::format("/power/{}", size);
      workload.Write(path, size);
      ASSERT_TRUE(workload.WaitForAll(absl::Minutes(10))) << path;
      ASSERT_TRUE(workload.files().at(path).status.ok()) << workload.files().at(path).status;
      cluster.PowerCutAll(absl::Seconds(3));
      EXPECT_EQ(workload.Compare(path, size), "");
    }
    ASSERT_TRUE(cluster.Settle(absl::Minutes(10))) << cluster.Report().ShortDebugString();
    EXPECT_THAT(CheckFiles(&cluster, &workload), ::testing::IsEmpty());
  }
}

TEST(ClusterSim, ADeadDatanodesBlocksAreReplicatedAgain) {
  SimCluster cluster({.seed = Seeds(1).front(), .datanodes = 5});
  Workload workload(&cluster);
  for (int i = 0; i < 6; ++i) workload.Write(fmt::format("/repair/{}", i), 1'500'000);
  ASSERT_TRUE(workload.WaitForAll(absl::Minutes(10)));
  cluster.KillDatanode(2, absl::Hours(10));
  const auto back = [&] {
    const v1::ClusterReportResponse report = cluster.Report();
    size_t dead = 0;
    for (const v1::DatanodeReport& node : report.datanodes()) dead += node.state() == v1::DEAD ? 1 : 0;
    return dead == 1 && report.under_replicated_blocks() == 0;
  };
  bool repaired = false;
  for (int i = 0; i < 600 && !repaired; ++i) {
    cluster.RunUntil([] { return false; }, absl::Seconds(1));
    repaired = back();
  }
  EXPECT_TRUE(repaired) << cluster.Report().ShortDebugString();
  cluster.RunUntil([] { return false; }, absl::Seconds(30));
  EXPECT_THAT(CheckFiles(&cluster, &workload), ::testing::IsEmpty());
}

}  // namespace
}  // namespace cairn::testing
