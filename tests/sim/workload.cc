#include "tests/sim/workload.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "client/src/file_reader_core.h"
#include "common/env/wait.h"
#include "common/error.h"

namespace cairn::testing {
namespace {

// Bytes of a file: different at every offset of every file.
std::string ContentOf(const std::string& path, uint64_t size) {
  uint64_t seed = 14695981039346656037ull;
  for (const char c : path) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  Random random(seed ^ size);
  return random.Bytes(size);
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

// What a call on a path of one's own can only be told if it, or one before it, acted twice or not at all.
bool ActedWrongly(const absl::Status& status) {
  const ErrorKind kind = KindOf(status);
  return kind == ErrorKind::kNotFound || kind == ErrorKind::kAlreadyExists || kind == ErrorKind::kBeingWritten ||
         kind == ErrorKind::kLeaseExpired;
}

absl::StatusOr<v1::GetBlockLocationsResponse> AskLocations(SimCluster* cluster, const std::string& path) {
  v1::GetBlockLocationsRequest request;
  request.set_path(path);
  request.set_length_bytes(~0ull >> 1);
  return cluster->Ask(&api::ClientNamenode::GetBlockLocations, request);
}

}  // namespace

Workload::Workload(SimCluster* cluster)
    : cluster_(cluster), core_(cluster->NewClientCore()), executor_(core_->NextExecutor()), group_(executor_) {}

Workload::~Workload() {
  bool ended = false;
  group_.StopAndThen([&] { ended = true; });
  cluster_->RunUntil([&] { return ended; }, absl::Minutes(20));
}

void Workload::Start(const std::string& path, const FilePlan& plan) {
  FileLife& life = files_[path];
  life.plan = plan;
  life.path = path;
  group_.Spawn("file", [this, path] { return Live(path); });
}

bool Workload::WaitForAll(absl::Duration limit) {
  return cluster_->RunUntil([this] { return AllDone(); }, limit);
}

bool Workload::AllDone() const {
  return std::all_of(files_.begin(), files_.end(), [](const auto& file) { return file.second.done; });
}

std::string Workload::Compare(const std::string& path) {
  verdict_.reset();
  const FileLife& life = files_.at(path);
  group_.Spawn("read", [this, path, at = life.path, size = life.plan.size] { return ReadFile(at, path, size); });
  if (!cluster_->RunUntil([this] { return verdict_.has_value(); }, absl::Minutes(20))) return path + ": the read does not end";
  return *verdict_;
}

Awaitable<void> Workload::Live(std::string path) {
  FileLife* const life = &files_[path];
  life->written = co_await WriteFile(path, life);
  if (life->written.ok()) co_await Pause(life->plan.keep);
  if (life->written.ok() && !life->plan.rename_to.empty()) {
    life->renamed = co_await RenameFile(path, life->plan.rename_to);
    if (life->renamed.ok()) life->path = life->plan.rename_to;
  }
  if (life->written.ok() && life->plan.remove) life->removed = co_await RemoveFile(life);
  life->done = true;
}

Awaitable<absl::Status> Workload::WriteFile(std::string path, FileLife* life) {
  CreateOptions options;
  auto writer = std::make_unique<client::FileWriterCore>(core_.get(), path, options);
  const SteadyTime began = executor_->clock().Now();
  absl::Status status = co_await writer->Open();
  life->open_took = executor_->clock().Now() - began;
  if (status.ok()) status = co_await Fill(writer.get(), path, life);
  if (status.ok()) {
    const SteadyTime closing = executor_->clock().Now();
    status = co_await writer->Close();
    life->close_took = executor_->clock().Now() - closing;
  }
  co_await writer->Shutdown();
  co_return status;
}

Awaitable<absl::Status> Workload::Fill(client::FileWriterCore* writer, std::string path, FileLife* life) {
  const std::string content = ContentOf(path, life->plan.size);
  absl::Status status;
  for (uint64_t at = 0; status.ok() && at < content.size();) {
    const uint64_t part = std::min<uint64_t>(life->plan.part_bytes, content.size() - at);
    const std::span<const char> data(content.data() + at, part);
    status = co_await writer->Append(data);
    at += part;
    if (status.ok() && life->plan.flush) {
      status = co_await writer->Flush();
      if (status.ok() && after_flush_) {
        const auto located = co_await Locate(path);
        if (located.ok()) after_flush_(path, at, *located);
      }
    }
    if (status.ok()) co_await Pause(life->plan.pause);
  }
  co_return status;
}

Awaitable<absl::Status> Workload::RenameFile(std::string from, std::string to) {
  v1::RenameRequest request;
  request.set_source(std::move(from));
  request.set_destination(std::move(to));
  const auto answer = co_await core_->namenode().Mutate(scope(), &api::ClientNamenode::Rename, std::move(request));
  co_return answer.status();
}

Awaitable<absl::Status> Workload::RemoveFile(FileLife* life) {
  const auto located = co_await Locate(life->path);
  if (!located.ok()) co_return located.status();
  for (const v1::LocatedBlock& block : located->blocks()) life->blocks.push_back(block.block().id());
  v1::DeleteRequest request;
  request.set_path(life->path);
  const auto answer = co_await core_->namenode().Mutate(scope(), &api::ClientNamenode::Delete, std::move(request));
  if (answer.ok()) life->existed = answer->existed();
  co_return answer.status();
}

Awaitable<absl::StatusOr<v1::GetBlockLocationsResponse>> Workload::Locate(std::string path) {
  v1::GetBlockLocationsRequest request;
  request.set_path(std::move(path));
  request.set_length_bytes(~0ull >> 1);
  auto answer = co_await core_->namenode().Read(scope(), &api::ClientNamenode::GetBlockLocations, std::move(request));
  co_return answer;
}

Awaitable<void> Workload::Pause(absl::Duration duration) {
  if (duration > absl::ZeroDuration()) co_await SleepUntil(executor_, executor_->clock().Now() + duration);
}

Awaitable<void> Workload::ReadFile(std::string path, std::string content_of, uint64_t size) {
  auto reader = std::make_unique<client::FileReaderCore>(core_.get(), path);
  std::string found;
  absl::Status status = co_await reader->Open();
  while (status.ok() && found.size() <= size) {
    absl::StatusOr<client::Slice> slice = co_await reader->Next();
    status = slice.status();
    if (!status.ok() || slice->empty()) break;
    found.append(slice->data().data(), slice->size());
  }
  co_await reader->Shutdown();
  if (!status.ok())
    verdict_ = fmt::format("{}: {}", path, Text(status));
  else if (found.size() != size)
    verdict_ = fmt::format("{}: {} bytes instead of {}", path, found.size(), size);
  else if (found != ContentOf(content_of, size))
    verdict_ = path + ": other bytes";
  else
    verdict_ = std::string();
}

std::vector<std::string> CheckFiles(SimCluster* cluster, Workload* workload, size_t replication) {
  std::vector<std::string> wrong;
  for (const auto& [first_path, life] : workload->files()) {
    for (const absl::Status& status : {life.written, life.renamed, life.removed})
      if (ActedWrongly(status)) wrong.push_back(fmt::format("{}: a call of its only user says: {}", first_path, Text(status)));
    if (!life.existed) wrong.push_back(first_path + ": it was gone before its only delete");
    if (!life.written.ok() || !life.renamed.ok() || !life.removed.ok()) continue;
    const auto located = AskLocations(cluster, life.path);
    if (life.path != first_path && KindOf(AskLocations(cluster, first_path).status()) != ErrorKind::kNotFound)
      wrong.push_back(first_path + ": still there after its rename");
    if (!life.stays()) {
      if (KindOf(located.status()) != ErrorKind::kNotFound) wrong.push_back(life.path + ": still there after its delete");
      for (const uint64_t block : life.blocks)
        if (const size_t left = cluster->ReplicaFiles(block) + cluster->FinalizedReplicas(block); left > 0)
          wrong.push_back(fmt::format("{}: nodes still have deleted block {}", life.path, block));
      continue;
    }
    if (std::string verdict = workload->Compare(first_path); !verdict.empty()) wrong.push_back(verdict);
    if (!located.ok()) {
      wrong.push_back(fmt::format("{}: {}", life.path, Text(located.status())));
      continue;
    }
    for (const v1::LocatedBlock& block : located->blocks()) {
      const size_t replicas = cluster->FinalizedReplicas(block.block().id());
      const size_t on_disk = cluster->ReplicaFiles(block.block().id());
      const auto known = static_cast<size_t>(block.locations_size());
      if (replicas != replication || on_disk != replication || known != replication)
        wrong.push_back(fmt::format("{}: block {} has {} replicas and {} files, the NameNode knows {}", life.path, block.block().id(),
                                    replicas, on_disk, known));
    }
  }
  return wrong;
}

}  // namespace cairn::testing
