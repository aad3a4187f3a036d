#include "namenode/store/meta_transaction.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace cairn::namenode {
namespace {

constexpr size_t kEffectOverhead = 6;  // Family, operation, two lengths: about.

size_t SizeOf(std::string_view key, const std::optional<std::string>& value) {
  return kEffectOverhead + key.size() + (value ? value->size() : 0);
}

// Merges the base's rows with the changes; a change hides the base's row of the same key.
class MergedCursor : public Cursor {
 public:
  MergedCursor(std::unique_ptr<Cursor> base, const ChangedRows::Ordered* changes, std::string_view begin, std::string_view end)
      : base_(std::move(base)), changes_(changes), end_(end) {
    Settle(changes_->lower_bound(begin));
  }

  bool Valid() const override { return valid_ && status().ok(); }
  std::string_view key() const override { return key_; }
  std::string_view value() const override { return value_; }
  void Next() override {
    CAIRN_CHECK(Valid(), "Next() past the end");
    const std::string passed = std::move(key_);
    if (base_->Valid() && base_->key() == passed) base_->Next();
    // Looked up anew: rows may have been added since.
    Settle(changes_->upper_bound(passed));
  }
  absl::Status status() const override { return base_->status(); }

 private:
  // Stands on the first row that exists, from `change` and the base's position on. Copies it, as the map's value may be
  // overwritten while the cursor stands here.
  void Settle(ChangedRows::Ordered::const_iterator change) {
    for (;;) {
      const bool has_change = change != changes_->end() && (end_.empty() || change->first < end_);
      const bool has_base = base_->Valid();
      valid_ = has_change || has_base;
      if (!valid_) return;
      if (!has_change || (has_base && base_->key() < change->first)) {
        key_ = std::string(base_->key());
        value_ = std::string(base_->value());
        return;
      }
      if (change->second->value) {
        key_ = change->first;
        value_ = *change->second->value;
        return;
      }
      if (has_base && base_->key() == change->first) base_->Next();
      ++change;
    }
  }

  std::unique_ptr<Cursor> base_;
  const ChangedRows::Ordered* changes_;
  const std::string end_;
  bool valid_ = false;
  std::string key_;
  std::string value_;
};

}  // namespace

ChangedRows::Row* ChangedRows::Find(std::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

void ChangedRows::Add(std::string_view key, std::optional<std::string> value) {
  Row& row = rows_.emplace_back(Row{std::string(key), std::move(value)});
  by_key_.emplace(row.key, &row);
  if (ordered_) ordered_->emplace(row.key, &row);
}

const ChangedRows::Ordered& ChangedRows::InOrder() const {
  if (!ordered_) ordered_.emplace(by_key_.begin(), by_key_.end());
  return *ordered_;
}

std::vector<const ChangedRows::Row*> ChangedRows::Sorted() const {
  std::vector<const Row*> sorted;
  sorted.reserve(rows_.size());
  for (const Row& row : rows_) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(), [](const Row* a, const Row* b) { return a->key < b->key; });
  return sorted;
}

MetaTransaction::MetaTransaction(std::shared_ptr<const ReadView> base, uint64_t applied_index)
    : base_(std::move(base)), applied_index_(applied_index) {}

absl::StatusOr<std::optional<std::string>> MetaTransaction::Get(Family family, std::string_view key) const {
  if (const ChangedRows::Row* row = changes_[static_cast<size_t>(family)].Find(key)) return row->value;
  return base_->Get(family, key);
}

std::unique_ptr<Cursor> MetaTransaction::Scan(Family family, std::string_view begin, std::string_view end) const {
  return std::make_unique<MergedCursor>(base_->Scan(family, begin, end), &changes_[static_cast<size_t>(family)].InOrder(), begin, end);
}

void MetaTransaction::Set(Family family, std::string_view key, std::optional<std::string> value) {
  ++writes_;
  ChangedRows& changes = changes_[static_cast<size_t>(family)];
  const size_t size = SizeOf(key, value);
  if (ChangedRows::Row* row = changes.Find(key)) {
    bytes_ -= SizeOf(key, row->value);
    row->value = std::move(value);
  } else {
    changes.Add(key, std::move(value));
  }
  bytes_ += size;
}

void MetaTransaction::Put(Family family, std::string_view key, std::string_view value) { Set(family, key, std::string(value)); }

void MetaTransaction::Delete(Family family, std::string_view key) { Set(family, key, std::nullopt); }

void MetaTransaction::DeleteRange(Family family, std::string_view begin, std::string_view end) {
  ++writes_;
  bytes_ += kEffectOverhead + begin.size() + end.size();
  ranges_.push_back(Range{family, std::string(begin), std::string(end)});
}

EffectBatch MetaTransaction::TakeEffects() {
  EffectEncoder encoder(applied_index_);
  for (const Range& range : ranges_) encoder.DeleteRange(range.family, range.begin, range.end);
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const auto family = static_cast<Family>(i);
    for (const ChangedRows::Row* row : changes_[i].Sorted()) {
      if (row->value) {
        encoder.Put(family, row->key, *row->value);
      } else {
        encoder.Delete(family, row->key);
      }
    }
  }
  return std::move(encoder).Take();
}

}  // namespace cairn::namenode
