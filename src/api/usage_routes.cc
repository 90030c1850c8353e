// /api/usage: what each key used, by day.
#include "api/call.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/time_text.h"
#include "api/usage_recorder.h"
#include "store/usage_records.h"

namespace caisson::api {
namespace {

constexpr int64_t kDayMs = 24LL * 3600 * 1000;

void AddCounts(json::Object& to, const store::UsageRecord& usage) {
  to["requests"] = usage.requests;
  to["creates"] = usage.creates;
  to["execs"] = usage.execs;
  to["cpu_seconds"] = static_cast<double>(usage.cpu_us) / 1e6;
  to["sandbox_seconds"] = static_cast<double>(usage.sandbox_ms) / 1e3;
}

void AddUp(store::UsageRecord& total, const store::UsageRecord& usage) {
  total.requests += usage.requests;
  total.creates += usage.creates;
  total.execs += usage.execs;
  total.cpu_us += usage.cpu_us;
  total.sandbox_ms += usage.sandbox_ms;
}

Result<store::UsageFilter> FilterOf(const Call& call) {
  store::UsageFilter filter;
  CAISSON_ASSIGN(filter.tenant, call.Query("tenant"));
  CAISSON_ASSIGN(filter.key_id, call.Query("key"));
  CAISSON_ASSIGN(const auto from, call.Query("from"));
  CAISSON_ASSIGN(const auto to, call.Query("to"));
  if (from) {
    CAISSON_ASSIGN(const int64_t time, ParseTime("from", *from));
    filter.first_day = store::DayOf(time);
  }
  if (to) {
    CAISSON_ASSIGN(const int64_t time, ParseTime("to", *to));
    filter.last_day = store::DayOf(time);
  }
  if (auth::ReachOf(call.principal().role) != auth::Reach::kAll)
    filter.tenant = call.principal().tenant;
  return filter;
}

Task<Result<Reply>> ListUsage(Call* call) {
  CAISSON_CO_ASSIGN(const store::UsageFilter filter, FilterOf(*call));
  CAISSON_CO_TRY(co_await call->services().usage.Flush());
  CAISSON_CO_ASSIGN(const auto rows,
                    co_await call->services().store.Read<std::vector<store::UsageRecord>>(
                        [filter](store::Database& db) { return store::ListUsage(db, filter); }));
  json::Array list;
  store::UsageRecord sum;
  for (const auto& row : rows) {
    json::Object entry{{"day", TimeText(row.day * kDayMs).substr(0, 10)},
                       {"tenant", row.tenant},
                       {"key_id", row.key_id}};
    AddCounts(entry, row);
    AddUp(sum, row);
    list.push_back(std::move(entry));
  }
  json::Object total;
  AddCounts(total, sum);
  co_return Reply::Json(200, json::Object{{"usage", std::move(list)}, {"total", std::move(total)}});
}

}  // namespace

void AddUsageRoutes(std::vector<Route>& routes) {
  routes.push_back({.method = "GET",
                    .pattern = "/api/usage",
                    .permission = {auth::Verb::kRead, auth::Resource::kUsage},
                    .handler = ListUsage,
                    .id = "listUsage",
                    .group = "usage",
                    .summary = "What each key used, by day (UTC)",
                    .outcomes = {{200, "UsageReport"}},
                    .parameters = {{"tenant", "string", "Of this tenant"},
                                   {"key", "string", "Of this key"},
                                   {"from", "TimeFilter", "The first day"},
                                   {"to", "TimeFilter", "The last day"}}});
}

}  // namespace caisson::api
