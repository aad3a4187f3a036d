#include "namenode/store/meta_transaction.h"

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
  MergedCursor(std::unique_ptr<Cursor> base, const MetaTransaction::Changes* changes, std::string_view begin, std::string_view end)
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
  void Settle(MetaTransaction::Changes::const_iterator change) {
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
      if (change->second) {
        key_ = change->first;
        value_ = *change->second;
        return;
      }
      if (has_base && base_->key() == change->first) base_->Next();
      ++change;
    }
  }

  std::unique_ptr<Cursor> base_;
  const MetaTransaction::Changes* changes_;
  const std::string end_;
  bool valid_ = false;
  std::string key_;
  std::string value_;
};

}  // namespace

MetaTransaction::MetaTransaction(std::shared_ptr<const ReadView> base, uint64_t applied_index)
    : base_(std::move(base)), applied_index_(applied_index) {}

absl::StatusOr<std::optional<std::string>> MetaTransaction::Get(Family family, std::string_view key) const {
  const Changes& changes = changes_[static_cast<size_t>(family)];
  if (const auto change = changes.find(key); change != changes.end()) return change->second;
  return base_->Get(family, key);
}

std::unique_ptr<Cursor> MetaTransaction::Scan(Family family, std::string_view begin, std::string_view end) const {
  return std::make_unique<MergedCursor>(base_->Scan(family, begin, end), &changes_[static_cast<size_t>(family)], begin, end);
}

void MetaTransaction::Set(Family family, std::string_view key, std::optional<std::string> value) {
  ++writes_;
  Changes& changes = changes_[static_cast<size_t>(family)];
  const size_t size = SizeOf(key, value);
  if (const auto change = changes.find(key); change != changes.end()) {
    bytes_ -= SizeOf(key, change->second);
    change->second = std::move(value);
  } else {
    changes.emplace(std::string(key), std::move(value));
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
    for (const auto& [key, value] : changes_[i]) {
      if (value) {
        encoder.Put(family, key, *value);
      } else {
        encoder.Delete(family, key);
      }
    }
  }
  return std::move(encoder).Take();
}

}  // namespace cairn::namenode
