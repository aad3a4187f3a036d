#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cairn/file_reader.h"
#include "cairn/file_writer.h"
#include "cairn/options.h"

namespace cairn {

// A file or directory, as HDFS's FileStatus.
struct FileStatus {
  std::string path;  // Absolute, in Cairn.
  uint64_t inode_id = 0;
  bool is_directory = false;
  uint64_t length_bytes = 0;
  uint32_t replication = 0;
  uint64_t block_size_bytes = 0;
  absl::Time modification_time;
  absl::Time access_time;
  uint32_t mode = 0;
  std::string owner;
  std::string group;
  bool under_construction = false;
};

// Totals of a subtree.
struct ContentSummary {
  uint64_t directories = 0;
  uint64_t files = 0;
  uint64_t length_bytes = 0;
  uint64_t charged_bytes = 0;  // With all replicas.
  // Of the directory itself. Names count files and directories, it included; space counts charged bytes.
  std::optional<int64_t> namespace_quota;
  std::optional<int64_t> space_quota_bytes;
};

// Takes a quota away; see FileSystem::SetQuota.
inline constexpr int64_t kNoQuota = -1;

struct BlockLocation {
  uint64_t block_id = 0;
  uint64_t generation_stamp = 0;
  uint64_t offset_bytes = 0;
  uint64_t length_bytes = 0;
  std::vector<std::string> hosts;  // "host:transfer port".
  size_t leaving = 0;              // Of these: on DataNodes that are decommissioned or in maintenance; copies of them are made elsewhere.
};

// A file with all its blocks.
struct FileLocations {
  FileStatus status;
  std::vector<BlockLocation> blocks;
};

// What the cluster has configured for those who do not say.
struct ServerDefaults {
  uint64_t block_size_bytes = 0;
  uint64_t max_block_size_bytes = 0;
  uint32_t replication = 0;
  uint32_t bytes_per_checksum = 0;
  absl::Duration trash_interval;  // 0: no trash, unless the client wants one.
  std::string cluster_id;
};

// What ExpungeTrash did.
struct ExpungedTrash {
  std::vector<std::string> deleted;  // Checkpoints.
  std::string made;                  // The new checkpoint; empty if nothing had been removed since the last.
};

// What an access is asked for: the bits of one class of a mode, as R_OK, W_OK and X_OK.
inline constexpr uint32_t kMayRead = 4;
inline constexpr uint32_t kMayWrite = 2;
inline constexpr uint32_t kMayExecute = 1;

// Whether an extended attribute that is set may be new, or there already.
enum class XattrFlag { kCreateOrReplace, kCreate, kReplace };

// A connection to a Cairn cluster. Thread-safe: share one among all threads. Every call blocks
// until it is answered or options.retry_budget has passed; calls that change something act exactly
// once, however often they had to be sent. Errors are absl::Status; <cairn/errors.h> tells kinds
// apart.
//
// Writers and readers keep what they need alive: they may outlive the FileSystem object.
class FileSystem {
 public:
  // `address`: "cairn://host[:port]" (port 8021 unless given), or "host:port". Does not wait for
  // the NameNode: the first call does.
  static absl::StatusOr<std::unique_ptr<FileSystem>> Connect(const std::string& address, ClientOptions options = {});

  virtual ~FileSystem() = default;

