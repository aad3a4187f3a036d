#include "datanode/storage/volume.h"

#include "datanode/storage/replica_file.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class VolumeTest : public StorageTest {
 protected:
  absl::Status OpenStatus() {
    events_ = std::make_unique<EventLog>(&process_->clock());
    auto opened = OpenBlockStore(options_, process_, events_.get());
    if (!opened.ok()) return opened.status();
    opened_ = *std::move(opened);
    return absl::OkStatus();
  }
  static std::string Message(const absl::Status& status) { return std::string(status.message()); }
  void MakeFile(const std::string& path) { ASSERT_THAT(process_->files().WriteWhole(path, "x"), IsOk()); }
};

TEST_F(VolumeTest, EmptyDirectoriesBecomeVolumesOfOneNode) {
  options_.directories = {"/data/1", "/data/2"};
  Open();
  const std::string node = identity().Get().datanode_uuid;
  const std::string first = storage(0);
  EXPECT_NE(storage(0), storage(1));
  Close();
  Open();
  EXPECT_EQ(identity().Get().datanode_uuid, node);
  EXPECT_EQ(storage(0), first);
  EXPECT_EQ(identity().Get().cluster_id, "cluster");
  EXPECT_EQ(identity().Get().pool_id, kPool);
}

TEST_F(VolumeTest, ScanEndsWhenTheNodeStops) {
  Open();
  for (uint64_t i = 0; i < 5; ++i) Put(BlockId(kBlock.value() + 16 * i), 1000);
  Close();
  EventLog events(&process_->clock());
  VolumeOptions options;
  options.directory = "/data/1";
  const auto volume = Volume::Open(process_, &events, std::move(options), {});
  ASSERT_THAT(volume, IsOk());
  std::atomic<bool> stop{false};
  int opened = 0;
  machine_->disk().SetFaultHook([&](cairn::testing::SimDisk::Op op, const std::string& path) -> absl::Status {
    if (op == cairn::testing::SimDisk::Op::kOpen && path.find("/blk_") != std::string::npos && ++opened == 3) stop.store(true);
    return absl::OkStatus();
  });
  const ScanResult scan = ScanVolume(volume->get(), process_->boot_id(), kPool, &stop);
  machine_->disk().SetFaultHook(nullptr);
  EXPECT_THAT(scan.status, HasKind(ErrorKind::kCancelled));
  EXPECT_EQ(scan.replicas, 3u);
  EXPECT_FALSE((*volume)->distrusted());
}

