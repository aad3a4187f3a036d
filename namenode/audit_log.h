#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/executor.h"
#include "common/mutex.h"

namespace cairn::namenode {

// Who did what: one line for each call of a client, in a file of its own that rotates. The lines are those of HDFS's FSNamesystem.audit, so
// that what reads the one reads the other:
//
//   2026-11-29 12:00:00,123 INFO FSNamesystem.audit: allowed=true<TAB>ugi=ada (auth:SIMPLE)<TAB>ip=/10.0.0.1<TAB>cmd=create<TAB>src=/a<TAB>
//     dst=null<TAB>perm=ada:staff:rw-r--r--<TAB>proto=rpc
//
// allowed=false is a refusal for want of rights. A call that failed for another reason was allowed and has a last field more, error=<kind>,
// which HDFS leaves out altogether. Control characters are escaped as \xNN.
//
// Write never blocks: lines wait in memory, at most `max_queued`, and are formatted and written on `executor`; beyond it they are dropped
// and counted. Thread-safe.
class AuditLog {
 public:
  struct Options {
    std::string file;                   // cairn.namenode.audit.file.
    size_t max_file_bytes = 256 << 20;  // cairn.namenode.audit.file.size.
    size_t max_files = 20;              // cairn.namenode.audit.file.count: older ones.
    size_t max_queued = 65536;
  };
  struct Event {
    absl::Time time;
    bool allowed = true;
    std::string user;
    std::string address;  // Of the caller, without port.
    std::string_view command;
    std::string source;
    std::string destination;
    std::string permission;  // "owner:group:rw-r--r--"; empty: null.
    std::string_view error;  // Name of an error kind; empty: none.
  };

  // An error names the file. `executor` outlives the last task of this.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const Options& options, Executor* executor);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void Write(Event event);
  uint64_t written() const;
  uint64_t dropped() const;
  // Calls `then` on the executor when all that was given before is in the file.
  void Flush(absl::AnyInvocable<void()> then);

 private:
  struct State;
  explicit AuditLog(std::shared_ptr<State> state) : state_(std::move(state)) {}
  const std::shared_ptr<State> state_;
};

// The part of the line that is the event's.
std::string AuditLine(const AuditLog::Event& event);
// "rw-r--r--", with t or T for the sticky bit.
std::string PermissionText(uint32_t mode);

}  // namespace cairn::namenode
