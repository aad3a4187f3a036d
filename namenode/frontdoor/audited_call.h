#pragma once

// What the audit log says of a call of ClientService: a call's answer passes through here on its way out. For namenode/frontdoor only.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/api/callback.h"
#include "common/env/clock.h"
#include "common/error.h"
#include "namenode/audit_log.h"

namespace cairn::namenode {

// Where the caller runs: what it says, else its address as the transport saw it, without protocol and port
// ("ipv4:10.0.0.1:4711" and "10.0.0.1:4711" are 10.0.0.1, "ipv6:[::1]:4711" is ::1).
std::string HostOfCaller(const std::string& client_host, const std::string& peer);

// HDFS's word for a call; empty for one that it does not audit either: leases, blocks of a file being written.
std::string_view AuditCommand(std::string_view call);

struct AuditTarget {
  std::string source;
  std::string destination;
};

// What a request is about: a line for each.
template <class Request>
std::vector<AuditTarget> AuditTargets(const Request& request) {
  std::vector<AuditTarget> targets;
  if constexpr (requires {
                  request.source();
                  request.destination();
                }) {
    targets.push_back({request.source(), request.destination()});
  } else if constexpr (requires {
                         request.target();
                         request.sources();
                       }) {
    for (const std::string& source : request.sources()) targets.push_back({source, request.target()});
  } else if constexpr (requires { request.paths(); }) {
    for (const std::string& path : request.paths()) targets.push_back({path, ""});
  } else if constexpr (requires { request.path(); }) {
    targets.push_back({request.path(), ""});
  }
  return targets;
}

// How one target of an answered call ended.
template <class Response>
ErrorKind AuditKind(const Response& response, size_t index) {
  if constexpr (requires { response.codes(); }) {
    if (index < response.codes().size()) return static_cast<ErrorKind>(response.codes()[index]);
  } else if constexpr (requires { response.entries(0).error(); }) {
    if (index < static_cast<size_t>(response.entries_size())) return KindFromName(response.entries(static_cast<int>(index)).error().kind());
  }
  return ErrorKind::kNone;
}

template <class Request, class Response>
api::Done<Response> Audited(AuditLog* log, const Clock* clock, std::string_view call, bool is_mutation, const api::CallContext& context,
                            const Request& request, api::Done<Response> done) {
  std::string_view command = AuditCommand(call);
  if (command.empty()) return done;
  if constexpr (requires {
                  request.source();
                  request.overwrite();
                }) {
    if (request.overwrite()) command = "rename (options=[OVERWRITE])";
  }
  return [log, clock, command, is_mutation, user = request.header().user(), address = HostOfCaller("", context.peer),
          targets = AuditTargets(request), done = std::move(done)](absl::StatusOr<Response> response) mutable {
    AuditLog::Event event;
    event.time = clock->WallNow();
    event.user = std::move(user);
    event.address = std::move(address);
    event.command = command;
    if (is_mutation && response.ok()) {
      if constexpr (requires { response->status().owner(); })
        event.permission =
            fmt::format("{}:{}:{}", response->status().owner(), response->status().group(), PermissionText(response->status().mode()));
    }
    for (size_t i = 0; i < targets.size(); ++i) {
      AuditLog::Event line = event;
      line.source = std::move(targets[i].source);
      line.destination = std::move(targets[i].destination);
      const ErrorKind kind = response.ok() ? AuditKind(*response, i) : KindOf(response.status());
      line.allowed = kind != ErrorKind::kPermission;
      if (kind != ErrorKind::kNone || !response.ok()) line.error = KindName(kind);
      log->Write(std::move(line));
    }
    done(std::move(response));
  };
}

}  // namespace cairn::namenode
