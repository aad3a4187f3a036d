#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/admin.pb.h"
#include "client/cli/shell.h"
#include "common/env/file_system.h"

namespace cairn::cli {

// Asks the NameNode; each blocks and fills the header.
struct AskImage {
  std::function<absl::StatusOr<v1::SaveNamespaceResponse>(v1::SaveNamespaceRequest)> save;
  std::function<absl::StatusOr<v1::GetImageResponse>(v1::GetImageRequest)> get;
  std::function<absl::StatusOr<v1::ReadImageResponse>(v1::ReadImageRequest)> read;
  std::function<absl::StatusOr<v1::ConfirmRollbackResponse>(v1::ConfirmRollbackRequest)> confirm;
};

// The verbs of dfsadmin about backups of the namespace: -saveNamespace, -fetchImage, -confirmRollback.
// `files` is where fetchImage puts what it brings; it outlives the verbs.
std::vector<Verb> ImageVerbs(const AskImage& ask, LocalFileSystem* files);

}  // namespace cairn::cli
