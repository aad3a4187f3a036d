#include "namenode/namespace_copy.h"

#include <utility>

#include <fmt/format.h>

#include "common/error.h"
#include "common/status.h"
#include "namenode/store/meta_store.h"

namespace cairn::namenode {

absl::StatusOr<NamespaceCopy> NamespaceCopy::Open(const std::string& directory, Env* env) {
  LocalFileSystem& files = env->files();
  // The directory that its NameNode would lock.
  std::string locked = directory;
  MetaStore::Options options;
  options.directory = directory + "/namespace";
  options.block_cache_bytes = 64 << 20;
  ASSIGN_OR_RETURN(const bool is_namenode, files.Exists(options.directory + "/CURRENT"));
  if (!is_namenode) {
    ASSIGN_OR_RETURN(const bool is_database, files.Exists(directory + "/CURRENT"));
    if (!is_database)
      return MakeError(ErrorKind::kNotFound, fmt::format("{}: neither a NameNode's directory nor a checkpoint of one", directory));
    options.directory = directory;
    ASSIGN_OR_RETURN(const bool inside, files.Exists(directory + "/../VERSION"));
    if (inside) locked = directory + "/..";
  }
  absl::StatusOr<std::unique_ptr<DirectoryLock>> lock = files.Lock(locked);
  if (KindOf(lock.status()) == ErrorKind::kBusy)
    return MakeError(ErrorKind::kBusy, fmt::format("{} is in use by a NameNode: look at a checkpoint instead (dfsadmin -saveNamespace), or "
                                                   "stop it",
                                                   locked));
  ASSIGN_OR_RETURN(std::shared_ptr<const ReadView> view, MetaStore::OpenForReading(options, env));
  return NamespaceCopy(lock.ok() ? *std::move(lock) : nullptr, std::move(view));
}

}  // namespace cairn::namenode
