// Reading of rules: the expression, and the file.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "telemetry/alerts.h"

namespace caisson::telemetry {
namespace {

constexpr size_t kMaxRules = 1000;

class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text), left_(text) {}

  Result<AlertExpression> Run() {
    AlertExpression expression;
    expression.metric = TakeName();
    if (expression.metric == "rate" && TakeIf("(")) {
      expression.of = AlertExpression::Of::kRate;
      expression.metric = TakeName();
    }
    if (expression.metric.empty()) return Wrong("a metric's name is missing");
    if (TakeIf("{")) {
      CAISSON_ASSIGN(expression.labels, TakeLabels());
    }
    if (expression.of == AlertExpression::Of::kRate && !TakeIf(")")) return Wrong("expected )");
    CAISSON_ASSIGN(expression.comparison, TakeComparison());
    CAISSON_ASSIGN(expression.threshold, TakeNumber());
    SkipBlanks();
    if (!left_.empty()) return Wrong("there is more after the number");
    return expression;
  }

 private:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  Result<Labels> TakeLabels() {
    Labels labels;
    while (!TakeIf("}")) {
      std::string name = TakeName();
      if (name.empty() || !TakeIf("=")) return Wrong("expected LABEL=\"VALUE\"");
      SkipBlanks();
      if (!left_.starts_with('"')) return Wrong("a label's value stands in double quotes");
      const size_t end = left_.find('"', 1);
      if (end == std::string_view::npos) return Wrong("a label's value does not end");
      labels.emplace_back(std::move(name), left_.substr(1, end - 1));
      left_.remove_prefix(end + 1);
      if (!TakeIf(",") && !LooksAt('}')) return Wrong("expected , or } after a label");
    }
    return labels;
  }

  Result<Comparison> TakeComparison() {
    // The longer ones first.
    constexpr std::pair<std::string_view, Comparison> kTable[] = {
        {">=", Comparison::kGreaterOrEqual}, {"<=", Comparison::kLessOrEqual},
        {"==", Comparison::kEqual},          {"!=", Comparison::kNotEqual},
        {">", Comparison::kGreater},         {"<", Comparison::kLess}};
    for (const auto& [sign, comparison] : kTable) {
      if (TakeIf(sign)) return comparison;
    }
    return Wrong("expected one of > >= < <= == !=");
  }

  Result<double> TakeNumber() {
    SkipBlanks();
    double number = 0;
    const auto read = std::from_chars(left_.data(), left_.data() + left_.size(), number);
    if (read.ec != std::errc() || !std::isfinite(number)) return Wrong("expected a number");
    left_.remove_prefix(static_cast<size_t>(read.ptr - left_.data()));
    return number;
  }

  std::string TakeName() {
    SkipBlanks();
    const auto fine = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const auto end = std::ranges::find_if_not(left_, fine);
    const std::string name(left_.begin(), end);
    left_.remove_prefix(name.size());
    return name;
  }

  bool TakeIf(std::string_view sign) {
    SkipBlanks();
    if (!left_.starts_with(sign)) return false;
    left_.remove_prefix(sign.size());
    return true;
  }
  bool LooksAt(char c) {
    SkipBlanks();
    return left_.starts_with(c);
  }
  void SkipBlanks() { left_.remove_prefix(std::min(left_.find_first_not_of(" \t"), left_.size())); }

  Error Wrong(std::string_view what) const {
    return Error(ErrorCode::kInvalidArgument, Concat({"expression ", Quoted(text_), ": ", what}))
        .WithRemedy("write e.g. caisson_sessions > 900, or rate(caisson_errors_total) > 0.5");
  }

  std::string_view text_;
  std::string_view left_;
};

// One rule's map, member by member.
class RuleReader {
 public:
  RuleReader(const yaml::Node& node, std::string_view origin) : node_(node), origin_(origin) {}

