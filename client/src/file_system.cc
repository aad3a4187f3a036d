#include "client/src/file_system.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "client/src/blocking.h"
#include "client/src/file_reader.h"
#include "client/src/file_writer.h"
#include "client/src/path.h"
#include "client/src/trash.h"
#include "client/src/xattr_names.h"
#include "common/mutex.h"
#include "common/status.h"

namespace cairn::client {
namespace {

constexpr uint16_t kDefaultPort = 8021;
constexpr size_t kMaxDeletePaths = 4096;  // As the server's limits: docs/formats.md.
constexpr size_t kMaxLocatedPaths = 1000;
constexpr size_t kMaxPathBytes = 1 << 20;  // Of one call about many paths.
constexpr absl::Duration kDefaultsHold = absl::Hours(1);

std::string ChildPath(const std::string& directory, const std::string& name) {
  return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

// Cleans whatever paths a request holds: nobody gets past the check.
template <class Request>
absl::Status CleanPaths(Request* request) {
  const auto clean = [](std::string* path) {
    absl::StatusOr<std::string> cleaned = CleanPath(*path);
    RETURN_IF_ERROR(cleaned.status());
    *path = *std::move(cleaned);
    return absl::OkStatus();
  };
  if constexpr (requires { request->mutable_path(); }) RETURN_IF_ERROR(clean(request->mutable_path()));
  if constexpr (requires { request->mutable_source(); }) RETURN_IF_ERROR(clean(request->mutable_source()));
  if constexpr (requires { request->mutable_destination(); }) RETURN_IF_ERROR(clean(request->mutable_destination()));
  if constexpr (requires { request->mutable_target(); }) RETURN_IF_ERROR(clean(request->mutable_target()));
  if constexpr (requires { request->mutable_sources(); })
    for (std::string& path : *request->mutable_sources()) RETURN_IF_ERROR(clean(&path));
  return absl::OkStatus();
}

// Cleans paths from *next on and adds them to the request, as many as one call takes; *next is then the first that is left. Which they
// are, by their places in `paths`. A path that is none gets its error in `results` instead.
template <class Request, class Result>
std::vector<size_t> AddPaths(const std::vector<std::string>& paths, size_t most, size_t* next, std::vector<Result>* results,
                             Request* request) {
  std::vector<size_t> asked;
  size_t bytes = 0;
  for (; *next < paths.size() && asked.size() < most; ++*next) {
    absl::StatusOr<std::string> path = CleanPath(paths[*next]);
    if (!path.ok()) {
      (*results)[*next] = path.status();
      continue;
    }
    bytes += path->size() + 8;
    if (bytes > kMaxPathBytes && !asked.empty()) break;
    request->add_paths(*std::move(path));
    asked.push_back(*next);
  }
  return asked;
}

BlockLocation ToBlockLocation(const v1::LocatedBlock& located) {
  BlockLocation block;
  block.block_id = located.block().id();
  block.generation_stamp = located.block().generation_stamp();
  block.offset_bytes = located.offset_bytes();
  block.length_bytes = located.block().length_bytes();
  for (const v1::StorageLocation& location : located.locations()) {
    block.hosts.push_back(fmt::format("{}:{}", location.datanode().transfer().host(), location.datanode().transfer().port()));
    block.leaving += location.datanode().admin_state() != v1::NODE_NORMAL ? 1 : 0;
  }
  return block;
}

class BlockingFileSystem : public FileSystem {
 public:
  explicit BlockingFileSystem(std::shared_ptr<ClientCore> core) : core_(std::move(core)) {}

  absl::StatusOr<std::unique_ptr<FileWriter>> Create(const std::string& typed, CreateOptions options) override {
    ASSIGN_OR_RETURN(const std::string path, CleanPath(typed));
    return BlockingFileWriter::Create(core_, path, options);
  }
  absl::StatusOr<std::unique_ptr<FileWriter>> Append(const std::string& typed, AppendOptions options) override {
    ASSIGN_OR_RETURN(const std::string path, CleanPath(typed));
    return BlockingFileWriter::OpenForAppend(core_, path, options);
  }
  absl::StatusOr<bool> Truncate(const std::string& path, uint64_t length_bytes) override {
    v1::TruncateRequest request;
    request.set_path(path);
    request.set_new_length_bytes(length_bytes);
    ASSIGN_OR_RETURN(v1::TruncateResponse answer, Mutate(&api::ClientNamenode::Truncate, request));
    return answer.done();
  }
  absl::StatusOr<bool> RecoverLease(const std::string& path) override {
    v1::RecoverLeaseRequest request;
    request.set_path(path);
    ASSIGN_OR_RETURN(v1::RecoverLeaseResponse answer, Mutate(&api::ClientNamenode::RecoverLease, request));
    return answer.closed();
  }
  absl::StatusOr<std::unique_ptr<FileReader>> Open(const std::string& typed) override {
    ASSIGN_OR_RETURN(const std::string path, CleanPath(typed));
    return BlockingFileReader::Open(core_, path);
  }

  absl::StatusOr<FileStatus> GetFileStatus(const std::string& typed) override {
    ASSIGN_OR_RETURN(const std::string path, CleanPath(typed));
    v1::GetFileInfoRequest request;
    request.set_path(path);
    ASSIGN_OR_RETURN(v1::GetFileInfoResponse answer, Read(&api::ClientNamenode::GetFileInfo, request));
    return ToFileStatus(answer.status(), path);
  }

  absl::StatusOr<bool> Exists(const std::string& path) override {
    const absl::StatusOr<FileStatus> status = GetFileStatus(path);
    if (status.ok()) return true;
    if (KindOf(status.status()) == ErrorKind::kNotFound || KindOf(status.status()) == ErrorKind::kNotDirectory) return false;
    return status.status();
  }

  absl::StatusOr<std::vector<FileStatus>> List(const std::string& path) override {
    std::vector<FileStatus> all;
    std::string start_after;
    for (bool more = true; more;) {
      ASSIGN_OR_RETURN(std::vector<FileStatus> page, ListPage(path, start_after, 0, &more));
      if (page.empty()) break;
      start_after = page.back().path.substr(page.back().path.rfind('/') + 1);
      std::move(page.begin(), page.end(), std::back_inserter(all));
    }
    return all;
  }

  absl::StatusOr<std::vector<FileStatus>> ListPage(const std::string& typed, const std::string& start_after, size_t limit,
                                                   bool* more) override {
    ASSIGN_OR_RETURN(const std::string path, CleanPath(typed));
    v1::ListRequest request;
    request.set_path(path);
    request.set_start_after(start_after);
    request.set_limit(static_cast<uint32_t>(std::min<size_t>(limit, UINT32_MAX)));  // The server has a limit of its own.
    ASSIGN_OR_RETURN(v1::ListResponse answer, Read(&api::ClientNamenode::List, request));
    *more = answer.has_more();
    std::vector<FileStatus> entries;
    entries.reserve(static_cast<size_t>(answer.entries_size()));
    for (const v1::FileStatus& entry : answer.entries()) entries.push_back(ToFileStatus(entry, ChildPath(path, entry.path())));
    // A file is listed as itself, by its name; so is a directory's only child that happens to be called like it.
    if (entries.size() == 1 && !entries[0].is_directory && path.ends_with("/" + answer.entries(0).path())) {
      ASSIGN_OR_RETURN(FileStatus itself, GetFileStatus(path));
      if (!itself.is_directory) entries[0] = std::move(itself);
    }
    return entries;
  }

  absl::Status MakeDirectories(const std::string& path, uint32_t mode) override {
    v1::MkdirsRequest request;
    request.set_path(path);
    request.set_create_parent(true);
    request.set_mode(mode);
    request.set_umask(core_->options().umask);
    return Mutate(&api::ClientNamenode::Mkdirs, request).status();
  }

  absl::Status Rename(const std::string& from, const std::string& to, bool overwrite) override {
    v1::RenameRequest request;
    request.set_source(from);
    request.set_destination(to);
    request.set_overwrite(overwrite);
    return Mutate(&api::ClientNamenode::Rename, request).status();
  }

  absl::StatusOr<bool> Delete(const std::string& path, bool recursive) override {
    v1::DeleteRequest request;
    request.set_path(path);
    request.set_recursive(recursive);
    ASSIGN_OR_RETURN(v1::DeleteResponse answer, Mutate(&api::ClientNamenode::Delete, request));
    return answer.existed();
  }

  absl::StatusOr<std::vector<absl::Status>> DeleteMany(const std::vector<std::string>& paths, bool recursive) override {
    std::vector<absl::Status> results(paths.size());
    for (size_t next = 0; next < paths.size();) {
      v1::DeleteManyRequest request;
      request.set_recursive(recursive);
      const std::vector<size_t> asked = AddPaths(paths, kMaxDeletePaths, &next, &results, &request);
      if (asked.empty()) break;
      ASSIGN_OR_RETURN(const v1::DeleteManyResponse answer, Mutate(&api::ClientNamenode::DeleteMany, std::move(request)));
      if (answer.codes().size() != asked.size())
        return absl::InternalError(fmt::format("the NameNode answered {} codes for {} paths", answer.codes().size(), asked.size()));
      for (size_t i = 0; i < asked.size(); ++i) {
        const auto kind = static_cast<ErrorKind>(static_cast<uint8_t>(answer.codes()[i]));
        if (kind != ErrorKind::kNone) results[asked[i]] = MakeError(kind, fmt::format("{}: {}", paths[asked[i]], KindName(kind)));
      }
    }
    return results;
  }

  absl::StatusOr<ServerDefaults> GetServerDefaults() override {
    const SteadyTime now = core_->env()->clock().Now();
    {
      const MutexLock lock(mu_);
      if (defaults_ && now < defaults_until_) return *defaults_;
    }
    ASSIGN_OR_RETURN(v1::GetServerDefaultsResponse answer, Read(&api::ClientNamenode::GetServerDefaults, v1::GetServerDefaultsRequest()));
    ServerDefaults defaults;
    defaults.block_size_bytes = answer.block_size_bytes();
    defaults.max_block_size_bytes = answer.max_block_size_bytes();
    defaults.replication = answer.replication();
    defaults.bytes_per_checksum = answer.bytes_per_checksum();
    defaults.trash_interval = absl::Milliseconds(answer.trash_interval_ms());
    defaults.cluster_id = answer.cluster_id();
    const MutexLock lock(mu_);
    defaults_ = defaults;
    defaults_until_ = now + kDefaultsHold;
    return defaults;
  }

  absl::StatusOr<std::string> MoveToTrash(const std::string& path) override {
    ASSIGN_OR_RETURN(const absl::Duration interval, TrashInterval());
    if (interval <= absl::ZeroDuration()) return std::string();
    return Trash(this, core_->options().user).Move(path, core_->env()->clock().WallNow());
  }

  absl::StatusOr<ExpungedTrash> ExpungeTrash(bool immediately) override {
    ASSIGN_OR_RETURN(const absl::Duration interval, TrashInterval());
    return Trash(this, core_->options().user).Expunge(core_->env()->clock().WallNow(), interval, immediately);
  }

  absl::StatusOr<ContentSummary> GetContentSummary(const std::string& path) override {
    v1::GetContentSummaryRequest request;
    request.set_path(path);
    ASSIGN_OR_RETURN(v1::GetContentSummaryResponse answer, Read(&api::ClientNamenode::GetContentSummary, request));
    ContentSummary summary;
    summary.directories = answer.summary().directories();
    summary.files = answer.summary().files();
    summary.length_bytes = answer.summary().length_bytes();
    summary.charged_bytes = answer.summary().charged_bytes();
    if (answer.summary().has_namespace_quota()) summary.namespace_quota = answer.summary().namespace_quota();
    if (answer.summary().has_space_quota_bytes()) summary.space_quota_bytes = answer.summary().space_quota_bytes();
    return summary;
  }

  absl::StatusOr<std::vector<BlockLocation>> GetBlockLocations(const std::string& path, uint64_t offset_bytes,
                                                               uint64_t length_bytes) override {
    v1::GetBlockLocationsRequest request;
    request.set_path(path);
    request.set_offset_bytes(offset_bytes);
    request.set_length_bytes(length_bytes);
    request.set_client_host(core_->host());
    ASSIGN_OR_RETURN(v1::GetBlockLocationsResponse answer, Read(&api::ClientNamenode::GetBlockLocations, request));
    std::vector<BlockLocation> blocks;
    for (const v1::LocatedBlock& located : answer.blocks()) blocks.push_back(ToBlockLocation(located));
    return blocks;
  }

  absl::StatusOr<std::vector<absl::StatusOr<FileLocations>>> GetLocationsMany(const std::vector<std::string>& paths) override {
    std::vector<absl::StatusOr<FileLocations>> results(paths.size());
    for (size_t next = 0; next < paths.size();) {
      v1::GetLocationsManyRequest request;
      request.set_client_host(core_->host());
      const std::vector<size_t> asked = AddPaths(paths, kMaxLocatedPaths, &next, &results, &request);
      if (asked.empty()) break;
      ASSIGN_OR_RETURN(const v1::GetLocationsManyResponse answer, Read(&api::ClientNamenode::GetLocationsMany, request));
      if (static_cast<size_t>(answer.entries_size()) != asked.size())
        return absl::InternalError(fmt::format("the NameNode answered {} entries for {} paths", answer.entries_size(), asked.size()));
      for (size_t i = 0; i < asked.size(); ++i)
        results[asked[i]] = ToFileLocations(answer.entries(static_cast<int>(i)), request.paths(static_cast<int>(i)));
    }
    return results;
  }

  absl::Status SetQuota(const std::string& path, std::optional<int64_t> namespace_quota,
                        std::optional<int64_t> space_quota_bytes) override {
    v1::SetQuotaRequest request;
    request.set_path(path);
    if (namespace_quota) request.set_namespace_quota(*namespace_quota);
    if (space_quota_bytes) request.set_space_quota_bytes(*space_quota_bytes);
    return Mutate(&api::ClientNamenode::SetQuota, request).status();
  }

  absl::StatusOr<bool> SetReplication(const std::string& path, uint32_t replication) override {
    v1::SetReplicationRequest request;
    request.set_path(path);
    request.set_replication(replication);
    ASSIGN_OR_RETURN(const v1::SetReplicationResponse answer, Mutate(&api::ClientNamenode::SetReplication, request));
    return answer.is_file();
  }

  absl::Status Concat(const std::string& target, const std::vector<std::string>& sources) override {
    v1::ConcatRequest request;
    request.set_target(target);
    for (const std::string& source : sources) request.add_sources(source);
    return Mutate(&api::ClientNamenode::Concat, request).status();
  }

  absl::Status SetPermission(const std::string& path, uint32_t mode) override {
    v1::SetPermissionRequest request;
    request.set_path(path);
    request.set_mode(mode);
    return Mutate(&api::ClientNamenode::SetPermission, request).status();
  }

  absl::Status SetOwner(const std::string& path, const std::string& owner, const std::string& group) override {
    v1::SetOwnerRequest request;
    request.set_path(path);
    request.set_owner(owner);
    request.set_group(group);
    return Mutate(&api::ClientNamenode::SetOwner, request).status();
  }

  absl::Status SetTimes(const std::string& path, std::optional<absl::Time> modification, std::optional<absl::Time> access) override {
    v1::SetTimesRequest request;
    request.set_path(path);
    if (modification) request.set_modification_time_ms(absl::ToUnixMillis(*modification));
    if (access) request.set_access_time_ms(absl::ToUnixMillis(*access));
    return Mutate(&api::ClientNamenode::SetTimes, request).status();
  }

  absl::Status CheckAccess(const std::string& path, uint32_t rights) override {
    v1::CheckAccessRequest request;
    request.set_path(path);
    request.set_rights(rights);
    return Read(&api::ClientNamenode::CheckAccess, request).status();
  }

  absl::Status SetXattr(const std::string& path, const std::string& name, const std::string& value, XattrFlag flag) override {
    v1::SetXattrRequest request;
    request.set_path(path);
    ASSIGN_OR_RETURN(*request.mutable_xattr(), ParseXattrName(name));
    request.mutable_xattr()->set_value(value);
    request.set_create(flag != XattrFlag::kReplace);
    request.set_replace(flag != XattrFlag::kCreate);
    return Mutate(&api::ClientNamenode::SetXattr, request).status();
  }

  absl::Status RemoveXattr(const std::string& path, const std::string& name) override {
    v1::RemoveXattrRequest request;
    request.set_path(path);
    ASSIGN_OR_RETURN(*request.mutable_xattr(), ParseXattrName(name));
    return Mutate(&api::ClientNamenode::RemoveXattr, request).status();
  }

  absl::StatusOr<std::map<std::string, std::string>> GetXattrs(const std::string& path, const std::vector<std::string>& names) override {
    v1::GetXattrsRequest request;
    request.set_path(path);
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(*request.add_wanted(), ParseXattrName(name));
    }
    ASSIGN_OR_RETURN(v1::GetXattrsResponse answer, Read(&api::ClientNamenode::GetXattrs, request));
    std::map<std::string, std::string> xattrs;
    for (v1::Xattr& xattr : *answer.mutable_xattrs()) xattrs[XattrName(xattr)] = std::move(*xattr.mutable_value());
    return xattrs;
  }

  absl::StatusOr<std::vector<std::string>> ListXattrs(const std::string& path) override {
    v1::GetXattrsRequest request;
    request.set_path(path);
    request.set_names_only(true);
    ASSIGN_OR_RETURN(const v1::GetXattrsResponse answer, Read(&api::ClientNamenode::GetXattrs, request));
    std::vector<std::string> names;
    for (const v1::Xattr& xattr : answer.xattrs()) names.push_back(XattrName(xattr));
    return names;
  }

 private:
  template <class Request, class Response>
  absl::StatusOr<Response> Read(NamenodeCaller::Method<Request, Response> method, Request request) {
    RETURN_IF_ERROR(CleanPaths(&request));
    const Scope scope = core_->CallScope();
    return RunBlocking<absl::StatusOr<Response>>(core_->env(), scope.group, "call",
                                                 [this, scope, method, request] { return core_->namenode().Read(scope, method, request); });
  }
  template <class Request, class Response>
  absl::StatusOr<Response> Mutate(NamenodeCaller::Method<Request, Response> method, Request request) {
    RETURN_IF_ERROR(CleanPaths(&request));
    const Scope scope = core_->CallScope();
    return RunBlocking<absl::StatusOr<Response>>(
        core_->env(), scope.group, "call", [this, scope, method, request] { return core_->namenode().Mutate(scope, method, request); });
  }

  // One file of an answer; what the answer had no room for is asked for alone.
  absl::StatusOr<FileLocations> ToFileLocations(const v1::GetLocationsManyResponse::Entry& entry, const std::string& path) {
    if (entry.has_error()) return FromDetail(entry.error());
    FileLocations file;
    file.status = ToFileStatus(entry.status(), path);
    for (const v1::LocatedBlock& located : entry.blocks()) file.blocks.push_back(ToBlockLocation(located));
    for (bool more = entry.has_more(); more;) {
      const uint64_t begin = file.blocks.empty() ? 0 : file.blocks.back().offset_bytes + file.blocks.back().length_bytes;
      ASSIGN_OR_RETURN(std::vector<BlockLocation> page, GetBlockLocations(path, begin, UINT64_MAX - begin));
      more = !page.empty() && page.back().offset_bytes + page.back().length_bytes > begin;
      for (BlockLocation& block : page)
        if (block.offset_bytes >= begin && (file.blocks.empty() || block.block_id != file.blocks.back().block_id))
          file.blocks.push_back(std::move(block));
    }
    return file;
  }

  absl::StatusOr<absl::Duration> TrashInterval() {
    ASSIGN_OR_RETURN(const ServerDefaults defaults, GetServerDefaults());
    return defaults.trash_interval > absl::ZeroDuration() ? defaults.trash_interval : core_->options().trash_interval;
  }

  const std::shared_ptr<ClientCore> core_;
  Mutex mu_;
  std::optional<ServerDefaults> defaults_ ABSL_GUARDED_BY(mu_);
  SteadyTime defaults_until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

FileStatus ToFileStatus(const v1::FileStatus& status, const std::string& path) {
  FileStatus out;
  out.path = path;
  out.inode_id = status.inode_id();
  out.is_directory = status.is_directory();
  out.length_bytes = status.length_bytes();
  out.replication = status.replication();
  out.block_size_bytes = status.block_size_bytes();
  out.modification_time = absl::FromUnixMillis(status.modification_time_ms());
  out.access_time = absl::FromUnixMillis(status.access_time_ms());
  out.mode = status.mode();
  out.owner = status.owner();
  out.group = status.group();
  out.under_construction = status.under_construction();
  return out;
}

std::unique_ptr<FileSystem> NewFileSystem(std::shared_ptr<ClientCore> core) {
  return std::make_unique<BlockingFileSystem>(std::move(core));
}

std::unique_ptr<FileSystem> NewFileSystem(ClientOptions options, Env* env, api::ClientNamenode* namenode, std::shared_ptr<void> owned) {
  return NewFileSystem(std::make_shared<ClientCore>(std::move(options), env, namenode, std::move(owned)));
}

absl::StatusOr<HostPort> ParseAddress(const std::string& address) {
  constexpr std::string_view kScheme = "cairn://";
  std::string_view rest = address;
  if (rest.starts_with(kScheme)) {
    rest.remove_prefix(kScheme.size());
  } else if (rest.find("://") != std::string_view::npos) {
    return MakeError(ErrorKind::kInvalidArgument, fmt::format("{}: the address of a cluster is cairn://host[:port]", address));
  }
  rest = rest.substr(0, rest.find('/'));
  HostPort result;
  result.port = kDefaultPort;
  std::string_view port;
  if (rest.starts_with('[')) {  // [::1]:8021
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) return MakeError(ErrorKind::kInvalidArgument, fmt::format("{}: '[' without ']'", address));
    result.host = std::string(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    if (rest.starts_with(':')) port = rest.substr(1);
  } else {
    const size_t colon = rest.find(':');
    result.host = std::string(rest.substr(0, colon));
    if (colon != std::string_view::npos) port = rest.substr(colon + 1);
  }
  if (result.host.empty()) return MakeError(ErrorKind::kInvalidArgument, fmt::format("{}: no host in the address", address));
  if (!port.empty()) {
    uint16_t value = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
    if (error != std::errc() || end != port.data() + port.size() || value == 0)
      return MakeError(ErrorKind::kInvalidArgument, fmt::format("{}: '{}' is not a port", address, port));
    result.port = value;
  }
  return result;
}

}  // namespace cairn::client
