// Checkpoints of a namespace on real files: what is in them, what is kept, how a NameNode starts on one.

#include "namenode/checkpoints.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/fault_points.h"
#include "namenode/journal/local_journal.h"
#include "namenode/namespace/namespace_queries.h"
#include "namenode/namespace/records.h"
#include "namenode/namespace_copy.h"
#include "namenode/namespace_gateway.h"
#include "namenode/namespace_writer.h"
#include "tests/testing/builders.h"
#include "tests/testing/namespace_check.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::namenode {
namespace {

namespace fs = std::filesystem;
using cairn::testing::MkdirsMutation;
using cairn::testing::ViolationsOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointsTest : public ::testing::Test {
 protected:
  CheckpointsTest() : name_directory_(temporary_.path() + "/name") {
    EXPECT_TRUE(NamenodeDirectory::Format(name_directory_, {}, env_.get()).ok());
    Open(name_directory_);
  }
  ~CheckpointsTest() override {
    DisarmAllFaults();
    Close();
  }
  void Open(const std::string& directory) {
    MetaStore::Options options;
    options.block_cache_bytes = 1 << 20;
    options.write_buffer_bytes = 256 << 10;
    auto opened = NamenodeDirectory::Open(directory, options, env_.get());
    ASSERT_TRUE(opened.ok()) << opened.status();
    directory_ = *std::move(opened);
    journal_ = std::make_unique<LocalJournal>(&directory_->store());
    executor_ = env_->executors().NewExecutor("writer");
    background_ = env_->executors().NewExecutor("checkpoints");
    writer_ = std::make_unique<NamespaceWriter>(NamespaceWriter::Options(), &directory_->store(), journal_.get(), executor_.get(),
                                                &env_->clock());
    checkpoints_ = std::make_unique<Checkpoints>(Checkpoints::Options(), directory_.get(), env_.get(), background_.get());
  }
  void Close() {
    background_.reset();
    executor_.reset();
    checkpoints_.reset();
    writer_.reset();
    journal_.reset();
    directory_.reset();
  }
  template <class T>
  absl::StatusOr<T> Wait(const std::function<void(Checkpoints::Done<T>)>& call) {
    auto answer = std::make_shared<absl::StatusOr<T>>(absl::UnknownError("not answered"));
    auto done = std::make_shared<std::atomic<bool>>(false);
    call([answer, done, this](absl::StatusOr<T> result) {
      *answer = std::move(result);
      done->store(true);
      env_->Wake();
    });
    env_->BlockUntil([&] { return done->load(); }, SteadyTime::Infinite());
    return *std::move(answer);
  }
  absl::StatusOr<Checkpoints::Saved> Save() {
    return Wait<Checkpoints::Saved>([this](auto done) { checkpoints_->Save(std::move(done)); });
  }
  absl::StatusOr<Checkpoints::Image> Describe(const std::string& name = "") {
    return Wait<Checkpoints::Image>([&](auto done) { checkpoints_->Describe(name, std::move(done)); });
  }
  absl::StatusOr<std::string> Read(const std::string& name, const std::string& file, uint64_t offset, uint64_t length) {
    return Wait<std::string>([&](auto done) { checkpoints_->Read(name, file, offset, length, std::move(done)); });
  }
  void Mkdir(const std::string& path) {
    const auto result = Wait<v1::MutationResult>([&](auto done) { writer_->Submit(MkdirsMutation(path), std::move(done)); });
    ASSERT_TRUE(result.ok()) << result.status();
  }
  std::vector<std::string> Kept() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(name_directory_ + "/checkpoints")) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  const testing::TemporaryDirectory temporary_;
  const std::unique_ptr<Env> env_ = NewRealEnv();
  const std::string name_directory_;
  std::unique_ptr<NamenodeDirectory> directory_;
  std::unique_ptr<LocalJournal> journal_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Executor> background_;
  std::unique_ptr<NamespaceWriter> writer_;
  std::unique_ptr<Checkpoints> checkpoints_;
};

TEST_F(CheckpointsTest, HoldsWhatWasAcknowledgedAndNothingLater) {
  for (int i = 0; i < 2500; ++i) Mkdir(fmt::format("/before/{:0>100}", i));  // Some are in tables, the last in the log only.
  const auto saved = Save();
  ASSERT_TRUE(saved.ok()) << saved.status();
  std::printf("%s in %s\n", saved->path.c_str(), absl::FormatDuration(saved->took).c_str());
  EXPECT_EQ(saved->applied_index, directory_->store().applied_index());
  Mkdir("/after");
  // In place, while the NameNode runs on its own directory.
  auto copy = NamespaceCopy::Open(saved->path, env_.get());
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_THAT(ViolationsOf(copy->view()), IsEmpty());
  for (int i = 0; i < 2500; i += 111) EXPECT_TRUE(ResolvePath(copy->view(), fmt::format("/before/{:0>100}", i)).ok());
  EXPECT_FALSE(ResolvePath(copy->view(), "/after").ok());
}

