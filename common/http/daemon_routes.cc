#include "common/http/server.h"
#include "common/metrics.h"

namespace cairn::http {

Routes DaemonRoutes(const metrics::Registry* registry, std::function<absl::Status()> ready) {
  Routes routes;
  routes["/healthz"] = [](const Request&) {
    Response response;
    response.body = "ok\n";
    return response;
  };
  routes["/readyz"] = [ready = std::move(ready)](const Request&) {
    Response response;
    const absl::Status status = ready();
    response.status = status.ok() ? 200 : 503;
    response.body = status.ok() ? "ready\n" : std::string(status.message()) + "\n";
    return response;
  };
  routes["/metrics"] = [registry](const Request&) {
    Response response;
    response.content_type = metrics::kTextContentType;
    response.body = registry->Text();
    return response;
  };
  return routes;
}

}  // namespace cairn::http
