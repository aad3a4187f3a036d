#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/env/env.h"
#include "namenode/store/views.h"

namespace cairn::namenode {

// Where a namespace that no NameNode has open stands.
struct NamespaceFiles {
  std::string database;  // Directory of the database itself.
  std::string locked;    // Directory that its NameNode would lock.
};
// `directory`: a NameNode's (it holds VERSION and namespace/), also a checkpoint of one, or a namespace/ by itself. kNotFound.
absl::StatusOr<NamespaceFiles> FindNamespace(const std::string& directory, LocalFileSystem& files);

// A namespace that no NameNode has open, for offline tools. Nothing is written but, where it can be, the file that locks the directory.
class NamespaceCopy {
 public:
  // `directory`: as in FindNamespace. kBusy naming it if a NameNode runs on it; kNotFound; kCorruptMetadata.
  static absl::StatusOr<NamespaceCopy> Open(const std::string& directory, Env* env);

  const ReadView& view() const { return *view_; }

 private:
  NamespaceCopy(std::unique_ptr<DirectoryLock> lock, std::shared_ptr<const ReadView> view)
      : lock_(std::move(lock)), view_(std::move(view)) {}

  std::unique_ptr<DirectoryLock> lock_;  // Null where nothing may be written.
  std::shared_ptr<const ReadView> view_;
};

}  // namespace cairn::namenode