TEST_F(CheckpointsTest, KeepsTheNewestAndLeavesNoHalfOnes) {
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) {
    Mkdir(fmt::format("/{}", i));
    const auto saved = Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    names.push_back(saved->name);
  }
  EXPECT_THAT(Kept(), ElementsAre(names[2], names[3]));
  EXPECT_EQ(Describe()->name, names[3]);
  EXPECT_EQ(Describe(names[2])->name, names[2]);
  EXPECT_EQ(KindOf(Describe(names[0]).status()), ErrorKind::kNotFound);

  EnableFaultPoints();
  ASSERT_TRUE(ArmFault("checkpoints.before_rename", "error(no)*1").ok());
  EXPECT_FALSE(Save().ok());
  EXPECT_THAT(Kept(), ElementsAre(names[2], names[3]));
  fs::create_directories(name_directory_ + "/checkpoints/20200101T000000Z-1.making/namespace");  // Of a NameNode that was killed.
  ASSERT_TRUE(Save().ok());
  EXPECT_EQ(Kept().size(), 2u);
  EXPECT_EQ(Kept()[0], names[3]);
}

TEST_F(CheckpointsTest, IsReadInPieces) {
  EXPECT_EQ(KindOf(Describe().status()), ErrorKind::kNotFound);
  Mkdir("/a");
  const std::string name = Save()->name;
  const auto image = Describe();
  ASSERT_TRUE(image.ok()) << image.status();
  const std::string copy = temporary_.path() + "/copy";
  for (const Checkpoints::ImageFile& file : image->files) {
    fs::create_directories(fs::path(copy + "/" + file.name).parent_path());
    std::ofstream out(copy + "/" + file.name, std::ios::binary);
    uint64_t offset = 0;
    while (offset < file.size_bytes) {
      const auto bytes = Read(name, file.name, offset, 100);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      ASSERT_FALSE(bytes->empty());
      out << *bytes;
      offset += bytes->size();
    }
    EXPECT_EQ(Read(name, file.name, offset, 100)->size(), 0u);
  }
  auto opened = NamespaceCopy::Open(copy, env_.get());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(ResolvePath(opened->view(), "/a").ok());
  for (const auto& [checkpoint, file] : std::vector<std::pair<std::string, std::string>>{{name, "../VERSION"},
                                                                                         {name, "namespace/../VERSION"},
                                                                                         {"..", "VERSION"},
                                                                                         {"", "VERSION"},
                                                                                         {name, "namespace/"},
                                                                                         {name, "/etc/x"}})
    EXPECT_EQ(KindOf(Read(checkpoint, file, 0, 10).status()), ErrorKind::kInvalidArgument) << checkpoint << " " << file;
  EXPECT_EQ(KindOf(Read(name, "namespace/none.sst", 0, 10).status()), ErrorKind::kNotFound);
}

TEST_F(CheckpointsTest, ANameNodeStartedOnOneGoesOnAheadOfAllThatCameAfterIt) {
  Mkdir("/kept");
  const auto saved = Save();
  const uint64_t blocks = *GetNumber(*directory_->store().Snapshot(), kMetaNextBlockId);
  const uint64_t stamps = *GetNumber(*directory_->store().Snapshot(), kMetaNextGenerationStamp);
  Mkdir("/lost");
  Close();
  Open(name_directory_);  // Another start: epoch 2, which DataNodes have met.
  EXPECT_FALSE(*KeepsUnknownReplicas(*directory_->store().Snapshot()));
  const Epoch met = directory_->epoch();
  Close();

  const std::string restored = temporary_.path() + "/restored";
  fs::copy(saved->path, restored, fs::copy_options::recursive);
  Open(restored);
  auto view = directory_->store().Snapshot();
  EXPECT_TRUE(ResolvePath(*view, "/kept").ok());
  EXPECT_FALSE(ResolvePath(*view, "/lost").ok());
  EXPECT_GT(directory_->epoch(), met);
  EXPECT_GT(*GetNumber(*view, kMetaNextBlockId), blocks + (uint64_t{1} << 39));
  EXPECT_EQ(*GetNumber(*view, kMetaNextBlockId) % kBlockIdStep, 0u);
  EXPECT_GT(*GetNumber(*view, kMetaNextGenerationStamp), stamps + (uint64_t{1} << 35));
  EXPECT_TRUE(*KeepsUnknownReplicas(*view));
  EXPECT_THAT(ViolationsOf(*view), IsEmpty());
  const Epoch first = directory_->epoch();
  const uint64_t next = *GetNumber(*view, kMetaNextBlockId);
  view.reset();
  Close();
  Open(restored);  // From now on it is a NameNode's directory like any other, but for what is kept.
  EXPECT_EQ(directory_->epoch().value(), first.value() + 1);
  EXPECT_EQ(*GetNumber(*directory_->store().Snapshot(), kMetaNextBlockId), next);
  EXPECT_TRUE(*KeepsUnknownReplicas(*directory_->store().Snapshot()));
}

TEST_F(CheckpointsTest, OfflineToolsRefuseWhatANameNodeHasOpen) {
  for (const char* below : {"", "/namespace"}) {
    const auto copy = NamespaceCopy::Open(name_directory_ + below, env_.get());
    EXPECT_EQ(KindOf(copy.status()), ErrorKind::kBusy) << copy.status();
    EXPECT_THAT(std::string(copy.status().message()), HasSubstr("in use by a NameNode"));
  }
  EXPECT_EQ(KindOf(NamespaceCopy::Open(temporary_.path(), env_.get()).status()), ErrorKind::kNotFound);
  Close();
  EXPECT_TRUE(NamespaceCopy::Open(name_directory_, env_.get()).ok());
  EXPECT_TRUE(NamespaceCopy::Open(name_directory_ + "/namespace", env_.get()).ok());
  Open(name_directory_);
}

}  // namespace
}  // namespace cairn::namenode
