#include "telemetry/alerts.h"

#include <gtest/gtest.h>

#include "json/json.h"

namespace caisson::telemetry {
namespace {

using std::chrono::seconds;

const std::vector<std::string> kMetrics = {"caisson_sessions", "caisson_errors_total"};

Result<std::vector<AlertRule>> Rules(std::string_view text) {
  const auto node = yaml::Parse(text, "a.yaml");
  EXPECT_TRUE(node);
  return ParseAlertRules(*node, "a.yaml", kMetrics);
}

std::string Refusal(std::string_view text) {
  const auto rules = Rules(text);
  return rules ? "accepted" : rules.error().message() + " | " + rules.error().remedy();
}

TEST(AlertRules, AWholeFile) {
  const auto rules = Rules(
      "alerts:\n"
      "  - name: many\n"
      "    expr: caisson_sessions{provider=\"native\", x=\"y\"} >= 900\n"
      "    for: 1m\n"
      "    keep_firing_for: 5m\n"
      "    severity: critical\n"
      "    webhook: https://ops.example/hook\n"
      "    description: too many\n"
      "  - {name: errors, expr: rate(caisson_errors_total) > 0.5, for: 30s}\n");
  ASSERT_TRUE(rules) << rules.error().message();
  ASSERT_EQ(rules->size(), 2u);
  const AlertRule& many = rules->at(0);
  EXPECT_EQ(many.expression.metric, "caisson_sessions");
  EXPECT_EQ(many.expression.labels.size(), 2u);
  EXPECT_EQ(many.expression.comparison, Comparison::kGreaterOrEqual);
  EXPECT_EQ(many.expression.threshold, 900);
  EXPECT_EQ(many.hold, seconds(60));
  EXPECT_EQ(many.keep, seconds(300));
  EXPECT_EQ(many.severity, "critical");
  const AlertRule& errors = rules->at(1);
  EXPECT_EQ(errors.expression.of, AlertExpression::Of::kRate);
  EXPECT_EQ(errors.keep, seconds(30));
  EXPECT_EQ(errors.severity, "warning");
  EXPECT_TRUE(Rules("")->empty());
}

TEST(AlertRules, ErrorsHaveALine) {
  EXPECT_EQ(Refusal("alert: []\n"),
            "a.yaml:1: expected one key, alerts | write `alerts:` and a list");
  EXPECT_EQ(Refusal("alerts:\n  - name: x\n"), "a.yaml:2: expr is missing | add `expr:`");
  EXPECT_EQ(Refusal("alerts:\n  - name: x\n    exprs: 1\n"),
            "a.yaml:3: unknown key \"exprs\" | did you mean expr?");
  EXPECT_EQ(Refusal("alerts:\n  - name: x\n    expr: caisson_sesions > 1\n"),
            "a.yaml:3: there is no metric \"caisson_sesions\" | did you mean caisson_sessions?");
  EXPECT_TRUE(Refusal("alerts:\n  - name: x\n    expr: caisson_sessions > 1\n    for: soon\n")
                  .starts_with("a.yaml:4: for: \"soon\""));
  EXPECT_TRUE(Refusal("alerts:\n  - {name: x, expr: caisson_sessions > 1}\n  - {name: x, expr: "
                      "caisson_sessions > 2}\n")
                  .starts_with("a.yaml:3: rule \"x\" is given more than once"));
  EXPECT_TRUE(Refusal("alerts:\n  - name: x\n    expr: caisson_sessions > 1\n    severity: bad\n")
                  .starts_with("a.yaml:4: \"bad\" is no severity"));
  EXPECT_TRUE(
      Refusal("alerts:\n  - name: x\n    expr: caisson_sessions > 1\n    webhook: ftp://x\n")
          .starts_with("a.yaml:4: \"ftp://x\" is no http or https URL"));
}

TEST(AlertRules, ExpressionsThatAreNone) {
  for (const char* text :
       {"", "caisson_sessions", "caisson_sessions 5", "caisson_sessions > ", "caisson_sessions > x",
        "caisson_sessions > 5 6", "> 5", "rate(caisson_sessions > 5", "a{b=c} > 1", "a{b=\"c} > 1",
        "a{b=\"c\" d=\"e\"} > 1", "a{ > 1", "a > nan", "a > inf", "a =! 1"}) {
    const auto expression = AlertExpression::Parse(text);
    EXPECT_FALSE(expression) << text;
  }
}

class AlertsTest : public testing::Test {
 protected:
  // The changes when the sessions stand at `value`, `after` seconds from the start.
  std::vector<AlertStatus> At(int after, double value) {
    const std::vector<Sample> samples = {{"caisson_sessions", {{"provider", "native"}}, value},
                                         {"caisson_sessions", {{"provider", "docker"}}, 1}};
    return alerts_->Evaluate(samples, start_ + seconds(after));
  }
  void Use(std::string_view text) { alerts_.emplace(*Rules(text)); }
  AlertState State() { return alerts_->List().at(0).state; }

