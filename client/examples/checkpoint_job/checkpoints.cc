#include "checkpoints.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

namespace {

namespace fs = std::filesystem;
constexpr size_t kKept = 2;
constexpr size_t kUploadThreads = 4;
constexpr size_t kCopyBytes = 1 << 20;
constexpr char kMagic[] = "checkpoint-job 1";

std::string Uuid() {
  std::ifstream kernel("/proc/sys/kernel/random/uuid");
  std::string uuid;
  std::getline(kernel, uuid);
  return uuid;
}

}  // namespace

std::string CheckpointMetadata::Serialize() const {
  std::ostringstream text;
  text << kMagic << '\n' << number << ' ' << next_file << ' ' << bytes << ' ' << shared.size() << ' ' << exclusive.size() << '\n';
  for (const auto* files : {&shared, &exclusive})
    for (const auto& [name, path] : *files) text << name << ' ' << path << '\n';
  text << "end\n";
  return std::move(text).str();
}

absl::StatusOr<CheckpointMetadata> CheckpointMetadata::Parse(const std::string& text) {
  std::istringstream in(text);
  std::string magic;
  std::getline(in, magic);
  CheckpointMetadata metadata;
  size_t shared_count = 0;
  size_t exclusive_count = 0;
  in >> metadata.number >> metadata.next_file >> metadata.bytes >> shared_count >> exclusive_count;
  std::string name;
  std::string path;
  for (size_t i = 0; i < shared_count && in >> name >> path; ++i) metadata.shared[name] = path;
  for (size_t i = 0; i < exclusive_count && in >> name >> path; ++i) metadata.exclusive[name] = path;
  std::string end;
  in >> end;
  if (magic != kMagic || end != "end") return absl::DataLossError("a _metadata file is damaged or not ours");
  return metadata;
}

Checkpoints::Checkpoints(cairn::FileSystem* files, std::string job_directory, std::string local_directory, std::optional<Pause> pause)
    : files_(files), job_(std::move(job_directory)), local_(std::move(local_directory)), pause_(std::move(pause)) {}

absl::StatusOr<std::optional<CheckpointMetadata>> Checkpoints::FindNewest() {
  absl::StatusOr<bool> exists = files_->Exists(job_);
  if (!exists.ok()) return exists.status();
  if (!*exists) return std::optional<CheckpointMetadata>();
  absl::StatusOr<std::vector<cairn::FileStatus>> entries = files_->List(job_);
  if (!entries.ok()) return entries.status();
  std::map<uint64_t, CheckpointMetadata> complete;
  for (const cairn::FileStatus& entry : *entries) {
    const std::string path = entry.path + "/_metadata";
    if (!entry.is_directory || entry.path.find("/chk-") == std::string::npos) continue;
    absl::StatusOr<bool> has = files_->Exists(path);
    if (!has.ok()) return has.status();
    if (!*has) continue;  // Never finished.
    absl::StatusOr<std::unique_ptr<cairn::FileReader>> reader = files_->Open(path);
    if (!reader.ok()) return reader.status();
    std::string text((*reader)->length(), '\0');
    absl::StatusOr<size_t> got = (*reader)->ReadAt(0, text);
    if (!got.ok()) return got.status();
    absl::StatusOr<CheckpointMetadata> metadata = CheckpointMetadata::Parse(text);
    if (!metadata.ok()) return metadata.status();
    complete[metadata->number] = *metadata;
  }
  if (complete.empty()) return std::optional<CheckpointMetadata>();
  kept_.clear();
  for (auto& [number, metadata] : complete) kept_.push_back(metadata);
  return std::optional<CheckpointMetadata>(kept_.back());
}

