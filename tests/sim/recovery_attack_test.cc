// Writers that die or are cut off at any moment, files that are cut and written on, while daemons crash: in the end every file is closed,
// holds at least what its writer was promised, and all its replicas are the same.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/status.h"
#include "tests/sim/attackers.h"
#include "tests/sim/sim_user.h"
#include "tests/testing/seeds.h"

namespace cairn::testing {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kBlock = 192 << 10;
constexpr absl::Duration kLong = absl::Minutes(20);

enum class Fate { kWriting, kClosed, kKilled, kCutOff, kFailed };

// One writer with its file, and what it was promised.
struct Life {
  std::unique_ptr<SimUser> user;
  std::unique_ptr<SimWriting> file;
  Fate fate = Fate::kWriting;
  std::string ended;  // As the file was when all had settled.
  // Of the last flush: where its last block begins, when it began, and the DataNodes that acknowledged it.
  uint64_t flushed_block = 0;
  SteadyTime flushed_at;
  std::set<std::string> flushed_on;
};

class Attack {
 public:
  explicit Attack(uint64_t seed)
      : cluster_({.seed = seed,
                  .datanodes = 5,
                  .block_size_bytes = kBlock,
                  .lease_soft_limit = absl::Seconds(20),
                  .lease_hard_limit = absl::Seconds(90)}),
        random_(cluster_.world().NewRandom()),
        other_(&cluster_, "other"),
        attackers_(&cluster_, cluster_.world().NewRandom(),
                   {.on_power_cut = [this](size_t node) { power_cut_at_[fmt::format("datanode{}", node)] = cluster_.world().Now(); }}) {}

  void Run(int writers, int steps) {
    for (int i = 0; i < writers; ++i) {
      Life& life = lives_.emplace_back();
      life.user = std::make_unique<SimUser>(&cluster_, fmt::format("writer{}", i));
      life.file = std::make_unique<SimWriting>(life.user.get(), fmt::format("/job/file-{}", i),
                                               PatternOf(cluster_.world().seed() * 100 + static_cast<uint64_t>(i), 8 * kBlock));
      const absl::Status created = life.file->Create();
      if (!created.ok()) wrong.push_back(Named(life, created));
    }
    attackers_.Start();
    for (int i = 0; i < steps; ++i) {
      Step(lives_[random_.Below(lives_.size())]);
      cluster_.RunFor(absl::Milliseconds(random_.Below(1500)));
    }
    // The rest goes as well, and their files are taken, while the attacks go on.
    for (Life& life : lives_)
      if (life.fate == Fate::kWriting) Leave(life);
    for (int i = 0; i < 10; ++i) {
      const Life& life = lives_[random_.Below(lives_.size())];
      // Others wait for the hard limit.
      if (life.fate != Fate::kClosed && random_.OneIn(2)) IgnoreError(other_.RecoverLease(life.file->path()).status(), "it is asked again");
      cluster_.RunFor(absl::Milliseconds(random_.Below(8000)));
    }
    attackers_.Stop();  // Who was cut off is back.
  }

  void Check() {
    for (Life& life : lives_) {
      // A writer that comes back may find that its file is still its own.
      if (life.fate == Fate::kCutOff && life.file->Close().ok()) life.fate = Fate::kClosed;
      if (!other_.AwaitClosed(life.file->path(), kLong)) wrong.push_back(life.file->path() + ": it is never closed");
    }
    if (!cluster_.Settle(kLong)) wrong.push_back("the cluster does not settle: " + cluster_.Report().ShortDebugString());
    for (Life& life : lives_) CheckFile(life);
    // Whoever was fenced tries again, and it makes no difference.
    for (Life& life : lives_) {
      if (life.fate != Fate::kCutOff && life.fate != Fate::kFailed) continue;
      ++fenced;
      if (life.file->Flush().ok() && life.file->appended() > life.ended.size())
        wrong.push_back(life.file->path() + ": a fenced flush is acknowledged");
      if (life.file->Close().ok()) wrong.push_back(life.file->path() + ": a fenced close is acknowledged");
    }
    cluster_.RunFor(absl::Seconds(30));
    for (const Life& life : lives_) CheckReplicasOf(life);
  }

  std::vector<std::string> wrong;
  int closed = 0;
  int recovered = 0;
  int fenced = 0;
  int crashes() const { return attackers_.crashes(); }

 private:
  static std::string Named(const Life& life, const absl::Status& status) {
    return fmt::format("{}: {}", life.file->path(), std::string(status.message()));
  }

