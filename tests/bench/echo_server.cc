// The raw limits beside the NameNode in `./dev bench nn`: a server of the same style that parses a request and answers an empty response,
// at once or after as much work of the store as a call of the NameNode needs at least.
//
//   echo_server HOST PORT DIRECTORY
//
// Echo answers at once. WriteN puts N rows through the one writer, with its journal and its sync, and answers from the call's own thread: a
// mutation without walk, checks, totals and retries. Scan reads the four rows of a directory from a snapshot. DIRECTORY is made for it.
// Prints the port it listens on, and serves until it is terminated.

#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "cairn/client_namenode.pb.h"
#include "common/daemon/daemon.h"
#include "common/env/env.h"
#include "common/rpc/grpc_server.h"
#include "namenode/journal/local_journal.h"
#include "namenode/namespace_writer.h"
#include "namenode/store/keys.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {
namespace {

using Request = v1::GetFileInfoRequest;
using Response = v1::GetFileInfoResponse;
using Done = api::Done<Response>;

constexpr uint32_t kMostRows = 10;
constexpr uint64_t kDirectories = 10'000;
constexpr uint64_t kFiles = 4;  // Of each.

// The namespace's writer and store as cairn-namenode runs them, under mutations that only name how many rows they put.
class Store {
 public:
  Store(const std::string& directory, Env* env) : executor_(env->executors().NewExecutor("nn-writer")) {
    const MetaStore::Options options{.directory = directory};
    Must(MetaStore::Create(options, env));
    absl::StatusOr<std::unique_ptr<MetaStore>> opened = MetaStore::Open(options, env);
    Must(opened.status());
    store_ = *std::move(opened);
    journal_ = std::make_unique<LocalJournal>(store_.get());
    writer_ = std::make_unique<NamespaceWriter>(
        NamespaceWriter::Options{.gather = absl::Milliseconds(1)}, store_.get(), journal_.get(), executor_.get(), &env->clock(),
        [this](const v1::Mutation& mutation, Transaction& txn) { return Put(mutation.slot(), txn); });
    for (uint64_t i = 0; i < kDirectories; ++i) Fill(i);
  }
  ~Store() {
    std::promise<void> stopped;
    writer_->Stop([&stopped] { stopped.set_value(); });
    stopped.get_future().wait();
    executor_.reset();
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void Write(uint32_t rows, const api::CallContext& context, Done done) {
    v1::Mutation mutation;
    mutation.set_slot(rows);
    writer_->Submit(std::move(mutation), [home = context.home, done = std::move(done)](absl::StatusOr<v1::MutationResult> result) mutable {
      home->Post([done = std::move(done), result = std::move(result)]() mutable {
        if (!result.ok()) return done(result.status());
        done(Response());
      });
    });
  }

  absl::StatusOr<Response> Scan(uint64_t number) const {
    const InodeId directory(number % kDirectories);
    const std::shared_ptr<const ReadView> view = store_->Snapshot();
    const std::unique_ptr<Cursor> cursor = view->Scan(Family::kInode, ChildrenBegin(directory, ""), ChildrenEnd(directory));
    uint64_t rows = 0;
    for (; cursor->Valid(); cursor->Next()) ++rows;
    if (rows != kFiles) return absl::InternalError(fmt::format("{} rows of directory {}", rows, directory.value()));
    return Response();
  }

 private:
  static void Must(const absl::Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "echo_server: %s\n", std::string(status.message()).c_str());
    std::exit(1);
  }

  // As a create's rows: ids that rise, in several families, of some 70 bytes with their keys.
  absl::StatusOr<v1::MutationResult> Put(uint32_t rows, Transaction& txn) {
    static constexpr Family kFamilies[] = {Family::kInode, Family::kInodeById, Family::kUsage,
                                           Family::kRetry, Family::kLease,     Family::kBlock};
    const std::string value(56, 'v');
    for (uint32_t i = 0; i < rows; ++i)
      txn.Put(kFamilies[i % std::size(kFamilies)], EncodeU64(next_id_) + std::to_string(i / std::size(kFamilies)), value);
    ++next_id_;
    return v1::MutationResult();
  }
  void Fill(uint64_t directory) {
    const std::unique_ptr<StoreTransaction> txn = store_->NewTransaction();
    for (uint64_t i = 0; i < kFiles; ++i)
      txn->Put(Family::kInode, InodeKey(InodeId(directory), fmt::format("f{}", i)), std::string(56, 'v'));
    Must(store_->Write(txn->TakeEffects(), /*sync=*/false));
    store_->Publish();
  }

  std::unique_ptr<Executor> executor_;
  std::unique_ptr<MetaStore> store_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<NamespaceWriter> writer_;
  uint64_t next_id_ = kDirectories;  // Of the writer.
};

int Serve(const std::string& host, uint16_t port, const std::string& directory) {
  const std::unique_ptr<Env> env = NewRealEnv();
  Store store(directory, env.get());
  rpc::GrpcServer::Options options;
  options.bind = HostPort{host, port};
  rpc::GrpcServer server(options, env.get());
  server.AddUnary<Request, Response>("/cairn.v1.Bench/Echo", [](const api::CallContext&, const Request&, Done done) { done(Response()); });
  server.AddUnary<Request, Response>("/cairn.v1.Bench/Scan", [&store](const api::CallContext&, const Request& request, Done done) {
    done(store.Scan(request.header().sequence()));
  });
  for (uint32_t rows = 1; rows <= kMostRows; ++rows)
    server.AddUnary<Request, Response>(
        fmt::format("/cairn.v1.Bench/Write{}", rows),
        [&store, rows](const api::CallContext& context, const Request&, Done done) { store.Write(rows, context, std::move(done)); });
  const auto address = server.Start();
  if (!address.ok()) {
    std::fprintf(stderr, "echo_server: %s\n", std::string(address.status().message()).c_str());
    return 1;
  }
  std::printf("%u\n", static_cast<unsigned>(address->port));
  std::fflush(stdout);
  WaitForTermination();
  server.Stop();
  return 0;
}

}  // namespace
}  // namespace cairn::namenode

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: echo_server HOST PORT DIRECTORY\n");
    return 255;
  }
  cairn::BlockTerminationSignals();
  return cairn::namenode::Serve(argv[1], static_cast<uint16_t>(std::atoi(argv[2])), argv[3]);
}
