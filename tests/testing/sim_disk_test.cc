#include "tests/testing/sim_disk.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using OpenMode = LocalFileSystem::OpenMode;

class SimDiskTest : public ::testing::Test {
 protected:
  explicit SimDiskTest(uint64_t seed = 1) : disk_(Random(seed), 64 << 20), alive_(std::make_shared<bool>(true)) {
    files_ = disk_.NewView(alive_);
    EXPECT_TRUE(files_->MakeDirectories("/d").ok());
    EXPECT_TRUE(files_->SyncDirectory("/").ok());
  }

  std::unique_ptr<File> Create(const std::string& path, std::string_view content = {}) {
    absl::StatusOr<std::unique_ptr<File>> file = files_->Open(path, OpenMode::kCreateNew);
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->WriteAt(0, content).ok());
    return *std::move(file);
  }
  std::string Content(const std::string& path) {
    absl::StatusOr<std::string> content = files_->ReadWhole(path);
    return content.ok() ? *content : "<" + std::string(content.status().message()) + ">";
  }
  // kill -9 and, with `power`, loss of power; then a new process.
  void Restart(bool power) {
    *alive_ = false;
    if (power) disk_.PowerCut();
    alive_ = std::make_shared<bool>(true);
    dead_.push_back(std::move(files_));
    files_ = disk_.NewView(alive_);
  }

  SimDisk disk_;
  std::shared_ptr<bool> alive_;
  std::unique_ptr<LocalFileSystem> files_;
  std::vector<std::unique_ptr<LocalFileSystem>> dead_;
};

