#pragma once

// A DataNode's block store on a simulated machine, that can be killed, lose power and start again.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/crc32c.h"
#include "common/fault_points.h"
#include "datanode/storage/open_block_store.h"
#include "tests/testing/matchers.h"
#include "tests/testing/sim_world.h"

namespace cairn::datanode::testing {

using cairn::testing::HasKind;
using cairn::testing::HasReason;
using cairn::testing::IsOk;

inline constexpr char kPool[] = "pool-0123456789a";  // 16 bytes.
inline constexpr BlockId kBlock{1ull << 30};
inline constexpr GenerationStamp kStamp{1001};

// Bytes that differ from place to place, so that nothing can be shifted or mixed up unseen.
inline std::string Pattern(uint64_t offset, size_t length) {
  std::string bytes(length, '\0');
  for (size_t i = 0; i < length; ++i) {
    const uint64_t at = offset + i;
    bytes[i] = static_cast<char>(static_cast<unsigned char>(at * 131 + (at >> 8) * 7 + (at >> 16) * 3));
  }
  return bytes;
}

inline std::string ChecksumsOf(std::string_view data, uint32_t bytes_per_checksum = 512, ChecksumType type = ChecksumType::kCrc32c) {
  std::string checksums(4 * ((data.size() + bytes_per_checksum - 1) / bytes_per_checksum), '\0');
  ComputeChunkChecksums(type, bytes_per_checksum, data, checksums);
  return checksums;
}

class StorageTest : public ::testing::Test {
 protected:
  explicit StorageTest(uint64_t seed = 1) : world_({.seed = seed}), machine_(world_.AddMachine("datanode")) {
    EnableFaultPoints();
    options_.directories = {"/data/1"};
    options_.max_block_bytes = 1 << 20;
    options_.scanner.period = absl::ZeroDuration();  // Nothing happens by itself.
    options_.keeper.check_interval = absl::InfiniteDuration();
    options_.mover.threshold_percent = 0;
    process_ = machine_->StartProcess();
  }
  ~StorageTest() override {
    DisarmAllFaults();
    Close();
  }

  void Open() {
    ASSERT_NO_FATAL_FAILURE(OpenWithoutAdopting());
    ASSERT_THAT(identity().AdoptCluster("cluster", kPool), IsOk());
  }
  void OpenWithoutAdopting() {
    events_ = std::make_unique<EventLog>(&process_->clock(), events_limit_);
    absl::StatusOr<OpenedBlockStore> opened = OpenBlockStore(options_, process_, events_.get());
    ASSERT_THAT(opened, IsOk());
    opened_ = *std::move(opened);
  }
  void Close() {
    opened_.store.reset();
    opened_.identity = nullptr;
  }
  // kill -9, and a new process on the same disk. Writers and readers must be gone.
  void KillAndOpen() {
    process_->Kill();
    Close();
    process_ = machine_->StartProcess();
    Open();
  }
  void CutPowerAndOpen() {
    machine_->PowerCut();
    Close();
    process_ = machine_->StartProcess();
    Open();
  }

  BlockStore& store() { return *opened_.store; }
  NodeIdentity& identity() { return *opened_.identity; }
  EventLog& events() { return *events_; }
  std::string storage(size_t index = 0) { return store().Statistics()[index].storage_uuid(); }

  absl::StatusOr<std::shared_ptr<ReplicaWriter>> Create(BlockId id = kBlock, GenerationStamp stamp = kStamp,
                                                        BlockStore::CreateOptions options = {}) {
    const absl::StatusOr<BlockStore::Placement> placement = store().Place(options);
    if (!placement.ok()) return placement.status();
    return store().CreateRbw(*placement, id, stamp, options);
  }
  // Packet [offset, offset + length) of the pattern, with right checksums.
  static absl::Status WritePattern(ReplicaWriter& writer, uint64_t offset, size_t length, bool sync = false) {
    const std::string data = Pattern(offset, length);
    const std::string checksums = ChecksumsOf(data, writer.bytes_per_checksum(), writer.checksum_type());
    return writer.Write({.offset = offset, .data = data, .checksums = checksums, .verify = true, .sync = sync});
  }
  void Put(BlockId id, size_t length, GenerationStamp stamp = kStamp, bool sync = true) {
    const absl::StatusOr<std::shared_ptr<ReplicaWriter>> writer = Create(id, stamp);
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT(WritePattern(**writer, 0, length), IsOk());
    ASSERT_THAT((*writer)->Finalize(length, sync), IsOk());
  }
  // What a reader gets, after checking it against the checksums it gets too.
  absl::StatusOr<std::string> Read(BlockId id, GenerationStamp at_least = kStamp) {
    const absl::StatusOr<std::shared_ptr<ReplicaReader>> reader = store().OpenForRead(id, at_least);
    if (!reader.ok()) return reader.status();
    return ReadAll(**reader);
  }
  static absl::StatusOr<std::string> ReadAll(ReplicaReader& reader) {
    std::string data(reader.length(), '\0');
    const absl::StatusOr<size_t> got = reader.ReadData(0, data);
    if (!got.ok()) return got.status();
    EXPECT_EQ(*got, data.size());
    const uint64_t chunks = (data.size() + reader.bytes_per_checksum() - 1) / reader.bytes_per_checksum();
    const absl::StatusOr<std::string> checksums = reader.ReadChecksums(0, chunks);
    if (!checksums.ok()) return checksums.status();
    if (absl::Status verified = VerifyChunkChecksums(reader.checksum_type(), reader.bytes_per_checksum(), data, *checksums);
        !verified.ok()) {
      return verified;
    }
    return data;
  }
  std::vector<v1::ReportEvent> EventsOf(v1::ReportEventType type) {
    std::vector<v1::ReportEvent> found;
    for (v1::ReportEvent& event : events().From(events().first_kept(), 1 << 20, 1 << 30).events) {
      if (event.type() == type) found.push_back(std::move(event));
    }
    return found;
  }
  static std::string PathOf(BlockId id, const std::string& directory = "/data/1") {
    return directory + "/blocks/" + std::to_string(id.value() >> 20 & 255) + "/" + std::to_string(id.value() >> 12 & 255) + "/blk_" +
           std::to_string(id.value());
  }
  bool FileExists(BlockId id) { return *process_->files().Exists(PathOf(id)); }
  static absl::AnyInvocable<bool() const> NotVoided() {
    return [] { return false; };
  }

  cairn::testing::SimWorld world_;
  cairn::testing::SimMachine* machine_;
  cairn::testing::SimProcess* process_;
  BlockStoreOptions options_;
  size_t events_limit_ = 1 << 20;
  std::unique_ptr<EventLog> events_;
  OpenedBlockStore opened_;
};

}  // namespace cairn::datanode::testing
