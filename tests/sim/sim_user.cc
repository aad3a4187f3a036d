#include "tests/sim/sim_user.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "client/src/file_reader_core.h"
#include "common/error.h"

namespace cairn::testing {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(500);  // Between two questions of one kind.

std::string Text(const absl::Status& status) { return std::string(status.message()); }

// Asks `done` now and then.
bool Poll(SimCluster* cluster, absl::Duration limit, absl::AnyInvocable<bool()> done) {
  const SteadyTime deadline = cluster->world().Now() + limit;
  while (!done()) {
    if (cluster->world().Now() >= deadline) return false;
    cluster->RunFor(kPause);
  }
  return true;
}

void End(SimCluster* cluster, TaskGroup* group) {
  bool ended = false;
  group->StopAndThen([&] { ended = true; });
  cluster->RunUntil([&] { return ended; }, absl::Minutes(30));
}

Awaitable<absl::StatusOr<std::string>> ReadWhole(client::FileReaderCore* reader) {
  absl::Status status = co_await reader->Open();
  std::string found;
  while (status.ok()) {
    absl::StatusOr<client::Slice> slice = co_await reader->Next();
    status = slice.status();
    if (!status.ok() || slice->empty()) break;
    found.append(slice->data().data(), slice->size());
  }
  if (!status.ok()) co_return status;
  co_return found;
}

}  // namespace

std::string PatternOf(uint64_t seed, size_t size) {
  Random random(seed * 2654435761u + 17);
  return random.Bytes(size);
}

SimUser::SimUser(SimCluster* cluster, const std::string& machine_name)
    : cluster_(cluster),
      machine_(cluster->world().AddMachine(machine_name)),
      core_(cluster->NewClientCoreOn(machine_)),
      executor_(core_->NextExecutor()),
      group_(executor_) {}

SimUser::~SimUser() { End(cluster_, &group_); }

template <class Request, class Response>
absl::StatusOr<Response> SimUser::Call(void (api::ClientNamenode::*call)(api::CallContext, Request, api::Done<Response>), Request request,
                                       bool is_mutation) {
  const client::Scope scope(executor_, &group_);
  return Await(Begin<absl::StatusOr<Response>>(&group_, [this, scope, call, is_mutation, request = std::move(request)]() mutable {
    return is_mutation ? core_->namenode().Mutate(scope, call, std::move(request))
                       : core_->namenode().Read(scope, call, std::move(request));
  }));
}

absl::Status SimUser::Put(const std::string& path, const std::string& data) {
  SimWriting file(this, path, data);
  absl::Status status = file.Create();
  if (status.ok()) status = file.Append(data.size());
  if (status.ok()) status = file.Close();
  return status;
}

absl::StatusOr<std::string> SimUser::Get(const std::string& path) {
  const auto reader = std::make_unique<client::FileReaderCore>(core_.get(), path);
  absl::StatusOr<std::string> found =
      Await(Begin<absl::StatusOr<std::string>>(&reader->group(), [r = reader.get()] { return ReadWhole(r); }));
  End(cluster_, &reader->group());
  return found;
}

absl::StatusOr<v1::FileStatus> SimUser::Stat(const std::string& path) {
  v1::GetFileInfoRequest request;
  request.set_path(path);
  const auto answer = Call(&api::ClientNamenode::GetFileInfo, std::move(request), false);
  if (!answer.ok()) return answer.status();
  return answer->status();
}

absl::StatusOr<v1::GetBlockLocationsResponse> SimUser::Locate(const std::string& path) {
  v1::GetBlockLocationsRequest request;
  request.set_path(path);
  request.set_length_bytes(~0ull >> 1);
  return Call(&api::ClientNamenode::GetBlockLocations, std::move(request), false);
}

absl::StatusOr<v1::ListResponse> SimUser::List(const std::string& path) {
  v1::ListRequest request;
  request.set_path(path);
  return Call(&api::ClientNamenode::List, std::move(request), false);
}

absl::StatusOr<bool> SimUser::RecoverLease(const std::string& path) {
  v1::RecoverLeaseRequest request;
  request.set_path(path);
  const auto answer = Call(&api::ClientNamenode::RecoverLease, std::move(request), true);
  if (!answer.ok()) return answer.status();
  return answer->closed();
}

absl::StatusOr<bool> SimUser::Truncate(const std::string& path, uint64_t length) {
  v1::TruncateRequest request;
  request.set_path(path);
  request.set_new_length_bytes(length);
  const auto answer = Call(&api::ClientNamenode::Truncate, std::move(request), true);
  if (!answer.ok()) return answer.status();
  return answer->done();
}

bool SimUser::AwaitClosed(const std::string& path, absl::Duration limit) {
  return Poll(cluster_, limit, [&] {
    const absl::StatusOr<v1::FileStatus> status = Stat(path);
    return status.ok() && !status->under_construction();
  });
}

bool SimUser::Recover(const std::string& path, absl::Duration limit) {
  return Poll(cluster_, limit, [&] {
    const absl::StatusOr<bool> closed = RecoverLease(path);
    return closed.ok() && *closed;
  });
}

SimWriting::SimWriting(SimUser* user, std::string path, std::string content)
    : user_(user), path_(std::move(path)), content_(std::move(content)) {}