  Alerts::Clock::time_point start_ = Alerts::Clock::now();
  std::optional<Alerts> alerts_;
};

TEST_F(AlertsTest, PendingThenFiringThenResolved) {
  Use("alerts:\n  - {name: x, expr: caisson_sessions > 10, for: 60s, keep_firing_for: 30s}\n");
  EXPECT_TRUE(At(0, 9).empty());  // 9 + 1 is not more than 10
  EXPECT_EQ(State(), AlertState::kInactive);
  EXPECT_TRUE(At(10, 20).empty());
  EXPECT_EQ(State(), AlertState::kPending);
  EXPECT_TRUE(At(60, 20).empty());
  const auto fired = At(70, 30);
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].state, AlertState::kFiring);
  EXPECT_EQ(fired[0].value, 31);
  EXPECT_TRUE(At(80, 0).empty());    // not for long enough
  EXPECT_TRUE(At(100, 20).empty());  // and it holds again
  EXPECT_TRUE(At(120, 0).empty());
  EXPECT_EQ(State(), AlertState::kFiring);
  const auto resolved = At(150, 0);
  ASSERT_EQ(resolved.size(), 1u);
  EXPECT_EQ(resolved[0].state, AlertState::kInactive);
  const auto body = json::Parse(DescribeAsJson(resolved[0]));
  ASSERT_TRUE(body);
  EXPECT_EQ(body->at("state").as_string(), "resolved");
  EXPECT_EQ(body->at("alert").as_string(), "x");
}

TEST_F(AlertsTest, WhatDoesNotLastDoesNotFire) {
  Use("alerts:\n  - {name: x, expr: caisson_sessions > 10, for: 60s}\n");
  EXPECT_TRUE(At(0, 20).empty());
  EXPECT_TRUE(At(50, 0).empty());
  EXPECT_TRUE(At(61, 20).empty());
  EXPECT_TRUE(At(120, 20).empty());
  EXPECT_EQ(State(), AlertState::kPending);
  EXPECT_EQ(At(121, 20).size(), 1u);
}

TEST_F(AlertsTest, WithoutForItFiresAtOnce) {
  Use("alerts:\n  - {name: x, expr: 'caisson_sessions{provider=\"docker\"} == 1'}\n");
  EXPECT_EQ(At(0, 50).size(), 1u);
}

TEST_F(AlertsTest, RatesNeedTwoLooks) {
  Use("alerts:\n  - {name: x, expr: rate(caisson_sessions) > 2}\n");
  EXPECT_TRUE(At(0, 100).empty());
  EXPECT_TRUE(At(10, 110).empty());
  const auto fired = At(20, 140);
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].value, 3);
}

TEST_F(AlertsTest, NoSeriesHoldsNothing) {
  Use("alerts:\n  - {name: x, expr: caisson_errors_total < 5}\n");
  EXPECT_TRUE(At(0, 1).empty());
  EXPECT_EQ(alerts_->List()[0].value, std::nullopt);
}

TEST(WatchAlerts, LooksAtTheRegistry) {
  async::Loop loop;
  Registry registry;
  registry.AddGauge("caisson_sessions", "Sessions.").Set(5);
  const auto node = yaml::Parse("alerts: [{name: x, expr: caisson_sessions > 4}]", "a.yaml");
  const auto rules = ParseAlertRules(*node, "a.yaml", registry.SampleNames());
  ASSERT_TRUE(rules) << rules.error().message();
  Alerts alerts(*rules);
  std::vector<std::string> fired;
  Task<void> task = WatchAlerts(&loop, &registry, &alerts, std::chrono::milliseconds(1),
                                [&](const AlertStatus& status) {
                                  fired.push_back(status.rule.name);
                                  loop.Post([&] { loop.Stop(); });
                                });
  task.Start();
  loop.Run();
  EXPECT_EQ(fired, std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace caisson::telemetry
