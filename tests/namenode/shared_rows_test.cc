// Rows as messages: parsed once for all readers, serialized once a batch, and never other than their bytes.

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "common/error.h"
#include "namenode/namespace/records.h"
#include "namenode/store/meta_store.h"
#include "namenode/store/row_cache.h"
#include "tests/namenode/store_world.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using testing::HasKind;
using testing::IsOk;

std::shared_ptr<v1::UsageRecord> Usage(uint64_t files) {
  auto usage = std::make_shared<v1::UsageRecord>();
  usage->set_files(files);
  return usage;
}

class SharedRows : public ::testing::TestWithParam<size_t> {
 protected:
  SharedRows() {
    options_.directory = "/nn/namespace";
    options_.simulated = true;
    options_.row_cache_bytes = GetParam();
    EXPECT_THAT(world_.files().MakeDirectories("/nn/namespace"), IsOk());
    EXPECT_THAT(MetaStore::Create(options_, &world_), IsOk());
    store_ = MetaStore::Open(options_, &world_).value();
  }
  void Commit(StoreTransaction& txn) {
    ASSERT_THAT(store_->Write(txn.TakeEffects(), /*sync=*/true), IsOk());
    store_->Publish();
  }
  // "(none)", or the files of the row, as a message and as bytes.
  static std::string Files(const ReadView& view, std::string_view key) {
    const auto row = FindShared<v1::UsageRecord>(view, Family::kUsage, key).value();
    const auto bytes = view.Get(Family::kUsage, key).value();
    EXPECT_EQ(row != nullptr, bytes.has_value());
    if (row == nullptr) return "(none)";
    EXPECT_EQ(*bytes, row->SerializeAsString());
    return std::to_string(row->files());
  }

  testing::StoreWorld world_;
  MetaStore::Options options_;
  std::unique_ptr<MetaStore> store_;
};

TEST_P(SharedRows, ARowIsTheSameAsAMessageAndAsBytesInsideABatchAndAfterIt) {
  std::unique_ptr<StoreTransaction> txn = store_->NewTransaction();
  txn->PutMessage(Family::kUsage, "a", Usage(1));
  EXPECT_EQ(Files(*txn, "a"), "1");
  txn->PutMessage(Family::kUsage, "a", Usage(2));  // Over what was serialized already.
  EXPECT_EQ(Files(*txn, "a"), "2");
  txn->Put(Family::kUsage, "b", Usage(3)->SerializeAsString());
  EXPECT_EQ(Files(*txn, "b"), "3");
  txn->PutMessage(Family::kUsage, "c", Usage(4));
  txn->Delete(Family::kUsage, "c");
  EXPECT_EQ(Files(*txn, "c"), "(none)");
  txn->Delete(Family::kUsage, "d");
  txn->PutMessage(Family::kUsage, "d", Usage(5));
  EXPECT_EQ(Files(*txn, "d"), "5");
  Commit(*txn);
  txn.reset();

  for (const auto& [key, files] : {std::pair{"a", "2"}, {"b", "3"}, {"c", "(none)"}, {"d", "5"}}) {
    EXPECT_EQ(Files(*store_->Snapshot(), key), files);
    EXPECT_EQ(Files(*store_->NewTransaction(), key), files);
  }
  store_.reset();
  store_ = MetaStore::Open(options_, &world_).value();
  EXPECT_EQ(Files(*store_->Snapshot(), "a"), "2");
}

TEST_P(SharedRows, AScanSeesMessagesThatWerePut) {
  const auto txn = store_->NewTransaction();
  txn->PutMessage(Family::kUsage, "a", Usage(1));
  const auto cursor = txn->Scan(Family::kUsage, "", "");
  txn->PutMessage(Family::kUsage, "b", Usage(2));
  ASSERT_TRUE(cursor->Valid());
  EXPECT_EQ(cursor->value(), Usage(1)->SerializeAsString());
  cursor->Next();
  ASSERT_TRUE(cursor->Valid());
  EXPECT_EQ(cursor->value(), Usage(2)->SerializeAsString());
}

TEST_P(SharedRows, AReaderOfAnOlderStateSeesThatState) {
  {
    const auto txn = store_->NewTransaction();
    txn->PutMessage(Family::kUsage, "a", Usage(1));
    Commit(*txn);
  }
  const auto before = store_->Snapshot();
  const auto txn = store_->NewTransaction();
  txn->PutMessage(Family::kUsage, "a", Usage(2));
  Commit(*txn);
  EXPECT_EQ(Files(*before, "a"), "1");
  EXPECT_EQ(Files(*store_->Snapshot(), "a"), "2");
  EXPECT_EQ(Files(*store_->MemorySnapshot(), "a"), "2");
}

TEST_P(SharedRows, ARowThatIsNoMessageIsCorruptAndNamed) {
  const auto txn = store_->NewTransaction();
  txn->Put(Family::kUsage, "bad", "\xff\xff");
  const auto in_batch = FindShared<v1::UsageRecord>(*txn, Family::kUsage, "bad");
  EXPECT_THAT(in_batch.status(), HasKind(ErrorKind::kCorruptMetadata));
  Commit(*txn);
  const auto stored = FindShared<v1::UsageRecord>(*store_->Snapshot(), Family::kUsage, "bad");
  EXPECT_THAT(stored.status(), HasKind(ErrorKind::kCorruptMetadata));
  EXPECT_EQ(stored.status().message(), "family usage, key 0x626164: the row does not parse");
  EXPECT_EQ(store_->Snapshot()->Get(Family::kUsage, "bad").value(), "\xff\xff");
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutRowCache, SharedRows, ::testing::Values(size_t{0}, size_t{1} << 20));

TEST(RowCacheMessages, AreParsedOnceAndShared) {
  RowCache cache(1 << 20, 5);
  cache.Add(Family::kUsage, "a", Usage(7)->SerializeAsString(), 5);
  const SharedMessage first = cache.FindMessage(Family::kUsage, "a", 5, &ParseRowAs<v1::UsageRecord>);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(cache.FindMessage(Family::kUsage, "a", 5, &ParseRowAs<v1::UsageRecord>), first);
  EXPECT_EQ(cache.Find(Family::kUsage, "a", 5), Usage(7)->SerializeAsString());
  cache.Begin(6);
  const SharedMessage second = Usage(8);
  cache.PutMessage(Family::kUsage, "a", second, 2);
  EXPECT_EQ(cache.FindMessage(Family::kUsage, "a", 5, &ParseRowAs<v1::UsageRecord>), nullptr);
  EXPECT_EQ(cache.FindMessage(Family::kUsage, "a", 6, &ParseRowAs<v1::UsageRecord>), second);
  cache.Delete(Family::kUsage, "a");
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace cairn::namenode
