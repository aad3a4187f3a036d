#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "namenode/store/effect_batch.h"
#include "namenode/store/key_hash.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// A Transaction that can be turned into effects.
class StoreTransaction : public Transaction {
 public:
  // Ends the transaction: its effects, each row once (the last write counts), range deletes first. Nothing else may be called afterwards.
  virtual EffectBatch TakeEffects() = 0;
  // Calls of Put, Delete and DeleteRange so far: unchanged over an Apply that did not act.
  virtual uint64_t writes() const = 0;
};

// What a transaction changed in one family. Found by hash, as nearly all is asked for by key; put in order when somebody scans, and at the
// end. Rows stay where they are while others are added.
class ChangedRows {
 public:
  struct Row {
    std::string key;
    std::optional<std::string> value;  // Nothing: deleted. Behind the message where `is_behind`.
    SharedMessage message;             // What the value says, where somebody put or asked for it.
    bool is_behind = false;
    size_t bytes = 0;  // It counts in the transaction.

    bool is_deleted() const { return !value; }
    const std::string& Bytes();
  };
  using Ordered = std::map<std::string_view, Row*>;

  Row* Find(std::string_view key) const;
  // For a key that is not there.
  Row& Add(std::string_view key);
  // All rows by key; later additions appear in it.
  const Ordered& InOrder() const;
  // The same, for the last time.
  std::vector<Row*> Sorted();

 private:
  std::deque<Row> rows_;
  absl::flat_hash_map<std::string_view, Row*, KeyHash, std::equal_to<>> by_key_;  // Keys point into rows_.
  mutable std::optional<Ordered> ordered_;                                        // Once somebody has scanned.
};

// Changes kept by row over a base that does not change meanwhile. Not RocksDB's indexed batch, because a row that is
// written again and again (the usage of a directory, once for each mutation of a batch) leaves one effect here, because its
// iterators stay valid while the batch grows, and because it needs no RocksDB: any ReadView is a base.
//
// Range deletes stand beside the rows: the effects of a batch put them first, so that a row written into a deleted range stays.
// What the batch did not write is read from the base, whose rows used last are in a cache (row_cache.h). A row that was put as a message is
// serialized when somebody asks for its bytes, at the latest with the effects.
class MetaTransaction : public StoreTransaction {
 public:
  MetaTransaction(std::shared_ptr<const ReadView> base, uint64_t applied_index);

  absl::StatusOr<std::optional<std::string>> Get(Family family, std::string_view key) const override;
  // The cursor sees writes made after its creation to rows it has not reached. It must not outlive the transaction.
  std::unique_ptr<Cursor> Scan(Family family, std::string_view begin, std::string_view end) const override;
  absl::StatusOr<SharedMessage> GetMessage(Family family, std::string_view key, ParseRow parse) const override;
  void Put(Family family, std::string_view key, std::string_view value) override;
  void PutMessage(Family family, std::string_view key, SharedMessage message) override;
  void Delete(Family family, std::string_view key) override;
  void DeleteRange(Family family, std::string_view begin, std::string_view end) override;
  size_t ApproximateBytes() const override { return bytes_; }
  EffectBatch TakeEffects() override;
  uint64_t writes() const override { return writes_; }

 private:
  // The row to be changed, which counts `bytes` from now on.
  ChangedRows::Row& Change(Family family, std::string_view key, size_t bytes);

  struct Range {
    Family family;
    std::string begin;
    std::string end;
  };
  std::shared_ptr<const ReadView> base_;
  uint64_t applied_index_;
  std::array<ChangedRows, kFamilyCount> changes_;
  std::vector<Range> ranges_;
  size_t bytes_ = 0;
  uint64_t writes_ = 0;
};

}  // namespace cairn::namenode
