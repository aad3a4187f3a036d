// Leases from end to end: what others see of a file that is being written, and who may have it when.

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config.h"
#include "common/error.h"
#include "common/reconfiguration.h"
#include "tests/sim/sim_user.h"
#include "tests/testing/matchers.h"
#include "tests/testing/seeds.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kBlock = 1 << 20;

class Leases : public ::testing::Test {
 protected:
  void Run(absl::Duration duration) { cluster_.RunFor(duration); }
  // What `other_` sees of /f: the same in each way of asking.
  void ExpectVisible(const std::string& content, uint64_t length, bool open) {
    const auto status = other_.Stat("/d/f");
    ASSERT_THAT(status, IsOk());
    EXPECT_EQ(status->length_bytes(), length);
    EXPECT_EQ(status->under_construction(), open);
    const auto listing = other_.List("/d");
    ASSERT_THAT(listing, IsOk());
    ASSERT_EQ(listing->entries_size(), 1);
    EXPECT_EQ(listing->entries(0).path(), "f");
    EXPECT_EQ(listing->entries(0).length_bytes(), length);
    EXPECT_EQ(listing->entries(0).under_construction(), open);
    const auto located = other_.Locate("/d/f");
    ASSERT_THAT(located, IsOk());
    uint64_t end = 0;
    for (const v1::LocatedBlock& block : located->blocks()) {
      EXPECT_EQ(block.offset_bytes(), end);
      end += block.block().length_bytes();
    }
    EXPECT_EQ(end, length);
    EXPECT_THAT(other_.Get("/d/f"), IsOkAndHolds(content.substr(0, length)));
  }
  absl::Status TryAppend(SimUser* user) {
    SimWriting file(user, "/d/f", "");
    return file.OpenForAppend(0);
  }
  absl::Status TryCreate(SimUser* user) {
    SimWriting file(user, "/d/f", "");
    return file.Create();
  }
  // Nobody but the holder may open, create or cut the file, and is told whose it is.
  void ExpectHeldBy(const SimUser& holder) {
    for (const absl::Status& refused : {TryAppend(&other_), TryCreate(&other_), other_.Truncate("/d/f", 0).status()}) {
      EXPECT_THAT(refused, HasKind(ErrorKind::kBeingWritten));
      EXPECT_THAT(refused, HasReason("HELD_BY_OTHER"));
      EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("/d/f"), HasSubstr(holder.client_name()), HasSubstr("last heard of")));
    }
  }

  SimCluster cluster_{{.seed = Seeds(1).front(), .lease_soft_limit = absl::Seconds(30), .lease_hard_limit = absl::Minutes(3)}};
  SimUser writer_{&cluster_, "writer"};
  SimUser other_{&cluster_, "other"};
};

TEST_F(Leases, AFileBeingWrittenIsSeenWithWhatWasFlushed) {
  const std::string content = PatternOf(1, 3 * kBlock);
  SimWriting file(&writer_, "/d/f", content);
  ASSERT_THAT(file.Create(), IsOk());
  ExpectVisible(content, 0, true);
  // Inside a chunk, at its end, one beyond, across blocks, and exactly at the end of one.
  for (const uint64_t to : {uint64_t{1}, uint64_t{511}, uint64_t{512}, uint64_t{513}, kBlock - 1, kBlock, kBlock + 1, 2 * kBlock}) {
    SCOPED_TRACE(to);
    ASSERT_THAT(file.Append(to - file.appended()), IsOk());
    ASSERT_THAT(to % 2 == 0 ? file.Sync() : file.Flush(), IsOk());
    ExpectVisible(content, to, true);
  }
  ASSERT_THAT(file.Append(1000), IsOk());
  ASSERT_THAT(file.Close(), IsOk());
  ExpectVisible(content, 2 * kBlock + 1000, false);
}

