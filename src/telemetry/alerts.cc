#include "telemetry/alerts.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "json/json.h"

namespace caisson::telemetry {

bool AlertExpression::Matches(const Sample& sample) const {
  return sample.name == metric && std::ranges::all_of(labels, [&](const auto& label) {
           return std::ranges::find(sample.labels, label) != sample.labels.end();
         });
}

bool AlertExpression::Holds(double value) const {
  switch (comparison) {
    case Comparison::kGreater:
      return value > threshold;
    case Comparison::kGreaterOrEqual:
      return value >= threshold;
    case Comparison::kLess:
      return value < threshold;
    case Comparison::kLessOrEqual:
      return value <= threshold;
    case Comparison::kEqual:
      return value == threshold;
    case Comparison::kNotEqual:
      return value != threshold;
  }
  return false;
}

std::string_view NameOf(AlertState state) {
  constexpr std::array<std::string_view, 3> kNames = {"inactive", "pending", "firing"};
  return kNames[static_cast<size_t>(state)];
}

Alerts::Alerts(std::vector<AlertRule> rules) {
  const auto now = std::chrono::system_clock::now();
  for (AlertRule& rule : rules) {
    rules_.push_back({.status = {.rule = std::move(rule), .since = now}});
  }
}

std::optional<double> Alerts::ValueOf(Tracked& rule, std::span<const Sample> samples,
                                      std::chrono::duration<double> elapsed) {
  const AlertExpression& expression = rule.status.rule.expression;
  std::optional<double> sum;
  for (const Sample& sample : samples) {
    if (expression.Matches(sample)) sum = sum.value_or(0) + sample.value;
  }
  if (expression.of == AlertExpression::Of::kValue) return sum;
  const std::optional<double> before = std::exchange(rule.sum, sum);
  if (!sum || !before || elapsed.count() <= 0) return std::nullopt;
  return (*sum - *before) / elapsed.count();
}

// Moves the rule on, and gives whether that is worth telling.
bool Alerts::Advance(Tracked& rule, Clock::time_point now) {
  AlertStatus& status = rule.status;
  const bool holds = status.value && status.rule.expression.Holds(*status.value);
  if (holds != rule.held) rule.turned = now;
  rule.held = holds;
  AlertState next = status.state;
  if (status.state == AlertState::kFiring) {
    if (!holds && now - rule.turned >= status.rule.keep) next = AlertState::kInactive;
  } else if (!holds) {
    next = AlertState::kInactive;
  } else {
    next = now - rule.turned >= status.rule.hold ? AlertState::kFiring : AlertState::kPending;
  }
  if (next == status.state) return false;
  const bool tell = next == AlertState::kFiring || status.state == AlertState::kFiring;
  status.state = next;
  status.since = std::chrono::system_clock::now();
  return tell;
}

std::vector<AlertStatus> Alerts::Evaluate(std::span<const Sample> samples, Clock::time_point now) {
  const std::chrono::duration<double> elapsed = last_ ? now - *last_ : Clock::duration(0);
  last_ = now;
  std::vector<AlertStatus> changes;
  for (Tracked& rule : rules_) {
    rule.status.value = ValueOf(rule, samples, elapsed);
    if (Advance(rule, now)) changes.push_back(rule.status);
  }
  return changes;
}

std::vector<AlertStatus> Alerts::List() const {
  std::vector<AlertStatus> all;
  for (const Tracked& rule : rules_) all.push_back(rule.status);
  return all;
}

std::string DescribeAsJson(const AlertStatus& status) {
  json::Object out{
      {"alert", status.rule.name},
      {"state", status.state == AlertState::kInactive ? "resolved" : NameOf(status.state)},
      {"severity", status.rule.severity},
      {"expr", status.rule.expr}};
  if (status.value) out["value"] = *status.value;
  if (!status.rule.description.empty()) out["description"] = status.rule.description;
  out["since_unix_ms"] =
      std::chrono::duration_cast<std::chrono::milliseconds>(status.since.time_since_epoch())
          .count();
  return json::Write(out);
}

Task<void> WatchAlerts(async::Loop* loop, const Registry* registry, Alerts* alerts,
                       std::chrono::milliseconds interval,
                       std::function<void(const AlertStatus&)> changed) {
  for (;;) {
    const std::vector<Sample> samples = registry->Collect();
    for (const AlertStatus& status : alerts->Evaluate(samples, Alerts::Clock::now())) {
      changed(status);
    }
    co_await loop->Sleep(interval);
  }
}

}  // namespace caisson::telemetry
