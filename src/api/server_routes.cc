// The server's own routes: health, readiness, and what it serves.
#include "api/call.h"
#include "api/routes.h"
#include "api/server_info.h"
#include "api/services.h"

namespace caisson::api {
namespace {

// Nothing of the page comes from elsewhere, and nothing on it runs.
constexpr std::string_view kDocsPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

Task<Result<Reply>> Health(Call* call) {
  co_return Reply::Json(200,
                        json::Object{{"status", "ok"}, {"version", call->services().info.version}});
}

Task<Result<Reply>> Ready(Call* call) {
  Services& services = call->services();
  const Status store = services.store.health();
  const bool draining = services.info.draining && services.info.draining();
  json::Object checks{{"store", store ? "ok" : store.error().message()},
                      {"disk", services.store.out_of_space() ? "full" : "ok"},
                      {"accepting", draining ? "the server is ending" : "ok"}};
  const bool ready = store && !draining && !services.store.out_of_space();
  co_return Reply::Json(ready ? 200 : 503, json::Object{{"status", ready ? "ready" : "not_ready"},
                                                        {"checks", std::move(checks)}});
}

Task<Result<Reply>> OpenApi(Call* call) {
  co_return net::Response::Json(200, call->services().info.openapi);
}

Task<Result<Reply>> Docs(Call* call) {
  co_return net::Response::Html(200, call->services().info.docs)
      .WithHeader("Content-Security-Policy", std::string(kDocsPolicy));
}

Task<Result<Reply>> Metrics(Call* call) {
  net::Response response = net::Response::Text(200, call->services().metrics.registry().Expose());
  response.headers.Set("Content-Type", std::string(telemetry::Registry::kContentType));
  co_return response;
}

}  // namespace

void AddServerRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) {
    route.group = "server";
    routes.push_back(std::move(route));
  };
  add({.method = "GET",
       .pattern = "/health",
       .permission = Permission::Everybody(),
       .handler = Health,
       .id = "health",
       .summary = "Whether the server lives",
       .outcomes = {{200, "Health"}}});
  add({.method = "GET",
       .pattern = "/ready",
       .permission = Permission::Everybody(),
       .handler = Ready,
       .id = "ready",
       .summary = "Whether the server takes work; 503 when it does not",
       .outcomes = {{200, "Ready"}, {503, "Ready"}}});
  add({.method = "GET",
       .pattern = "/metrics",
       .permission = {auth::Verb::kRead, auth::Resource::kMetrics},
       .handler = Metrics,
       .id = "metrics",
       .summary = "The server's metrics, for Prometheus",
       .outcomes = {{200, "", "text/plain"}}});
  add({.method = "GET",
       .pattern = "/openapi.json",
       .permission = Permission::Everybody(),
       .handler = OpenApi,
       .id = "openapi",
       .summary = "This API as an OpenAPI document",
       .outcomes = {{200, "OpenApi"}}});
  add({.method = "GET",
       .pattern = "/docs",
       .permission = Permission::Everybody(),
       .handler = Docs,
       .id = "docs",
       .summary = "This API as a page",
       .outcomes = {{200, "", "text/html"}}});
}

std::vector<Route> AllRoutes() {
  std::vector<Route> routes;
  AddSessionRoutes(routes);
  AddExecRoutes(routes);
  AddProcessRoutes(routes);
  AddFileRoutes(routes);
  AddFileContentRoutes(routes);
  AddFileWatchRoutes(routes);
  AddSignedFileRoutes(routes);
  AddTarRoutes(routes);
  AddArtifactRoutes(routes);
  AddLogRoutes(routes);
  AddClassicRoutes(routes);
  AddServerRoutes(routes);
  AddKeyRoutes(routes);
  AddTokenRoutes(routes);
  AddEventRoutes(routes);
  AddStreamRoutes(routes);
  AddAuditRoutes(routes);
  AddUsageRoutes(routes);
  AddWebhookRoutes(routes);
  AddAlertRoutes(routes);
  return routes;
}

}  // namespace caisson::api