absl::StatusOr<uint64_t> Checkpoints::RemoveOrphans() {
  absl::StatusOr<bool> exists = files_->Exists(job_);
  if (!exists.ok()) return exists.status();
  if (!*exists) return uint64_t{0};
  std::set<std::string> wanted;
  for (const CheckpointMetadata& kept : kept_) {
    wanted.insert(job_ + "/chk-" + std::to_string(kept.number) + "/_metadata");
    for (const auto* files : {&kept.shared, &kept.exclusive})
      for (const auto& [name, path] : *files) wanted.insert(path);
  }
  absl::StatusOr<std::vector<cairn::FileStatus>> directories = files_->List(job_);
  if (!directories.ok()) return directories.status();
  uint64_t removed = 0;
  for (const cairn::FileStatus& directory : *directories) {
    absl::StatusOr<std::vector<cairn::FileStatus>> entries = files_->List(directory.path);
    if (!entries.ok()) return entries.status();
    size_t left = entries->size();
    for (const cairn::FileStatus& entry : *entries) {
      if (wanted.count(entry.path) > 0) continue;
      if (absl::StatusOr<bool> existed = files_->Delete(entry.path, false); !existed.ok()) return existed.status();
      ++removed;
      --left;
    }
    const bool is_checkpoint = directory.path.find("/chk-") != std::string::npos;
    if (is_checkpoint && left == 0)
      if (absl::StatusOr<bool> existed = files_->Delete(directory.path, false); !existed.ok()) return existed.status();
  }
  return removed;
}

absl::Status Checkpoints::Restore(const CheckpointMetadata& checkpoint, const std::string& state_directory) {
  std::error_code error;
  fs::create_directories(state_directory, error);
  std::vector<char> buffer(kCopyBytes);
  for (const auto* files : {&checkpoint.shared, &checkpoint.exclusive}) {
    for (const auto& [name, path] : *files) {
      absl::StatusOr<std::unique_ptr<cairn::FileReader>> reader = files_->Open(path);
      if (!reader.ok()) return reader.status();
      if (files == &checkpoint.shared) sizes_[path] = (*reader)->length();
      std::ofstream out(fs::path(state_directory) / name, std::ios::binary);
      for (;;) {
        absl::StatusOr<size_t> got = (*reader)->Read(buffer);
        if (!got.ok()) return got.status();
        if (*got == 0) break;
        out.write(buffer.data(), static_cast<std::streamsize>(*got));
      }
      out.close();
      if (!out) return absl::InternalError("cannot write " + state_directory + "/" + name);
    }
  }
  return absl::OkStatus();
}