TEST_F(VolumeTest, DirectoryThatIsNamedTwiceIsRefused) {
  options_.directories = {"/data/1", "/data/2", "/data/1"};
  const absl::Status status = OpenStatus();
  EXPECT_THAT(status, HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(Message(status), AllOf(HasSubstr("/data/1 twice"), HasSubstr("dfs.datanode.data.dir")));
  EXPECT_FALSE(*process_->files().Exists("/data/1"));
}

TEST_F(VolumeTest, AbsentOrEmptyDirectoryIsRefusedWhenNoneMayBeMade) {
  options_.format_empty = false;
  absl::Status status = OpenStatus();
  EXPECT_THAT(Message(status), HasSubstr("/data/1"));
  EXPECT_THAT(Message(status), HasSubstr("mounted"));
  ASSERT_THAT(process_->files().MakeDirectories("/data/1"), IsOk());
  status = OpenStatus();
  EXPECT_THAT(Message(status), HasSubstr("/data/1"));
  EXPECT_THAT(Message(status), HasSubstr("mounted"));
}

TEST_F(VolumeTest, DirectoryWithOtherThingsIsRefused) {
  ASSERT_THAT(process_->files().MakeDirectories("/data/1"), IsOk());
  MakeFile("/data/1/thesis.tex");
  const absl::Status status = OpenStatus();
  EXPECT_THAT(status, HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(Message(status), HasSubstr("thesis.tex"));
}

TEST_F(VolumeTest, DirectoryOfAnotherClusterIsRefusedNamingBoth) {
  Open();
  Close();
  options_.cluster_id = "another";
  const absl::Status status = OpenStatus();
  EXPECT_THAT(status, HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(Message(status), HasSubstr("/data/1"));
  EXPECT_THAT(Message(status), HasSubstr("cluster cluster"));
  EXPECT_THAT(Message(status), HasSubstr("another"));
}

TEST_F(VolumeTest, DirectoriesOfTwoNodesDoNotMix) {
  Open();
  Close();
  options_.directories = {"/data/2"};
  Open();
  Close();
  // Also not if one may be missing: which is the wrong one? And nothing is made of the empty one between them.
  options_.directories = {"/data/1", "/data/3", "/data/2"};
  options_.tolerated_failed_volumes = 1;
  const absl::Status status = OpenStatus();
  EXPECT_THAT(status, HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(Message(status), HasSubstr("/data/2"));
  EXPECT_THAT(Message(status), HasSubstr("dfs.datanode.data.dir"));
  EXPECT_FALSE(*process_->files().Exists("/data/3"));
}

TEST_F(VolumeTest, AnotherClusterIsNotAdopted) {
  Open();
  EXPECT_THAT(identity().AdoptCluster("cluster", kPool), IsOk());
  EXPECT_THAT(identity().AdoptCluster("another", kPool), HasKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(identity().AdoptCluster("cluster", "short"), HasKind(ErrorKind::kInvalidArgument));
}

TEST_F(VolumeTest, NoReplicaIsMadeBeforeTheClusterIsKnown) {
  OpenWithoutAdopting();
  EXPECT_THAT(Create(), HasKind(ErrorKind::kUnregistered));
}

TEST_F(VolumeTest, DirectoryInUseIsRefused) {
  Open();
  EventLog other_events(&process_->clock());
  const auto second = OpenBlockStore(options_, process_, &other_events);
  EXPECT_THAT(second, HasKind(ErrorKind::kBusy));
  EXPECT_THAT(Message(second.status()), HasSubstr("/data/1"));
}

TEST_F(VolumeTest, ReadOnlyDirectoryIsOneClearError) {
  Open();
  Close();
  machine_->disk().SetFaultHook([](cairn::testing::SimDisk::Op op, const std::string& path) {
    return op == cairn::testing::SimDisk::Op::kWrite || op == cairn::testing::SimDisk::Op::kRename
               ? absl::InternalError(path + ": Read-only file system")
               : absl::OkStatus();
  });
  const absl::Status status = OpenStatus();
  machine_->disk().SetFaultHook(nullptr);
  EXPECT_THAT(Message(status), HasSubstr("data directory /data/1: cannot be written"));
}

TEST_F(VolumeTest, NewerLayoutAndGarbageInVersionAreRefused) {
  Open();
  Close();
  ASSERT_THAT(process_->files().WriteWhole("/data/1/VERSION", R"({"layout": 2})"), IsOk());
  EXPECT_THAT(OpenStatus(), HasKind(ErrorKind::kUnsupported));
  ASSERT_THAT(process_->files().WriteWhole("/data/1/VERSION", "garbage"), IsOk());
  const absl::Status status = OpenStatus();
  EXPECT_THAT(status, HasKind(ErrorKind::kCorruptMetadata));
  EXPECT_THAT(Message(status), HasSubstr("/data/1"));
}

TEST_F(VolumeTest, BadDirectoryIsToleratedUpToTheLimit) {
  options_.directories = {"/data/1", "/data/2"};
  ASSERT_THAT(process_->files().MakeDirectories("/data/2"), IsOk());
  MakeFile("/data/2/other");
  EXPECT_THAT(Message(OpenStatus()),
              AllOf(HasSubstr("1 of 2 data directories"), HasSubstr("/data/2"), HasSubstr("volumes.tolerated is 0")));
  options_.tolerated_failed_volumes = 1;
  ASSERT_THAT(OpenStatus(), IsOk());
  EXPECT_THAT(opened_.failures, SizeIs(1));
  EXPECT_THAT(store().Statistics(), SizeIs(1));
}

TEST_F(VolumeTest, EpochAndIdsAreRememberedAcrossPowerCuts) {
  Open();
  ASSERT_THAT(identity().RememberEpoch(Epoch(5)), IsOk());
  ASSERT_THAT(identity().RememberEpoch(Epoch(3)), IsOk());
  ASSERT_THAT(identity().RememberIds(BlockId(1 << 30), GenerationStamp(1001)), IsOk());
  const uint64_t syncs = machine_->disk().counters().syncs;
  ASSERT_THAT(identity().RememberIds(BlockId((1 << 30) + 16 * 65535), GenerationStamp(1002)), IsOk());
  EXPECT_EQ(machine_->disk().counters().syncs, syncs);  // Not 2^16 further: memory only.
  EXPECT_EQ(identity().Get().highest_block_id, (1u << 30) + 16 * 65535);
  ASSERT_THAT(identity().RememberIds(BlockId((1 << 30) + 16 * 65536), GenerationStamp(1003)), IsOk());
  EXPECT_GT(machine_->disk().counters().syncs, syncs);
  CutPowerAndOpen();
  EXPECT_EQ(identity().Get().highest_epoch, 5u);
  EXPECT_EQ(identity().Get().highest_block_id, (1u << 30) + 16 * 65536);
  EXPECT_EQ(identity().Get().highest_generation_stamp, 1003u);
}

TEST_F(VolumeTest, FullVolumeIsReadOnlyNotFailed) {
  options_.max_block_bytes = 1 << 26;
  Open();
  Put(kBlock, 100'000);
  auto writer = Create(BlockId(kBlock.value() + 16));
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, 0, 1000), IsOk());
  machine_->disk().SetCapacity(machine_->disk().used_bytes() + 4096);
  const absl::Status full = WritePattern(**writer, 1000, 1 << 20);
  EXPECT_THAT(full, HasKind(ErrorKind::kDiskFull));
  EXPECT_EQ(store().Statistics()[0].state(), v1::HEALTHY);
  EXPECT_TRUE(store().Statistics()[0].read_only());
  EXPECT_EQ(*Read(kBlock), Pattern(0, 100'000));
  const auto placement = store().Place({});
  EXPECT_THAT(placement, HasKind(ErrorKind::kDiskFull));
  EXPECT_THAT(Message(placement.status()), HasSubstr("/data/1"));
  EXPECT_EQ((*writer)->received(), 1000u);
  EXPECT_THAT((*writer)->Finalize(1000, true), IsOk());
}

TEST_F(VolumeTest, ReserveIsKeptFreeAndWritersReserveWhatTheyAnnounce) {
  machine_->disk().SetCapacity(64 << 20);
  options_.reserved_bytes = 32 << 20;
  options_.max_block_bytes = 64 << 20;
  Open();
  EXPECT_EQ(store().Statistics()[0].capacity_bytes(), 32u << 20);
  const uint64_t before = store().Statistics()[0].remaining_bytes();
  EXPECT_LE(before, 32u << 20);
  EXPECT_GT(before, 30u << 20);
  auto writer = Create(kBlock, kStamp, {.expected_bytes = 20 << 20});
  ASSERT_THAT(writer, IsOk());
  EXPECT_LE(store().Statistics()[0].remaining_bytes(), before - (20 << 20));
  EXPECT_THAT(store().Place({.expected_bytes = 20 << 20}), HasKind(ErrorKind::kDiskFull));
  ASSERT_THAT(WritePattern(**writer, 0, 4 << 20), IsOk());
  EXPECT_NEAR(static_cast<double>(store().Statistics()[0].remaining_bytes()), static_cast<double>(before - (20 << 20)), 200'000);
  writer->reset();  // The rest of the reservation comes back.
  EXPECT_NEAR(static_cast<double>(store().Statistics()[0].remaining_bytes()), static_cast<double>(before - (4 << 20)), 200'000);
}

TEST_F(VolumeTest, OverTheReserveAWriterIsTurnedAway) {
  machine_->disk().SetCapacity(64 << 20);
  options_.reserved_bytes = 60 << 20;
  options_.max_block_bytes = 64 << 20;
  Open();
  auto writer = Create();
  ASSERT_THAT(writer, IsOk());
  absl::Status status;
  uint64_t offset = 0;
  for (; status.ok() && offset < 64u << 20; offset += 1 << 20) status = WritePattern(**writer, offset, 1 << 20);
  EXPECT_THAT(status, HasKind(ErrorKind::kDiskFull));
  EXPECT_LE(offset, 5u << 20);
  EXPECT_THAT(Message(status), HasSubstr("kept free for others"));
}

TEST_F(VolumeTest, ReplicaLimitMakesTheNodeFull) {
  options_.max_replicas = 2;
  Open();
  Put(kBlock, 1);
  Put(BlockId(kBlock.value() + 16), 1);
  const auto placement = store().Place({});
  EXPECT_THAT(placement, HasReason("TOO_MANY_REPLICAS"));
  EXPECT_EQ(store().Statistics()[0].remaining_bytes(), 0u);
  store().Invalidate(storage(), kBlock, kStamp, 1, NotVoided());
  EXPECT_THAT(store().Place({}), IsOk());
}

TEST_F(VolumeTest, PlacementTakesTheNamedStorageElseOneWithRoom) {
  options_.directories = {"/data/1", "/data/2"};
  Open();
  EXPECT_EQ(store().Place({.storage_uuid = storage(1)})->storage_uuid, storage(1));
  EXPECT_EQ(store().Place({.storage_uuid = storage(0)})->storage_uuid, storage(0));
  const auto placement = store().Place({.storage_uuid = storage(0)});
  auto writer = store().CreateRbw(*placement, kBlock, kStamp, {});
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT(WritePattern(**writer, 0, 100'000), IsOk());
  int elsewhere = 0;
  for (int i = 0; i < 100; ++i) elsewhere += store().Place({.storage_uuid = "gone"})->storage_uuid == storage(1) ? 1 : 0;
  EXPECT_GT(elsewhere, 20);
  EXPECT_LT(elsewhere, 80);
}

TEST_F(VolumeTest, OfTwoReplicasOfOneBlockTheBetterStays) {
  options_.directories = {"/data/1"};
  Open();
  Put(kBlock, 1000);
  Close();
  // The same block, newer, on a second volume of this node.
  options_.directories = {"/data/1", "/data/2"};
  Open();
  const std::string second = storage(1);
  Close();
  const std::string from = PathOf(kBlock);
  const std::string to = PathOf(kBlock, "/data/2");
  ASSERT_THAT(process_->files().MakeDirectories(to.substr(0, to.rfind('/'))), IsOk());
  const std::string bytes = *process_->files().ReadWhole(from);
  ASSERT_THAT(process_->files().WriteWhole(to, bytes), IsOk());
  auto file = ReplicaFile::Open(process_->files(), to, LocalFileSystem::OpenMode::kReadWrite, process_->boot_id());
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT((*file)->WriteDurableSlot({.stamp = GenerationStamp(1002),
                                         .length = 1000,
                                         .state = ReplicaState::kFinalized,
                                         .flags = kSlotSynced,
                                         .partial_checksum = (*file)->ValidSlots()[0].partial_checksum}),
              IsOk());
  file->reset();
  Open();
  EXPECT_EQ(store().replica_count(), 1u);
  EXPECT_EQ(store().Describe(kBlock)->storage_uuid, second);
  EXPECT_EQ(store().Describe(kBlock)->stamp, GenerationStamp(1002));
  world_.RunUntilQuiet(absl::Seconds(10));
  EXPECT_FALSE(FileExists(kBlock));
}

TEST_F(VolumeTest, WhatItsDiskDropsAtTheEndMayStillBeHandedToTheDeleter) {
  // As a writer does that is dropped before it has finished.
  struct Dropped {
    explicit Dropped(Volume* of) : volume(of) {}
    ~Dropped() {
      volume->deleter().Add({.id = kBlock, .stamp = GenerationStamp(1001), .length = 1, .used_bytes = 1});
      depth = volume->disk()->QueueDepth();
    }
    Volume* const volume;
    size_t depth = 0;
  };
  EventLog events(&process_->clock());
  VolumeOptions options;
  options.directory = "/data/9";
  options.format_empty = true;
  VersionRecord fresh;
  fresh.datanode_uuid = "node";
  fresh.storage_uuid = "storage";
  auto opened = Volume::Open(process_, &events, options, fresh);
  ASSERT_THAT(opened, IsOk());
  Volume* const volume = opened->get();
  volume->deleter().Add({.id = BlockId(kBlock.value() + 16), .stamp = GenerationStamp(1001), .length = 1, .used_bytes = 1});
  volume->disk()->Post([dropped = std::make_unique<Dropped>(volume)] {});
  opened->reset();
  world_.RunUntilQuiet(absl::Seconds(1));
}

}  // namespace
}  // namespace cairn::datanode::testing
