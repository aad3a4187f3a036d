#include "namenode/frontdoor/audited_call.h"

#include <array>

namespace cairn::namenode {

std::string_view AuditCommand(std::string_view call) {
  using Row = std::pair<std::string_view, std::string_view>;
  static constexpr std::array kCommands = {
      Row{"Create", "create"},
      Row{"Append", "append"},
      Row{"GetBlockLocations", "open"},
      Row{"GetLocationsMany", "open"},
      Row{"GetFileInfo", "getfileinfo"},
      Row{"List", "listStatus"},
      Row{"Mkdirs", "mkdirs"},
      Row{"Rename", "rename"},
      Row{"Delete", "delete"},
      Row{"DeleteMany", "delete"},
      Row{"GetContentSummary", "contentSummary"},
      Row{"Truncate", "truncate"},
      Row{"Concat", "concat"},
      Row{"SetReplication", "setReplication"},
      Row{"SetPermission", "setPermission"},
      Row{"SetOwner", "setOwner"},
      Row{"SetTimes", "setTimes"},
      Row{"SetXattr", "setXAttr"},
      Row{"RemoveXattr", "removeXAttr"},
      Row{"GetXattrs", "getXAttrs"},
      Row{"SetQuota", "setQuota"},
      Row{"RecoverLease", "recoverLease"},
      Row{"CheckAccess", "checkAccess"},
  };
  for (const auto& [name, command] : kCommands)
    if (name == call) return command;
  return {};
}

}  // namespace cairn::namenode
