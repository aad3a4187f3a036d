// RocksDB in simulated processes: jobs run with the world, kill -9 keeps what was written, a power cut what was synced.

#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include "tests/testing/sim_world.h"

namespace cairn::testing {
namespace {

rocksdb::Options Options(SimProcess* process) {
  rocksdb::Options options;
  options.env = process->rocksdb_env();
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.max_file_opening_threads = 1;
  options.max_subcompactions = 1;
  options.max_bgerror_resume_count = 0;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.avoid_flush_during_shutdown = true;
  options.allow_concurrent_memtable_write = false;
  options.info_log_level = rocksdb::FATAL_LEVEL;
  return options;
}

std::unique_ptr<rocksdb::DB> Open(SimProcess* process) {
  EXPECT_TRUE(process->files().MakeDirectories("/db").ok());
  EXPECT_TRUE(process->files().SyncDirectory("/").ok());
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(Options(process), "/db", &db);
  EXPECT_TRUE(opened.ok()) << opened.ToString();
  return std::unique_ptr<rocksdb::DB>(db);
}

rocksdb::Status Put(rocksdb::DB& db, const std::string& key, const std::string& value, bool sync) {
  rocksdb::WriteOptions options;
  options.sync = sync;
  options.no_slowdown = true;
  return db.Put(options, key, value);
}

std::string Get(rocksdb::DB& db, const std::string& key) {
  std::string value;
  const rocksdb::Status status = db.Get(rocksdb::ReadOptions(), key, &value);
  return status.ok() ? value : "<" + status.ToString() + ">";
}

class SimProcessRocksdbTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  SimWorld world_{SimOptions{.seed = GetParam()}};
  SimMachine* const machine_ = world_.AddMachine("a");
};

TEST_P(SimProcessRocksdbTest, SyncedWritesOutliveKillsAndPowerCuts) {
  SimProcess* process = machine_->StartProcess();
  std::unique_ptr<rocksdb::DB> db = Open(process);
  for (int round = 0; round < 6; ++round) {
    const std::string key = std::to_string(round);
    ASSERT_TRUE(Put(*db, key, "synced", true).ok());
    if (round % 2 == 1) {
      rocksdb::FlushOptions flush;
      flush.wait = false;
      ASSERT_TRUE(db->Flush(flush).ok());
      world_.RunFor(absl::Milliseconds(1));  // Its job runs here.
    }
    ASSERT_TRUE(Put(*db, "unsynced" + key, "written", false).ok());
    const bool power = round % 3 == 2;
    if (power) {
      machine_->PowerCut();
    } else {
      machine_->Kill();
    }
    EXPECT_FALSE(Put(*db, "zombie", "x", true).ok());
    world_.RunFor(absl::Milliseconds(1));
    db.reset();
    process = machine_->StartProcess();
    db = Open(process);
    ASSERT_NE(db, nullptr);
    for (int earlier = 0; earlier <= round; ++earlier) EXPECT_EQ(Get(*db, std::to_string(earlier)), "synced") << earlier;
    EXPECT_EQ(Get(*db, "zombie"), "<NotFound: >");
    if (!power) {
      EXPECT_EQ(Get(*db, "unsynced" + key), "written");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimProcessRocksdbTest, ::testing::Range<uint64_t>(1, 11));

}  // namespace
}  // namespace cairn::testing
