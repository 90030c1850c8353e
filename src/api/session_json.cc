#include "api/session_json.h"

#include <fmt/core.h>

#include <chrono>

#include "base/utf8.h"

namespace caisson::api {
namespace {

json::Object MapJson(const sandbox::StringMap& map) {
  json::Object object;
  for (const auto& [name, value] : map) object[name] = value;
  return object;
}

double Seconds(auto duration) { return std::chrono::duration<double>(duration).count(); }
double Milliseconds(auto duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

std::string ToText(sandbox::WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

json::Object ToJson(const sandbox::SessionRecord& record) {
  json::Object object{
      {"session_id", record.id},
      {"sandbox_id", record.sandbox_id},
      {"state", NameOf(record.state)},
      {"provider", record.provider},
      {"environment", record.spec.environment},
      {"profile", record.spec.profile == sandbox::Profile::kStrict ? "strict" : "default"},
      {"network", record.spec.network},
      {"url", "/api/sessions/" + record.id},
      {"created_at", ToText(record.created)},
      {"updated_at", ToText(record.updated)},
      {"expires_at", ToText(record.expires)},
      {"timeout", Seconds(record.spec.timeout)},
      {"metadata", MapJson(record.spec.metadata)},
      {"labels", MapJson(record.spec.labels)}};
  object["name"] = record.spec.name.empty() ? json::Value() : json::Value(record.spec.name);
  object["reason"] = record.reason.empty() ? json::Value() : json::Value(record.reason);
  object["ended_at"] = record.ended ? json::Value(ToText(*record.ended)) : json::Value();
  if (record.stats) object["stats"] = ToJson(*record.stats);
  return object;
}

json::Object ToJson(const sandbox::Session& session) {
  json::Object object = ToJson(session.record());
  const sandbox::Sandbox* box = session.sandbox();
  if (box == nullptr) return object;
  const sandbox::SandboxReport& report = box->report();
  json::Object isolation{{"level", report.level}};
  for (const auto& fact : report.isolation) isolation[fact.name] = fact.value;
  object["isolation"] = std::move(isolation);
  object["limits"] = ToJson(report.limits);
  return object;
}

json::Array ToJson(const std::vector<sandbox::LimitState>& limits) {
  json::Array array;
  for (const auto& limit : limits) {
    json::Object object{{"name", limit.name}, {"enforced", limit.enforced}};
    if (limit.enforced) {
      object["value"] = limit.value;
      object["by"] = limit.by;
    } else {
      object["reason"] = limit.reason;
    }
    array.push_back(std::move(object));
  }
  return array;
}

json::Object ToJson(const sandbox::SandboxStats& stats) {
  return {{"memory_bytes", stats.memory_bytes},
          {"memory_peak_bytes", stats.memory_peak_bytes},
          {"oom_kills", stats.oom_kills},
          {"cpu_seconds", Seconds(stats.cpu)},
          {"cpu_throttled_seconds", Seconds(stats.cpu_throttled)},
          {"processes", stats.pids},
          {"refused_forks", stats.pids_limit_hits},
          {"io_read_bytes", stats.io_read_bytes},
          {"io_write_bytes", stats.io_write_bytes},
          {"disk_bytes", stats.disk_bytes},
          {"disk_used_bytes", stats.disk_used_bytes},
          {"disk_inodes", stats.disk_inodes},
          {"disk_used_inodes", stats.disk_used_inodes}};
}

void AddOutput(json::Object& to, std::string_view name, std::string_view bytes) {
  to[name] = ToUtf8(bytes);
  if (!IsUtf8(bytes)) to[std::string(name) + "_base64"] = ToBase64(bytes);
}

void AddOutcome(json::Object& to, const sandbox::ExecOutcome& outcome) {
  const sandbox::Usage& usage = outcome.usage;
  to["outcome"] = json::Object{{"status", NameOf(outcome.status)}, {"reason", outcome.reason}};
  if (outcome.status == sandbox::OutcomeStatus::kUnknown) return;  // and no figures are made up
  to["exit_code"] = ShellCode(outcome);
  if (outcome.signal != 0) to["signal"] = outcome.signal;
  to["usage"] = json::Object{{"cpu_user_seconds", Seconds(usage.user_cpu)},
                             {"cpu_system_seconds", Seconds(usage.system_cpu)},
                             {"max_rss_bytes", usage.max_rss_bytes},
                             {"memory_peak_bytes", usage.memory_peak_bytes},
                             {"stdout_bytes", usage.stdout_bytes},
                             {"stderr_bytes", usage.stderr_bytes},
                             {"dropped_bytes", usage.dropped_bytes}};
  to["duration_ms"] = Milliseconds(usage.wall);
}

json::Object ToJson(const sandbox::KeptArtifact& artifact) {
  return {{"path", ToUtf8(artifact.path)}, {"name", artifact.name}, {"size", artifact.size}};
}

json::Object ToJson(const sandbox::ExecReport& report) {
  json::Object object{{"process_id", report.process}};
  AddOutcome(object, report.outcome);
  AddOutput(object, "stdout", report.out);
  AddOutput(object, "stderr", report.err);
  object["stdout_omitted"] = report.out_omitted;
  object["stderr_omitted"] = report.err_omitted;
  object["started_at"] = ToText(report.started);
  json::Array artifacts;
  for (const auto& artifact : report.artifacts) artifacts.push_back(ToJson(artifact));
  object["artifacts"] = std::move(artifacts);
  return object;
}

json::Object OutputRange(const sandbox::ProcessFeed& process) {
  const auto begin = process.begin(), end = process.end();
  return {{"stdout_begin", begin.out},
          {"stdout_end", end.out},
          {"stderr_begin", begin.err},
          {"stderr_end", end.err}};
}

json::Object ToJson(const sandbox::ProcessFeed& process) {
  const sandbox::ProcessFacts& facts = process.facts();
  json::Object object{{"process_id", process.handle()},
                      {"pid", process.pid()},
                      {"command", ToUtf8(facts.command)},
                      {"label", ToUtf8(facts.label)},
                      {"pty", facts.stdio == sandbox::Stdio::kPty},
                      {"started_at", ToText(facts.started)},
                      {"state", process.outcome() ? "ended" : "running"},
                      {"output", OutputRange(process)}};
  if (process.outcome()) AddOutcome(object, *process.outcome());
  return object;
}

json::Object ToJson(const sandbox::CommandRecord& record) {
  json::Object object{{"process_id", record.process},
                      {"command", record.command},
                      {"label", record.label},
                      {"pty", record.stdio == sandbox::Stdio::kPty},
                      {"started_at", ToText(record.started)},
                      {"state", record.ended ? "ended" : "running"}};
  json::Array argv;
  for (const auto& argument : record.argv) argv.emplace_back(argument);
  if (!argv.empty()) object["argv"] = std::move(argv);
  if (!record.cwd.empty()) object["cwd"] = record.cwd;
  if (!record.user.empty()) object["user"] = record.user;
  if (record.ended) object["ended_at"] = ToText(*record.ended);
  if (record.outcome) AddOutcome(object, *record.outcome);
  return object;
}

}  // namespace caisson::api
