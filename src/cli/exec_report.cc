#include "cli/exec_report.h"

#include <fmt/core.h>

#include <boost/json.hpp>

#include "base/units.h"
#include "base/utf8.h"

namespace caisson::cli {
namespace {

namespace json = boost::json;

int64_t Micros(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}
std::string Millis(std::chrono::nanoseconds time) {
  return fmt::format("{:.1f} ms", static_cast<double>(time.count()) / 1e6);
}

void AddBytes(json::object& object, const char* name, const std::string& bytes) {
  object[name] = ToUtf8(bytes);
  if (!IsUtf8(bytes)) object[std::string(name) + "_base64"] = ToBase64(bytes);
}

}  // namespace

std::string AsJson(const ExecReport& report) {
  const auto& usage = report.outcome.usage;
  json::object answer;
  answer["exit_code"] = sandbox::ShellCode(report.outcome);
  if (report.outcome.signal != 0) answer["signal"] = report.outcome.signal;
  AddBytes(answer, "stdout", report.out);
  AddBytes(answer, "stderr", report.err);
  answer["outcome"] = {{"status", NameOf(report.outcome.status)},
                       {"reason", report.outcome.reason}};
  answer["usage"] = {{"user_cpu_us", usage.user_cpu.count()},
                     {"system_cpu_us", usage.system_cpu.count()},
                     {"max_rss_bytes", usage.max_rss_bytes},
                     {"memory_peak_bytes", usage.memory_peak_bytes},
                     {"stdout_bytes", usage.stdout_bytes},
                     {"stderr_bytes", usage.stderr_bytes},
                     {"dropped_bytes", usage.dropped_bytes},
                     {"sandbox_cpu_us", report.stats.cpu.count()},
                     {"disk_used_bytes", report.stats.disk_used_bytes}};
  answer["duration_us"] = Micros(usage.wall);
  answer["timing"] = {{"launcher_us", Micros(report.timing.launcher)},
                      {"create_us", Micros(report.timing.create)},
                      {"command_us", Micros(report.timing.command)},
                      {"destroy_us", Micros(report.timing.destroy)}};
  json::object isolation{{"provider", report.sandbox.provider}, {"level", report.sandbox.level}};
  for (const auto& fact : report.sandbox.isolation) isolation[fact.name] = fact.value;
  answer["isolation"] = std::move(isolation);
  json::array limits;
  for (const auto& l : report.sandbox.limits) {
    json::object limit{{"name", l.name}, {"enforced", l.enforced}};
    if (l.enforced)
      limit["value"] = l.value, limit["by"] = l.by;
    else
      limit["reason"] = l.reason;
    limits.push_back(std::move(limit));
  }
  answer["limits"] = std::move(limits);
  return json::serialize(answer) + "\n";
}

std::string AsText(const ExecReport& report, Colour colour) {
  const auto& outcome = report.outcome;
  const auto& usage = outcome.usage;
  const bool good = outcome.Succeeded();
  const char* mark = colour == Colour::kNo ? "" : good ? "\033[32m" : "\033[31m";
  const char* dim = colour == Colour::kNo ? "" : "\033[2m";
  const char* off = colour == Colour::kNo ? "" : "\033[0m";
  std::string text = fmt::format("{}{}{}: {}\n", mark, NameOf(outcome.status), off, outcome.reason);
  text += fmt::format("{}  wall {}   cpu {} user + {} system   memory peak {}   disk {}{}\n", dim,
                      Millis(usage.wall), Millis(usage.user_cpu), Millis(usage.system_cpu),
                      FormatSize(std::max(usage.memory_peak_bytes, usage.max_rss_bytes)),
                      FormatSize(report.stats.disk_used_bytes), off);
  text += fmt::format(
      "{}  sandbox: created in {}, destroyed in {}; {} profile, {} {}{}\n", dim,
      Millis(report.timing.create), Millis(report.timing.destroy),
      [&] {
        for (const auto& fact : report.sandbox.isolation)
          if (fact.name == "profile") return fact.value;
        return std::string("default");
      }(),
      report.sandbox.provider, report.sandbox.level, off);
  for (const auto& limit : report.sandbox.limits)
    if (!limit.enforced)
      text += fmt::format("{}  not enforced: {} ({}){}\n", dim, limit.name, limit.reason, off);
  return text;
}

}  // namespace caisson::cli