SimWriting::~SimWriting() {
  if (core_ != nullptr) End(user_->cluster(), &core_->group());
}

absl::Status SimWriting::Do(absl::AnyInvocable<Awaitable<absl::Status>()> body) {
  return user_->Await(user_->Begin<absl::Status>(&core_->group(), std::move(body)));
}

absl::Status SimWriting::Create(CreateOptions options) {
  core_ = std::make_unique<client::FileWriterCore>(user_->core(), path_, options);
  return Do([this] { return core_->Open(); });
}

absl::Status SimWriting::OpenForAppend(uint64_t length, AppendOptions options) {
  appended_ = flushed_ = synced_ = length;
  core_ = std::make_unique<client::FileWriterCore>(user_->core(), path_, options);
  return Do([this] { return core_->Open(); });
}

absl::Status SimWriting::Append(size_t bytes) {
  const std::span<const char> part(content_.data() + appended_, bytes);
  appended_ += bytes;
  return Do([this, part] { return core_->Append(part); });
}

absl::Status SimWriting::Flush() {
  const absl::Status status = Do([this] { return core_->Flush(); });
  if (status.ok()) flushed_ = appended_;
  return status;
}

absl::Status SimWriting::Sync() {
  const absl::Status status = Do([this] { return core_->Sync(); });
  if (status.ok()) flushed_ = synced_ = appended_;
  return status;
}

absl::Status SimWriting::Close() {
  const absl::Status status = Do([this] { return core_->Close(); });
  if (!status.ok()) return status;
  flushed_ = synced_ = appended_;
  closed_ = true;
  return status;
}

std::shared_ptr<client::Completion<absl::Status>> SimWriting::BeginFlush() {
  return user_->Begin<absl::Status>(&core_->group(), [this] { return core_->Flush(); });
}

namespace {

// What is wrong with one replica.
std::string CheckReplica(datanode::BlockStore& store, const v1::Block& block, const std::string& expected) {
  const std::optional<datanode::ReplicaDescription> replica = store.Describe(BlockId(block.id()));
  if (replica->state != datanode::ReplicaState::kFinalized) return fmt::format("is in state {}", static_cast<int>(replica->state));
  if (replica->stamp.value() != block.generation_stamp())
    return fmt::format("has stamp {} instead of {}", replica->stamp.value(), block.generation_stamp());
  if (replica->length != expected.size()) return fmt::format("has {} bytes instead of {}", replica->length, expected.size());
  const auto reader = store.OpenForRead(replica->id, replica->stamp);
  if (!reader.ok()) return Text(reader.status());
  std::string found(expected.size(), 0);
  for (size_t at = 0; at < found.size();) {
    const absl::StatusOr<size_t> count = (*reader)->ReadData(at, std::span<char>(found.data() + at, found.size() - at));
    if (!count.ok()) return Text(count.status());
    if (*count == 0) return fmt::format("ends at {}", at);
    at += *count;
  }
  if (found != expected) return "has other bytes";
  const absl::Status verified = store.Verify(replica->id, replica->stamp);
  return verified.ok() ? "" : "does not verify: " + Text(verified);
}

}  // namespace

std::vector<std::string> CheckReplicas(SimCluster* cluster, SimUser* reader, const std::string& path, const std::string& expected,
                                       size_t replication) {
  std::vector<std::string> wrong;
  const auto located = reader->Locate(path);
  if (!located.ok()) return {fmt::format("{}: {}", path, Text(located.status()))};
  if (located->status().under_construction()) wrong.push_back(path + ": is not closed");
  if (located->status().length_bytes() != expected.size())
    wrong.push_back(
        fmt::format("{}: {} bytes, as the NameNode says, instead of {}", path, located->status().length_bytes(), expected.size()));
  uint64_t end = 0;
  for (const v1::LocatedBlock& block : located->blocks()) {
    const std::string part = expected.substr(std::min<size_t>(block.offset_bytes(), expected.size()), block.block().length_bytes());
    end = block.offset_bytes() + block.block().length_bytes();
    size_t replicas = 0;
    for (size_t i = 0; i < cluster->datanode_count(); ++i) {
      if (cluster->datanode(i) == nullptr || !cluster->datanode(i)->store().Describe(BlockId(block.block().id()))) continue;
      ++replicas;
      const std::string verdict = CheckReplica(cluster->datanode(i)->store(), block.block(), part);
      if (!verdict.empty())
        wrong.push_back(fmt::format("{}: the replica of block {} on DataNode {} {}", path, block.block().id(), i, verdict));
    }
    const size_t known = static_cast<size_t>(block.locations_size());
    const size_t on_disk = cluster->ReplicaFiles(block.block().id());
    if (replicas != replication || on_disk != replication || known != replication)
      wrong.push_back(fmt::format("{}: block {} has {} replicas and {} files, the NameNode knows {}", path, block.block().id(), replicas,
                                  on_disk, known));
  }
  if (end != expected.size()) wrong.push_back(fmt::format("{}: its blocks end at {} instead of {}", path, end, expected.size()));
  const absl::StatusOr<std::string> read = reader->Get(path);
  if (!read.ok()) {
    wrong.push_back(fmt::format("{}: {}", path, Text(read.status())));
  } else if (*read != expected) {
    wrong.push_back(path + ": other bytes are read");
  }
  return wrong;
}

}  // namespace cairn::testing