  // A new file, open for writing. kAlreadyExists unless overwrite; the parents are made if
  // create_parent.
  virtual absl::StatusOr<std::unique_ptr<FileWriter>> Create(const std::string& path, CreateOptions options = {}) = 0;
  // An existing, closed file, open for more at its end. kBeingWritten while it is not closed; its
  // Reason: ALREADY_OPEN_BY_YOU, HELD_BY_OTHER, or RECOVERING, also when this call took it over from
  // a writer that fell silent: ask again in a second.
  virtual absl::StatusOr<std::unique_ptr<FileWriter>> Append(const std::string& path, AppendOptions options = {}) = 0;
  // Cuts a closed file to `length_bytes`, at most its length. False: the cut falls inside a block,
  // which has to be recovered first; the file is closed, and as long as asked for, when that is done.
  virtual absl::StatusOr<bool> Truncate(const std::string& path, uint64_t length_bytes) = 0;
  // Takes a file from whoever writes it. True: it is closed; false: it will be, when its last block
  // is recovered: ask again in a second.
  virtual absl::StatusOr<bool> RecoverLease(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<FileReader>> Open(const std::string& path) = 0;

  virtual absl::StatusOr<FileStatus> GetFileStatus(const std::string& path) = 0;  // kNotFound.
  virtual absl::StatusOr<bool> Exists(const std::string& path) = 0;
  // All entries by name; of a file: itself. Pages are fetched as needed and stay right while the
  // directory changes.
  virtual absl::StatusOr<std::vector<FileStatus>> List(const std::string& path) = 0;
  // One page after `start_after` (a name; empty: the first); `more` says whether there are others.
  virtual absl::StatusOr<std::vector<FileStatus>> ListPage(const std::string& path, const std::string& start_after, size_t limit,
                                                           bool* more) = 0;
  virtual absl::Status MakeDirectories(const std::string& path, uint32_t mode = 0777) = 0;  // With parents; OK if it is there.
  virtual absl::Status Rename(const std::string& from, const std::string& to, bool overwrite = false) = 0;
  // False if it was not there. A directory that is not empty needs `recursive`, else kNotEmpty.
  virtual absl::StatusOr<bool> Delete(const std::string& path, bool recursive) = 0;
  // Thousands of paths in few calls; one Status for each, in order. kNotFound for what was not
  // there.
  virtual absl::StatusOr<std::vector<absl::Status>> DeleteMany(const std::vector<std::string>& paths, bool recursive = false) = 0;
  // Asked again after an hour at the earliest.
  virtual absl::StatusOr<ServerDefaults> GetServerDefaults() = 0;
  // Moves a path to the user's trash, /user/<user>/.Trash/Current/<path>, from where it is deleted
  // after the trash interval. Returns where it stands now; an empty answer if it was not moved,
  // because there is no trash (the interval is 0) or it is in the trash already: then Delete it.
  virtual absl::StatusOr<std::string> MoveToTrash(const std::string& path) = 0;
  // Deletes the user's trash checkpoints that are older than the trash interval, then makes one of
  // what was removed since the last. `immediately`: makes it first, then deletes all.
  virtual absl::StatusOr<ExpungedTrash> ExpungeTrash(bool immediately) = 0;
  virtual absl::StatusOr<ContentSummary> GetContentSummary(const std::string& path) = 0;
  virtual absl::StatusOr<std::vector<BlockLocation>> GetBlockLocations(const std::string& path, uint64_t offset_bytes,
                                                                       uint64_t length_bytes) = 0;
  // The same for whole files, many in one call; one answer for each path, in order.
  virtual absl::StatusOr<std::vector<absl::StatusOr<FileLocations>>> GetLocationsMany(const std::vector<std::string>& paths) = 0;

  // Quotas of a directory; only a superuser may set them. Nothing: as it is; kNoQuota: none. What would
  // exceed one is refused: errors::IsLimitExceeded, Reason NAMESPACE_QUOTA or SPACE_QUOTA.
  virtual absl::Status SetQuota(const std::string& path, std::optional<int64_t> namespace_quota,
                                std::optional<int64_t> space_quota_bytes) = 0;
  // False for a directory, which has no replication. Replicas are made and dropped afterwards.
  virtual absl::StatusOr<bool> SetReplication(const std::string& path, uint32_t replication) = 0;
  // Moves the blocks of `sources` to the end of `target`, in order; the sources are gone then. All closed
  // and in one directory; at most 1,000.
  virtual absl::Status Concat(const std::string& target, const std::vector<std::string>& sources) = 0;

  // Attributes. Who may do what is as in HDFS; errors::IsPermissionDenied names the inode, its mode and
  // the right that was missing.
  virtual absl::Status SetPermission(const std::string& path, uint32_t mode) = 0;  // 0 to 01777. The owner.
  // Empty: as it is. Owner: superusers; group: the owner, to one of his own.
  virtual absl::Status SetOwner(const std::string& path, const std::string& owner, const std::string& group) = 0;
  // Whole milliseconds; absent: as it is. Who may write the file.
  virtual absl::Status SetTimes(const std::string& path, std::optional<absl::Time> modification, std::optional<absl::Time> access) = 0;
  // OK if the caller has these rights (kMayRead and so on; 0: only that it is there).
  virtual absl::Status CheckAccess(const std::string& path, uint32_t rights) = 0;
  // Extended attributes; names begin with their name space: "user.origin". "trusted." is for superusers.
  virtual absl::Status SetXattr(const std::string& path, const std::string& name, const std::string& value,
                                XattrFlag flag = XattrFlag::kCreateOrReplace) = 0;
  virtual absl::Status RemoveXattr(const std::string& path, const std::string& name) = 0;
  // Those of `names`, each of which must be there, or all that the caller may see.
  virtual absl::StatusOr<std::map<std::string, std::string>> GetXattrs(const std::string& path,
                                                                       const std::vector<std::string>& names = {}) = 0;
  virtual absl::StatusOr<std::vector<std::string>> ListXattrs(const std::string& path) = 0;
};

}  // namespace cairn
