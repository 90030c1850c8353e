#include "cli/settings.h"

#include "base/text.h"

namespace caisson::cli {
namespace {

std::string OriginOf(const Option& option, const Parsed& parsed) {
  switch (parsed.SourceOf(option.name)) {
    case ValueSource::kNone:
      return "not set";
    case ValueSource::kDefault:
      return "default";
    default:
      return std::string(parsed.OriginOf(option.name));
  }
}

}  // namespace

std::vector<ShownSetting> SettingsOf(std::span<const Option> options, const Parsed& parsed) {
  std::vector<ShownSetting> settings;
  for (const Option& option : options) {
    ShownSetting setting;
    setting.name =
        option.config_key.empty() ? Concat({"--", option.name}) : std::string(option.config_key);
    setting.values = parsed.TextsOf(option.name);
    if (IsSecret(option))
      for (std::string& value : setting.values) value = "set, not shown";
    setting.from = OriginOf(option, parsed);
    setting.occurs = option.occurs;
    settings.push_back(std::move(setting));
  }
  return settings;
}

bool IsSecret(const Option& option) {
  if (option.kind == ValueKind::kPath) return false;
  return option.name == "key" || option.name.ends_with("-key") ||
         option.name.ends_with("-secret") || option.name.ends_with("-token");
}

}  // namespace caisson::cli
