// FileSystem::Connect: the real world and gRPC. Apart from the rest, so that what does not connect
// does not link gRPC.

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "cairn/file_system.h"
#include "client/src/file_system.h"
#include "client/src/user_name.h"
#include "common/api/client_namenode.h"
#include "common/env/env.h"
#include "common/rpc/grpc_client.h"
#include "common/status.h"

namespace cairn {
namespace {

// What a connected FileSystem brings with it. Members go in reverse order: the channel before the
// world it lives in.
struct World {
  std::unique_ptr<Env> env = NewRealEnv();
  std::unique_ptr<api::ClientNamenode> namenode;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem>> FileSystem::Connect(const std::string& address, ClientOptions options) {
  ASSIGN_OR_RETURN(HostPort namenode, client::ParseAddress(address));
  auto world = std::make_shared<World>();
  if (options.user.empty()) {
    const char* user = std::getenv("HADOOP_USER_NAME");
    options.user = user != nullptr && *user != '\0' ? user : client::OsUserName(&world->env->files());
  }
  world->namenode = rpc::NewClientNamenode(namenode, world->env.get());
  Env* env = world->env.get();
  api::ClientNamenode* api = world->namenode.get();
  return client::NewFileSystem(std::move(options), env, api, std::move(world));
}

}  // namespace cairn
