// inspect and stats: all about one session.
#include "base/units.h"
#include "cli/api_client.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr auto kOptions = Joined(kJsonOption, kConnectionOptions);
constexpr Positional kSessions[] = {{.name = "session",
                                     .arity = Arity::kMany,
                                     .kind = ValueKind::kSession,
                                     .help = "sessions, by name or id"}};
constexpr Example kInspectExamples[] = {
    {"caisson inspect web", "state, isolation and limits, as the kernel has them"},
    {"caisson inspect --json web | jq .limits", "for machines"}};
constexpr Example kStatsExamples[] = {{"caisson stats web", "what it uses now"}};

// A limit's value as its option takes it.
std::string LimitText(const json::Value& limit) {
  const std::string name = TextAt(limit, "name");
  const uint64_t value = CountAt(limit, "value");
  if (name == "cpu") return FormatCpus(static_cast<uint32_t>(value));
  if (name == "wall_time")
    return FormatDuration(std::chrono::milliseconds(static_cast<int64_t>(value)));
  if (name == "memory" || name == "swap" || name == "disk" || name == "output")
    return FormatSize(value);
  return Shown(At(limit, "value"));
}

void AddLimits(Sheet& sheet, const json::Value& limits) {
  if (!limits.is_array()) return;
  sheet.Heading("limits");
  for (const json::Value& limit : limits.as_array()) {
    const json::Value& enforced = At(limit, "enforced");
    const bool holds = enforced.is_bool() && enforced.as_bool();
    sheet.Add(TextAt(limit, "name"),
              holds ? Cell(LimitText(limit) + "  by " + TextAt(limit, "by"))
                    : Cell("not enforced: " + TextAt(limit, "reason"), Tint::kBad));
  }
}

std::string AsSheet(const json::Value& session) {
  Sheet sheet;
  if (session.is_object()) {
    for (const auto& [name, value] : session.as_object()) {
      if (name == "isolation" || name == "limits" || name == "stats") continue;
      const bool state = name == "state";
      sheet.Add(name, Cell(Shown(value), state ? TintOfState(Shown(value)) : Tint::kNone));
    }
  }
  for (const std::string_view part : {"isolation", "stats"}) {
    const json::Value& facts = At(session, part);
    if (!facts.is_object()) continue;
    sheet.Heading(part);
    for (const auto& [name, value] : facts.as_object()) sheet.Add(name, Shown(value));
  }
  AddLimits(sheet, At(session, "limits"));
  return sheet.Show(ColourOfOutput());
}

Task<Result<int>> Inspect(ApiClient* api, const Parsed* parsed) {
  std::string_view separator;
  for (const auto& name : parsed->All<std::string>("session")) {
    CAISSON_CO_ASSIGN(const json::Value session, co_await api->Get(SessionTarget(name)));
    if (parsed->Flag("json")) {
      CAISSON_CO_TRY(PrintJson(session));
    } else {
      CAISSON_CO_TRY(Print(std::string(separator) + AsSheet(session)));
    }
    separator = "\n";
  }
  co_return 0;
}

std::string Used(uint64_t used, uint64_t of) {
  return FormatSize(used) + (of == 0 ? "" : " of " + FormatSize(of));
}

std::string StatsSheet(const json::Value& stats) {
  const auto seconds = [&](std::string_view name) {
    return FormatDuration(
        std::chrono::milliseconds(static_cast<int64_t>(NumberAt(stats, name) * 1000)));
  };
  const auto size = [&](std::string_view name) { return FormatSize(CountAt(stats, name)); };
  const auto count = [&](std::string_view name) { return std::to_string(CountAt(stats, name)); };
  Sheet sheet;
  sheet.Add("cpu", seconds("cpu_seconds") + ", throttled " + seconds("cpu_throttled_seconds"));
  sheet.Add("memory", size("memory_bytes") + ", at most " + size("memory_peak_bytes"));
  sheet.Add("oom kills", count("oom_kills"));
  sheet.Add("processes", count("processes") + ", refused forks " + count("refused_forks"));
  sheet.Add("disk", Used(CountAt(stats, "disk_used_bytes"), CountAt(stats, "disk_bytes")));
  sheet.Add("inodes", count("disk_used_inodes") + " of " + count("disk_inodes"));
  sheet.Add("io", "read " + size("io_read_bytes") + ", written " + size("io_write_bytes"));
  return sheet.Show(ColourOfOutput());
}

Task<Result<int>> Stats(ApiClient* api, const Parsed* parsed) {
  const auto names = parsed->All<std::string>("session");
  for (const auto& name : names) {
    CAISSON_CO_ASSIGN(json::Value stats, co_await api->Get(SessionTarget(name, "/metrics")));
    if (parsed->Flag("json")) {
      if (stats.is_object() && names.size() > 1) stats.as_object()["session"] = name;
      CAISSON_CO_TRY(PrintJson(stats));
    } else {
      if (names.size() > 1) CAISSON_CO_TRY(Print(OneLine(name) + "\n"));
      CAISSON_CO_TRY(Print(StatsSheet(stats)));
    }
  }
  co_return 0;
}

Result<int> RunInspect(const Parsed& parsed) { return RunWithServer(parsed, Inspect); }
Result<int> RunStats(const Parsed& parsed) { return RunWithServer(parsed, Stats); }

}  // namespace

Verb InspectVerb() {
  return {.name = "inspect",
          .summary = "show all about sessions: state, isolation, limits",
          .options = kOptions,
          .positionals = kSessions,
          .examples = kInspectExamples,
          .run = RunInspect};
}

Verb StatsVerb() {
  return {.name = "stats",
          .summary = "show what sessions use, from the kernel",
          .options = kOptions,
          .positionals = kSessions,
          .examples = kStatsExamples,
          .run = RunStats};
}

}  // namespace caisson::cli
