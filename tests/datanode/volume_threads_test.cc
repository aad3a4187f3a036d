// Volumes with real threads and files: what is still under way on a disk when its volume is to come back.

#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/env/env.h"
#include "common/error.h"
#include "datanode/storage/file_block_store.h"
#include "datanode/storage/open_block_store.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::datanode {
namespace {

using cairn::testing::IsOk;
using ::testing::HasSubstr;

class VolumeThreadsTest : public ::testing::Test {
 protected:
  VolumeThreadsTest() {
    options_.directories = {directory_.path() + "/1", directory_.path() + "/2"};
    options_.max_block_bytes = 1 << 20;
    options_.keeper.check_interval = absl::InfiniteDuration();  // Only who asks brings one back.
    options_.keeper.settle = absl::Milliseconds(100);
    events_ = std::make_unique<EventLog>(&env_->clock());
    opened_ = *OpenBlockStore(options_, env_.get(), events_.get());
  }
  // Its errors, once it is through.
  std::string Change(std::vector<std::string> directories) {
    std::binary_semaphore changed(0);
    std::string errors;
    opened_.volumes->ChangeVolumes(std::move(directories), [&](const absl::Status& status) {
      errors = std::string(status.message());
      changed.release();
    });
    changed.acquire();
    return errors;
  }
  Volume* First() { return *dynamic_cast<FileBlockStore&>(*opened_.store).Volumes().begin(); }

  const cairn::testing::TemporaryDirectory directory_;
  const std::unique_ptr<Env> env_ = NewRealEnv();
  BlockStoreOptions options_;
  std::unique_ptr<EventLog> events_;
  OpenedBlockStore opened_;
};

// Work of a volume's executor that hangs in the disk until it is let go.
struct Hanging {
  explicit Hanging(Volume* volume) {
    volume->disk()->Post([this] {
      begun.release();
      go_on.acquire();
    });
    begun.acquire();
  }
  std::binary_semaphore begun{0};
  std::binary_semaphore go_on{0};
};

TEST_F(VolumeThreadsTest, VolumeComesBackOnlyWhenItsDiskHasAnsweredWhatWasAskedBefore) {
  Volume* const failed = First();
  Hanging hanging(failed);
  failed->Fail(absl::InternalError("a read: Input/output error"));
  EXPECT_FALSE(failed->settled());
  EXPECT_THAT(Change(options_.directories), HasSubstr("has not answered what was asked of it"));
  EXPECT_FALSE(failed->retired());
  hanging.go_on.release();
  EXPECT_EQ(Change(options_.directories), "");
  EXPECT_TRUE(failed->retired());
  EXPECT_TRUE(failed->settled());
  EXPECT_FALSE(First()->failed());
}

TEST_F(VolumeThreadsTest, DirectoryThatWasTakenOutIsAddedOnlyWhenItsDiskHasAnswered) {
  Volume* const removed = First();
  Hanging hanging(removed);
  EXPECT_EQ(Change({options_.directories[1]}), "");
  EXPECT_TRUE(removed->removed());
  EXPECT_THAT(Change(options_.directories), HasSubstr("has not answered what was asked of it"));
  EXPECT_EQ(opened_.store->Statistics().size(), 1u);
  hanging.go_on.release();
  EXPECT_EQ(Change(options_.directories), "");
  EXPECT_EQ(opened_.store->Statistics().size(), 2u);
}

TEST_F(VolumeThreadsTest, WhoWritesIntoAVolumeFromElsewhereKeepsItFromComingBack) {
  Volume* const failed = First();
  std::optional<Volume::Use> use(failed);
  failed->Fail(absl::InternalError("a sync: Input/output error"));
  EXPECT_THAT(Change(options_.directories), HasSubstr("has not answered what was asked of it"));
  use.reset();
  EXPECT_EQ(Change(options_.directories), "");
}

}  // namespace
}  // namespace cairn::datanode