TEST_F(Leases, AnAppendedFileIsSeenWithAllItHadFromTheBeginning) {
  const std::string content = PatternOf(2, 300'000);
  ASSERT_THAT(other_.Put("/d/f", content.substr(0, 100'001)), IsOk());
  SimWriting file(&writer_, "/d/f", content);
  ASSERT_THAT(file.OpenForAppend(100'001), IsOk());
  ExpectVisible(content, 100'001, true);
  ASSERT_THAT(file.Append(50'000), IsOk());
  ASSERT_THAT(file.Flush(), IsOk());
  ExpectVisible(content, 150'001, true);
  ASSERT_THAT(file.Close(), IsOk());
  ExpectVisible(content, 150'001, false);
}

TEST_F(Leases, ARestartOfTheNamenodeKeepsThem) {
  const std::string content = PatternOf(3, 2 * kBlock);
  SimWriting file(&writer_, "/d/f", content);
  ASSERT_THAT(file.Create(), IsOk());
  for (const bool power_cut : {false, true}) {
    ASSERT_THAT(file.Append(400'000), IsOk());
    ASSERT_THAT(file.Flush(), IsOk());
    power_cut ? cluster_.PowerCutNamenode(absl::Seconds(2)) : cluster_.KillNamenode(absl::Seconds(2));
    Run(absl::Seconds(3));
    ExpectVisible(content, file.flushed(), true);
    ExpectHeldBy(writer_);
    // The writer goes on as if nothing had been.
    ASSERT_THAT(file.Append(100'000), IsOk());
    ASSERT_THAT(file.Flush(), IsOk());
  }
  ASSERT_THAT(file.Close(), IsOk());
  ASSERT_TRUE(cluster_.Settle(absl::Minutes(5)));
  EXPECT_THAT(CheckReplicas(&cluster_, &other_, "/d/f", content.substr(0, file.appended())), IsEmpty());
}

TEST_F(Leases, AWriterThatIsAliveKeepsItsFileHoweverLongItIsSilent) {
  SimWriting file(&writer_, "/d/f", PatternOf(4, 1000));
  ASSERT_THAT(file.Create(), IsOk());
  for (int i = 0; i < 12; ++i) {
    Run(absl::Seconds(25));
    ExpectHeldBy(writer_);
  }
  ASSERT_THAT(file.Append(1000), IsOk());
  EXPECT_THAT(file.Close(), IsOk());
}

TEST_F(Leases, ANewNamenodeGrantsASilentWriterAWholeMinuteMore) {
  SimWriting file(&writer_, "/d/f", PatternOf(5, 1000));
  ASSERT_THAT(file.Create(), IsOk());
  ASSERT_THAT(file.Append(1000), IsOk());
  ASSERT_THAT(file.Flush(), IsOk());
  writer_.Kill();
  Run(absl::Seconds(25));
  cluster_.KillNamenode(absl::Seconds(1));
  Run(absl::Seconds(55));
  ExpectHeldBy(writer_);  // 80 s of silence, of which this NameNode knows less than 55. It may have told its limit to nobody.
  Run(absl::Seconds(10));
  absl::Status opened = TryAppend(&other_);
  EXPECT_THAT(opened, HasReason("RECOVERING"));
  for (int i = 0; i < 20 && !opened.ok(); ++i) {
    Run(absl::Seconds(1));
    opened = TryAppend(&other_);
  }
  EXPECT_THAT(opened, IsOk());
}

TEST_F(Leases, TheHardLimitClosesWhatNobodyAsksFor) {
  const std::string content = PatternOf(6, 1000);
  SimWriting file(&writer_, "/d/f", content);
  ASSERT_THAT(file.Create(), IsOk());
  ASSERT_THAT(file.Append(777), IsOk());
  ASSERT_THAT(file.Sync(), IsOk());
  writer_.Kill();
  Run(absl::Seconds(150));
  ExpectVisible(content, 777, true);
  ASSERT_TRUE(other_.AwaitClosed("/d/f", absl::Minutes(2)));
  ExpectVisible(content, 777, false);
}

TEST_F(Leases, AWriterThatGivesUpLeavesItsFileAtOnce) {
  const std::string content = PatternOf(7, 1000);
  {
    SimWriting file(&writer_, "/d/f", content);
    ASSERT_THAT(file.Create(), IsOk());
    ASSERT_THAT(file.Append(777), IsOk());
    ASSERT_THAT(file.Flush(), IsOk());
  }
  ASSERT_TRUE(other_.AwaitClosed("/d/f", absl::Seconds(10)));
  ExpectVisible(content, 777, false);
}

// A cluster with the limits that are configured when nobody says otherwise, which are changed while it runs.
class LeaseLimits : public ::testing::Test {
 protected:
  LeaseLimits() {
    cluster_.AskFromElsewhere();
    cluster_.namenode()->UseReconfiguration(&reconfiguration_);
  }
  void Run(absl::Duration duration) { cluster_.RunFor(duration); }
  static absl::StatusOr<Config> Load(const std::string& limits) {
    Config config;
    absl::Status read = config.AddYaml("dfs.permissions.enabled: false\ndfs.blocksize: 1m\n" + limits, "cairn.yaml");
    if (!read.ok()) return read;
    return config;
  }
  void Reload(const std::string& limits) {
    limits_ = limits;
    v1::ReconfigureRequest request;
    request.mutable_header()->set_user("sim");
    request.set_action(v1::ReconfigureRequest::START);
    const auto taken = cluster_.AskAdmin(&api::NamenodeAdmin::Reconfigure, request);
    ASSERT_THAT(taken, IsOk());
    ASSERT_EQ(taken->error(), "");
    ASSERT_GT(taken->changes_size(), 0);
  }
  bool Exists(const std::string& path) { return other_.Stat(path).ok(); }
  absl::Status TryAppend(const std::string& path) {
    SimWriting file(&other_, path, "");
    return file.OpenForAppend(0);
  }

  std::string limits_;
  SimCluster cluster_{{.seed = Seeds(1).front()}};
  Reconfiguration reconfiguration_{*Load(""), [this] { return Load(limits_); }, &cluster_.world().clock()};
  SimUser writer_{&cluster_, "writer"};
  SimUser other_{&cluster_, "other"};
};

TEST_F(LeaseLimits, LoweredWhileAWriterIsSilentTheyTakeNothingFromIt) {
  CreateOptions vanishing;
  vanishing.delete_if_abandoned = true;
  SimWriting file(&writer_, "/vanishing", PatternOf(8, 2000));
  ASSERT_THAT(file.Create(vanishing), IsOk());
  SimWriting kept(&writer_, "/kept", PatternOf(9, 2000));
  ASSERT_THAT(kept.Create(), IsOk());
  // At every point between two renewals, which are 20 s apart.
  for (int i = 0; i < 8; ++i) {
    Reload(i % 2 == 0 ? "cairn.namenode.lease-soft-limit: 5s\ndfs.namenode.lease-hard-limit-sec: 6s\n" : "dfs.ls.limit: 100\n");
    Run(absl::Seconds(i % 2 == 0 ? 63 : 43));
    ASSERT_TRUE(Exists("/vanishing"));
    EXPECT_THAT(TryAppend("/vanishing"), HasReason("HELD_BY_OTHER"));
    EXPECT_THAT(TryAppend("/kept"), HasReason("HELD_BY_OTHER"));
  }
  // A file that is opened now is no worse off.
  Reload("cairn.namenode.lease-soft-limit: 5s\n");
  SimWriting late(&writer_, "/late", PatternOf(10, 2000));
  ASSERT_THAT(late.Create(vanishing), IsOk());
  Run(absl::Minutes(2));
  ASSERT_TRUE(Exists("/late"));
  for (SimWriting* writing : {&file, &kept, &late}) {
    ASSERT_THAT(writing->Append(2000), IsOk());
    EXPECT_THAT(writing->Close(), IsOk());
  }
  EXPECT_THAT(other_.Get("/vanishing"), IsOkAndHolds(file.content()));
}

TEST_F(LeaseLimits, AShortLimitActsOnWhoHasHeardOfIt) {
  Reload("cairn.namenode.lease-soft-limit: 5s\n");
  CreateOptions vanishing;
  vanishing.delete_if_abandoned = true;
  SimWriting file(&writer_, "/f", PatternOf(11, 2000));
  ASSERT_THAT(file.Create(vanishing), IsOk());
  Run(absl::Seconds(1));
  writer_.Kill();
  Run(absl::Seconds(4));
  EXPECT_TRUE(Exists("/f"));
  Run(absl::Seconds(10));
  EXPECT_FALSE(Exists("/f"));
}

}  // namespace
}  // namespace cairn::testing
