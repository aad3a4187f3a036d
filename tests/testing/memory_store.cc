#include "tests/testing/memory_store.h"

namespace cairn::testing {
namespace {

using namenode::Cursor;
using namenode::Family;

// Over rows copied out, so that a test may write while it holds a cursor.
class CopiedCursor : public Cursor {
 public:
  explicit CopiedCursor(std::vector<std::pair<std::string, std::string>> rows) : rows_(std::move(rows)) {}
  bool Valid() const override { return at_ < rows_.size(); }
  std::string_view key() const override { return rows_[at_].first; }
  std::string_view value() const override { return rows_[at_].second; }
  void Next() override { ++at_; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
  size_t at_ = 0;
};

// Walks the state and a transaction's changes side by side.
class MergedCursor : public Cursor {
 public:
  using Changes = std::map<std::string, std::optional<std::string>, std::less<>>;

  MergedCursor(const MemoryState::Rows& rows, const Changes& changes, std::string_view begin, std::string_view end)
      : row_(rows.lower_bound(begin)),
        row_end_(end.empty() ? rows.end() : rows.lower_bound(end)),
        change_(changes.lower_bound(begin)),
        change_end_(end.empty() ? changes.end() : changes.lower_bound(end)) {
    Settle();
  }
  bool Valid() const override { return row_ != row_end_ || change_ != change_end_; }
  std::string_view key() const override { return from_change_ ? change_->first : row_->first; }
  std::string_view value() const override { return from_change_ ? *change_->second : row_->second; }
  void Next() override {
    Step();
    Settle();
  }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  void Choose() { from_change_ = change_ != change_end_ && (row_ == row_end_ || change_->first <= row_->first); }
  void Step() {
    if (!from_change_) {
      ++row_;
      return;
    }
    if (row_ != row_end_ && row_->first == change_->first) ++row_;
    ++change_;
  }
  void Settle() {
    for (Choose(); Valid() && from_change_ && !change_->second; Choose()) Step();
  }

  MemoryState::Rows::const_iterator row_, row_end_;
  Changes::const_iterator change_, change_end_;
  bool from_change_ = false;
};

}  // namespace

absl::StatusOr<std::optional<std::string>> MemoryState::Get(Family family, std::string_view key) const {
  const auto found = rows(family).find(key);
  return found == rows(family).end() ? std::nullopt : std::optional<std::string>(found->second);
}

std::unique_ptr<Cursor> MemoryState::Scan(Family family, std::string_view begin, std::string_view end) const {
  std::vector<std::pair<std::string, std::string>> copied;
  for (auto at = rows(family).lower_bound(begin); at != rows(family).end() && (end.empty() || at->first < end); ++at) copied.push_back(*at);
  return std::make_unique<CopiedCursor>(std::move(copied));
}

absl::StatusOr<std::optional<std::string>> MemoryTransaction::Get(Family family, std::string_view key) const {
  const auto& changes = changes_[static_cast<size_t>(family)];
  const auto found = changes.find(key);
  if (found != changes.end()) return found->second;
  return base_->Get(family, key);
}

std::unique_ptr<Cursor> MemoryTransaction::Scan(Family family, std::string_view begin, std::string_view end) const {
  return std::make_unique<MergedCursor>(base_->rows(family), changes_[static_cast<size_t>(family)], begin, end);
}

void MemoryTransaction::Put(Family family, std::string_view key, std::string_view value) {
  ++writes_;
  bytes_ += key.size() + value.size() + 8;
  changes_[static_cast<size_t>(family)].insert_or_assign(std::string(key), std::string(value));
}

void MemoryTransaction::Delete(Family family, std::string_view key) {
  ++writes_;
  bytes_ += key.size() + 8;
  changes_[static_cast<size_t>(family)].insert_or_assign(std::string(key), std::nullopt);
}

void MemoryTransaction::DeleteRange(Family family, std::string_view begin, std::string_view end) {
  ++writes_;
  bytes_ += begin.size() + end.size() + 8;
  ranges_.push_back(Range{family, std::string(begin), std::string(end)});
}

size_t MemoryTransaction::rows_written() const {
  size_t rows = ranges_.size();
  for (const auto& changes : changes_) rows += changes.size();
  return rows;
}

void MemoryTransaction::Commit() {
  for (const Range& range : ranges_) {
    MemoryState::Rows& rows = base_->rows(range.family);
    rows.erase(rows.lower_bound(range.begin), range.end.empty() ? rows.end() : rows.lower_bound(range.end));
  }
  for (size_t i = 0; i < changes_.size(); ++i) {
    MemoryState::Rows& rows = base_->rows(static_cast<Family>(i));
    for (auto& [key, value] : changes_[i]) {
      if (value) {
        rows.insert_or_assign(key, *std::move(value));
      } else if (const auto found = rows.find(key); found != rows.end()) {
        rows.erase(found);
      }
    }
    changes_[i].clear();
  }
  ranges_.clear();
}

}  // namespace cairn::testing
