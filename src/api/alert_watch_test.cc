#include "api/alert_watch.h"

#include <gtest/gtest.h>

#include "api/test_api.h"

namespace caisson::api {
namespace {

using AlertWatchTest = ApiTest;

Task<Result<net::FetchResponse>> Keep(std::vector<net::FetchRequest>* posts,
                                      net::FetchRequest request) {
  posts->push_back(std::move(request));
  co_return net::FetchResponse{.status = posts->size() == 1 ? 503 : 204};
}

TEST_F(AlertWatchTest, ARuleThatHoldsIsToldAsEventLogAndWebhookAndSoIsItsEnd) {
  telemetry::Gauge& gauge = metrics.AddGauge("caisson_test_level", "For this test");
  telemetry::AlertRule rule;
  rule.name = "too_high";
  rule.expr = "caisson_test_level > 5";
  rule.expression = telemetry::AlertExpression::Parse(rule.expr).value();
  rule.severity = "critical";
  rule.webhook = "https://ops.example/hook";
  std::vector<net::FetchRequest> posts;
  (void)Heard();
  AlertWatch watch(
      {.loop = loop,
       .log = log::Logger(sink, log::Level::kDebug),
       .events = *events,
       .metrics = metrics,
       .post = [&](net::FetchRequest request) { return Keep(&posts, std::move(request)); },
       .interval = std::chrono::milliseconds(1),
       .first_pause = std::chrono::milliseconds(1)},
      {rule});
  gauge.Set(9);
  ASSERT_TRUE(Eventually([&] { return posts.size() == 2; })) << "the first post failed, so again";
  EXPECT_EQ(watch.List()[0].state, telemetry::AlertState::kFiring);
  EXPECT_NE(posts[0].body.find("too_high"), std::string::npos);
  EXPECT_EQ(Heard(), std::vector<std::string>{"alert"});
  gauge.Set(1);
  ASSERT_TRUE(Eventually([&] { return posts.size() == 3; }));
  EXPECT_EQ(watch.List()[0].state, telemetry::AlertState::kInactive);
  EXPECT_EQ(Heard(), std::vector<std::string>{"alert"});
  std::string log;
  for (const std::string& line : sink.lines()) log += line;
  EXPECT_NE(log.find("alert fires"), std::string::npos);
  EXPECT_NE(log.find("alert is resolved"), std::string::npos);
}

TEST_F(AlertWatchTest, TheListIsForThoseWhoMayReadMetrics) {
  EXPECT_EQ(Call("GET", "/api/alerts", root).body, R"({"alerts":[]})");
  const std::string dev = MakeKey({.name = "d", .tenant = "acme", .role = auth::Role::kDeveloper});
  EXPECT_EQ(Call("GET", "/api/alerts", dev).status, 403);
}

}  // namespace
}  // namespace caisson::api
