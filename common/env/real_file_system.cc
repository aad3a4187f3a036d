#include "common/env/real_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/mutex.h"
#include "common/status.h"

namespace cairn {
namespace {

// Most parts of one pwritev; below IOV_MAX (1024).
constexpr size_t kPartsPerCall = 64;

// What to do about it, for the errors that an operator can mend.
const char* Advice(int error) {
  switch (error) {
    case EACCES:
    case EPERM: return "; check its owner and mode";
    case EROFS: return "; the file system is mounted read-only";
    case EMFILE: return "; raise the limit of open files (ulimit -n)";
    case ENFILE: return "; raise fs.file-max";
    case EIO: return "; the disk may be failing, see the kernel's log";
    case EDQUOT: return "; the user's disk quota is used up";
    default: return "";
  }
}

absl::Status ErrnoStatus(const char* what, const std::string& path, int error) {
  std::string message = fmt::format("{} {}: {}{}", what, path, std::strerror(error), Advice(error));
  if (error == ENOENT) return MakeError(ErrorKind::kNotFound, std::move(message));
  if (error == EEXIST) return MakeError(ErrorKind::kAlreadyExists, std::move(message));
  if (error == ENOSPC) return MakeError(ErrorKind::kDiskFull, std::move(message));
  return absl::InternalError(message);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class RealFile final : public File {
 public:
  RealFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<char> into) override {
    AssertMayBlock("pread");
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t count = pread(fd_.get(), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
      if (count < 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus("read", path_, errno);
      }
      if (count == 0) break;
      done += static_cast<size_t>(count);
    }
    return done;
  }

  absl::Status WriteAt(uint64_t offset, std::span<const char> data) override {
    AssertMayBlock("pwrite");
    for (size_t done = 0; done < data.size();) {
      const ssize_t count = pwrite(fd_.get(), data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
      if (count < 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus("write", path_, errno);
      }
      done += static_cast<size_t>(count);
    }
    return absl::OkStatus();
  }

  absl::Status WriteVectorAt(uint64_t offset, std::span<const std::span<const char>> parts) override {
    AssertMayBlock("pwritev");
    size_t part = 0;
    size_t part_done = 0;  // Bytes of parts[part] that are written.
    while (part < parts.size()) {
      std::array<iovec, kPartsPerCall> vector;
      size_t used = 0;
      size_t skip = part_done;
      for (size_t i = part; i < parts.size() && used < kPartsPerCall; ++i) {
        vector[used].iov_base = const_cast<char*>(parts[i].data() + skip);
        vector[used].iov_len = parts[i].size() - skip;
        skip = 0;
        ++used;
      }
      const ssize_t count = pwritev(fd_.get(), vector.data(), static_cast<int>(used), static_cast<off_t>(offset));
      if (count < 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus("write", path_, errno);
      }
      offset += static_cast<uint64_t>(count);
      part_done += static_cast<size_t>(count);
      while (part < parts.size() && part_done >= parts[part].size()) part_done -= parts[part++].size();
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    AssertMayBlock("fdatasync");
    if (fdatasync(fd_.get()) != 0) return ErrnoStatus("fdatasync", path_, errno);
    return absl::OkStatus();
  }

  absl::Status Truncate(uint64_t size) override {
    AssertMayBlock("ftruncate");
    if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return ErrnoStatus("truncate", path_, errno);
    return absl::OkStatus();
  }

  absl::Status PunchHole(uint64_t offset, uint64_t length) override {
    AssertMayBlock("fallocate");
    if (length == 0) return absl::OkStatus();
    if (fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(length)) == 0) {
      return absl::OkStatus();
    }
    if (errno != EOPNOTSUPP) return ErrnoStatus("punch a hole in", path_, errno);
    // Where holes are unknown, zeros at least read the same.
    ASSIGN_OR_RETURN(const uint64_t size, Size());
    const std::string zeros(64 << 10, '\0');
    const uint64_t end = std::min(size, offset + length);
    while (offset < end) {
      const size_t count = static_cast<size_t>(std::min<uint64_t>(zeros.size(), end - offset));
      RETURN_IF_ERROR(WriteAt(offset, std::span<const char>(zeros.data(), count)));
      offset += count;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Size() override {
    ASSIGN_OR_RETURN(const struct stat attributes, Stat());
    return static_cast<uint64_t>(attributes.st_size);
  }

  absl::StatusOr<uint64_t> AllocatedBytes() override {
    ASSIGN_OR_RETURN(const struct stat attributes, Stat());
    return static_cast<uint64_t>(attributes.st_blocks) * 512;  // Of stat(2): always in units of 512.
  }

  void WriteBehind(uint64_t offset, uint64_t length, bool drop) override {
    AssertMayBlock("sync_file_range");
    // Hints: a file system that does not take them is only slower.
    sync_file_range(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(length), SYNC_FILE_RANGE_WRITE);
    if (drop) posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_DONTNEED);
  }

  int descriptor() const override { return fd_.get(); }
  const std::string& path() const override { return path_; }

 private:
  absl::StatusOr<struct stat> Stat() const {
    AssertMayBlock("fstat");
    struct stat attributes;
    if (fstat(fd_.get(), &attributes) != 0) return ErrnoStatus("stat", path_, errno);
    return attributes;
  }

  const Descriptor fd_;
  const std::string path_;
};

// flock on a file in the directory: the kernel releases it with the last descriptor, so a killed process leaves no stale lock.
class RealDirectoryLock final : public DirectoryLock {
 public:
  explicit RealDirectoryLock(int fd) : fd_(fd) {}

 private:
  const Descriptor fd_;
};

class RealFileSystem final : public LocalFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    AssertMayBlock("open");
    int flags = O_CLOEXEC;
    switch (mode) {
      case OpenMode::kRead: flags |= O_RDONLY; break;
      case OpenMode::kReadWrite: flags |= O_RDWR; break;
      case OpenMode::kCreateNew: flags |= O_RDWR | O_CREAT | O_EXCL; break;
    }
    Descriptor fd(open(path.c_str(), flags, 0644));
    if (fd.get() < 0) return ErrnoStatus(mode == OpenMode::kCreateNew ? "create" : "open", path, errno);
    struct stat attributes;
    if (fstat(fd.get(), &attributes) != 0) return ErrnoStatus("stat", path, errno);
    if (S_ISDIR(attributes.st_mode)) return ErrnoStatus("open", path, EISDIR);  // open(2) lets one be opened for reading.
    return std::make_unique<RealFile>(fd.Release(), path);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    AssertMayBlock("readdir");
    DIR* stream = opendir(directory.c_str());
    if (stream == nullptr) return ErrnoStatus("list", directory, errno);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(stream)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    const int error = errno;
    closedir(stream);
    if (error != 0) return ErrnoStatus("list", directory, error);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::StatusOr<bool> Exists(const std::string& path) override {
    AssertMayBlock("stat");
    struct stat attributes;
    if (stat(path.c_str(), &attributes) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return ErrnoStatus("stat", path, errno);
  }

  absl::Status MakeDirectories(const std::string& path) override {
    AssertMayBlock("mkdir");
    for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      const std::string prefix = path.substr(0, end);
      if (mkdir(prefix.c_str(), 0755) != 0) {
        const int error = errno;
        struct stat attributes;
        const bool there = stat(prefix.c_str(), &attributes) == 0;
        if (!there) return ErrnoStatus("mkdir", prefix, error);
        if (!S_ISDIR(attributes.st_mode)) return ErrnoStatus("mkdir", prefix, ENOTDIR);
      }
      if (end == std::string::npos) return absl::OkStatus();
    }
  }

  absl::Status Remove(const std::string& path) override {
    AssertMayBlock("unlink");
    if (unlink(path.c_str()) == 0) return absl::OkStatus();
    if (errno != EISDIR && errno != EPERM) return ErrnoStatus("remove", path, errno);
    if (rmdir(path.c_str()) == 0) return absl::OkStatus();
    if (errno == ENOTEMPTY || errno == EEXIST) return absl::InternalError(fmt::format("remove {}: directory not empty", path));
    return ErrnoStatus("remove", path, errno);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    AssertMayBlock("rename");
    if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus("rename", fmt::format("{} to {}", from, to), errno);
  }

  absl::Status SyncDirectory(const std::string& path) override {
    AssertMayBlock("fsync");
    const Descriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() < 0) return ErrnoStatus("open directory", path, errno);
    if (fsync(fd.get()) != 0) return ErrnoStatus("sync directory", path, errno);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(const std::string& directory) override {
    AssertMayBlock("flock");
    const std::string path = directory + "/LOCK";
    Descriptor fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (fd.get() < 0) return ErrnoStatus("lock", path, errno);
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return ErrnoStatus("lock", path, errno);
      return MakeError(ErrorKind::kBusy,
                       fmt::format("{} is in use by another process; stop that one, or choose another directory", directory));
    }
    return std::make_unique<RealDirectoryLock>(fd.Release());
  }

  absl::StatusOr<Space> SpaceOf(const std::string& path) override {
    AssertMayBlock("statvfs");
    struct statvfs values;
    if (statvfs(path.c_str(), &values) != 0) return ErrnoStatus("statvfs", path, errno);
    Space space;
    space.capacity_bytes = static_cast<uint64_t>(values.f_blocks) * values.f_frsize;
    space.available_bytes = static_cast<uint64_t>(values.f_bavail) * values.f_frsize;  // What others than root may use.
    return space;
  }
};

}  // namespace

std::unique_ptr<LocalFileSystem> NewRealFileSystem() { return std::make_unique<RealFileSystem>(); }

}  // namespace cairn
