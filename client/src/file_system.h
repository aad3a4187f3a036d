#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/file_system.h"
#include "client/src/client_core.h"

namespace cairn::client {

// A FileSystem on a given world and NameNode: what Connect makes with the real ones, and tests with
// others. `env` and `namenode` outlive the FileSystem and its streams; `owned` (may be null) is
// kept until the last of them is gone.
std::unique_ptr<FileSystem> NewFileSystem(ClientOptions options, Env* env, api::ClientNamenode* namenode,
                                          std::shared_ptr<void> owned = nullptr);
// The same with a core that others use too.
std::unique_ptr<FileSystem> NewFileSystem(std::shared_ptr<ClientCore> core);

// "cairn://host[:port][/path]", "host[:port]" -> where the NameNode is; port 8021 unless given.
absl::StatusOr<HostPort> ParseAddress(const std::string& address);

FileStatus ToFileStatus(const v1::FileStatus& status, const std::string& path);

}  // namespace cairn::client
