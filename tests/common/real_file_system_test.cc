#include "common/env/real_file_system.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using OpenMode = LocalFileSystem::OpenMode;

class RealFileSystemTest : public ::testing::Test {
 protected:
  RealFileSystemTest() {
    std::string pattern = ::testing::TempDir() + "/real_fs_XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~RealFileSystemTest() override { std::filesystem::remove_all(root_); }

  std::string root_;
  std::unique_ptr<LocalFileSystem> files_ = NewRealFileSystem();
};

TEST_F(RealFileSystemTest, WritesAndReadsAtOffsets) {
  std::unique_ptr<File> file = files_->Open(root_ + "/a", OpenMode::kCreateNew).value();
  ASSERT_TRUE(file->WriteAt(10, std::string("hello")).ok());
  ASSERT_TRUE(file->Sync().ok());
  std::string into(20, 'x');
  EXPECT_EQ(file->ReadAt(8, into).value(), 7u);  // Fewer only at the end.
  EXPECT_EQ(into.substr(0, 7), std::string("\0\0hello", 7));
  EXPECT_EQ(file->ReadAt(15, into).value(), 0u);
  EXPECT_EQ(file->Size().value(), 15u);
  EXPECT_GE(file->descriptor(), 0);
  EXPECT_EQ(file->path(), root_ + "/a");
  file->WriteBehind(0, 15, true);
}

TEST_F(RealFileSystemTest, VectorOfManyPartsIsWrittenWhole) {
  std::unique_ptr<File> file = files_->Open(root_ + "/a", OpenMode::kCreateNew).value();
  std::vector<std::string> pieces;
  std::string all;
  for (size_t i = 0; i < 300; ++i) {
    pieces.push_back(std::string(i % 5 == 0 ? 0 : i * 17 % 4'000, static_cast<char>('a' + i % 26)));
    all += pieces.back();
  }
  const std::vector<std::span<const char>> parts(pieces.begin(), pieces.end());
  ASSERT_TRUE(file->WriteVectorAt(3, parts).ok());
  ASSERT_TRUE(file->WriteVectorAt(0, {}).ok());
  EXPECT_EQ(files_->ReadWhole(root_ + "/a").value(), std::string(3, '\0') + all);
}

TEST_F(RealFileSystemTest, HolesReadAsZerosAndFreeSpace) {
  std::unique_ptr<File> file = files_->Open(root_ + "/a", OpenMode::kCreateNew).value();
  ASSERT_TRUE(file->WriteAt(0, std::string(1 << 20, 'x')).ok());
  ASSERT_TRUE(file->Sync().ok());
  const uint64_t before = file->AllocatedBytes().value();
  EXPECT_GE(before, 1u << 20);
  ASSERT_TRUE(file->PunchHole(4096, 512 << 10).ok());
  std::string into(8192, ' ');
  ASSERT_EQ(file->ReadAt(0, into).value(), 8192u);
  EXPECT_EQ(into, std::string(4096, 'x') + std::string(4096, '\0'));
  EXPECT_LT(file->AllocatedBytes().value(), before);
  EXPECT_EQ(file->Size().value(), 1u << 20);
  ASSERT_TRUE(file->Truncate(100).ok());
  EXPECT_EQ(file->Size().value(), 100u);
}

TEST_F(RealFileSystemTest, DirectoriesListRenameAndRemove) {
  ASSERT_TRUE(files_->MakeDirectories(root_ + "/x/y/z").ok());
  ASSERT_TRUE(files_->MakeDirectories(root_ + "/x/y/z/").ok());
  ASSERT_TRUE(files_->Open(root_ + "/x/b", OpenMode::kCreateNew).ok());
  ASSERT_TRUE(files_->Open(root_ + "/x/B", OpenMode::kCreateNew).ok());
  EXPECT_THAT(files_->List(root_ + "/x").value(), ElementsAre("B", "b", "y"));
  EXPECT_FALSE(files_->Remove(root_ + "/x/y").ok());  // Not empty.
  EXPECT_TRUE(files_->Remove(root_ + "/x/y/z").ok());
  EXPECT_TRUE(files_->Rename(root_ + "/x/b", root_ + "/x/B").ok());
  EXPECT_TRUE(files_->SyncDirectory(root_ + "/x").ok());
  EXPECT_FALSE(files_->Exists(root_ + "/x/b").value());
  EXPECT_TRUE(files_->Exists(root_ + "/x/y").value());
  EXPECT_FALSE(files_->Exists(root_ + "/x/B/below-a-file").value());
  EXPECT_FALSE(files_->MakeDirectories(root_ + "/x/B/c").ok());
}

TEST_F(RealFileSystemTest, ErrorsCarryKindPathAndReason) {
  const absl::Status missing = files_->Open(root_ + "/none", OpenMode::kRead).status();
  EXPECT_EQ(KindOf(missing), ErrorKind::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr(root_ + "/none: No such file"));
  ASSERT_TRUE(files_->Open(root_ + "/a", OpenMode::kCreateNew).ok());
  EXPECT_EQ(KindOf(files_->Open(root_ + "/a", OpenMode::kCreateNew).status()), ErrorKind::kAlreadyExists);
  EXPECT_EQ(KindOf(files_->List(root_ + "/none").status()), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(files_->Remove(root_ + "/none")), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(files_->Rename(root_ + "/none", root_ + "/b")), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(files_->SyncDirectory(root_ + "/none")), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf(files_->SpaceOf(root_ + "/none").status()), ErrorKind::kNotFound);
  const absl::Status directory = files_->Open(root_, OpenMode::kRead).status();
  EXPECT_EQ(directory.code(), absl::StatusCode::kInternal);
  std::unique_ptr<File> full = files_->Open("/dev/full", OpenMode::kReadWrite).value();
  EXPECT_EQ(KindOf(full->WriteAt(0, std::string("x"))), ErrorKind::kDiskFull);
}

TEST_F(RealFileSystemTest, SpaceIsOfTheFileSystem) {
  const LocalFileSystem::Space space = files_->SpaceOf(root_).value();
  EXPECT_GT(space.capacity_bytes, 0u);
  EXPECT_LE(space.available_bytes, space.capacity_bytes);
}

TEST_F(RealFileSystemTest, WholeFilesAreReplaced) {
  ASSERT_TRUE(files_->WriteWhole(root_ + "/v", "one").ok());
  ASSERT_TRUE(files_->WriteWhole(root_ + "/v", std::string(100'000, '2')).ok());
  EXPECT_EQ(files_->ReadWhole(root_ + "/v").value(), std::string(100'000, '2'));
  EXPECT_THAT(files_->List(root_).value(), ElementsAre("v"));
}

TEST_F(RealFileSystemTest, LockKeepsOthersOutUntilReleased) {
  absl::StatusOr<std::unique_ptr<DirectoryLock>> lock = files_->Lock(root_);
  ASSERT_TRUE(lock.ok());
  const absl::Status busy = files_->Lock(root_).status();
  EXPECT_EQ(KindOf(busy), ErrorKind::kBusy);
  EXPECT_THAT(std::string(busy.message()), HasSubstr(root_));
  lock->reset();
  EXPECT_TRUE(files_->Lock(root_).ok());
}

TEST_F(RealFileSystemTest, LockOfADeadProcessIsFree) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const absl::StatusOr<std::unique_ptr<DirectoryLock>> lock = NewRealFileSystem()->Lock(root_);
    _exit(lock.ok() ? 0 : 1);  // No destructor runs.
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(files_->Lock(root_).ok());
}

TEST_F(RealFileSystemTest, BlockingUnderAMutexIsABug) {
  Mutex mu;
  EXPECT_DEATH(
      {
        MutexLock lock(mu);
        IgnoreError(files_->SyncDirectory(root_), "it does not come to it");
      },
      "while a Mutex is held");
}

}  // namespace
}  // namespace cairn
