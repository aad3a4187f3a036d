#include "namenode/store/meta_store.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/env/random.h"
#include "common/error.h"
#include "namenode/journal/wal_scan.h"
#include "namenode/store/keys.h"
#include "tests/namenode/store_world.h"

namespace cairn::namenode {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

class MetaStoreTest : public ::testing::Test {
 protected:
  MetaStoreTest() {
    options_.directory = "/nn/namespace";
    options_.simulated = true;
    EXPECT_TRUE(world_.files().MakeDirectories("/nn/namespace").ok());
    EXPECT_TRUE(world_.files().SyncDirectory("/nn").ok());
    EXPECT_TRUE(world_.files().SyncDirectory("/").ok());
    EXPECT_TRUE(MetaStore::Create(options_, &world_).ok());
    Open();
  }
  void Open() {
    store_.reset();
    auto opened = MetaStore::Open(options_, &world_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  void PowerCut() {
    world_.Kill();
    store_.reset();
    world_.LosePowerAndBoot();
  }
  void Commit(StoreTransaction& txn) {
    ASSERT_TRUE(store_->Write(txn.TakeEffects(), /*sync=*/true).ok());
    store_->Publish();
  }
  void Put(std::string_view key, std::string_view value) {
    const auto txn = store_->NewTransaction();
    txn->Put(Family::kInode, key, value);
    Commit(*txn);
  }
  static std::string Get(const ReadView& view, std::string_view key, Family family = Family::kInode) {
    const auto value = view.Get(family, key);
    EXPECT_TRUE(value.ok()) << value.status();
    return value->value_or("(none)");
  }
  static Rows Scan(const ReadView& view, std::string_view begin = "", std::string_view end = "") {
    Rows rows;
    const auto cursor = view.Scan(Family::kInode, begin, end);
    for (; cursor->Valid(); cursor->Next()) rows.emplace_back(cursor->key(), cursor->value());
    EXPECT_TRUE(cursor->status().ok());
    return rows;
  }
  std::string NewestLog() {
    std::string newest;
    const auto names = world_.files().List("/nn/namespace").value();
    for (const std::string& name : names)
      if (name.ends_with(".log")) newest = "/nn/namespace/" + name;
    return newest;
  }

  testing::StoreWorld world_;
  MetaStore::Options options_;
  std::unique_ptr<MetaStore> store_;
};

TEST_F(MetaStoreTest, EveryFamilyKeepsItsOwnRows) {
  {
    const auto txn = store_->NewTransaction();
    for (size_t i = 0; i < kFamilyCount; ++i) txn->Put(static_cast<Family>(i), "key", FamilyName(static_cast<Family>(i)));
    Commit(*txn);
  }
  Open();
  for (size_t i = 0; i < kFamilyCount; ++i)
    EXPECT_EQ(Get(*store_->Snapshot(), "key", static_cast<Family>(i)), FamilyName(static_cast<Family>(i)));
}

TEST_F(MetaStoreTest, SyncedBatchesOutliveAPowerCut) {
  Put("a", "1");
  Put("b", "2");
  PowerCut();
  Open();
  EXPECT_EQ(Scan(*store_->Snapshot()), (Rows{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(store_->applied_index(), 2u);
}

TEST_F(MetaStoreTest, SnapshotsAreOfTheLastPublishAndStay) {
  Put("a", "1");
  const auto before = store_->Snapshot();
  const auto txn = store_->NewTransaction();
  txn->Put(Family::kInode, "a", "2");
  ASSERT_TRUE(store_->Write(txn->TakeEffects(), true).ok());
  EXPECT_EQ(Get(*store_->Snapshot(), "a"), "1");  // Written, not published.
  store_->Publish();
  EXPECT_EQ(Get(*store_->Snapshot(), "a"), "2");
  EXPECT_EQ(Get(*before, "a"), "1");
  EXPECT_EQ(Scan(*before), (Rows{{"a", "1"}}));
}

TEST_F(MetaStoreTest, ASnapshotOutlivesTheStore) {
  Put("a", "1");
  const auto snapshot = store_->Snapshot();
  store_.reset();
  EXPECT_EQ(Get(*snapshot, "a"), "1");
}

TEST_F(MetaStoreTest, TransactionsReadTheirOwnWritesOverTheLastCommit) {
  Put("a", "1");
  Put("c", "3");
  Put("e", "5");
  const auto txn = store_->NewTransaction();
  txn->Put(Family::kInode, "b", "2");
  txn->Put(Family::kInode, "c", "three");
  txn->Delete(Family::kInode, "e");
  txn->Delete(Family::kInode, "never there");
  EXPECT_EQ(Get(*txn, "a"), "1");
  EXPECT_EQ(Get(*txn, "c"), "three");
  EXPECT_EQ(Get(*txn, "e"), "(none)");
  EXPECT_EQ(Scan(*txn), (Rows{{"a", "1"}, {"b", "2"}, {"c", "three"}}));
  EXPECT_EQ(Scan(*txn, "b", "c"), (Rows{{"b", "2"}}));
  EXPECT_EQ(Scan(*txn, "bb"), (Rows{{"c", "three"}}));
  EXPECT_EQ(Scan(*store_->Snapshot()), (Rows{{"a", "1"}, {"c", "3"}, {"e", "5"}}));
  Commit(*txn);
  EXPECT_EQ(Scan(*store_->Snapshot()), (Rows{{"a", "1"}, {"b", "2"}, {"c", "three"}}));
}

TEST_F(MetaStoreTest, ACursorGoesOnWhileItsTransactionWrites) {
  for (const char* key : {"a", "b", "c", "d"}) Put(key, "old");
  const auto txn = store_->NewTransaction();
  Rows seen;
  const auto cursor = txn->Scan(Family::kInode, "", "");
  for (; cursor->Valid(); cursor->Next()) {
    seen.emplace_back(cursor->key(), cursor->value());
    const std::string key(cursor->key());
    txn->Delete(Family::kInode, key);
    EXPECT_EQ(cursor->key(), key);
    if (key == "a") {
      txn->Put(Family::kInode, "aa", "added ahead");
      txn->Put(Family::kInode, "c", "changed ahead");
      txn->Delete(Family::kInode, "d");
    }
  }
  EXPECT_EQ(seen, (Rows{{"a", "old"}, {"aa", "added ahead"}, {"b", "old"}, {"c", "changed ahead"}}));
  EXPECT_EQ(Scan(*txn), Rows{});
}

TEST_F(MetaStoreTest, MergedScansEqualAModel) {
  Random random(3);
  std::map<std::string, std::string> model;
  for (int round = 0; round < 60; ++round) {
    const auto txn = store_->NewTransaction();
    for (uint64_t i = 0, count = random.Below(20); i < count; ++i) {
      const std::string key(1, static_cast<char>('a' + random.Below(16)));
      if (random.OneIn(3)) {
        txn->Delete(Family::kInode, key);
        model.erase(key);
      } else {
        model[key] = std::to_string(random.Below(1000));
        txn->Put(Family::kInode, key, model[key]);
      }
    }
    const std::string begin(1, static_cast<char>('a' + random.Below(16))), end(1, static_cast<char>('a' + random.Below(17)));
    Rows expected;
    for (auto row = model.lower_bound(begin); row != model.end() && row->first < end; ++row) expected.push_back(*row);
    EXPECT_EQ(Scan(*txn, begin, end), expected);
    Commit(*txn);
    if (random.OneIn(5)) {
      ASSERT_TRUE(store_->StartFlush().ok());
    }
    world_.rocksdb().Pump();
    EXPECT_EQ(Scan(*store_->Snapshot()), Rows(model.begin(), model.end()));
  }
}

TEST_F(MetaStoreTest, ARowWrittenOftenIsOneEffect) {
  const auto txn = store_->NewTransaction();
  txn->Put(Family::kUsage, "root", "1");
  const size_t once = txn->ApproximateBytes();
  for (int i = 0; i < 1000; ++i) txn->Put(Family::kUsage, "root", "2");
  EXPECT_EQ(txn->ApproximateBytes(), once);
  EXPECT_EQ(txn->writes(), 1001u);
  EXPECT_LT(txn->TakeEffects().bytes.size(), 40u);
}

TEST_F(MetaStoreTest, RangeDeletesGoBeforeTheRowsOfTheirBatch) {
  const auto key = [](uint64_t directory, const char* name) { return InodeKey(InodeId(directory), name); };
  for (uint64_t directory = 7; directory <= 9; ++directory) Put(key(directory, "a"), "old");
  Put("\xff\xff\xff\xff\xff\xff\xff\xff\xff", "old");
  auto txn = store_->NewTransaction();
  txn->Put(Family::kInode, key(8, "b"), "new");
  txn->DeleteRange(Family::kInode, ChildrenBegin(InodeId(8), ""), ChildrenBegin(InodeId(9), ""));
  EXPECT_EQ(Get(*txn, key(8, "a")), "old");  // Until the commit.
  Commit(*txn);
  EXPECT_EQ(Scan(*store_->Snapshot()),
            (Rows{{key(7, "a"), "old"}, {key(8, "b"), "new"}, {key(9, "a"), "old"}, {"\xff\xff\xff\xff\xff\xff\xff\xff\xff", "old"}}));
  txn = store_->NewTransaction();
  txn->DeleteRange(Family::kInode, ChildrenBegin(InodeId(8), ""), "");
  Commit(*txn);
  EXPECT_EQ(Scan(*store_->Snapshot()), (Rows{{key(7, "a"), "old"}}));
}

// RocksDB takes the places of rows and of ranges in a memtable for each other where it keeps both.
TEST_F(MetaStoreTest, RowsAreFoundHoweverTheyAndRangesFollowOneAnother) {
  std::map<std::string, std::string> model;
  Random random(7);
  for (int batch = 0; batch < 200; ++batch) {
    auto txn = store_->NewTransaction();
    const InodeId swept(1 + random.Below(8));
    const bool sweeps = random.OneIn(3);
    if (sweeps) {
      txn->DeleteRange(Family::kInode, ChildrenBegin(swept, ""), ChildrenEnd(swept));
      model.erase(model.lower_bound(ChildrenBegin(swept, "")), model.lower_bound(ChildrenEnd(swept)));
    }
    for (int row = 0; row < 10; ++row) {
      const InodeId directory(1 + random.Below(8));
      if (sweeps && directory == swept) continue;
      const std::string key = InodeKey(directory, std::to_string(random.Below(50)));
      if (random.OneIn(4)) {
        txn->Delete(Family::kInode, key);
        model.erase(key);
      } else {
        model[key] = std::to_string(batch);
        txn->Put(Family::kInode, key, model[key]);
      }
    }
    Commit(*txn);
    ASSERT_EQ(Scan(*store_->Snapshot()), Rows(model.begin(), model.end())) << "batch " << batch;
  }
}

TEST_F(MetaStoreTest, RowsOutliveFlushesCompactionsAndPowerCuts) {
  std::map<std::string, std::string> model;
  for (int i = 0; i < 40; ++i) {
    const std::string key = "k" + std::to_string(i % 17);
    model[key] = std::to_string(i);
    Put(key, model[key]);
    ASSERT_TRUE(store_->StartFlush().ok());
    world_.rocksdb().Pump(static_cast<size_t>(i % 3));
  }
  world_.rocksdb().Pump();
  EXPECT_EQ(Scan(*store_->Snapshot()), Rows(model.begin(), model.end()));
  PowerCut();
  Open();
  EXPECT_EQ(Scan(*store_->Snapshot()), Rows(model.begin(), model.end()));
}

TEST_F(MetaStoreTest, OnlyTheNextBatchIsWritten) {
  Put("a", "1");
  EffectEncoder skipping(3), repeating(1);
  EXPECT_EQ(KindOf(store_->Write(std::move(skipping).Take(), true)), ErrorKind::kCorruptMetadata);
  EXPECT_EQ(KindOf(store_->Write(std::move(repeating).Take(), true)), ErrorKind::kCorruptMetadata);
  EXPECT_EQ(KindOf(store_->Write(EffectBatch{"\x01garbage", 2}, true)), ErrorKind::kCorruptMetadata);
  EXPECT_EQ(store_->applied_index(), 1u);
  Put("b", "2");
  EXPECT_EQ(store_->applied_index(), 2u);
}

TEST_F(MetaStoreTest, CreateRefusesADatabaseAndOpenRefusesNone) {
  store_.reset();
  EXPECT_EQ(KindOf(MetaStore::Create(options_, &world_)), ErrorKind::kAlreadyExists);
  options_.directory = "/elsewhere";
  EXPECT_EQ(KindOf(MetaStore::Open(options_, &world_).status()), ErrorKind::kNotFound);
  EXPECT_FALSE(world_.files().Exists("/elsewhere").value());
}

TEST_F(MetaStoreTest, TheScanUnderstandsRocksDbsOwnLogs) {
  for (int i = 0; i < 10; ++i) Put("k" + std::to_string(i), std::string(9000, 'v'));
  const auto log = ScanLog(world_.files().ReadWhole(NewestLog()).value(), "log");
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->records, 10u);
  std::string manifest = world_.files().ReadWhole("/nn/namespace/CURRENT").value();
  manifest.pop_back();
  const auto scan = ScanLog(world_.files().ReadWhole("/nn/namespace/" + manifest).value(), "manifest");
  ASSERT_TRUE(scan.ok()) << scan.status();
  EXPECT_GT(scan->records, kFamilyCount);
  EXPECT_FALSE(scan->torn_at);
}

TEST_F(MetaStoreTest, ATornTailLosesTheLastBatchAlone) {
  Put("a", "1");
  Put("b", std::string(2000, 'b'));
  const std::string log = NewestLog();
  store_.reset();
  {
    const auto file = world_.files().Open(log, LocalFileSystem::OpenMode::kReadWrite).value();
    ASSERT_TRUE(file->Truncate(file->Size().value() - 1000).ok());
  }
  Open();
  EXPECT_EQ(Scan(*store_->Snapshot()), (Rows{{"a", "1"}}));
  EXPECT_EQ(store_->applied_index(), 1u);
  Put("c", "3");
  Open();
  EXPECT_EQ(Scan(*store_->Snapshot()), (Rows{{"a", "1"}, {"c", "3"}}));
}

TEST_F(MetaStoreTest, AFlippedBitInALogRefusesToOpen) {
  Put("a", std::string(100, 'a'));
  Put("b", std::string(100, 'b'));
  const std::string log = NewestLog();
  store_.reset();
  const uint64_t size = world_.files().ReadWhole(log).value().size();
  for (const uint64_t offset : {uint64_t{50}, size - 50}) {
    ASSERT_TRUE(world_.disk().FlipByte(log, offset).ok());
    const auto opened = MetaStore::Open(options_, &world_);
    EXPECT_EQ(KindOf(opened.status()), ErrorKind::kCorruptMetadata);
    EXPECT_NE(std::string(opened.status().message()).find(log + ": offset "), std::string::npos) << opened.status();
    ASSERT_TRUE(world_.disk().FlipByte(log, offset).ok());
  }
  Open();
}

TEST_F(MetaStoreTest, SyncedEditsThatAreZeroedRefuseToOpenWhenTheirLogsAreGone) {
  const auto manifest = [&] {
    const std::string current = world_.files().ReadWhole("/nn/namespace/CURRENT").value();
    return "/nn/namespace/" + current.substr(0, current.size() - 1);
  };
  const std::string log = NewestLog();
  Put("a", "1");
  const std::string old_log = world_.files().ReadWhole(log).value();
  const uint64_t synced = world_.files().ReadWhole(manifest()).value().size();
  ASSERT_TRUE(store_->StartFlush().ok());
  world_.rocksdb().Pump();
  ASSERT_FALSE(world_.files().Exists(log).value());
  Put("b", "2");
  store_.reset();
  // The disk loses what was added to the MANIFEST: it looks like a write that a crash has torn.
  const std::string whole = world_.files().ReadWhole(manifest()).value();
  ASSERT_GT(whole.size(), synced);
  {
    const auto file = world_.files().Open(manifest(), LocalFileSystem::OpenMode::kReadWrite).value();
    const std::string zeros(whole.size() - synced, '\0');
    ASSERT_TRUE(file->WriteAt(synced, {zeros.data(), zeros.size()}).ok());
  }
  const auto opened = MetaStore::Open(options_, &world_);
  ASSERT_EQ(KindOf(opened.status()), ErrorKind::kCorruptMetadata) << opened.status();
  EXPECT_NE(std::string(opened.status().message()).find(manifest() + ": offset "), std::string::npos) << opened.status();
  EXPECT_NE(std::string(opened.status().message()).find("neither a log nor a table"), std::string::npos) << opened.status();
  EXPECT_EQ(world_.files().ReadWhole(manifest()).value().size(), whole.size());  // Nothing was cut.
  // With that log still there the same tail is a torn write, and nothing is lost.
  ASSERT_TRUE(world_.files().WriteWhole(log, old_log).ok());
  Open();
  EXPECT_EQ(Scan(*store_->Snapshot()), (Rows{{"a", "1"}, {"b", "2"}}));
}

TEST_F(MetaStoreTest, AMissingLogRefusesToOpen) {
  Put("a", "1");
  const std::string needed = NewestLog();
  ASSERT_TRUE(store_->StartFlush().ok());  // Switches to a new log; the old one is needed until the flush has run.
  Put("b", "2");
  ASSERT_NE(needed, NewestLog());
  store_.reset();
  ASSERT_TRUE(world_.files().Remove(needed).ok());
  const auto opened = MetaStore::Open(options_, &world_);
  EXPECT_EQ(KindOf(opened.status()), ErrorKind::kCorruptMetadata) << opened.status() << " without " << needed;
}

}  // namespace
}  // namespace cairn::namenode
