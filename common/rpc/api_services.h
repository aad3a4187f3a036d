#pragma once

#include "common/api/admin.h"
#include "common/api/client_namenode.h"
#include "common/api/datanode_namenode.h"
#include "common/api/inter_datanode.h"
#include "common/rpc/grpc_server.h"

namespace cairn::rpc {

// Puts an api object behind a server. The object outlives the server's Stop. Before Start.
void Serve(GrpcServer* server, api::ClientNamenode* api);
void Serve(GrpcServer* server, api::DatanodeNamenode* api);
void Serve(GrpcServer* server, api::NamenodeAdmin* api);
void Serve(GrpcServer* server, api::DatanodeAdmin* api);
void Serve(GrpcServer* server, api::InterDatanode* api);

}  // namespace cairn::rpc
