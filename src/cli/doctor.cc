#include "cli/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "cli/dispatch.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

using native::CheckStatus;
using native::DoctorReport;
using native::ProbeStatus;

constexpr size_t kWidth = 100;

constexpr Option kOptions[] = {
    {.name = "json", .kind = ValueKind::kFlag, .help = "print one JSON object"},
    {.name = "no-probe",
     .kind = ValueKind::kFlag,
     .help = "look at the host only; make no sandbox"},
};

struct Mark {
  std::string_view plain, sign, colour;
};
constexpr Mark kGood = {"ok  ", "✓", "\033[32m"}, kOff = {"off ", "·", "\033[2m"},
               kWeak = {"weak", "!", "\033[33m"}, kBad = {"FAIL", "✗", "\033[31m"};

std::string Show(const Mark& mark, Colour colour) {
  return colour == Colour::kNone ? std::string(mark.plain)
                                 : Concat({mark.colour, mark.sign, "\033[0m"});
}
size_t MarkWidth(Colour colour) { return colour == Colour::kNone ? 4 : 1; }
std::string Bold(std::string_view text, Colour colour) {
  return colour == Colour::kNone ? std::string(text) : Concat({"\033[1m", text, "\033[0m"});
}

const Mark& MarkOf(CheckStatus status) {
  switch (status) {
    case CheckStatus::kOk:
      return kGood;
    case CheckStatus::kOff:
      return kOff;
    case CheckStatus::kWeaker:
      return kWeak;
    case CheckStatus::kFailed:
      return kBad;
  }
  return kBad;
}
const Mark& MarkOf(ProbeStatus status) {
  return status == ProbeStatus::kHeld ? kGood : status == ProbeStatus::kSkipped ? kOff : kBad;
}

// Details quote what the kernel and sandboxes said; nothing in them moves the cursor.
std::string Harmless(std::string_view text) {
  std::string safe(text);
  for (char& c : safe)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return safe;
}

std::string Padded(std::string_view text, size_t width) {
  std::string out(text);
  for (size_t have = DisplayWidth(text); have < width; ++have) out += ' ';
  return out;
}

std::string Milliseconds(std::chrono::microseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", static_cast<double>(time.count()) / 1000);
  return text;
}

std::string ShowChecks(const DoctorReport& report, Colour colour) {
  size_t widest = 0;
  for (const auto& line : report.checks) widest = std::max(widest, DisplayWidth(line.name));
  const size_t indent = 2 + MarkWidth(colour) + 1 + widest + 2;
  std::string out;
  std::string_view group;
  for (const auto& [line_group, name, result] : report.checks) {
    if (line_group != group)
      out += Concat({group.empty() ? "" : "\n", Bold(line_group, colour), "\n"});
    group = line_group;
    out += Concat({"  ", Show(MarkOf(result.status), colour), " ", Padded(name, widest), "  ",
                   Wrap(Harmless(result.detail), indent, kWidth), "\n"});
    if (!result.remedy.empty() && result.status != CheckStatus::kOk)
      out += Concat({std::string(indent, ' '),
                     "fix: ", Wrap(Harmless(result.remedy), indent + 5, kWidth), "\n"});
  }
  return out;
}

const native::ProbeLine* Find(const native::SandboxTrial& trial, std::string_view name) {
  const auto found = std::ranges::find(trial.probes, name, &native::ProbeLine::name);
  return found == trial.probes.end() ? nullptr : &*found;
}

std::string_view NameOf(sandbox::Profile profile) {
  return profile == sandbox::Profile::kStrict ? "strict" : "default";
}

