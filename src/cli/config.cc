// config: every setting of the commands and of the server, and where each comes from.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/text.h"
#include "cli/connection.h"
#include "cli/output.h"
#include "cli/serve.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "providers/native/launcher_client.h"

namespace caisson::cli {
namespace {

constexpr Example kExamples[] = {
    {"caisson config", "every setting, and where it comes from"},
    {"caisson config --config new.yaml", "what the server would make of a file"}};

ShownSetting ShownAs(std::string name, const Setting& setting) {
  ShownSetting shown{.name = std::move(name), .values = {}, .from = setting.source};
  if (!setting.value.empty()) shown.values.push_back(setting.value);
  return shown;
}

std::optional<std::string> Variable(std::string_view name) {
  const char* value = getenv(std::string(name).c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

// Which server the commands talk to, and every option of theirs that has a variable.
Result<std::vector<ShownSetting>> OfCommands(const Parsed& parsed) {
  CAISSON_ASSIGN(const Connection connection, ResolveConnection(parsed));
  const Setting key{connection.key.value.empty() ? "" : "set, not shown", connection.key.source};
  std::vector<ShownSetting> rows = {ShownAs("url", connection.url), ShownAs("key", key),
                                    ShownAs("ca-file", connection.ca_file)};
  std::vector<std::string_view> seen;
  for (const Option& option : kConnectionOptions) seen.push_back(option.env);
  for (const Option& option : ServeOptionTable()) seen.push_back(option.env);
  for (const Verb& verb : TheProgram().verbs) {
    for (const Option& option : verb.options) {
      if (option.env.empty() || std::ranges::find(seen, option.env) != seen.end()) continue;
      seen.push_back(option.env);
      const auto given = Variable(option.env);
      const std::string value = !given             ? std::string(option.default_text)
                                : IsSecret(option) ? "set, not shown"
                                                   : *given;
      rows.push_back(
          ShownAs(std::string(option.name), {value, given ? std::string(option.env) : "default"}));
    }
  }
  rows.push_back(ShownAs("home", {native::LauncherPaths::FromEnvironment().state_dir,
                                  Variable("CAISSON_HOME") ? "CAISSON_HOME" : "default"}));
  return rows;
}

Status ShowAsJson(std::string_view part, const std::vector<ShownSetting>& settings) {
  for (const ShownSetting& setting : settings) {
    json::Value value;
    if (setting.occurs == Occurs::kMany)
      value = json::Array(setting.values.begin(), setting.values.end());
    else if (!setting.values.empty())
      value = setting.values.back();
    CAISSON_TRY(PrintJson(json::Object{{"part", part},
                                       {"setting", setting.name},
                                       {"value", std::move(value)},
                                       {"from", setting.from}}));
  }
  return {};
}

std::string AsTable(std::string_view part, const std::vector<ShownSetting>& settings) {
  Table table({{part}, {"VALUE", Align::kLeft, Fit::kCut}, {"FROM"}});
  for (const ShownSetting& setting : settings) {
    std::string values;
    for (const auto& value : setting.values) values += (values.empty() ? "" : ", ") + value;
    const bool usual = setting.from == "default" || setting.from == "not set";
    table.Add({setting.name, values, Cell(setting.from, usual ? Tint::kFaint : Tint::kNone)});
  }
  return table.Show(WidthOfOutput(), ColourOfOutput());
}

Result<int> RunConfig(const Parsed& parsed) {
  CAISSON_ASSIGN(const auto commands, OfCommands(parsed));
  const auto server = SettingsOf(ServeOptionTable(), parsed);
  if (parsed.Flag("json")) {
    CAISSON_TRY(ShowAsJson("commands", commands));
    CAISSON_TRY(ShowAsJson("server", server));
    return 0;
  }
  CAISSON_TRY(Print(AsTable("COMMANDS", commands) + "\n" + AsTable("SERVER", server)));
  return 0;
}

std::span<const Option> ConfigOptions() {
  static const std::vector<Option> kAll = [] {
    std::vector<Option> all(std::begin(kJsonOption), std::end(kJsonOption));
    for (const Option& option : kConnectionOptions) {
      all.push_back(option);
      all.back().section = "Connection";
    }
    const auto server = ServeOptionTable();
    all.insert(all.end(), server.begin(), server.end());
    return all;
  }();
  return kAll;
}

}  // namespace

Verb ConfigVerb() {
  return {.name = "config",
          .summary = "show every setting, and where it comes from",
          .details =
              "Of the commands that talk to a server, and of the server: `serve` with the "
              "same options, environment and files would run with these.",
          .options = ConfigOptions(),
          .examples = kExamples,
          .run = RunConfig};
}

}  // namespace caisson::cli
