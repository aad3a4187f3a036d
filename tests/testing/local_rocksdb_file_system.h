#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <rocksdb/file_system.h>

#include "common/env/clock.h"
#include "common/env/file_system.h"

namespace cairn::testing {

// A rocksdb::FileSystem over a LocalFileSystem; see sim_rocksdb_env.h for how it differs from RocksDB's own. One thread.
class LocalRocksdbFileSystem : public rocksdb::FileSystem {
 public:
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using FileOptions = rocksdb::FileOptions;
  using IODebugContext = rocksdb::IODebugContext;

  LocalRocksdbFileSystem(LocalFileSystem* files, const Clock* clock) : files_(files), clock_(clock) {}
  const char* Name() const override { return "CairnLocalFileSystem"; }
  void DropLocks() { locked_.clear(); }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options, std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             IODebugContext* dbg) override;
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options, std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext* dbg) override;
  // An existing file is emptied.
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options, std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* dbg) override;
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options, std::unique_ptr<rocksdb::FSWritableFile>* result,
                              IODebugContext* dbg) override;
  IOStatus NewDirectory(const std::string& name, const IOOptions& options, std::unique_ptr<rocksdb::FSDirectory>* result,
                        IODebugContext* dbg) override;
  IOStatus FileExists(const std::string& path, const IOOptions& options, IODebugContext* dbg) override;
  IOStatus GetChildren(const std::string& directory, const IOOptions& options, std::vector<std::string>* result,
                       IODebugContext* dbg) override;
  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* dbg) override;
  IOStatus CreateDir(const std::string& path, const IOOptions& options, IODebugContext* dbg) override;
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options, IODebugContext* dbg) override;
  IOStatus DeleteDir(const std::string& path, const IOOptions& options, IODebugContext* dbg) override;
  IOStatus GetFileSize(const std::string& path, const IOOptions& options, uint64_t* size, IODebugContext* dbg) override;
  IOStatus GetFileModificationTime(const std::string& path, const IOOptions& options, uint64_t* time, IODebugContext* dbg) override;
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options, IODebugContext* dbg) override;
  IOStatus LockFile(const std::string& path, const IOOptions& options, rocksdb::FileLock** lock, IODebugContext* dbg) override;
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions& options, IODebugContext* dbg) override;
  IOStatus GetTestDirectory(const IOOptions& options, std::string* path, IODebugContext* dbg) override;
  IOStatus NewLogger(const std::string& path, const IOOptions& options, std::shared_ptr<rocksdb::Logger>* result,
                     IODebugContext* dbg) override;
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions& options, std::string* absolute, IODebugContext* dbg) override;
  IOStatus IsDirectory(const std::string& path, const IOOptions& options, bool* is_directory, IODebugContext* dbg) override;

 private:
  LocalFileSystem* files_;
  const Clock* clock_;
  std::set<std::string> locked_;
};

}  // namespace cairn::testing
