// Fills a NameNode's directory for `./dev bench nn`: files of one block each, through the product's own Apply and store, in large batches.
//
//   nn_fill --directory D --files N [--base /fill] [--files-per-directory N]
//
// Formats the directory, which must be new. No NameNode may run on it meanwhile. Prints one JSON object; `rows_of_delete` are the rows that
// one delete of everything would write, and those of a tree of 10 files. All their blocks follow one another from `first_block`
// and `first_stamp` on, each of `length` bytes, one replica on each of the simulated DataNodes (load_layout.h).

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "cairn/namespace.pb.h"
#include "common/env/env.h"
#include "namenode/namenode_directory.h"
#include "namenode/namespace/apply.h"
#include "tests/bench/load_layout.h"
#include "tests/bench/load_runner.h"

namespace cairn::bench {
namespace {

using namenode::MetaStore;
using namenode::StoreTransaction;

constexpr char kHolder[] = "nn_fill";
constexpr size_t kBatchBytes = 1 << 20;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "nn_fill: %s\n", what.c_str());
  std::exit(1);
}
void Must(const absl::Status& status) {
  if (!status.ok()) Die(std::string(status.message()));
}

struct RowCounter : namenode::EffectVisitor {
  uint64_t rows = 0;
  void Put(namenode::Family, std::string_view, std::string_view) override { ++rows; }
  void Delete(namenode::Family, std::string_view) override { ++rows; }
  void DeleteRange(namenode::Family, std::string_view, std::string_view) override { ++rows; }
};

// Applies mutation after mutation; a batch is written when it is full, unsynced.
class Filler {
 public:
  explicit Filler(MetaStore* store, const Clock* clock) : store_(store), clock_(clock), txn_(store->NewTransaction()) {}

  v1::MutationResult Apply(v1::Mutation mutation) {
    if (txn_->ApproximateBytes() >= kBatchBytes) Write(/*sync=*/false);
    mutation.set_time_ms(absl::ToUnixMillis(clock_->WallNow()));
    mutation.set_user("bench");
    mutation.set_client_name(kHolder);
    absl::StatusOr<v1::MutationResult> result = namenode::Apply(mutation, *txn_);
    Must(result.status());
    if (result->has_error()) Die(result->error().message());
    return *std::move(result);
  }
  // Of a delete that is not made.
  uint64_t RowsOfDelete(const std::string& path) {
    Write(/*sync=*/false);
    v1::Mutation mutation;
    mutation.mutable_delete_()->set_path(path);
    mutation.mutable_delete_()->set_recursive(true);
    const v1::MutationResult result = Apply(std::move(mutation));
    if (!result.existed()) Die(path + " is not there");
    RowCounter counter;
    Must(namenode::DecodeEffects(txn_->TakeEffects().bytes, counter).status());
    txn_ = store_->NewTransaction();
    return counter.rows;
  }
  void Write(bool sync) {
    if (txn_->writes() > 0) Must(store_->Write(txn_->TakeEffects(), sync));
    txn_ = store_->NewTransaction();
  }

 private:
  MetaStore* const store_;
  const Clock* const clock_;
  std::unique_ptr<StoreTransaction> txn_;
};

constexpr uint64_t kLength = 1000;

// The first one's block.
v1::Block AddFiles(Filler& filler, const Layout& layout, uint64_t files, const v1::Mutation::Create& storages) {
  v1::Block first;
  for (uint64_t file = 0; file < files; ++file) {
    if (file % layout.files_per_directory == 0) {
      v1::Mutation mkdirs;
      mkdirs.mutable_mkdirs()->set_path(layout.DirectoryPath(layout.Directory(file)));
      mkdirs.mutable_mkdirs()->set_create_parent(true);
      mkdirs.mutable_mkdirs()->set_mode(0755);
      mkdirs.mutable_mkdirs()->set_parent_mode(0755);
      filler.Apply(std::move(mkdirs));
    }
    v1::Mutation create;
    v1::Mutation::Create& op = *create.mutable_create();
    op.set_path(layout.FilePath(file));
    op.set_replication(kDatanodes);
    op.set_block_size_bytes(128 << 20);
    op.set_mode(0644);
    op.set_with_first_block(true);
    *op.mutable_targets() = storages.targets();
    const v1::MutationResult created = filler.Apply(std::move(create));
    if (file == 0) first = created.block();
    v1::Mutation complete;
    complete.mutable_complete()->set_path(layout.FilePath(file));
    complete.mutable_complete()->set_inode_id(created.inode().id());
    v1::Mutation::Commit& last = *complete.mutable_complete()->mutable_last();
    *last.mutable_block() = created.block();
    last.mutable_block()->set_length_bytes(kLength);
    *last.mutable_acknowledged() = created.storages();
    filler.Apply(std::move(complete));
  }
  return first;
}

int Fill(const std::string& directory, uint64_t files, const Layout& layout, Env* env) {
  Must(namenode::NamenodeDirectory::Format(directory, {}, env));
  auto opened = namenode::NamenodeDirectory::Open(directory, MetaStore::Options{}, env);
  Must(opened.status());
  MetaStore& store = (*opened)->store();
  const double begin = NowSeconds();
  Filler filler(&store, &env->clock());

  v1::Mutation::Create storages;
  for (int node = 0; node < kDatanodes; ++node) {
    v1::Mutation registration;
    registration.mutable_register_storages()->set_datanode_uuid(DatanodeUuid(node));
    registration.mutable_register_storages()->add_storage_uuids(StorageUuid(node));
    storages.mutable_targets()->MergeFrom(filler.Apply(std::move(registration)).storage_numbers());
  }

  const Layout small{.base = "/ten", .files_per_directory = 10};
  const v1::Block first = AddFiles(filler, small, 10, storages);
  AddFiles(filler, layout, files, storages);
  const uint64_t rows = filler.RowsOfDelete(layout.base);
  const uint64_t rows_of_ten = filler.RowsOfDelete(small.base);
  // The directory is filled when all of it is on disk.
  v1::Mutation last;
  last.mutable_mkdirs()->set_path("/filled");
  last.mutable_mkdirs()->set_mode(0755);
  filler.Apply(std::move(last));
  filler.Write(/*sync=*/true);
  fmt::print(R"({{"files": {}, "seconds": {:.1f}, "rows_of_delete": {}, "rows_of_delete_of_ten": {}, "blocks": {}, )"
             R"("first_block": {}, "first_stamp": {}, "length": {}}})"
             "\n",
             files, NowSeconds() - begin, rows, rows_of_ten, files + 10, first.id(), first.generation_stamp(), kLength);
  return 0;
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  std::map<std::string, std::string> values{{"--base", "/fill"}, {"--files-per-directory", "100"}};
  for (int i = 1; i + 1 < argc; i += 2) values[argv[i]] = argv[i + 1];
  if (argc % 2 == 0 || values["--directory"].empty() || values["--files"].empty() || values.size() > 4) {
    std::fprintf(stderr, "usage: nn_fill --directory D --files N [--base /fill] [--files-per-directory N]\n");
    return 255;
  }
  const std::unique_ptr<cairn::Env> env = cairn::NewRealEnv();
  const cairn::bench::Layout layout{.base = values["--base"],
                                    .files_per_directory = std::strtoull(values["--files-per-directory"].c_str(), nullptr, 10)};
  return cairn::bench::Fill(values["--directory"], std::strtoull(values["--files"].c_str(), nullptr, 10), layout, env.get());
}
