#pragma once

#include "cairn/admin.pb.h"
#include "namenode/replicas/replica_plane.h"

namespace cairn::namenode {

// Puts the queues' figures, and what can be said of all nodes together, into a report that has its DataNodes already.
void AddFigures(const ReplicaPlane::Figures& figures, v1::ClusterReportResponse* report);

}  // namespace cairn::namenode
