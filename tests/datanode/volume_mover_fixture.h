#pragma once

// A store of two volumes on one small disk, which are made even.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "datanode/storage/volume_mover.h"
#include "tests/datanode/volume_keeper_fixture.h"

namespace cairn::datanode::testing {

class VolumeMoverTest : public VolumeKeeperTest {
 protected:
  static constexpr size_t kLength = 200'077;  // Chunks whole and partial.
  static constexpr uint64_t kReplicas = 40;

  VolumeMoverTest() {
    machine_->disk().SetCapacity(20 << 20);
    options_.mover = {};
    options_.mover.check_interval = absl::Seconds(1);
    options_.mover.bytes_per_second = 100 << 20;
    options_.mover.piece_bytes = 64 << 10;
  }
  static BlockId Block(uint64_t i) { return BlockId(kBlock.value() + 16 * i); }
  // All on the first volume.
  void Fill(uint64_t replicas = kReplicas) {
    for (uint64_t i = 0; i < replicas; ++i) ASSERT_NO_FATAL_FAILURE(PutOn(0, Block(i), kLength));
  }
  void LetNamenodeKnow() { store().NoteRegistered({storage(0), storage(1)}); }
  // Of the first replica some is copied.
  void OpenWithAMoveUnderWay() {
    options_.mover.bytes_per_second = kLength;
    Open();
    Fill();
    LetNamenodeKnow();
    world_.RunFor(absl::Milliseconds(700));
    ASSERT_THAT(FilesOf(Block(0)), ::testing::SizeIs(2));
  }
  BlockStore::VolumeMoves Moves() { return store().volume_moves(); }
  bool RunUntilMoved(uint64_t replicas, absl::Duration limit = absl::Minutes(1)) {
    return world_.RunUntil([this, replicas] { return Moves().replicas >= replicas; }, limit);
  }
  // Files of its replica, by where they are.
  std::vector<std::string> FilesOf(BlockId id) {
    std::vector<std::string> found;
    for (const char* directory : {"/data/1", "/data/2"}) {
      if (*process_->files().Exists(PathOf(id, directory))) found.push_back(directory);
      const std::string moving = std::string(directory) + "/moving/blk_" + std::to_string(id.value());
      if (*process_->files().Exists(moving)) found.push_back(moving);
    }
    return found;
  }
  size_t OnSecond(uint64_t replicas = kReplicas) {
    size_t count = 0;
    for (uint64_t i = 0; i < replicas; ++i) count += store().Describe(Block(i))->storage_uuid == storage(1) ? 1 : 0;
    return count;
  }
};

}  // namespace cairn::datanode::testing
