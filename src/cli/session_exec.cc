#include "cli/session_exec.h"

#include <unistd.h>

#include <cstdlib>

#include "base/text.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/api_client.h"
#include "cli/dispatch.h"
#include "cli/output.h"
#include "cli/process_link.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

Status RefuseGiven(const Parsed& parsed, std::initializer_list<std::string_view> names,
                   std::string_view why, std::string remedy) {
  for (const auto name : names) {
    if (parsed.SourceOf(name) == ValueSource::kCommandLine)
      return Error(ErrorCode::kInvalidArgument, Concat({"--", name, " ", why})).WithRemedy(remedy);
  }
  return {};
}

Result<json::Object> CommandOf(const Parsed& parsed) {
  json::Array argv;
  for (const auto& word : parsed.All<std::string>("command")) argv.emplace_back(word);
  if (argv.empty())
    return Error(ErrorCode::kInvalidArgument, "there is no command to run")
        .WithRemedy("give one after --, for example: caisson exec SESSION -- ls -l");
  json::Object command{{"argv", std::move(argv)}};
  CAISSON_ASSIGN(const auto pairs, PairsOf(parsed, "env"));
  json::Object env;
  for (const auto& [name, value] : pairs) env[name] = value;
  command["env"] = std::move(env);
  if (const auto cwd = parsed.Get<std::string>("cwd")) command["cwd"] = *cwd;
  if (const auto user = parsed.Get<std::string>("user")) command["user"] = *user;
  if (const auto time = parsed.Get<std::chrono::nanoseconds>("timeout"))
    command["timeout"] = FormatDuration(*time);
  if (const auto limit = parsed.Get<uint64_t>("output")) command["output_limit"] = *limit;
  return command;
}

void AddTerminal(json::Object& command) {
  const WindowSize size = SizeOfTerminal(STDIN_FILENO);
  command["pty"] = true;
  command["rows"] = size.rows;
  command["cols"] = size.cols;
  auto& env = command["env"].as_object();
  if (const char* term = getenv("TERM"); term != nullptr && !env.contains("TERM"))
    env["TERM"] = term;
}

json::Object Report(LinkEnd& end) {
  json::Object report = std::move(end.ended->as_object());
  report.erase("type");
  report["process_id"] = end.process_id;
  for (const auto& [name, bytes] : {std::pair("stdout", &end.out), {"stderr", &end.err}}) {
    report[name] = ToUtf8(*bytes);
    if (!IsUtf8(*bytes)) report[std::string(name) + "_base64"] = ToBase64(*bytes);
  }
  return report;
}

std::string StatsText(const json::Value& ended) {
  const json::Value& outcome = At(ended, "outcome");
  const json::Value& usage = At(ended, "usage");
  const double cpu = NumberAt(usage, "cpu_user_seconds") + NumberAt(usage, "cpu_system_seconds");
  const auto time = [](double seconds) {
    return FormatDuration(std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6)));
  };
  std::string text = Concat({"outcome  ", OneLine(TextAt(outcome, "status"))});
  if (const std::string reason = TextAt(outcome, "reason"); !reason.empty())
    text += Concat({": ", OneLine(reason)});
  return Concat({text, "\ntime     ", time(NumberAt(ended, "duration_ms") / 1e3), ", cpu ",
                 time(cpu), "\nmemory   ", FormatSize(CountAt(usage, "max_rss_bytes")),
                 " resident at most\n"});
}

Task<Result<int>> Detach(ApiClient* api, const Parsed* parsed, json::Object command) {
  command["background"] = true;
  const std::string session = *parsed->Get<std::string>("session");
  CAISSON_CO_ASSIGN(
      const json::Value process,
      co_await api->Send("POST", SessionTarget(session, "/exec"), std::move(command)));
  if (parsed->Flag("json")) {
    CAISSON_CO_TRY(PrintJson(process));
  } else {
    CAISSON_CO_TRY(Print(std::to_string(CountAt(process, "process_id")) + "\n"));
  }
  co_return 0;
}

Task<Result<int>> SessionExec(ApiClient* api, const Parsed* parsed) {
  CAISSON_CO_ASSIGN(json::Object command, CommandOf(*parsed));
  if (parsed->Flag("detach")) co_return co_await Detach(api, parsed, std::move(command));
  const std::string tty = *parsed->Get<std::string>("tty");
  const bool json = parsed->Flag("json");
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  LinkPlan plan;
  if (json) plan.keep = Keep::kCollect;
  if (!json && (tty == "on" || (tty == "auto" && terminal))) {
    AddTerminal(command);
    if (isatty(STDIN_FILENO) != 0) plan.screen = Screen::kRaw;
  }
  plan.first = std::move(command);
  const std::string session = *parsed->Get<std::string>("session");
  CAISSON_CO_ASSIGN(const auto socket,
                    co_await api->Socket(SessionTarget(session, "/exec"), SessionTarget(session)));
  auto end = co_await JoinProcess(&api->loop(), socket.get(), std::move(plan));
  if (!end) {
    const int code = CodeOfStartError(end.error());
    if (code == InfoOf(end.error().code()).exit_code) co_return std::move(end).error();
    WriteTo(STDERR_FILENO, ShowError(TheProgram(), nullptr, end.error()));
    co_return code;
  }
  const int code = static_cast<int>(NumberAt(*end->ended, "exit_code"));
  if (parsed->Flag("stats")) WriteTo(STDERR_FILENO, StatsText(*end->ended));
  if (json) CAISSON_CO_TRY(PrintJson(Report(*end)));
  co_return code;
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> PairsOf(const Parsed& parsed,
                                                                 std::string_view option) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& text : parsed.All<std::string>(option)) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Error(ErrorCode::kInvalidArgument,
                   Concat({"--", option, " ", Quoted(text), " is no NAME=VALUE"}))
          .WithRemedy(Concat({"write e.g. --", option, " LEVEL=3"}));
    pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return pairs;
}

int CodeOfStartError(const Error& error) {
  if (error.code() == ErrorCode::kNotFound) return 127;
  return error.code() == ErrorCode::kPermissionDenied ? 126 : InfoOf(error.code()).exit_code;
}

Status CheckLocalExec(const Parsed& parsed) {
  return RefuseGiven(parsed, {"url", "key", "ca-file", "detach"},
                     "is for commands in a session, and none is named",
                     "name it before the dashes: caisson exec SESSION -- COMMAND");
}

Result<int> RunSessionExec(const Parsed& parsed) {
  CAISSON_TRY(RefuseGiven(
      parsed,
      {"profile", "rootfs", "mount", "hostname", "memory", "swap", "cpus", "pids", "disk", "inodes",
       "disk-backend", "files", "io-read", "io-write", "memory-bandwidth"},
      "is decided when a session is created", "give it to `caisson create`"));
  return RunWithServer(parsed, SessionExec);
}

}  // namespace caisson::cli
