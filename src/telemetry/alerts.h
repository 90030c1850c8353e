// Alerts: rules over live metrics, from a YAML file.
//
//   alerts:
//     - name: many_sessions
//       expr: caisson_sessions > 900
//       for: 1m                      # how long it must hold before it fires (default 0s)
//       keep_firing_for: 5m          # how long it must not hold before it resolves (default:
//       `for`) severity: warning            # info, warning (the default) or critical webhook:
//       https://ops.example/hook description: the host is close to its limit
//
// An expression is METRIC, METRIC{label="value",…} or rate(METRIC{…}), one of > >= < <= == !=, and
// a number. The values of all series that match are added up; rate is their growth per second since
// the evaluation before. Where no series matches, nothing holds.
//
// A rule is inactive, then pending while its expression holds, then firing, then inactive again,
// which is called resolved: both ways it must last, so that a value near its threshold does not
// flap. What to do about a change is the caller's.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/loop.h"
#include "async/task.h"
#include "base/result.h"
#include "telemetry/metrics.h"
#include "yaml/yaml.h"

namespace caisson::telemetry {

enum class Comparison { kGreater, kGreaterOrEqual, kLess, kLessOrEqual, kEqual, kNotEqual };

struct AlertExpression {
  enum class Of { kValue, kRate };
  Of of = Of::kValue;
  std::string metric;
  std::vector<std::pair<std::string, std::string>> labels;  // that a series must have
  Comparison comparison = Comparison::kGreater;
  double threshold = 0;

  // Errors are kInvalidArgument and quote the text.
  static Result<AlertExpression> Parse(std::string_view text);
  bool Matches(const Sample& sample) const;
  bool Holds(double value) const;
};

struct AlertRule {
  std::string name;
  std::string expr;  // as written
  AlertExpression expression;
  std::chrono::nanoseconds hold{};  // `for`
  std::chrono::nanoseconds keep{};  // `keep_firing_for`
  std::string severity = "warning";
  std::string webhook;
  std::string description;
};

// The rules of a file. `metrics` are the names that exist (Registry::SampleNames): a rule on
// another one is an error. Errors start with "ORIGIN:LINE: ".
Result<std::vector<AlertRule>> ParseAlertRules(const yaml::Node& node, std::string_view origin,
                                               std::span<const std::string> metrics);

enum class AlertState { kInactive, kPending, kFiring };
std::string_view NameOf(AlertState state);

struct AlertStatus {
  AlertRule rule;
  AlertState state = AlertState::kInactive;
  std::optional<double> value;  // at the last evaluation
  std::chrono::system_clock::time_point since;
};

// Not thread-safe.
class Alerts {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Alerts(std::vector<AlertRule> rules);

  // Looks at the samples; gives the rules that began to fire (kFiring) or were resolved
  // (kInactive).
  std::vector<AlertStatus> Evaluate(std::span<const Sample> samples, Clock::time_point now);
  // All rules as they stood at the last evaluation.
  std::vector<AlertStatus> List() const;

 private:
  struct Tracked {
    AlertStatus status;
    Clock::time_point turned;  // when the condition last began or ceased to hold
    bool held = false;
    std::optional<double> sum;  // of the evaluation before, for rate
  };
  std::optional<double> ValueOf(Tracked& rule, std::span<const Sample> samples,
                                std::chrono::duration<double> elapsed);
  static bool Advance(Tracked& rule, Clock::time_point now);

  std::vector<Tracked> rules_;
  std::optional<Clock::time_point> last_;
};

// The body of a webhook about a change, on one line.
std::string DescribeAsJson(const AlertStatus& status);

// Evaluates every `interval` and hands each change to `changed`, until it is destroyed. What is
// pointed at outlives the task.
Task<void> WatchAlerts(async::Loop* loop, const Registry* registry, Alerts* alerts,
                       std::chrono::milliseconds interval,
                       std::function<void(const AlertStatus&)> changed);

}  // namespace caisson::telemetry
