#pragma once

#include <string>

#include "absl/time/time.h"
#include "cairn/admin.pb.h"

namespace cairn::cli {

// What is listed; all of it if nothing is set.
struct ReportSections {
  bool live = false;
  bool dead = false;
  bool decommissioning = false;
  bool entering_maintenance = false;
  bool in_maintenance = false;
  bool slow = false;
};

// A message for programs: one JSON object, names as in the protocol, every field there; 64-bit numbers are strings, as protobuf has it.
std::string JsonText(const google::protobuf::Message& message);

// dfsadmin -report, in the order and with the words that scripts look for in HDFS's; ours come
// after the old fields of each node.
std::string ReportText(const v1::ClusterReportResponse& report, absl::Time now, const ReportSections& sections);

}  // namespace cairn::cli
