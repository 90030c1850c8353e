// version, completion and sweep.
#include <boost/json.hpp>

#include "cli/completion.h"
#include "cli/dispatch.h"
#include "cli/verbs.h"
#include "providers/native/launcher_client.h"

namespace caisson::cli {

Result<int> RunVersion(const Parsed&) {
  return WriteOut("caisson " + std::string(TheProgram().version) + "\n") ? 0 : 1;
}

Result<int> RunCompletion(const Parsed& parsed) {
  CAISSON_ASSIGN(const Shell shell, ParseShell(*parsed.Get<std::string>("shell")));
  return WriteOut(CompletionScript(TheProgram(), shell)) ? 0 : 1;
}

std::span<const Option> SweepOptions() {
  static constexpr Option kOptions[] = {
      {.name = "json", .kind = ValueKind::kFlag, .help = "print one JSON object"}};
  return kOptions;
}

Result<int> RunSweep(const Parsed& parsed) {
  CAISSON_ASSIGN(const auto result, native::Sweep(native::LauncherPaths::FromEnvironment()));
  std::string text;
  if (parsed.Flag("json")) {
    boost::json::object answer{{"swept", boost::json::value_from(result.swept)},
                               {"problems", boost::json::value_from(result.problems)}};
    text = boost::json::serialize(answer) + "\n";
  } else {
    for (const auto& id : result.swept) text += "swept what launcher " + id + " left\n";
    for (const auto& problem : result.problems) text += "could not sweep " + problem + "\n";
    if (text.empty()) text = "nothing to sweep\n";
  }
  if (!WriteOut(text)) return 1;
  return result.problems.empty() ? 0 : 1;
}

}  // namespace caisson::cli
