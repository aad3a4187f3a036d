#include "tests/testing/local_rocksdb_file_system.h"

#include <span>
#include <utility>

#include "absl/time/time.h"
#include "common/error.h"

namespace cairn::testing {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

IOStatus ToIOStatus(const absl::Status& status) {
  if (status.ok()) return IOStatus::OK();
  const std::string message(status.message());
  switch (KindOf(status)) {
    case ErrorKind::kNotFound: return IOStatus::PathNotFound(message);
    case ErrorKind::kDiskFull: return IOStatus::NoSpace(message);
    default: return IOStatus::IOError(message);
  }
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

IOStatus ReadInto(File* file, uint64_t offset, size_t n, Slice* result, char* scratch) {
  const absl::StatusOr<size_t> got = file->ReadAt(offset, std::span<char>(scratch, n));
  if (!got.ok()) return ToIOStatus(got.status());
  *result = Slice(scratch, *got);
  return IOStatus::OK();
}

class SequentialFile : public rocksdb::FSSequentialFile {
 public:
  explicit SequentialFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  IOStatus Read(size_t n, const IOOptions&, Slice* result, char* scratch, IODebugContext*) override {
    IOStatus status = ReadInto(file_.get(), offset_, n, result, scratch);
    if (status.ok()) offset_ += result->size();
    return status;
  }
  IOStatus Skip(uint64_t n) override {
    offset_ += n;
    return IOStatus::OK();
  }

 private:
  std::unique_ptr<File> file_;
  uint64_t offset_ = 0;
};

class RandomAccessFile : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomAccessFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch, IODebugContext*) const override {
    return ReadInto(file_.get(), offset, n, result, scratch);
  }

 private:
  std::unique_ptr<File> file_;
};

class WritableFile : public rocksdb::FSWritableFile {
 public:
  WritableFile(std::unique_ptr<File> file, uint64_t size) : file_(std::move(file)), size_(size) {}
  using rocksdb::FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    IOStatus status = ToIOStatus(file_->WriteAt(size_, std::span<const char>(data.data(), data.size())));
    if (status.ok()) {
      size_ += data.size();
    } else if (const absl::StatusOr<uint64_t> size = file_->Size(); size.ok()) {
      size_ = *size;  // As POSIX: the next one appends to what was written of this.
    }
    return status;
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    IOStatus status = ToIOStatus(file_->Truncate(size));
    if (status.ok()) size_ = size;
    return status;
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    file_.reset();
    return IOStatus::OK();
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return ToIOStatus(file_->Sync()); }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return size_; }
  void PrepareWrite(size_t, size_t, const IOOptions&, IODebugContext*) override {}

 private:
  std::unique_ptr<File> file_;
  uint64_t size_;
};

class Directory : public rocksdb::FSDirectory {
 public:
  Directory(LocalFileSystem* files, std::string path) : files_(files), path_(std::move(path)) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return ToIOStatus(files_->SyncDirectory(path_)); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  LocalFileSystem* files_;
  std::string path_;
};

class MemoryLock : public rocksdb::FileLock {
 public:
  explicit MemoryLock(std::string locked_path) : path(std::move(locked_path)) {}
  const std::string path;
};

}  // namespace

