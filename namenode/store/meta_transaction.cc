#include "namenode/store/meta_transaction.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace cairn::namenode {
namespace {

constexpr size_t kEffectOverhead = 6;  // Family, operation, two lengths: about.

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
      if (!change->second->is_deleted()) {
        key_ = change->first;
        value_ = change->second->Bytes();
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

const std::string& ChangedRows::Row::Bytes() {
  if (std::exchange(is_behind, false)) message->SerializeToString(&*value);
  return *value;
}

ChangedRows::Row* ChangedRows::Find(std::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

ChangedRows::Row& ChangedRows::Add(std::string_view key) {
  Row& row = rows_.emplace_back();
  row.key = key;
  by_key_.emplace(row.key, &row);
  if (ordered_) ordered_->emplace(row.key, &row);
  return row;
}

const ChangedRows::Ordered& ChangedRows::InOrder() const {
  if (!ordered_) ordered_.emplace(by_key_.begin(), by_key_.end());
  return *ordered_;
}

std::vector<ChangedRows::Row*> ChangedRows::Sorted() {
  std::vector<Row*> sorted;
  sorted.reserve(rows_.size());
  for (Row& row : rows_) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(), [](const Row* a, const Row* b) { return a->key < b->key; });
  return sorted;
}

MetaTransaction::MetaTransaction(std::shared_ptr<const ReadView> base, uint64_t applied_index)
    : base_(std::move(base)), applied_index_(applied_index) {}

absl::StatusOr<std::optional<std::string>> MetaTransaction::Get(Family family, std::string_view key) const {
  ChangedRows::Row* const row = changes_[static_cast<size_t>(family)].Find(key);
  if (row == nullptr) return base_->Get(family, key);
  if (row->is_deleted()) return std::nullopt;
  return row->Bytes();
}

absl::StatusOr<SharedMessage> MetaTransaction::GetMessage(Family family, std::string_view key, ParseRow parse) const {
  ChangedRows::Row* const row = changes_[static_cast<size_t>(family)].Find(key);
  if (row == nullptr) return base_->GetMessage(family, key, parse);
  if (row->message == nullptr && !row->is_deleted()) {
    row->message = parse(*row->value);
    if (row->message == nullptr) return CorruptRow(family, key, "does not parse");
  }
  return row->message;
}

std::unique_ptr<Cursor> MetaTransaction::Scan(Family family, std::string_view begin, std::string_view end) const {
  return std::make_unique<MergedCursor>(base_->Scan(family, begin, end), &changes_[static_cast<size_t>(family)].InOrder(), begin, end);
}

ChangedRows::Row& MetaTransaction::Change(Family family, std::string_view key, size_t bytes) {
  ++writes_;
  ChangedRows& changes = changes_[static_cast<size_t>(family)];
  ChangedRows::Row* row = changes.Find(key);
  if (row == nullptr) row = &changes.Add(key);
  bytes_ -= row->bytes;
  row->bytes = kEffectOverhead + key.size() + bytes;
  bytes_ += row->bytes;
  row->message = nullptr;
  row->is_behind = false;
  return *row;
}

void MetaTransaction::Put(Family family, std::string_view key, std::string_view value) {
  ChangedRows::Row& row = Change(family, key, value.size());
  row.value.emplace(value);
}

void MetaTransaction::PutMessage(Family family, std::string_view key, SharedMessage message) {
  ChangedRows::Row& row = Change(family, key, message->ByteSizeLong());
  row.message = std::move(message);
  row.is_behind = true;
  if (!row.value) row.value.emplace();
}

void MetaTransaction::Delete(Family family, std::string_view key) { Change(family, key, 0).value.reset(); }

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
    for (ChangedRows::Row* row : changes_[i].Sorted()) {
      if (row->is_deleted()) {
        encoder.Delete(family, row->key);
      } else if (row->message != nullptr) {
        encoder.PutMessage(family, row->key, row->message);
      } else {
        encoder.Put(family, row->key, *row->value);
      }
    }
  }
  return std::move(encoder).Take();
}

}  // namespace cairn::namenode
