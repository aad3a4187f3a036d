#include "namenode/namespace_copy.h"

#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {

absl::StatusOr<NamespaceFiles> FindNamespace(const std::string& directory, LocalFileSystem& files) {
  NamespaceFiles found{directory + "/namespace", directory};
  ASSIGN_OR_RETURN(const bool is_namenode, files.Exists(found.database + "/CURRENT"));
  if (is_namenode) return found;
  ASSIGN_OR_RETURN(const bool is_database, files.Exists(directory + "/CURRENT"));
  if (!is_database)
    return MakeError(ErrorKind::kNotFound, fmt::format("{}: neither a NameNode's directory nor a checkpoint of one", directory));
  found.database = directory;
  ASSIGN_OR_RETURN(const bool inside, files.Exists(directory + "/../VERSION"));
  if (inside) found.locked = directory + "/..";
  return found;
}

absl::StatusOr<NamespaceCopy> NamespaceCopy::Open(const std::string& directory, Env* env) {
  LocalFileSystem& files = env->files();
  ASSIGN_OR_RETURN(const NamespaceFiles found, FindNamespace(directory, files));
  MetaStore::Options options;
  options.directory = found.database;
  options.block_cache_bytes = 64 << 20;
  absl::StatusOr<std::unique_ptr<DirectoryLock>> lock = files.Lock(found.locked);
  if (KindOf(lock.status()) == ErrorKind::kBusy)
    return MakeError(ErrorKind::kBusy, fmt::format("{} is in use by a NameNode: look at a checkpoint instead (dfsadmin -saveNamespace), or "
                                                   "stop it",
                                                   found.locked));
  ASSIGN_OR_RETURN(std::shared_ptr<const ReadView> view, MetaStore::OpenForReading(options, env));
  return NamespaceCopy(lock.ok() ? *std::move(lock) : nullptr, std::move(view));
}

}  // namespace cairn::namenode