TEST_F(SimDiskTest, ReadsWhatWasWrittenOverPagesHolesAndTheEnd) {
  std::unique_ptr<File> file = Create("/d/a");
  std::string content;
  for (int i = 0; i < 20'000; ++i) content.push_back(static_cast<char>(i * 7));
  ASSERT_TRUE(file->WriteAt(5'000, content).ok());
  std::string into(30'000, 'x');
  ASSERT_EQ(file->ReadAt(0, into).value(), 25'000u);
  EXPECT_EQ(into.substr(0, 5'000), std::string(5'000, '\0'));
  EXPECT_EQ(into.substr(5'000, 20'000), content);
  EXPECT_EQ(file->ReadAt(25'000, into).value(), 0u);
  EXPECT_EQ(file->ReadAt(24'999, into).value(), 1u);
  EXPECT_EQ(file->Size().value(), 25'000u);
  EXPECT_EQ(file->AllocatedBytes().value(), 6u * 4096);  // The first page is a hole.
}

TEST_F(SimDiskTest, VectorWriteIsTheConcatenation) {
  std::unique_ptr<File> file = Create("/d/a");
  const std::string first = "hello ";
  const std::string second = "world";
  const std::vector<std::span<const char>> parts = {first, {}, second};
  ASSERT_TRUE(file->WriteVectorAt(3, parts).ok());
  EXPECT_EQ(Content("/d/a"), std::string(3, '\0') + "hello world");
}

TEST_F(SimDiskTest, TruncateAndPunchHoleZeroAndFree) {
  std::unique_ptr<File> file = Create("/d/a", std::string(20'000, 'a'));
  ASSERT_TRUE(file->PunchHole(4'000, 8'400).ok());
  std::string expected = std::string(4'000, 'a') + std::string(8'400, '\0') + std::string(7'600, 'a');
  EXPECT_EQ(Content("/d/a"), expected);
  EXPECT_EQ(file->AllocatedBytes().value(), 3u * 4096);  // Of 5: two lie whole in the hole.
  ASSERT_TRUE(file->Truncate(100).ok());
  ASSERT_TRUE(file->Truncate(200).ok());
  EXPECT_EQ(Content("/d/a"), std::string(100, 'a') + std::string(100, '\0'));
  EXPECT_EQ(file->AllocatedBytes().value(), 4096u);
  ASSERT_TRUE(file->PunchHole(0, 200).ok());
  EXPECT_EQ(file->AllocatedBytes().value(), 0u);
  EXPECT_EQ(disk_.used_bytes(), 0u);
}

TEST_F(SimDiskTest, ErrorsCarryTheirKinds) {
  EXPECT_EQ(KindOf(files_->Open("/d/none", OpenMode::kRead).status()), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(files_->Open("/none/a", OpenMode::kCreateNew).status()), ErrorKind::kNotFound);
  Create("/d/a");
  EXPECT_EQ(KindOf(files_->Open("/d/a", OpenMode::kCreateNew).status()), ErrorKind::kAlreadyExists);
  EXPECT_EQ(KindOf(files_->Remove("/d/none")), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(files_->Rename("/d/none", "/d/b")), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(files_->List("/none").status()), ErrorKind::kNotFound);
  EXPECT_FALSE(files_->Remove("/d").ok());
  EXPECT_FALSE(files_->MakeDirectories("/d/a/b").ok());
  absl::StatusOr<std::unique_ptr<File>> read_only = files_->Open("/d/a", OpenMode::kRead);
  EXPECT_FALSE((*read_only)->WriteAt(0, std::string("x")).ok());
}

TEST_F(SimDiskTest, ListIsSortedAndRenameReplaces) {
  Create("/d/b", "b");
  Create("/d/a", "a");
  ASSERT_TRUE(files_->Rename("/d/b", "/d/a").ok());
  EXPECT_THAT(files_->List("/d").value(), ElementsAre("a"));
  EXPECT_EQ(Content("/d/a"), "b");
  ASSERT_TRUE(files_->MakeDirectories("/d/x/y").ok());
  EXPECT_THAT(files_->List("/d").value(), ElementsAre("a", "x"));
  EXPECT_TRUE(files_->Exists("/d/x/y").value());
  EXPECT_FALSE(files_->Exists("/d/x/z").value());
}

TEST_F(SimDiskTest, FullDiskRefusesAndTakesAgainAfterRemove) {
  disk_.SetCapacity(8 * 4096);
  Create("/d/a", std::string(6 * 4096, 'a')).reset();
  std::unique_ptr<File> file = Create("/d/b");
  const absl::Status full = file->WriteAt(0, std::string(3 * 4096, 'b'));
  EXPECT_EQ(KindOf(full), ErrorKind::kDiskFull);
  EXPECT_THAT(std::string(full.message()), HasSubstr("/d/b"));
  EXPECT_EQ(file->Size().value(), 2u * 4096);                      // What fits is written, as by a kernel.
  EXPECT_TRUE(file->WriteAt(0, std::string(2 * 4096, 'c')).ok());  // In place: needs no space.
  EXPECT_EQ(files_->SpaceOf("/d")->available_bytes, 0u);
  ASSERT_TRUE(files_->Remove("/d/a").ok());
  EXPECT_EQ(files_->SpaceOf("/d")->available_bytes, 6u * 4096);
  EXPECT_TRUE(file->WriteAt(0, std::string(3 * 4096, 'b')).ok());
}

TEST_F(SimDiskTest, OpenFileKeepsItsSpaceAfterRemove) {
  std::unique_ptr<File> file = Create("/d/a", std::string(4096, 'a'));
  ASSERT_TRUE(files_->Remove("/d/a").ok());
  EXPECT_EQ(disk_.used_bytes(), 4096u);
  std::string into(10, ' ');
  EXPECT_EQ(file->ReadAt(0, into).value(), 10u);
  file.reset();
  EXPECT_EQ(disk_.used_bytes(), 0u);
}

TEST_F(SimDiskTest, KilledProcessLosesNothingAndItsHandlesDoNothing) {
  std::unique_ptr<File> file = Create("/d/a", "unsynced");
  Restart(false);
  EXPECT_EQ(Content("/d/a"), "unsynced");
  EXPECT_FALSE(file->WriteAt(0, std::string("zombie")).ok());
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_FALSE(dead_.back()->Remove("/d/a").ok());
  EXPECT_EQ(Content("/d/a"), "unsynced");
}

TEST_F(SimDiskTest, LockIsHeldByOneProcessUntilItDies) {
  absl::StatusOr<std::unique_ptr<DirectoryLock>> lock = files_->Lock("/d");
  ASSERT_TRUE(lock.ok());
  auto other_alive = std::make_shared<bool>(true);
  std::unique_ptr<LocalFileSystem> other = disk_.NewView(other_alive);
  const absl::Status busy = other->Lock("/d/").status();
  EXPECT_EQ(KindOf(busy), ErrorKind::kBusy);
  EXPECT_THAT(std::string(busy.message()), HasSubstr("/d"));
  *alive_ = false;
  absl::StatusOr<std::unique_ptr<DirectoryLock>> taken = other->Lock("/d");
  ASSERT_TRUE(taken.ok());
  lock->reset();  // The zombie's: must not free the other's.
  std::unique_ptr<LocalFileSystem> third = disk_.NewView(std::make_shared<bool>(true));
  EXPECT_EQ(KindOf(third->Lock("/d").status()), ErrorKind::kBusy);
  taken->reset();
  EXPECT_TRUE(third->Lock("/d").ok());
}

TEST_F(SimDiskTest, WriteWholeIsReplacedAtomically) {
  ASSERT_TRUE(files_->WriteWhole("/d/v", "one").ok());
  Create("/d/v.tmp", "left over").reset();
  ASSERT_TRUE(files_->WriteWhole("/d/v", "two").ok());
  EXPECT_EQ(Content("/d/v"), "two");
  EXPECT_THAT(files_->List("/d").value(), ElementsAre("v"));
}

TEST_F(SimDiskTest, InjectedFaultsAreAnswered) {
  std::unique_ptr<File> file = Create("/d/a", "x");
  disk_.FailNextSync("/d/");
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_TRUE(file->Sync().ok());
  disk_.SetFaultHook([](SimDisk::Op op, const std::string& path) {
    return op == SimDisk::Op::kRead && path == "/d/a" ? absl::InternalError("bad sector") : absl::OkStatus();
  });
  std::string into(1, ' ');
  EXPECT_FALSE(file->ReadAt(0, into).ok());
  EXPECT_TRUE(file->WriteAt(0, into).ok());
  disk_.SetFaultHook(nullptr);
  EXPECT_TRUE(file->ReadAt(0, into).ok());
}

TEST_F(SimDiskTest, FlippedByteIsReadAndSurvives) {
  std::unique_ptr<File> file = Create("/d/a", "abc");
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(files_->SyncDirectory("/d").ok());
  ASSERT_TRUE(disk_.FlipByte("/d/a", 1).ok());
  EXPECT_FALSE(disk_.FlipByte("/d/a", 3).ok());
  EXPECT_FALSE(disk_.FlipByte("/d/none", 0).ok());
  Restart(true);
  const std::string content = Content("/d/a");
  EXPECT_EQ(content[0], 'a');
  EXPECT_NE(content[1], 'b');
  EXPECT_EQ(content[2], 'c');
}

// The rest is asked for many seeds.
class PowerCutTest : public SimDiskTest, public ::testing::WithParamInterface<uint64_t> {
 protected:
  PowerCutTest() : SimDiskTest(GetParam()) {}
};

TEST_P(PowerCutTest, KeepsWhatWasSynced) {
  std::unique_ptr<File> file = Create("/d/a", std::string(10'000, 'a'));
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(files_->SyncDirectory("/d").ok());
  ASSERT_TRUE(files_->WriteWhole("/d/v", "value").ok());
  // Unsynced changes of both; each sector comes out as one or the other.
  ASSERT_TRUE(file->WriteAt(1'000, std::string(12'000, 'b')).ok());
  Restart(true);
  EXPECT_EQ(Content("/d/v"), "value");
  const std::string content = Content("/d/a");
  ASSERT_GE(content.size(), 10'000u);
  ASSERT_LE(content.size(), 13'000u);
  EXPECT_EQ(content.substr(0, 1'000), std::string(1'000, 'a'));
  for (size_t i = 1'000; i < content.size(); ++i) {
    const char other = i < 10'000 ? 'a' : '\0';
    ASSERT_TRUE(content[i] == 'b' || content[i] == other) << i;
    const bool same_sector = i % 512 != 0 && i != 1'000 && i != 10'000;
    ASSERT_TRUE(!same_sector || (content[i] == 'b') == (content[i - 1] == 'b')) << i << ": inside a sector";
  }
}

TEST_P(PowerCutTest, SyncedTruncateAndHoleStay) {
  std::unique_ptr<File> file = Create("/d/a", std::string(10'000, 'a'));
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(files_->SyncDirectory("/d").ok());
  ASSERT_TRUE(file->Truncate(9'000).ok());
  ASSERT_TRUE(file->PunchHole(0, 5'000).ok());
  ASSERT_TRUE(file->Sync().ok());
  Restart(true);
  EXPECT_EQ(Content("/d/a"), std::string(5'000, '\0') + std::string(4'000, 'a'));
  // Growing again shows zeros, not the old bytes.
  file = files_->Open("/d/a", OpenMode::kReadWrite).value();
  ASSERT_TRUE(file->Truncate(10'000).ok());
  EXPECT_EQ(Content("/d/a").substr(9'000), std::string(1'000, '\0'));
}

TEST_P(PowerCutTest, UnsyncedTruncateMayComeBackWhole) {
  std::unique_ptr<File> file = Create("/d/a", std::string(9'000, 'a'));
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(files_->SyncDirectory("/d").ok());
  ASSERT_TRUE(file->Truncate(10).ok());
  Restart(true);
  const std::string content = Content("/d/a");
  EXPECT_GE(content.size(), 10u);
  EXPECT_LE(content.size(), 9'000u);
  EXPECT_EQ(content.substr(0, 10), std::string(10, 'a'));
}

TEST_P(PowerCutTest, EntryIsDurableOnlyAfterItsDirectoryIsSynced) {
  Create("/d/synced", "x")->Sync().IgnoreError();
  ASSERT_TRUE(files_->SyncDirectory("/d").ok());
  Create("/d/unsynced", "y")->Sync().IgnoreError();
  ASSERT_TRUE(files_->Remove("/d/synced").ok());
  Restart(true);
  if (files_->Exists("/d/unsynced").value()) {
    EXPECT_EQ(Content("/d/unsynced"), "y");  // Its bytes were synced.
  }
  if (files_->Exists("/d/synced").value()) {
    EXPECT_EQ(Content("/d/synced"), "x");
  }
}

TEST_P(PowerCutTest, UnsyncedRenameIsWholeOrNotAtAll) {
  ASSERT_TRUE(files_->WriteWhole("/d/target", "old").ok());
  ASSERT_TRUE(files_->WriteWhole("/d/source", "new").ok());
  ASSERT_TRUE(files_->Rename("/d/source", "/d/target").ok());
  Restart(true);
  const bool source = files_->Exists("/d/source").value();
  EXPECT_EQ(Content("/d/target"), source ? "old" : "new");
}

TEST_P(PowerCutTest, RenameBetweenDirectoriesIsDurableWithEitherSync) {
  ASSERT_TRUE(files_->MakeDirectories("/e").ok());
  ASSERT_TRUE(files_->SyncDirectory("/").ok());
  ASSERT_TRUE(files_->WriteWhole("/d/a", "x").ok());
  ASSERT_TRUE(files_->Rename("/d/a", "/e/a").ok());
  ASSERT_TRUE(files_->SyncDirectory("/e").ok());
  Restart(true);
  EXPECT_EQ(Content("/e/a"), "x");
  EXPECT_FALSE(files_->Exists("/d/a").value());
}

TEST_P(PowerCutTest, FailedSyncIsNeverMadeGoodByTheNext) {
  std::unique_ptr<File> file = Create("/d/a", std::string(4096, 'a'));
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(files_->SyncDirectory("/d").ok());
  ASSERT_TRUE(file->WriteAt(512, std::string(512, 'b')).ok());
  disk_.FailNextSync("/d/a");
  ASSERT_FALSE(file->Sync().ok());
  ASSERT_TRUE(file->WriteAt(1024, std::string(512, 'c')).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(Content("/d/a")[600], 'b');
  Restart(true);
  EXPECT_EQ(Content("/d/a"), std::string(1024, 'a') + std::string(512, 'c') + std::string(2560, 'a'));
}

TEST_P(PowerCutTest, SpaceIsCountedAnew) {
  std::unique_ptr<File> file = Create("/d/a", std::string(40'960, 'a'));
  Create("/d/b", std::string(4'096, 'b')).reset();
  Restart(true);
  uint64_t allocated = 0;
  const std::vector<std::string> names = files_->List("/d").value();
  for (const std::string& name : names) {
    allocated += files_->Open("/d/" + name, OpenMode::kRead).value()->AllocatedBytes().value();
  }
  EXPECT_EQ(disk_.used_bytes(), allocated);
  file.reset();  // Of the dead process: changes nothing.
  EXPECT_EQ(disk_.used_bytes(), allocated);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PowerCutTest, ::testing::Range<uint64_t>(1, 41));

TEST(PowerCutOutcomes, EveryFateHappensForSomeSeed) {
  std::set<std::string> contents;
  std::set<bool> existed;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SimDisk disk(Random(seed), 1 << 20);
    auto alive = std::make_shared<bool>(true);
    std::unique_ptr<LocalFileSystem> files = disk.NewView(alive);
    std::unique_ptr<File> file = files->Open("/a", OpenMode::kCreateNew).value();
    ASSERT_TRUE(file->WriteAt(0, std::string(1536, 'a')).ok());
    ASSERT_TRUE(file->Sync().ok());
    ASSERT_TRUE(files->SyncDirectory("/").ok());
    ASSERT_TRUE(file->WriteAt(0, std::string(1536, 'b')).ok());
    ASSERT_TRUE(files->Open("/new", OpenMode::kCreateNew).ok());
    *alive = false;
    disk.PowerCut();
    files = disk.NewView(std::make_shared<bool>(true));
    const std::string content = files->ReadWhole("/a").value();
    contents.insert({content[0], content[512], content[1024]});
    existed.insert(files->Exists("/new").value());
  }
  EXPECT_EQ(contents.size(), 8u);  // Every subset of three sectors.
  EXPECT_EQ(existed.size(), 2u);
}

TEST(PowerCutOutcomes, DiskThatIgnoresSyncsLosesData) {
  bool lost_data = false;
  bool lost_entry = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimDisk disk(Random(seed), 1 << 20);
    disk.IgnoreSyncs(seed % 2 == 0);
    disk.IgnoreDirectorySyncs(seed % 2 == 1);
    std::unique_ptr<LocalFileSystem> files = disk.NewView(std::make_shared<bool>(true));
    ASSERT_TRUE(files->WriteWhole("/v", "value").ok());
    disk.PowerCut();
    const absl::StatusOr<std::string> content = files->ReadWhole("/v");
    lost_entry = lost_entry || !content.ok();
    lost_data = lost_data || (content.ok() && *content != "value");
  }
  EXPECT_TRUE(lost_data);
  EXPECT_TRUE(lost_entry);
}

TEST(SimDiskSpeed, HundredsOfMebibytesAreQuick) {
  SimDisk disk(Random(1), 1ull << 40);
  std::unique_ptr<LocalFileSystem> files = disk.NewView(std::make_shared<bool>(true));
  std::unique_ptr<File> file = files->Open("/a", OpenMode::kCreateNew).value();
  const std::string megabyte(1 << 20, 'm');
  for (uint64_t i = 0; i < 256; ++i) ASSERT_TRUE(file->WriteAt(i << 20, megabyte).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(file->AllocatedBytes().value(), 256u << 20);
}

}  // namespace
}  // namespace cairn::testing
