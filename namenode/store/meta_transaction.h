#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "namenode/store/effect_batch.h"
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

// Changes kept in ordered maps over a base that does not change meanwhile. Not RocksDB's indexed batch, because a row that is
// written again and again (the usage of a directory, once for each mutation of a batch) leaves one effect here, because its
// iterators stay valid while the batch grows, and because it needs no RocksDB: any ReadView is a base.
//
// Range deletes stand beside the maps: the effects of a batch put them first, so that a row written into a deleted range stays.
// There is no cache of directory records here: a repeated Get is answered from the maps if the batch wrote the row,
// and from RocksDB's block cache otherwise.
class MetaTransaction : public StoreTransaction {
 public:
  MetaTransaction(std::shared_ptr<const ReadView> base, uint64_t applied_index);

  absl::StatusOr<std::optional<std::string>> Get(Family family, std::string_view key) const override;
  // The cursor sees writes made after its creation to rows it has not reached. It must not outlive the transaction.
  std::unique_ptr<Cursor> Scan(Family family, std::string_view begin, std::string_view end) const override;
  void Put(Family family, std::string_view key, std::string_view value) override;
  void Delete(Family family, std::string_view key) override;
  void DeleteRange(Family family, std::string_view begin, std::string_view end) override;
  size_t ApproximateBytes() const override { return bytes_; }
  EffectBatch TakeEffects() override;
  uint64_t writes() const override { return writes_; }

  using Changes = std::map<std::string, std::optional<std::string>, std::less<>>;  // Nothing: deleted.

 private:
  void Set(Family family, std::string_view key, std::optional<std::string> value);

  struct Range {
    Family family;
    std::string begin;
    std::string end;
  };
  std::shared_ptr<const ReadView> base_;
  uint64_t applied_index_;
  std::array<Changes, kFamilyCount> changes_;
  std::vector<Range> ranges_;
  size_t bytes_ = 0;
  uint64_t writes_ = 0;
};

}  // namespace cairn::namenode
