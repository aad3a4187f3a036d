// Random operations against an independent model of the tree: a map of whole paths, which knows nothing of ids, rows or totals. After
// each sequence all totals kept by Apply are compared with a full recomputation.

#include <map>

#include "common/env/random.h"
#include "namenode/namespace/records.h"
#include "tests/testing/builders.h"
#include "tests/testing/matchers.h"

namespace cairn::namenode {
namespace {

using namespace testing;  // NOLINT: builders and matchers of this test.

constexpr uint64_t kBlockSize = 1 << 20;

// What stands at a path. A file that is open has a last block of `synced` bytes being written.
struct Node {
  bool is_directory = true;
  std::vector<uint64_t> committed;  // Lengths.
  bool open = false;
  uint64_t synced = 0;

  uint64_t length() const {
    uint64_t sum = open ? synced : 0;
    for (const uint64_t bytes : committed) sum += bytes;
    return sum;
  }
  uint64_t charged() const { return 3 * (length() - (open ? synced : 0)) + (open ? 3 * kBlockSize : 0); }
  bool operator==(const Node&) const = default;
};

class Model {
 public:
  Model() { nodes_["/"] = Node(); }

  bool Mkdirs(const std::string& path) {
    if (nodes_.contains(path)) return nodes_[path].is_directory;
    return Make(path, Node());
  }
  bool Create(const std::string& path, Node file, bool overwrite) {
    file.is_directory = false;
    const auto found = nodes_.find(path);
    if (found != nodes_.end()) {
      if (found->second.is_directory || !overwrite) return false;
      found->second = file;
      return true;
    }
    return Make(path, file);
  }
  // Nothing if refused.
  std::optional<bool> Delete(const std::string& path, bool recursive) {
    if (path == "/" || !ParentsAreDirectories(path)) return std::nullopt;
    if (!nodes_.contains(path)) return false;
    if (!recursive && HasChildren(path)) return std::nullopt;
    std::erase_if(nodes_, [&](const auto& item) { return item.first == path || Below(item.first, path); });
    return true;
  }
  bool Rename(const std::string& from, const std::string& to, bool overwrite) {
    if (!nodes_.contains(from) || from == "/" || to == "/" || !ParentsAreDirectories(to)) return false;
    if (from == to) return overwrite;
    if (Below(to, from) || !nodes_.contains(ParentOf(to))) return false;
    if (nodes_.contains(to)) {
      if (!overwrite || nodes_[to].is_directory != nodes_[from].is_directory || HasChildren(to)) return false;
    }
    std::map<std::string, Node> moved;
    for (const auto& [path, node] : nodes_)
      if (path == from || Below(path, from)) moved[to + path.substr(from.size())] = node;
    std::erase_if(nodes_, [&](const auto& item) { return item.first == from || Below(item.first, from); });
    for (auto& [path, node] : moved) nodes_[path] = node;
    return true;
  }
  std::map<std::string, Node>& nodes() { return nodes_; }
  static bool Below(const std::string& path, const std::string& directory) {
    return directory == "/" ? path != "/" : path.starts_with(directory + "/");
  }

 private:
  static std::string ParentOf(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
  }
  bool HasChildren(const std::string& path) const {
    for (const auto& [other, node] : nodes_)
      if (Below(other, path)) return true;
    return false;
  }
  bool ParentsAreDirectories(const std::string& path) const {
    for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      const auto found = nodes_.find(path.substr(0, slash));
      if (found != nodes_.end() && !found->second.is_directory) return false;
    }
    return true;
  }
  bool Make(const std::string& path, const Node& node) {
    if (!ParentsAreDirectories(path)) return false;
    for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
      nodes_.try_emplace(path.substr(0, slash));
    nodes_[path] = node;
    return true;
  }
  std::map<std::string, Node> nodes_;
};

class NamespaceModel : public ::testing::TestWithParam<uint64_t> {
 protected:
  std::string RandomPath(Random& random) {
    std::string path;
    for (uint64_t depth = 1 + random.Below(4); depth > 0; --depth) path += std::string("/") + static_cast<char>('a' + random.Below(3));
    return path;
  }

  // A file with some blocks, left open or closed.
  bool CreateFile(const std::string& path, const Node& node, bool overwrite) {
    v1::Mutation create = CreateMutation(path, "me");
    create.mutable_create()->set_overwrite(overwrite);
    const auto file = space_.Apply(create);
    if (!file.ok()) return false;
    v1::Mutation add = AddBlockMutation(*file, "me", {1, 2, 3});
    v1::Mutation complete = CompleteMutation(*file, "me");
    for (const uint64_t length : node.committed) {
      const auto commit = MakeCommit(space_.Must(add).block(), length, {1, 2, 3});
      *add.mutable_add_block()->mutable_previous() = commit;
      *complete.mutable_complete()->mutable_last() = commit;
    }
    if (!node.open) {
      space_.Must(complete);
      return true;
    }
    const v1::Block last = space_.Must(add).block();
    v1::Mutation fsync = MutationOf("me");
    fsync.mutable_fsync()->set_inode_id(file->inode().id());
    *fsync.mutable_fsync()->mutable_last_block() = MakeBlock(last.id(), last.generation_stamp(), node.synced);
    space_.Must(fsync);
    return true;
  }

