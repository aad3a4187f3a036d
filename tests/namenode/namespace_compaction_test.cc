// Offline compaction: the same options, the same rows, less space.

#include "namenode/namespace_compaction.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace/apply.h"
#include "namenode/namespace/checker.h"
#include "namenode/namespace_copy.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_directory.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

using Rows = std::array<std::map<std::string, std::string>, kFamilyCount>;

std::string Whole(const fs::path& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

class NamespaceCompactionTest : public ::testing::Test {
 protected:
  NamespaceCompactionTest() { EXPECT_THAT(NamenodeDirectory::Format(directory_.path(), {}, env_.get()), IsOk()); }

  std::unique_ptr<NamenodeDirectory> Open() {
    auto opened = NamenodeDirectory::Open(directory_.path(), MetaStore::Options(), env_.get());
    EXPECT_THAT(opened, IsOk());
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  // Directories, and files of which most are deleted again.
  void Fill() {
    const std::unique_ptr<NamenodeDirectory> opened = Open();
    ASSERT_NE(opened, nullptr);
    std::unique_ptr<StoreTransaction> txn = opened->store().NewTransaction();
    const auto change = [&](v1::Mutation mutation) {
      mutation.set_time_ms(kTestStartMs);
      const auto result = Apply(mutation, *txn);
      ASSERT_THAT(result, IsOk());
      if (txn->ApproximateBytes() < 200'000) return;
      ASSERT_THAT(opened->store().Write(txn->TakeEffects(), /*sync=*/false), IsOk());
      opened->store().Publish();
      txn = opened->store().NewTransaction();
    };
    for (int i = 0; i < 3000; ++i) change(MkdirsMutation(fmt::format("/d{}/{:0>100}", i % 10, i)));
    for (int i = 0; i < 8; ++i) change(DeleteMutation(fmt::format("/d{}", i), true));
    for (int work = 1; work <= 8; ++work) {
      v1::Mutation step;
      step.mutable_reclaim_step()->set_work_id(static_cast<uint64_t>(work));
      step.mutable_reclaim_step()->set_max_entries(10'000);
      change(step);
    }
    ASSERT_THAT(opened->store().Write(txn->TakeEffects(), /*sync=*/true), IsOk());
  }
  Rows AllRows() {
    Rows rows;
    const auto copy = NamespaceCopy::Open(directory_.path(), env_.get());
    EXPECT_THAT(copy, IsOk());
    if (!copy.ok()) return rows;
    for (size_t i = 0; i < kFamilyCount; ++i) {
      const auto cursor = copy->view().Scan(static_cast<Family>(i), "", "");
      for (; cursor->Valid(); cursor->Next()) rows[i].emplace(cursor->key(), cursor->value());
      EXPECT_THAT(cursor->status(), IsOk());
    }
    return rows;
  }
  fs::path NewestOptions() const {
    std::map<unsigned long, fs::path> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_.path() + "/namespace")) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("OPTIONS-")) found[std::stoul(name.substr(8))] = entry.path();
    }
    return found.empty() ? fs::path() : found.rbegin()->second;
  }
  // The sections of column families, and their comparators.
  static std::set<std::pair<std::string, std::string>> Families(const std::string& options) {
    std::set<std::pair<std::string, std::string>> families;
    std::istringstream lines(options);
    std::string line, section;
    while (std::getline(lines, line)) {
      if (line.starts_with("[")) section = line;
      if (line.find("  comparator=") == 0 && section.starts_with("[CFOptions")) families.emplace(section, line);
    }
    return families;
  }

  const std::unique_ptr<Env> env_ = NewRealEnv();
  const TemporaryDirectory directory_;
};

TEST_F(NamespaceCompactionTest, KeepsOptionsFamiliesComparatorsAndRows) {
  Fill();
  const Rows rows = AllRows();
  const fs::path before = NewestOptions();
  const std::string options = Whole(before);
  EXPECT_THAT(options, HasSubstr("block_size=8192"));  // Ours, not RocksDB's default.

  std::set<Family> families;
  const auto compacted = CompactNamespace(directory_.path(), env_.get(), [&](Family family) { families.insert(family); });
  ASSERT_THAT(compacted, IsOk());
  EXPECT_THAT(compacted->changed_options, IsEmpty());
  EXPECT_LT(compacted->bytes_after, compacted->bytes_before);
  EXPECT_EQ(compacted->options_before, before.filename().string());
  EXPECT_EQ(families.size(), kFamilyCount);

  const fs::path after = NewestOptions();
  EXPECT_EQ(compacted->options_after, after.filename().string());
  EXPECT_NE(before.filename(), after.filename());
  EXPECT_EQ(Whole(after), options);  // Equal but for the file's number.
  EXPECT_EQ(Families(Whole(after)), Families(options));
  EXPECT_EQ(Families(options).size(), kFamilyCount + 1);  // And RocksDB's own.

  EXPECT_TRUE(AllRows() == rows);
  const auto copy = NamespaceCopy::Open(directory_.path(), env_.get());
  ASSERT_THAT(copy, IsOk());
  const auto sound = CheckNamespace(copy->view(), [](const Violation& violation) { ADD_FAILURE() << ToString(violation); });
  ASSERT_THAT(sound, IsOk());
  EXPECT_EQ(sound->violations, 0u);
}

TEST_F(NamespaceCompactionTest, ANamenodeServesItAfterwards) {
  Fill();
  ASSERT_THAT(CompactNamespace(directory_.path() + "/namespace", env_.get(), [](Family) {}), IsOk());
  const std::unique_ptr<NamenodeDirectory> opened = Open();
  ASSERT_NE(opened, nullptr);
  EXPECT_THAT(ResolvePath(*opened->store().Snapshot(), fmt::format("/d9/{:0>100}", 2999)), IsOk());
}

TEST_F(NamespaceCompactionTest, ADatabaseInUseIsRefused) {
  const std::unique_ptr<NamenodeDirectory> opened = Open();
  ASSERT_NE(opened, nullptr);
  for (const char* directory : {"", "/namespace"}) {
    const auto refused = CompactNamespace(directory_.path() + directory, env_.get(), [](Family) {});
    EXPECT_THAT(refused, HasKind(ErrorKind::kBusy));
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("is in use: stop its NameNode first"));
  }
}

TEST_F(NamespaceCompactionTest, WhatIsNoNamespaceIsRefused) {
  const TemporaryDirectory empty;
  EXPECT_THAT(CompactNamespace(empty.path(), env_.get(), [](Family) {}), HasKind(ErrorKind::kNotFound));
}

TEST(DifferentLines, ShowsWhatWasAndWhatIs) {
  EXPECT_THAT(DifferentLines("a=1\nb=2\n", "b=2\na=1\n"), IsEmpty());
  EXPECT_THAT(DifferentLines("block_size=8192\nb=2\n", "block_size=4096\nb=2\nc=3\n"),
              ElementsAre("- block_size=8192", "+ block_size=4096", "+ c=3"));
  EXPECT_THAT(DifferentLines("a\na\n", "a\n"), ElementsAre("- a"));
  EXPECT_THAT(DifferentLines("", ""), IsEmpty());
}

}  // namespace
}  // namespace cairn::namenode