  Result<AlertRule> Run(std::span<const std::string> metrics) {
    if (!node_.is_map()) return At(node_, "a rule is a map", "write `- name: …`");
    CAISSON_TRY(CheckKeys());
    AlertRule rule;
    CAISSON_ASSIGN(rule.name, Required("name"));
    CAISSON_ASSIGN(rule.expr, Required("expr"));
    CAISSON_ASSIGN(rule.expression, Expression(rule.expr, metrics));
    CAISSON_ASSIGN(const auto hold, Duration("for"));
    CAISSON_ASSIGN(const auto keep, Duration("keep_firing_for"));
    rule.hold = hold.value_or(std::chrono::nanoseconds(0));
    rule.keep = keep.value_or(rule.hold);
    CAISSON_ASSIGN(rule.webhook, Text("webhook"));
    CAISSON_ASSIGN(rule.description, Text("description"));
    CAISSON_ASSIGN(const std::string severity, Text("severity"));
    if (!severity.empty()) rule.severity = severity;
    constexpr std::array<std::string_view, 3> kSeverities = {"info", "warning", "critical"};
    if (std::ranges::find(kSeverities, rule.severity) == kSeverities.end()) {
      return At(*node_.Find("severity"), Quoted(severity) + " is no severity",
                "write info, warning or critical");
    }
    if (!rule.webhook.empty() && !rule.webhook.starts_with("http://") &&
        !rule.webhook.starts_with("https://")) {
      return At(*node_.Find("webhook"), Quoted(rule.webhook) + " is no http or https URL",
                "write the whole URL");
    }
    return rule;
  }

 private:
  Error At(const yaml::Node& node, std::string_view what, std::string remedy) const {
    return yaml::ErrorAt(origin_, node, what, std::move(remedy));
  }

  Status CheckKeys() const {
    constexpr std::array<std::string_view, 7> kKeys = {
        "name", "expr", "for", "keep_firing_for", "severity", "webhook", "description"};
    for (const auto& [key, line, value] : node_.members) {
      if (std::ranges::find(kKeys, key) != kKeys.end()) continue;
      const auto close = ClosestTo(key, kKeys);
      yaml::Node place;
      place.line = line;
      return At(place, "unknown key " + Quoted(key),
                close.empty() ? "remove it" : Concat({"did you mean ", close, "?"}));
    }
    return {};
  }

  Result<std::string> Text(std::string_view key) const {
    const yaml::Node* value = node_.Find(key);
    if (value == nullptr || value->is_null()) return std::string();
    if (value->is_scalar()) return value->text;
    return At(*value, Concat({key, " is ", yaml::NameOf(value->kind)}), "write one value");
  }

  Result<std::string> Required(std::string_view key) const {
    CAISSON_ASSIGN(std::string text, Text(key));
    if (text.empty()) return At(node_, Concat({key, " is missing"}), Concat({"add `", key, ":`"}));
    return text;
  }

  Result<std::optional<std::chrono::nanoseconds>> Duration(std::string_view key) const {
    CAISSON_ASSIGN(const std::string text, Text(key));
    if (text.empty()) return std::optional<std::chrono::nanoseconds>();
    auto duration = ParseDuration(text);
    if (duration) return std::optional(*duration);
    return At(*node_.Find(key), Concat({key, ": ", duration.error().message()}),
              duration.error().remedy());
  }

  Result<AlertExpression> Expression(std::string_view expr,
                                     std::span<const std::string> metrics) const {
    const yaml::Node& node = *node_.Find("expr");
    auto expression = AlertExpression::Parse(expr);
    if (!expression) return At(node, expression.error().message(), expression.error().remedy());
    const std::string& metric = expression->metric;
    if (std::ranges::find(metrics, metric) != metrics.end()) return expression;
    const std::vector<std::string_view> names(metrics.begin(), metrics.end());
    const auto close = ClosestTo(metric, names);
    return At(
        node, "there is no metric " + Quoted(metric),
        close.empty() ? "see /metrics for those there are" : Concat({"did you mean ", close, "?"}));
  }

  const yaml::Node& node_;
  std::string_view origin_;
};

}  // namespace

Result<AlertExpression> AlertExpression::Parse(std::string_view text) {
  return ExpressionParser(text).Run();
}

Result<std::vector<AlertRule>> ParseAlertRules(const yaml::Node& node, std::string_view origin,
                                               std::span<const std::string> metrics) {
  std::vector<AlertRule> rules;
  if (node.is_null()) return rules;
  const yaml::Node* list = node.Find("alerts");
  if (list == nullptr || node.members.size() != 1) {
    return yaml::ErrorAt(origin, node, "expected one key, alerts", "write `alerts:` and a list");
  }
  if (list->is_null()) return rules;
  if (!list->is_list() || list->items.size() > kMaxRules) {
    return yaml::ErrorAt(origin, *list, "alerts is not a list of at most 1000 rules",
                         "write `- name: …` below it");
  }
  for (const yaml::Node& item : list->items) {
    CAISSON_ASSIGN(AlertRule rule, RuleReader(item, origin).Run(metrics));
    if (std::ranges::find(rules, rule.name, &AlertRule::name) != rules.end()) {
      return yaml::ErrorAt(origin, item, "rule " + Quoted(rule.name) + " is given more than once",
                           "give each rule a name of its own");
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace caisson::telemetry
