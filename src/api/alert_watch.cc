#include "api/alert_watch.h"

#include <fmt/core.h>

#include <utility>

namespace caisson::api {
namespace {

constexpr int kAttempts = 4;
constexpr size_t kMaxPosts = 64;  // on their way at a time

}  // namespace

AlertWatch::AlertWatch(Parts parts, std::vector<telemetry::AlertRule> rules)
    : parts_(std::move(parts)), alerts_(std::move(rules)), tasks_(parts_.loop) {
  tasks_.Spawn(
      telemetry::WatchAlerts(&parts_.loop, &parts_.metrics, &alerts_, parts_.interval,
                             [this](const telemetry::AlertStatus& status) { Tell(status); }));
}

void AlertWatch::Tell(const telemetry::AlertStatus& status) {
  const bool firing = status.state == telemetry::AlertState::kFiring;
  const std::string value = status.value ? fmt::format("{}", *status.value) : "none";
  parts_.events.Publish({.kind = sandbox::EventKind::kAlert,
                         .details = {{"name", status.rule.name},
                                     {"state", firing ? "firing" : "resolved"},
                                     {"severity", status.rule.severity},
                                     {"expr", status.rule.expr},
                                     {"value", value},
                                     {"description", status.rule.description}}});
  parts_.log.Write(firing ? log::Level::kWarn : log::Level::kInfo,
                   firing ? "alert fires" : "alert is resolved",
                   {{"alert", status.rule.name},
                    {"severity", status.rule.severity},
                    {"expr", status.rule.expr},
                    {"value", value}});
  if (status.rule.webhook.empty()) return;
  if (tasks_.size() > kMaxPosts) {
    parts_.log.Error("an alert was not posted: too many are on their way",
                     {{"alert", status.rule.name}});
    return;
  }
  tasks_.Spawn(PostTask(status.rule.webhook, telemetry::DescribeAsJson(status)));
}

Task<void> AlertWatch::PostTask(std::string url, std::string body) {
  auto pause = parts_.first_pause;
  for (int attempt = 1;; ++attempt, pause *= 2) {
    net::FetchRequest request{.method = "POST", .url = url, .headers = {}, .body = body};
    request.headers.Set("Content-Type", "application/json");
    request.headers.Set("User-Agent", "caisson");
    const auto response = co_await parts_.post(std::move(request));
    if (response && response->status >= 200 && response->status < 300) co_return;
    const Error error =
        response ? Error(ErrorCode::kUnavailable, fmt::format("answered {}", response->status))
                 : response.error();
    if (attempt == kAttempts || error.code() == ErrorCode::kPermissionDenied) {
      parts_.log.Error("an alert was not posted", error, {{"url", url}, {"attempts", attempt}});
      co_return;
    }
    co_await parts_.loop.Sleep(pause);
  }
}

}  // namespace caisson::api
