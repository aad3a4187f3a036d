#pragma once

// A block store whose volumes are looked after as they are in a node that runs.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "datanode/storage/volume_keeper.h"
#include "tests/datanode/storage_fixture.h"

namespace cairn::datanode::testing {

class VolumeKeeperTest : public StorageTest {
 protected:
  VolumeKeeperTest() {
    options_.directories = {"/data/1", "/data/2"};
    options_.keeper = {};
    options_.keeper.drain = absl::Seconds(20);
  }
  using Op = cairn::testing::SimDisk::Op;

  // Every operation on this directory fails until Heal.
  void Break(const std::string& directory) {
    machine_->disk().SetFaultHook([this, prefix = directory + "/"](Op op, const std::string& path) -> absl::Status {
      if (op == Op::kRemove && path.starts_with(prefix) && path.find("/blk_") != std::string::npos) ++removals_;
      return path.starts_with(prefix) ? absl::InternalError(path + ": Input/output error") : absl::OkStatus();
    });
  }
  void Heal() { machine_->disk().SetFaultHook(nullptr); }
  // Errors of the change.
  std::string Change(std::vector<std::string> directories, absl::Duration within = absl::Seconds(60)) {
    std::optional<absl::Status> changed;
    opened_.volumes->ChangeVolumes(std::move(directories), [&changed](absl::Status status) { changed = std::move(status); });
    EXPECT_TRUE(world_.RunUntil([&changed] { return changed.has_value(); }, within));
    return changed ? std::string(changed->message()) : "not done";
  }
  std::vector<std::string> Directories() {
    std::vector<std::string> directories;
    for (const v1::StorageStatistics& storage : store().Statistics()) directories.push_back(storage.directory());
    return directories;
  }
  std::vector<v1::StorageState> StatesTold(const std::string& storage_uuid) {
    std::vector<v1::StorageState> states;
    for (const v1::ReportEvent& event : EventsOf(v1::STORAGE_STATE_CHANGED))
      if (event.storage_uuid() == storage_uuid) states.push_back(event.storage_state());
    return states;
  }
  void PutOn(size_t volume, BlockId id, size_t length) {
    const auto placement = store().Place({.storage_uuid = storage(volume)});
    ASSERT_THAT(placement, IsOk());
    const auto writer = store().CreateRbw(*placement, id, kStamp, {});
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT(WritePattern(**writer, 0, length), IsOk());
    ASSERT_THAT((*writer)->Finalize(length, true), IsOk());
  }

  int removals_ = 0;
};

}  // namespace cairn::datanode::testing