  void Step(Life& life) {
    if (life.fate != Fate::kWriting) return;
    absl::Status status;
    const SteadyTime began = cluster_.world().Now();
    switch (random_.Below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: status = life.file->Append(PartOf(life)); break;
      case 5:
      case 6:
      case 7: status = life.file->Flush(); break;
      case 8:
      case 9: status = life.file->Sync(); break;
      default: return Leave(life);
    }
    if (!status.ok()) {
      life.fate = Fate::kFailed;
      fmt::print("  {}\n", Named(life, status));
    } else if (life.file->flushed() == life.file->appended()) {
      NoteFlushed(life, began);
    }
  }

  size_t PartOf(const Life& life) {
    static constexpr size_t kSizes[] = {1, 511, 512, 513, 65'536, kBlock - 1, kBlock};
    const size_t size = random_.OneIn(3) ? kSizes[random_.Below(std::size(kSizes))] : random_.Below(100'000);
    return std::min<size_t>(size, life.file->content().size() - life.file->appended());
  }

  void NoteFlushed(Life& life, SteadyTime began) {
    const auto located = other_.Locate(life.file->path());
    if (!located.ok() || located->blocks().empty()) return;
    const v1::LocatedBlock& last = *located->blocks().rbegin();
    life.flushed_block = last.offset_bytes();
    life.flushed_at = began;
    life.flushed_on.clear();
    for (const v1::StorageLocation& location : last.locations()) life.flushed_on.insert(location.datanode().transfer().host());
  }

  void Leave(Life& life) {
    switch (random_.Below(4)) {
      case 0: {
        const absl::Status status = life.file->Close();
        life.fate = status.ok() ? Fate::kClosed : Fate::kFailed;
        if (!status.ok()) fmt::print("  {}\n", Named(life, status));
        return;
      }
      case 1:
        // In the middle of what it is doing.
        life.file->BeginFlush();
        cluster_.RunFor(absl::Microseconds(random_.Below(3000)));
        [[fallthrough]];
      case 2:
        life.user->Kill();
        life.fate = Fate::kKilled;
        return;
      default: life.user->CutOff(); life.fate = Fate::kCutOff;
    }
  }

  // What the file must hold at least.
  uint64_t Promised(const Life& life) const {
    const auto keeps = [&](const std::string& host) {
      const auto cut = power_cut_at_.find(host);
      return cut == power_cut_at_.end() || cut->second < life.flushed_at;
    };
    const bool kept = std::any_of(life.flushed_on.begin(), life.flushed_on.end(), keeps);
    return std::max(life.file->synced(), kept ? life.file->flushed() : std::min(life.flushed_block, life.file->flushed()));
  }

  void CheckFile(Life& life) {
    const absl::StatusOr<std::string> read = other_.Get(life.file->path());
    if (!read.ok()) {
      wrong.push_back(Named(life, read.status()));
      return;
    }
    life.ended = *read;
    ++(life.fate == Fate::kClosed ? closed : recovered);
    const uint64_t promised = life.fate == Fate::kClosed ? life.file->appended() : Promised(life);
    if (read->size() < promised) wrong.push_back(fmt::format("{}: {} bytes, {} were promised", life.file->path(), read->size(), promised));
    if (read->size() > life.file->appended() || !life.file->content().starts_with(*read))
      wrong.push_back(life.file->path() + ": other bytes than were written");
    CheckReplicasOf(life);
  }

  void CheckReplicasOf(const Life& life) {
    for (std::string& what : CheckReplicas(&cluster_, &other_, life.file->path(), life.ended)) wrong.push_back(std::move(what));
  }

  SimCluster cluster_;
  Random random_;
  std::map<std::string, SteadyTime> power_cut_at_;
  SimUser other_;
  Attackers attackers_;
  std::vector<Life> lives_;
};

TEST(RecoveryAttack, WhateverWritersWerePromisedIsThereInTheEnd) {
  int recovered = 0, closed = 0, fenced = 0, crashes = 0;
  const std::vector<uint64_t> seeds = Seeds(Scaled<uint64_t>(20, 300));
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(ReplayHint(seed));
    Attack attack(seed);
    attack.Run(6, 40);
    attack.Check();
    EXPECT_THAT(attack.wrong, IsEmpty());
    if (HasFailure()) return;
    recovered += attack.recovered;
    closed += attack.closed;
    fenced += attack.fenced;
    crashes += attack.crashes();
  }
  fmt::print("{} files recovered, {} closed, {} writers fenced; {} crashes\n", recovered, closed, fenced, crashes);
  if (seeds.size() < 20) return;
  EXPECT_GE(recovered, 60);
  EXPECT_GE(closed, 10);
  EXPECT_GE(fenced, 10);
}

// One file, whose right content is always known.
class CutsAndAppends {
 public:
  explicit CutsAndAppends(uint64_t seed)
      : cluster_({.seed = seed, .datanodes = 5, .block_size_bytes = kBlock}),
        random_(cluster_.world().NewRandom()),
        user_(&cluster_, "user"),
        attackers_(&cluster_, cluster_.world().NewRandom()) {}

