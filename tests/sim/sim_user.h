#pragma once

// A user of the simulated cluster: a client process on a machine of its own, whose calls run the whole cluster until they are answered and
// bring dead daemons back meanwhile. It may be killed or cut off in the middle of a file; its writer is then left as it is.
//
//   SimUser writer(&cluster, "writer");
//   SimWriting file(&writer, "/f", PatternOf(1, 300'000));
//   file.Create(); file.Append(100'000); file.Sync();
//   writer.Kill();

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/blocking.h"
#include "client/src/file_writer_core.h"
#include "tests/testing/sim_cluster.h"

namespace cairn::testing {

// Bytes that differ at every place, and between seeds.
std::string PatternOf(uint64_t seed, size_t size);

class SimUser {
 public:
  SimUser(SimCluster* cluster, const std::string& machine_name);
  ~SimUser();
  SimUser(const SimUser&) = delete;
  SimUser& operator=(const SimUser&) = delete;

  SimCluster* cluster() { return cluster_; }
  SimMachine* machine() { return machine_; }
  client::ClientCore* core() { return core_.get(); }
  const std::string& client_name() const { return core_->namenode().client_name(); }
  void Kill() { machine_->Kill(); }                                 // kill -9.
  void CutOff() { cluster_->world().network().Isolate(machine_); }  // What it sends waits until the network heals.

  absl::Status Put(const std::string& path, const std::string& data);
  absl::StatusOr<std::string> Get(const std::string& path);
  absl::StatusOr<v1::FileStatus> Stat(const std::string& path);
  // All blocks, with what the NameNode knows of their replicas.
  absl::StatusOr<v1::GetBlockLocationsResponse> Locate(const std::string& path);
  absl::StatusOr<v1::ListResponse> List(const std::string& path);
  absl::StatusOr<bool> RecoverLease(const std::string& path);
  absl::StatusOr<bool> Truncate(const std::string& path, uint64_t length);
  // Asks until the file is closed.
  bool AwaitClosed(const std::string& path, absl::Duration limit);
  // RecoverLease until it is closed.
  bool Recover(const std::string& path, absl::Duration limit);

  // Runs `body` on the client's executor; `group` ends it.
  template <class T>
  std::shared_ptr<client::Completion<T>> Begin(TaskGroup* group, absl::AnyInvocable<Awaitable<T>()> body) {
    auto completion = std::make_shared<client::Completion<T>>();
    auto signal = std::make_unique<client::CompletionSignal<T>>(core_->env(), completion);
    group->Spawn("user", [signal = std::move(signal), body = std::move(body)]() mutable {
      return client::RunAndSignal<T>(std::move(signal), std::move(body));
    });
    return completion;
  }
  template <class T>
  T Await(const std::shared_ptr<client::Completion<T>>& completion) {
    const bool ended = cluster_->RunUntil([&] { return completion->done.load(); }, kPatience);
    if (!ended) return T(absl::DeadlineExceededError("a client's call does not end"));
    if (!completion->value) return T(absl::CancelledError("a client's call was given up"));
    return *std::move(completion->value);
  }

 private:
  static constexpr absl::Duration kPatience = absl::Minutes(30);

  template <class Request, class Response>
  absl::StatusOr<Response> Call(void (api::ClientNamenode::*call)(api::CallContext, Request, api::Done<Response>), Request request,
                                bool is_mutation);

  SimCluster* const cluster_;
  SimMachine* const machine_;
  std::shared_ptr<client::ClientCore> core_;
  Executor* const executor_;
  TaskGroup group_;
};

// One file being written by a user, its bytes known beforehand.
class SimWriting {
 public:
  SimWriting(SimUser* user, std::string path, std::string content);
  ~SimWriting();
  SimWriting(const SimWriting&) = delete;
  SimWriting& operator=(const SimWriting&) = delete;

  absl::Status Create(CreateOptions options = {});
  // Goes on behind `length` bytes of the content, which are in the file.
  absl::Status OpenForAppend(uint64_t length, AppendOptions options = {});
  absl::Status Append(size_t bytes);
  absl::Status Flush();
  absl::Status Sync();
  absl::Status Close();
  // A Flush that nobody waits for yet.
  std::shared_ptr<client::Completion<absl::Status>> BeginFlush();

  const std::string& path() const { return path_; }
  const std::string& content() const { return content_; }
  uint64_t appended() const { return appended_; }
  uint64_t flushed() const { return flushed_; }  // Acknowledged.
  uint64_t synced() const { return synced_; }    // Acknowledged as being on disk.
  bool closed() const { return closed_; }

 private:
  absl::Status Do(absl::AnyInvocable<Awaitable<absl::Status>()> body);

  SimUser* const user_;
  const std::string path_;
  const std::string content_;
  std::unique_ptr<client::FileWriterCore> core_;
  uint64_t appended_ = 0;
  uint64_t flushed_ = 0;
  uint64_t synced_ = 0;
  bool closed_ = false;
};

// What is wrong with the replicas of a closed file, once the cluster has settled: all of them finalized at the stamp and length that the
// NameNode names, with the bytes of `expected`, and as many as there should be.
std::vector<std::string> CheckReplicas(SimCluster* cluster, SimUser* reader, const std::string& path, const std::string& expected,
                                       size_t replication = 3);

}  // namespace cairn::testing