IOStatus LocalRocksdbFileSystem::NewSequentialFile(const std::string& path, const FileOptions&,
                                                   std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext*) {
  auto file = files_->Open(path, LocalFileSystem::OpenMode::kRead);
  if (!file.ok()) return ToIOStatus(file.status());
  *result = std::make_unique<SequentialFile>(*std::move(file));
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::NewRandomAccessFile(const std::string& path, const FileOptions&,
                                                     std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext*) {
  auto file = files_->Open(path, LocalFileSystem::OpenMode::kRead);
  if (!file.ok()) return ToIOStatus(file.status());
  *result = std::make_unique<RandomAccessFile>(*std::move(file));
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::NewWritableFile(const std::string& path, const FileOptions&,
                                                 std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext*) {
  auto file = files_->Open(path, LocalFileSystem::OpenMode::kCreateNew);
  if (KindOf(file.status()) == ErrorKind::kAlreadyExists) {
    file = files_->Open(path, LocalFileSystem::OpenMode::kReadWrite);
    if (file.ok()) {
      IOStatus emptied = ToIOStatus((*file)->Truncate(0));
      if (!emptied.ok()) return emptied;
    }
  }
  if (!file.ok()) return ToIOStatus(file.status());
  *result = std::make_unique<WritableFile>(*std::move(file), 0);
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::ReopenWritableFile(const std::string& path, const FileOptions& options,
                                                    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  auto file = files_->Open(path, LocalFileSystem::OpenMode::kReadWrite);
  if (KindOf(file.status()) == ErrorKind::kNotFound) return NewWritableFile(path, options, result, dbg);
  if (!file.ok()) return ToIOStatus(file.status());
  const absl::StatusOr<uint64_t> size = (*file)->Size();
  if (!size.ok()) return ToIOStatus(size.status());
  *result = std::make_unique<WritableFile>(*std::move(file), *size);
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::NewDirectory(const std::string& name, const IOOptions&, std::unique_ptr<rocksdb::FSDirectory>* result,
                                              IODebugContext*) {
  *result = std::make_unique<Directory>(files_, name);
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::FileExists(const std::string& path, const IOOptions&, IODebugContext*) {
  const absl::StatusOr<bool> exists = files_->Exists(path);
  if (!exists.ok()) return ToIOStatus(exists.status());
  return *exists ? IOStatus::OK() : IOStatus::NotFound(path);
}

IOStatus LocalRocksdbFileSystem::GetChildren(const std::string& directory, const IOOptions&, std::vector<std::string>* result,
                                             IODebugContext*) {
  auto names = files_->List(directory);
  // RocksDB tells "no such directory" from other errors by NotFound here.
  if (KindOf(names.status()) == ErrorKind::kNotFound) return IOStatus::NotFound(directory);
  if (!names.ok()) return ToIOStatus(names.status());
  *result = *std::move(names);
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::DeleteFile(const std::string& path, const IOOptions&, IODebugContext*) {
  return ToIOStatus(files_->Remove(path));
}

IOStatus LocalRocksdbFileSystem::CreateDir(const std::string& path, const IOOptions&, IODebugContext*) {
  return ToIOStatus(files_->MakeDirectories(path));
}

IOStatus LocalRocksdbFileSystem::CreateDirIfMissing(const std::string& path, const IOOptions&, IODebugContext*) {
  return ToIOStatus(files_->MakeDirectories(path));
}

IOStatus LocalRocksdbFileSystem::DeleteDir(const std::string& path, const IOOptions&, IODebugContext*) {
  return ToIOStatus(files_->Remove(path));
}

IOStatus LocalRocksdbFileSystem::GetFileSize(const std::string& path, const IOOptions&, uint64_t* size, IODebugContext*) {
  auto file = files_->Open(path, LocalFileSystem::OpenMode::kRead);
  if (!file.ok()) return ToIOStatus(file.status());
  const absl::StatusOr<uint64_t> bytes = (*file)->Size();
  if (!bytes.ok()) return ToIOStatus(bytes.status());
  *size = *bytes;
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::GetFileModificationTime(const std::string&, const IOOptions&, uint64_t* time, IODebugContext*) {
  *time = static_cast<uint64_t>(absl::ToUnixSeconds(clock_->WallNow()));
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::RenameFile(const std::string& from, const std::string& to, const IOOptions&, IODebugContext*) {
  if (to.ends_with("/CURRENT")) {
    IOStatus synced = ToIOStatus(files_->SyncDirectory(DirectoryOf(to)));
    if (!synced.ok()) return synced;
  }
  return ToIOStatus(files_->Rename(from, to));
}

IOStatus LocalRocksdbFileSystem::LockFile(const std::string& path, const IOOptions&, rocksdb::FileLock** lock, IODebugContext*) {
  if (!locked_.insert(path).second) return IOStatus::IOError(path + ": locked by a database that is open");
  *lock = new MemoryLock(path);  // Owned by RocksDB until UnlockFile.
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) {
  const std::unique_ptr<MemoryLock> owned(static_cast<MemoryLock*>(lock));
  locked_.erase(owned->path);
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::GetTestDirectory(const IOOptions&, std::string*, IODebugContext*) {
  return IOStatus::NotSupported("test directory");
}

IOStatus LocalRocksdbFileSystem::NewLogger(const std::string&, const IOOptions&, std::shared_ptr<rocksdb::Logger>*, IODebugContext*) {
  return IOStatus::NotSupported("info log");
}

IOStatus LocalRocksdbFileSystem::GetAbsolutePath(const std::string& path, const IOOptions&, std::string* absolute, IODebugContext*) {
  *absolute = path;
  return IOStatus::OK();
}

IOStatus LocalRocksdbFileSystem::IsDirectory(const std::string& path, const IOOptions&, bool* is_directory, IODebugContext*) {
  *is_directory = files_->List(path).ok();
  return IOStatus::OK();
}

}  // namespace cairn::testing