  void Run(int steps) {
    if (const absl::Status put = user_.Put(kPath, expected_); !put.ok()) wrong.push_back(std::string(put.message()));
    attackers_.Start();
    for (int i = 0; i < steps && wrong.empty(); ++i) {
      random_.OneIn(3) ? Cut() : Append();
      const absl::StatusOr<std::string> read = user_.Get(kPath);
      if (!read.ok()) {
        wrong.push_back(fmt::format("step {}: {}", i, std::string(read.status().message())));
      } else if (*read != expected_) {
        wrong.push_back(fmt::format("step {}: other bytes; {} of them instead of {}", i, read->size(), expected_.size()));
      }
      cluster_.RunFor(absl::Milliseconds(random_.Below(3000)));
    }
    attackers_.Stop();
    if (!cluster_.Settle(kLong)) wrong.push_back("the cluster does not settle: " + cluster_.Report().ShortDebugString());
    for (std::string& what : CheckReplicas(&cluster_, &user_, kPath, expected_)) wrong.push_back(std::move(what));
  }

  std::vector<std::string> wrong;
  int cuts = 0;
  int appends = 0;
  int failed_appends = 0;

 private:
  static constexpr char kPath[] = "/f";

  // Again and again, while the file is being recovered or cannot be reached for a moment.
  template <class Try>
  bool Persist(const std::string& what, Try attempt) {
    const SteadyTime deadline = cluster_.world().Now() + kLong;
    for (;;) {
      const absl::Status status = attempt();
      if (status.ok()) return true;
      const ErrorKind kind = KindOf(status);
      const bool passes = kind == ErrorKind::kBeingWritten || kind == ErrorKind::kNotReplicatedYet || kind == ErrorKind::kRetriable;
      if (!passes || cluster_.world().Now() > deadline) {
        wrong.push_back(fmt::format("{}: {}", what, std::string(status.message())));
        return false;
      }
      cluster_.RunFor(absl::Seconds(1));
    }
  }

  void Cut() {
    const uint64_t length = random_.OneIn(4) ? expected_.size() / 512 * 512 : random_.Below(expected_.size() + 1);
    if (!Persist("truncate", [&] { return user_.Truncate(kPath, length).status(); })) return;
    if (!user_.AwaitClosed(kPath, kLong)) {
      wrong.push_back("truncate: it is never closed");
      return;
    }
    expected_.resize(length);
    ++cuts;
  }

  void Append() {
    const size_t more = 1 + random_.Below(random_.OneIn(3) ? 2 * kBlock : 3000);
    const std::string content = expected_ + PatternOf(random_.Next(), more);
    std::unique_ptr<SimWriting> file;
    const bool new_block = random_.OneIn(4);
    const auto open = [&] {
      file = std::make_unique<SimWriting>(&user_, kPath, content);
      return file->OpenForAppend(expected_.size(), {.new_block = new_block});
    };
    if (!Persist("append", open)) return;
    absl::Status written = file->Append(more / 2);
    if (written.ok() && random_.OneIn(2)) written = random_.OneIn(2) ? file->Flush() : file->Sync();
    if (written.ok()) written = file->Append(more - more / 2);
    if (written.ok()) written = file->Close();
    ++appends;
    if (written.ok()) {
      expected_ = content;
      return;
    }
    // No DataNode of the last block was left. What was closed or synced before stays.
    ++failed_appends;
    fmt::print("  {}\n", std::string(written.message()));
    const uint64_t promised = file->synced();
    file.reset();
    if (!user_.Recover(kPath, kLong)) wrong.push_back("a failed append: it is never closed");
    const absl::StatusOr<std::string> read = user_.Get(kPath);
    if (!read.ok() || read->size() < promised || !content.starts_with(*read)) {
      wrong.push_back("a failed append left other bytes, or too few");
    } else {
      expected_ = *read;
    }
  }

  SimCluster cluster_;
  Random random_;
  SimUser user_;
  Attackers attackers_;
  std::string expected_;
};

TEST(RecoveryAttack, CutsAndAppendsLeaveWhatTheyShouldInAnyOrder) {
  int cuts = 0, appends = 0, failed = 0;
  const std::vector<uint64_t> seeds = Seeds(Scaled<uint64_t>(15, 300));
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(ReplayHint(seed));
    CutsAndAppends run(seed);
    run.Run(25);
    EXPECT_THAT(run.wrong, IsEmpty());
    if (HasFailure()) return;
    cuts += run.cuts;
    appends += run.appends;
    failed += run.failed_appends;
  }
  fmt::print("{} cuts, {} appends, of which {} failed\n", cuts, appends, failed);
  if (seeds.size() < 15) return;
  EXPECT_GE(cuts, 60);
  EXPECT_GE(appends - failed, 100);
}

}  // namespace
}  // namespace cairn::testing
