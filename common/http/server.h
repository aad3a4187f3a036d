#pragma once

// common/http: the small HTTP/1.1 server behind a daemon's pages. Boost.Beast is seen by server.cc only.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/network.h"

namespace cairn::metrics {
class Registry;
}

namespace cairn::http {

struct Request {
  std::string method;  // GET or HEAD.
  std::string path;    // As sent, before '?'; begins with '/'.
  std::string query;   // After '?', as sent.
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Called on the server's thread, one at a time: memory only, milliseconds at most.
using Handler = std::function<Response(const Request&)>;
using Routes = std::map<std::string, Handler>;  // By exact path.

// Serves `routes` on one thread of its own, so that a daemon whose other threads are stuck still answers.
//
// Only GET and HEAD (else 405); 404 for other paths; 400 for what is not HTTP; 431 and 413 for headers over 8 KiB and bodies over 64 KiB.
// A connection that is silent for idle_timeout, or does not take its answer in that time, is closed; one connection over max_connections
// is closed at once. Connections are kept alive. The destructor closes all and waits for the running handler.
class Server {
 public:
  struct Options {
    HostPort bind;  // Port 0: any.
    size_t max_connections = 256;
    absl::Duration idle_timeout = absl::Seconds(30);
  };

  virtual ~Server() = default;
  // Listening when it returns. An error names the address.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options, Routes routes);
  virtual HostPort local() const = 0;
  // Connections now; for tests and metrics.
  virtual size_t connections() const = 0;
};

// What every daemon serves. /healthz: 200 while the process answers. /readyz: 200, or 503 with the message of `ready`'s status.
// /metrics: the registry's text. `registry` outlives the server.
Routes DaemonRoutes(const metrics::Registry* registry, std::function<absl::Status()> ready);

}  // namespace cairn::http
