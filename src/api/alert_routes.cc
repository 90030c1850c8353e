// /api/alerts: the alert rules and which of them hold.
#include "api/alert_watch.h"
#include "api/call.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/time_text.h"

namespace caisson::api {
namespace {

json::Object ToJson(const telemetry::AlertStatus& status) {
  const auto since =
      std::chrono::duration_cast<std::chrono::milliseconds>(status.since.time_since_epoch())
          .count();
  return {{"name", status.rule.name},
          {"expr", status.rule.expr},
          {"severity", status.rule.severity},
          {"description", status.rule.description},
          {"state", NameOf(status.state)},
          {"value", status.value ? json::Value(*status.value) : json::Value()},
          {"since", since == 0 ? json::Value() : json::Value(TimeText(since))}};
}

Task<Result<Reply>> ListAlerts(Call* call) {
  json::Array list;
  for (const auto& status : call->services().alerts.List()) list.push_back(ToJson(status));
  co_return Reply::Json(200, json::Object{{"alerts", std::move(list)}});
}

}  // namespace

void AddAlertRoutes(std::vector<Route>& routes) {
  routes.push_back({.method = "GET",
                    .pattern = "/api/alerts",
                    .permission = {auth::Verb::kRead, auth::Resource::kMetrics},
                    .handler = ListAlerts,
                    .id = "listAlerts",
                    .group = "alerts",
                    .summary = "The alert rules, and which of them hold",
                    .outcomes = {{200, "AlertList"}}});
}

}  // namespace caisson::api
