// shell and attach: a session's terminal on ours, and a command that runs already.
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"
#include "cli/api_client.h"
#include "cli/output.h"
#include "cli/process_link.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kLeaving =
    "Ctrl-P Ctrl-Q leaves the command running; `caisson attach` comes back to it.";

std::string AttachCommand(const std::string& session, const LinkEnd& end) {
  return Concat({"caisson attach ", session, " ", std::to_string(end.process_id)});
}

struct Attached {
  std::string session, process;
  LinkPlan plan;
};

// Attaches and stays until the end. Gives the exit status.
Task<Result<int>> Attach(ApiClient* api, Attached what) {
  const std::string target =
      SessionTarget(what.session, "/processes/" + net::PercentEncode(what.process));
  const std::string query = Query({{"stdout_from", std::to_string(what.plan.out_from)},
                                   {"stderr_from", std::to_string(what.plan.err_from)}});
  CAISSON_CO_ASSIGN(const auto socket, co_await api->Socket(target + "/attach" + query, target));
  auto end = co_await JoinProcess(&api->loop(), socket.get(), std::move(what.plan));
  if (!end && end.error().code() == ErrorCode::kUnavailable)
    co_return std::move(end).error().WithRemedy(
        Concat({"the command may still run: caisson attach ", what.session, " ", what.process}));
  if (!end) co_return std::move(end).error();
  if (!end->ended) {
    WriteTo(STDERR_FILENO,
            Concat({"\r\nleft it running; come back with: ", AttachCommand(what.session, *end),
                    " --from ", std::to_string(end->out_seen), "\r\n"}));
    co_return 0;
  }
  co_return static_cast<int>(NumberAt(*end->ended, "exit_code"));
}

json::Object ShellCommand(const Parsed& parsed) {
  json::Array argv;
  for (const auto& word : parsed.All<std::string>("command")) argv.emplace_back(word);
  if (argv.empty())
    argv = {"/bin/sh", "-c", "if command -v bash >/dev/null; then exec bash; else exec sh; fi"};
  const WindowSize size = SizeOfTerminal(STDIN_FILENO);
  json::Object env;
  if (const char* term = getenv("TERM")) env["TERM"] = term;
  json::Object command{{"argv", std::move(argv)}, {"pty", true},       {"stdin_open", true},
                       {"background", true},      {"rows", size.rows}, {"cols", size.cols},
                       {"env", std::move(env)},   {"label", "shell"}};
  if (const auto cwd = parsed.Get<std::string>("cwd")) command["cwd"] = *cwd;
  if (const auto user = parsed.Get<std::string>("user")) command["user"] = *user;
  return command;
}

Task<Result<int>> Shell(ApiClient* api, const Parsed* parsed) {
  const std::string session = *parsed->Get<std::string>("session");
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
    co_return Error(ErrorCode::kInvalidArgument, "a shell needs a terminal, and here is none")
        .WithRemedy(Concat({"run commands with: caisson exec ", session, " -- COMMAND"}));
  CAISSON_CO_ASSIGN(
      const json::Value process,
      co_await api->Send("POST", SessionTarget(session, "/exec"), ShellCommand(*parsed)));
  Attached what{session, std::to_string(CountAt(process, "process_id")), {}};
  what.plan.screen = Screen::kRaw;
  what.plan.leave_by = LeaveBy::kKeys;
  auto code = co_await Attach(api, what);
  // What has ended is of no more use; what was left runs on and is not touched.
  const std::string target = SessionTarget(session, "/processes/" + what.process);
  if (auto state = co_await api->Get(target); state && TextAt(*state, "state") == "ended")
    (void)co_await api->Send("DELETE", target);  // the session forgets it at its own end otherwise
  co_return code;
}

Result<int> RunShell(const Parsed& parsed) { return RunWithServer(parsed, Shell); }

Task<Result<int>> AttachTo(ApiClient* api, const Parsed* parsed) {
  Attached what{*parsed->Get<std::string>("session"), *parsed->Get<std::string>("process"), {}};
  CAISSON_CO_ASSIGN(const json::Value process,
                    co_await api->Get(SessionTarget(
                        what.session, "/processes/" + net::PercentEncode(what.process))));
  what.plan.bond = Bond::kVisited;
  what.plan.leave_by = LeaveBy::kKeys;
  what.plan.out_from = static_cast<uint64_t>(parsed->Get<int64_t>("from").value_or(0));
  what.plan.err_from = static_cast<uint64_t>(parsed->Get<int64_t>("stderr-from").value_or(0));
  if (parsed->Flag("no-input")) what.plan.input = Input::kNone;
  const json::Value& pty = At(process, "pty");
  if (pty.is_bool() && pty.as_bool() && what.plan.input == Input::kForwarded &&
      isatty(STDIN_FILENO) != 0)
    what.plan.screen = Screen::kRaw;
  co_return co_await Attach(api, std::move(what));
}

Result<int> RunAttach(const Parsed& parsed) { return RunWithServer(parsed, AttachTo); }

constexpr Option kShellOwn[] = {
    {.name = "cwd", .short_name = 'w', .placeholder = "DIR", .help = "working directory inside"},
    {.name = "user",
     .short_name = 'u',
     .placeholder = "USER",
     .help = "a name of the sandbox's passwd, or a uid"},
};
constexpr Option kAttachOwn[] = {
    {.name = "from",
     .kind = ValueKind::kInt,
     .placeholder = "OFFSET",
     .min = 0,
     .help = "begin with this byte of its output, instead of the first that is kept"},
    {.name = "stderr-from",
     .kind = ValueKind::kInt,
     .placeholder = "OFFSET",
     .min = 0,
     .help = "the same for its stderr, where that is a stream of its own"},
    {.name = "no-input", .kind = ValueKind::kFlag, .help = "only look: send it nothing"},
};
constexpr auto kShellOptions = Joined(kShellOwn, kConnectionOptions);
constexpr auto kAttachOptions = Joined(kAttachOwn, kConnectionOptions);
constexpr Positional kShellWords[] = {
    {.name = "session", .kind = ValueKind::kSession, .help = "a session, by name or id"},
    {.name = "command", .arity = Arity::kRest, .help = "instead of a shell"}};
constexpr Positional kAttachWords[] = {
    {.name = "session", .kind = ValueKind::kSession, .help = "a session, by name or id"},
    {.name = "process", .help = "a process_id that the session lists"}};
constexpr Example kShellExamples[] = {{"caisson shell web", "a shell in the session web"},
                                      {"caisson shell web python3", "or another program"}};
constexpr Example kAttachExamples[] = {
    {"caisson attach web 3", "all of its output that is kept, and then live"},
    {"caisson attach --from 5120 web 3", "go on where you left"}};

}  // namespace

Verb ShellVerb() {
  return {.name = "shell",
          .summary = "open a terminal in a session",
          .details = kLeaving,
          .options = kShellOptions,
          .positionals = kShellWords,
          .examples = kShellExamples,
          .run = RunShell};
}

Verb AttachVerb() {
  return {.name = "attach",
          .summary = "go back to a command that runs in a session",
          .details = kLeaving,
          .options = kAttachOptions,
          .positionals = kAttachWords,
          .examples = kAttachExamples,
          .run = RunAttach};
}

}  // namespace caisson::cli
