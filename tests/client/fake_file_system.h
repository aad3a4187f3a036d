#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cairn/file_system.h"

namespace cairn::cli {

// A FileSystem in memory, for tests of the command line. One thread.
class FakeFileSystem : public FileSystem {
 public:
  struct Entry {
    bool is_directory = false;
    std::string data;
    uint32_t mode = 0644;
    std::string owner = "flink";
    std::string group = "flink";
    absl::Time modified = absl::FromUnixSeconds(1'700'000'000);
    uint32_t replication = 3;
    std::vector<size_t> hosts;  // Of the one block, at each look: the last stays.
    size_t leaving = 0;         // Of these.
    std::optional<int64_t> namespace_quota = std::nullopt;
    std::optional<int64_t> space_quota_bytes = std::nullopt;
    absl::Time accessed = absl::UnixEpoch();
    std::map<std::string, std::string> xattrs;
  };
  FakeFileSystem() { entries["/"].is_directory = true; }

  void AddDirectory(const std::string& path) {
    entries[path].is_directory = true;
    entries[path].mode = 0755;
  }
  void AddFile(const std::string& path, const std::string& data) { entries[path].data = data; }

  std::map<std::string, Entry> entries;
  absl::Status fail_append;                         // Of every writer.
  std::map<std::string, absl::Status> fail_change;  // Path -> what setting an attribute of it answers.
  std::vector<std::string> changed;                 // "chmod 0755 /a", ..., in order.
  int aborted = 0;
  absl::Duration trash_interval;  // 0: there is no trash.
  absl::Time now = absl::FromUnixMillis(1'700'000'000'123);
  std::vector<size_t> deleted_together;  // Paths of each DeleteMany.
  int deleted_alone = 0;                 // Calls of Delete.
  absl::Status fail_rename;
  int recoveries_to_wait_for = 0;  // How often RecoverLease, and a status after a truncate, still answer "not yet".

  absl::StatusOr<std::unique_ptr<FileWriter>> Create(const std::string& path, CreateOptions options) override;
  absl::StatusOr<std::unique_ptr<FileWriter>> Append(const std::string& path, AppendOptions options) override;
  absl::StatusOr<bool> Truncate(const std::string& path, uint64_t length_bytes) override;
  absl::StatusOr<bool> RecoverLease(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileReader>> Open(const std::string& path) override;
  absl::StatusOr<FileStatus> GetFileStatus(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override { return entries.contains(path); }
  absl::StatusOr<std::vector<FileStatus>> List(const std::string& path) override;
  absl::StatusOr<std::vector<FileStatus>> ListPage(const std::string& path, const std::string& start_after, size_t limit,
                                                   bool* more) override;
  absl::Status MakeDirectories(const std::string& path, uint32_t mode) override;
  absl::Status Rename(const std::string& from, const std::string& to, bool overwrite) override;
  absl::StatusOr<bool> Delete(const std::string& path, bool recursive) override;
  absl::StatusOr<std::vector<absl::Status>> DeleteMany(const std::vector<std::string>& paths, bool recursive) override;
  absl::StatusOr<ServerDefaults> GetServerDefaults() override;
  absl::StatusOr<std::string> MoveToTrash(const std::string& path) override;
  absl::StatusOr<ExpungedTrash> ExpungeTrash(bool immediately) override;
  absl::StatusOr<ContentSummary> GetContentSummary(const std::string& path) override;
  absl::StatusOr<std::vector<BlockLocation>> GetBlockLocations(const std::string& path, uint64_t offset_bytes,
                                                               uint64_t length_bytes) override;
  absl::StatusOr<std::vector<absl::StatusOr<FileLocations>>> GetLocationsMany(const std::vector<std::string>& paths) override;
  absl::Status SetQuota(const std::string& path, std::optional<int64_t> namespace_quota, std::optional<int64_t> space_quota_bytes) override;
  absl::StatusOr<bool> SetReplication(const std::string& path, uint32_t replication) override;
  absl::Status Concat(const std::string& target, const std::vector<std::string>& sources) override;
  absl::Status SetPermission(const std::string& path, uint32_t mode) override;
  absl::Status SetOwner(const std::string& path, const std::string& owner, const std::string& group) override;
  absl::Status SetTimes(const std::string& path, std::optional<absl::Time> modification, std::optional<absl::Time> access) override;
  absl::Status CheckAccess(const std::string& path, uint32_t rights) override;
  absl::Status SetXattr(const std::string& path, const std::string& name, const std::string& value, XattrFlag flag) override;
  absl::Status RemoveXattr(const std::string& path, const std::string& name) override;
  absl::StatusOr<std::map<std::string, std::string>> GetXattrs(const std::string& path, const std::vector<std::string>& names) override;
  absl::StatusOr<std::vector<std::string>> ListXattrs(const std::string& path) override;

 private:
  absl::StatusOr<bool> Remove(const std::string& path, bool recursive);
  FileStatus StatusOf(const std::string& path, const Entry& entry) const;
  std::vector<std::string> Below(const std::string& path) const;
  // The entry, if it is there and may be changed; notes the change.
  absl::StatusOr<Entry*> Change(const std::string& path, const std::string& what);
};

}  // namespace cairn::cli
