#include "cli/settings.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/dispatch.h"
#include "json/json.h"

namespace caisson::cli {
namespace {

std::string_view NameOf(ValueSource source) {
  constexpr std::array<std::string_view, 6> kNames = {"none",     "default",     "config",
                                                      "env_file", "environment", "command_line"};
  return kNames[static_cast<size_t>(source)];
}

std::string KeyOf(const Option& option) {
  return option.config_key.empty() ? Concat({"--", option.name}) : std::string(option.config_key);
}

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

std::string Joined(const std::vector<std::string>& texts) {
  std::string joined;
  for (const auto& text : texts) joined += Concat({joined.empty() ? "" : ", ", text});
  return joined.empty() ? "-" : joined;
}

}  // namespace

std::string ShowSettings(std::span<const Option> options, const Parsed& parsed) {
  std::vector<std::array<std::string, 3>> rows = {{"SETTING", "VALUE", "FROM"}};
  for (const Option& option : options) {
    rows.push_back({KeyOf(option), Joined(parsed.TextsOf(option.name)), OriginOf(option, parsed)});
  }
  std::array<size_t, 2> widths = {};
  for (const auto& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) {
      out += row[i];
      out.append(widths[i] - DisplayWidth(row[i]) + 2, ' ');
    }
    out += row[2];
    out += '\n';
  }
  return out;
}

std::string SettingsAsJson(std::span<const Option> options, const Parsed& parsed) {
  json::Array settings;
  for (const Option& option : options) {
    json::Object setting{{"option", option.name}};
    if (!option.config_key.empty()) setting["key"] = option.config_key;
    if (!option.env.empty()) setting["env"] = option.env;
    const std::vector<std::string> texts = parsed.TextsOf(option.name);
    if (option.occurs == Occurs::kMany) {
      json::Array values;
      for (const auto& text : texts) values.emplace_back(text);
      setting["values"] = std::move(values);
    } else if (!texts.empty()) {
      setting["value"] = texts.back();
    } else {
      setting["value"] = nullptr;
    }
    setting["source"] = NameOf(parsed.SourceOf(option.name));
    if (parsed.Given(option.name)) setting["origin"] = parsed.OriginOf(option.name);
    settings.push_back(std::move(setting));
  }
  return json::Write(json::Object{{"settings", std::move(settings)}}) + "\n";
}

std::vector<Option> SettingsOptions(std::span<const Option> options) {
  std::vector<Option> all(options.begin(), options.end());
  all.push_back({.name = "json", .kind = ValueKind::kFlag, .help = "print one JSON object"});
  return all;
}

Result<int> PrintSettings(std::span<const Option> options, const Parsed& parsed) {
  const bool as_json = parsed.Flag("json");
  return WriteOut(as_json ? SettingsAsJson(options, parsed) : ShowSettings(options, parsed)) ? 0
                                                                                             : 1;
}

}  // namespace caisson::cli