// A line per probe with a column per sandbox; what did not hold is explained below its line.
std::string ShowProbes(const DoctorReport& report, Colour colour) {
  size_t widest = 0;
  for (const auto& probe : native::Probes()) widest = std::max(widest, DisplayWidth(probe.name));
  std::string out = "\n" + Bold(Padded("tried in a sandbox", widest + 4), colour);
  for (const auto& trial : report.sandboxes) out += Padded(NameOf(trial.profile), 9);
  while (out.ends_with(' ')) out.pop_back();
  out += "\n";
  for (const auto& probe : native::Probes()) {
    std::string marks, reasons;
    for (const auto& trial : report.sandboxes) {
      const auto* line = Find(trial, probe.name);
      const auto mark = line == nullptr ? std::string() : Show(MarkOf(line->status), colour);
      marks += mark + std::string(9 - (mark.empty() ? 0 : MarkWidth(colour)), ' ');
      if (line != nullptr && !line->detail.empty())
        reasons += Concat(
            {"      ", NameOf(trial.profile), ": ", Wrap(Harmless(line->detail), 6, kWidth), "\n"});
    }
    if (marks.find_first_not_of(' ') == std::string::npos) continue;
    marks.resize(marks.find_last_not_of(' ') + 1);
    out += Concat({"  ", Padded(probe.name, widest), "  ", marks, "\n", reasons});
  }
  return out;
}

std::string ShowTrials(const DoctorReport& report, Colour colour) {
  std::string out = "\n" + Bold("time", colour) + "\n";
  for (const auto& trial : report.sandboxes) {
    if (!trial.error.empty()) {
      out += Concat({"  ", Show(kBad, colour), " ", NameOf(trial.profile), ": ",
                     Wrap(Harmless(trial.error), 4, kWidth), "\n"});
      if (!trial.remedy.empty())
        out += Concat({"    fix: ", Wrap(Harmless(trial.remedy), 9, kWidth), "\n"});
      continue;
    }
    out += Concat({"  ", Padded(NameOf(trial.profile), 8), " create ", Milliseconds(trial.create),
                   ", first command ", Milliseconds(trial.first_exec), ", destroy ",
                   Milliseconds(trial.destroy), ", ", std::to_string(trial.probes.size()),
                   " probes ", Milliseconds(trial.probing), "\n"});
  }
  out += Concat({"  launcher start ", Milliseconds(report.launcher_start), ", checks ",
                 Milliseconds(report.checking), ", all ", Milliseconds(report.total), "\n"});
  return out;
}

std::string ShowSummary(const DoctorReport& report, Colour colour) {
  const size_t weaker = report.Count(CheckStatus::kWeaker),
               failed = report.Count(CheckStatus::kFailed),
               broken = report.Count(ProbeStatus::kBroken);
  std::string out =
      "\n" + Show(report.Works() ? (weaker == 0 ? kGood : kWeak) : kBad, colour) + " ";
  out += Bold(!report.Works() ? "Sandboxes do not work on this host as they must."
              : weaker == 0   ? "Sandboxes work on this host."
                              : "Sandboxes work on this host; some things could be stronger.",
              colour);
  out +=
      Concat({"\nChecks: ", std::to_string(report.Count(CheckStatus::kOk)), " ok, ",
              std::to_string(weaker), " weaker, ", std::to_string(report.Count(CheckStatus::kOff)),
              " off, ", std::to_string(failed), " failed."});
  if (!report.sandboxes.empty())
    out += Concat({" Probes: ", std::to_string(report.Count(ProbeStatus::kHeld)), " held, ",
                   std::to_string(broken), " broken, ",
                   std::to_string(report.Count(ProbeStatus::kSkipped)), " skipped."});
  return out + "\n";
}

Colour ColourOfStdout() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return Colour::kNone;
  if (terminal != nullptr && std::string_view(terminal) == "dumb") return Colour::kNone;
  return isatty(STDOUT_FILENO) == 1 ? Colour::kAnsi : Colour::kNone;
}

}  // namespace

std::span<const Option> DoctorOptions() { return kOptions; }

std::string ShowReport(const DoctorReport& report, Colour colour) {
  std::string out = ShowChecks(report, colour);
  if (!report.sandboxes.empty()) out += ShowProbes(report, colour) + ShowTrials(report, colour);
  return out + ShowSummary(report, colour);
}

Result<int> RunDoctor(const Parsed& parsed) {
  const auto probing = parsed.Flag("no-probe") ? native::Probing::kSkip : native::Probing::kRun;
  const auto report = native::Examine(native::LauncherPaths::FromEnvironment(), probing);
  const std::string text =
      parsed.Flag("json") ? native::ToJson(report) : ShowReport(report, ColourOfStdout());
  if (!WriteOut(text)) return Error::FromErrno("write the report to standard output");
  return report.Works() ? 0 : 1;
}

}  // namespace caisson::cli