  void Step(Random& random) {
    const std::string path = RandomPath(random);
    switch (random.Below(6)) {
      case 0: EXPECT_EQ(space_.Apply(MkdirsMutation(path)).ok(), model_.Mkdirs(path)) << "mkdirs " << path; break;
      case 1:
      case 2: {
        Node file;
        for (uint64_t blocks = random.Below(7); blocks > 0; --blocks) file.committed.push_back(random.Below(1000));
        file.open = random.OneIn(3);
        file.synced = file.open ? random.Below(1000) : 0;
        const bool overwrite = random.OneIn(2);
        EXPECT_EQ(CreateFile(path, file, overwrite), model_.Create(path, file, overwrite)) << "create " << path;
        break;
      }
      case 3: {
        const bool recursive = random.OneIn(2);
        const auto result = space_.Apply(DeleteMutation(path, recursive));
        const std::optional<bool> expected = model_.Delete(path, recursive);
        EXPECT_EQ(result.ok(), expected.has_value()) << "delete " << path << " " << result.status();
        if (result.ok() && expected) {
          EXPECT_EQ(result->existed(), *expected);
        }
        break;
      }
      case 4: {
        const std::string to = RandomPath(random);
        const bool overwrite = random.OneIn(2);
        const auto result = space_.Apply(RenameMutation(path, to, overwrite));
        EXPECT_EQ(result.ok(), model_.Rename(path, to, overwrite))
            << "rename " << path << " " << to << " " << overwrite << " " << result.status();
        break;
      }
      default: Reclaim(static_cast<uint32_t>(1 + random.Below(5))); break;
    }
  }

  void Reclaim(uint32_t entries) {
    const auto& work = space_.view().rows(Family::kWork);
    if (work.empty()) return;
    v1::Mutation step;
    step.mutable_reclaim_step()->set_work_id(*ParseWorkKey(work.begin()->first));
    step.mutable_reclaim_step()->set_max_entries(entries);
    space_.Must(step);
  }

  // Every path, its status and its totals are as the model has them.
  void Compare() {
    size_t blocks = 0, open = 0;
    for (const auto& [path, node] : model_.nodes()) {
      const auto status = StatusOfPath(space_.view(), path);
      ASSERT_THAT(status, IsOk()) << path;
      EXPECT_EQ(status->is_directory(), node.is_directory) << path;
      const auto summary = SummaryOfPath(space_.view(), path);
      v1::ContentSummary expected;
      uint64_t children = 0;
      for (const auto& [other, below] : model_.nodes()) {
        if (other != path && !Model::Below(other, path)) continue;
        if (other != path && other.find('/', path == "/" ? 1 : path.size() + 1) == std::string::npos) ++children;
        (below.is_directory ? expected.set_directories(expected.directories() + 1) : expected.set_files(expected.files() + 1));
        expected.set_length_bytes(expected.length_bytes() + (below.is_directory ? 0 : below.length()));
        expected.set_charged_bytes(expected.charged_bytes() + (below.is_directory ? 0 : below.charged()));
      }
      EXPECT_EQ(summary->ShortDebugString(), expected.ShortDebugString()) << path;
      if (node.is_directory) {
        EXPECT_EQ(status->children(), children) << path;
      }
      blocks += node.committed.size() + (node.open ? 1 : 0);
      open += node.open ? 1 : 0;
      EXPECT_EQ(*PathOf(space_.view(), InodeId(status->inode_id())), path);
    }
    EXPECT_EQ(SummaryOfPath(space_.view(), "/")->files() + SummaryOfPath(space_.view(), "/")->directories(), model_.nodes().size());
    while (!space_.view().rows(Family::kWork).empty()) Reclaim(100);
    // With nothing left to reclaim, the rows are just those of what is there.
    EXPECT_EQ(space_.view().rows(Family::kInode).size(), model_.nodes().size());
    EXPECT_EQ(space_.view().rows(Family::kInodeById).size(), model_.nodes().size());
    EXPECT_EQ(space_.view().rows(Family::kBlock).size(), blocks);
    EXPECT_EQ(space_.view().rows(Family::kLease).size(), open);
  }

  TestNamespace space_;
  Model model_;
};

TEST_P(NamespaceModel, RandomOperationsKeepTreeAndTotals) {
  Random random(GetParam());
  for (int round = 0; round < 10 && !HasFailure(); ++round) {
    for (int step = 0; step < 60 && !HasFailure(); ++step) Step(random);
    Compare();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, NamespaceModel, ::testing::Range<uint64_t>(1, 13));

}  // namespace
}  // namespace cairn::namenode