void Checkpoints::PauseHere(const std::string& path) const {
  std::ofstream(pause_->marker_file) << path << '\n';
  std::cout << "  paused in the middle of " << path << std::endl;
  while (fs::exists(pause_->marker_file)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

absl::Status Checkpoints::UploadOne(Upload* upload) {
  std::ifstream in(upload->local, std::ios::binary);
  absl::StatusOr<std::unique_ptr<cairn::FileWriter>> writer = files_->Create(upload->remote);
  if (!writer.ok()) return writer.status();
  std::vector<char> buffer(kCopyBytes);
  bool pause_due = upload->remote == paused_upload_;
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
    const auto size = static_cast<size_t>(in.gcount());
    if (absl::Status status = (*writer)->Append(std::span<const char>(buffer.data(), size)); !status.ok()) return status;
    upload->bytes += size;
    if (pause_due) {
      pause_due = false;
      if (absl::Status status = (*writer)->Flush(); !status.ok()) return status;
      PauseHere(upload->remote);
    }
  }
  if (in.bad()) return absl::InternalError("cannot read " + upload->local);
  if (absl::Status status = (*writer)->Sync(); !status.ok()) return status;
  return (*writer)->Close();
}

absl::Status Checkpoints::UploadAll(std::vector<Upload>* uploads, uint64_t number) {
  paused_upload_.clear();
  if (pause_ && pause_->in_checkpoints.count(number) > 0 && !uploads->empty()) {
    const auto largest = std::max_element(uploads->begin(), uploads->end(),
                                          [](const Upload& a, const Upload& b) { return fs::file_size(a.local) < fs::file_size(b.local); });
    paused_upload_ = largest->remote;
  }
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < std::min(kUploadThreads, uploads->size()); ++t)
    threads.emplace_back([&] {
      for (size_t i = next++; i < uploads->size(); i = next++) (*uploads)[i].status = UploadOne(&(*uploads)[i]);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Upload& upload : *uploads)
    if (!upload.status.ok()) return upload.status;
  return absl::OkStatus();
}

absl::StatusOr<Checkpoints::Summary> Checkpoints::Take(KeyedState* state, uint64_t next_file) {
  const auto start = std::chrono::steady_clock::now();
  CheckpointMetadata metadata;
  metadata.number = kept_.empty() ? 1 : kept_.back().number + 1;
  metadata.next_file = next_file;
  const std::string directory = job_ + "/chk-" + std::to_string(metadata.number);
  for (const std::string& path : {job_ + "/shared", directory})
    if (absl::Status status = files_->MakeDirectories(path); !status.ok()) return status;

  const std::string snapshot = local_ + "/snapshot-" + std::to_string(metadata.number);
  std::error_code error;
  fs::remove_all(snapshot, error);
  absl::StatusOr<std::vector<std::string>> names = state->SnapshotTo(snapshot);
  if (!names.ok()) return names.status();

  std::vector<Upload> uploads;
  const CheckpointMetadata* before = kept_.empty() ? nullptr : &kept_.back();
  for (const std::string& name : *names) {
    const bool is_sst = name.ends_with(".sst");
    if (is_sst && before != nullptr && before->shared.count(name) > 0) {
      metadata.shared[name] = before->shared.at(name);
      continue;
    }
    const std::string remote = (is_sst ? job_ + "/shared/" : directory + "/") + Uuid();
    (is_sst ? metadata.shared : metadata.exclusive)[name] = remote;
    uploads.push_back({snapshot + "/" + name, remote, 0, absl::OkStatus()});
  }
  if (absl::Status status = UploadAll(&uploads, metadata.number); !status.ok()) return status;

  Summary summary;
  summary.number = metadata.number;
  for (const Upload& upload : uploads) {
    sizes_[upload.remote] = upload.bytes;
    summary.uploaded_bytes += upload.bytes;
    ++summary.uploaded_files;
  }
  for (const auto* files : {&metadata.shared, &metadata.exclusive})
    for (const auto& [name, path] : *files) {
      metadata.bytes += sizes_[path];
      summary.largest_file = std::max(summary.largest_file, sizes_[path]);
    }
  summary.total_bytes = metadata.bytes;

  const std::string temporary = directory + "/._metadata.inprogress." + Uuid();
  absl::StatusOr<std::unique_ptr<cairn::FileWriter>> writer = files_->Create(temporary);
  if (!writer.ok()) return writer.status();
  if (absl::Status status = (*writer)->Append(metadata.Serialize()); !status.ok()) return status;
  if (absl::Status status = (*writer)->Sync(); !status.ok()) return status;
  if (absl::Status status = (*writer)->Close(); !status.ok()) return status;
  if (absl::Status status = files_->Rename(temporary, directory + "/_metadata"); !status.ok()) return status;
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  kept_.push_back(std::move(metadata));
  fs::remove_all(snapshot, error);
  absl::StatusOr<uint64_t> deleted = DropOld();
  if (!deleted.ok()) return deleted.status();
  summary.deleted_files = *deleted;
  return summary;
}

absl::StatusOr<uint64_t> Checkpoints::DropOld() {
  uint64_t deleted = 0;
  const auto remove = [&](const std::string& path) -> absl::Status {
    absl::StatusOr<bool> existed = files_->Delete(path, false);
    if (!existed.ok()) return existed.status();
    ++deleted;
    return absl::OkStatus();
  };
  while (kept_.size() > kKept) {
    const CheckpointMetadata old = kept_.front();
    kept_.erase(kept_.begin());
    std::set<std::string> referred;
    for (const CheckpointMetadata& kept : kept_)
      for (const auto& [name, path] : kept.shared) referred.insert(path);
    for (const auto& [name, path] : old.shared) {
      if (referred.count(path) > 0) continue;
      if (absl::Status status = remove(path); !status.ok()) return status;
      sizes_.erase(path);
    }
    const std::string directory = job_ + "/chk-" + std::to_string(old.number);
    if (absl::Status status = remove(directory + "/_metadata"); !status.ok()) return status;
    for (const auto& [name, path] : old.exclusive) {
      if (absl::Status status = remove(path); !status.ok()) return status;
      sizes_.erase(path);
    }
    if (absl::Status status = remove(directory); !status.ok()) return status;
  }
  return deleted;
}
