#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "namenode/store/views.h"

namespace cairn::testing {

// The namespace's families in maps: for tests of what stands above RocksDB. Not thread-safe.
class MemoryState : public namenode::ReadView {
 public:
  using Rows = std::map<std::string, std::string, std::less<>>;

  absl::StatusOr<std::optional<std::string>> Get(namenode::Family family, std::string_view key) const override;
  std::unique_ptr<namenode::Cursor> Scan(namenode::Family family, std::string_view begin, std::string_view end) const override;

  const Rows& rows(namenode::Family family) const { return families_[static_cast<size_t>(family)]; }
  Rows& rows(namenode::Family family) { return families_[static_cast<size_t>(family)]; }
  bool operator==(const MemoryState& other) const { return families_ == other.families_; }

 private:
  std::array<Rows, namenode::kFamilyCount> families_;
};

// Reads see its own writes; Commit() puts them into the state, a transaction that is only destroyed leaves it untouched.
class MemoryTransaction : public namenode::Transaction {
 public:
  explicit MemoryTransaction(MemoryState* base) : base_(base) {}

  absl::StatusOr<std::optional<std::string>> Get(namenode::Family family, std::string_view key) const override;
  std::unique_ptr<namenode::Cursor> Scan(namenode::Family family, std::string_view begin, std::string_view end) const override;
  void Put(namenode::Family family, std::string_view key, std::string_view value) override;
  void Delete(namenode::Family family, std::string_view key) override;
  void DeleteRange(namenode::Family family, std::string_view begin, std::string_view end) override;
  size_t ApproximateBytes() const override { return bytes_; }

  // Calls of Put, Delete and DeleteRange so far, and the different rows they name.
  size_t writes() const { return writes_; }
  size_t rows_written() const;
  void Commit();

 private:
  struct Range {
    namenode::Family family;
    std::string begin;
    std::string end;
  };
  MemoryState* base_;
  std::array<std::map<std::string, std::optional<std::string>, std::less<>>, namenode::kFamilyCount> changes_;
  std::vector<Range> ranges_;
  size_t writes_ = 0;
  size_t bytes_ = 0;
};

}  // namespace cairn::testing
