// pause, resume and rm: one call for each session that is named.
#include <unistd.h>

#include <optional>

#include "cli/api_client.h"
#include "cli/dispatch.h"
#include "cli/output.h"
#include "cli/process_link.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr auto kOptions = Joined(kJsonOption, kConnectionOptions);
constexpr Option kRmOwn[] = {{.name = "force",
                              .short_name = 'f',
                              .kind = ValueKind::kFlag,
                              .help = "a session that is not there, or gone, is no error"}};
constexpr auto kRmOptions = Joined(kRmOwn, kJsonOption, kConnectionOptions);
constexpr Positional kSessions[] = {{.name = "session",
                                     .arity = Arity::kMany,
                                     .kind = ValueKind::kSession,
                                     .help = "sessions, by name or id"}};
constexpr Example kPauseExamples[] = {{"caisson pause web", "freeze every process of it"}};
constexpr Example kResumeExamples[] = {{"caisson resume web", "let it go on"}};
constexpr Example kRmExamples[] = {{"caisson rm web mail", "destroy both, with all in them"},
                                   {"caisson ls -q | xargs caisson rm", "destroy them all"}};

enum class Act { kPause, kResume, kRemove };

Task<Result<json::Value>> Do(ApiClient* api, Act act, std::string name) {
  if (act == Act::kRemove) {
    CAISSON_CO_TRY(co_await api->Send("DELETE", SessionTarget(name)));
    co_return json::Value(json::Object{{"session", name}, {"state", "destroyed"}});
  }
  co_return co_await api->Send(
      "POST", SessionTarget(name, act == Act::kPause ? "/pause" : "/resume"), json::Object());
}

bool Missing(const Error& error) {
  return error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kGone;
}

// Every one is tried; the last error decides the exit status, the others are shown as they come.
Task<Result<int>> DoAll(ApiClient* api, const Parsed* parsed, Act act) {
  const bool forgiving = act == Act::kRemove && parsed->Flag("force");
  std::optional<Error> failed;
  for (const auto& name : parsed->All<std::string>("session")) {
    auto done = co_await Do(api, act, name);
    if (!done) {
      if (forgiving && Missing(done.error())) continue;
      if (failed) WriteTo(STDERR_FILENO, ShowError(TheProgram(), nullptr, *failed));
      failed = std::move(done).error();
    } else if (parsed->Flag("json")) {
      CAISSON_CO_TRY(PrintJson(*done));
    } else {
      CAISSON_CO_TRY(Print(OneLine(name) + "\n"));
    }
  }
  if (failed) co_return *std::move(failed);
  co_return 0;
}

Task<Result<int>> Pause(ApiClient* api, const Parsed* parsed) {
  return DoAll(api, parsed, Act::kPause);
}
Task<Result<int>> Resume(ApiClient* api, const Parsed* parsed) {
  return DoAll(api, parsed, Act::kResume);
}
Task<Result<int>> Remove(ApiClient* api, const Parsed* parsed) {
  return DoAll(api, parsed, Act::kRemove);
}
Result<int> RunPause(const Parsed& parsed) { return RunWithServer(parsed, Pause); }
Result<int> RunResume(const Parsed& parsed) { return RunWithServer(parsed, Resume); }
Result<int> RunRm(const Parsed& parsed) { return RunWithServer(parsed, Remove); }

}  // namespace

Verb PauseVerb() {
  return {.name = "pause",
          .summary = "freeze sessions",
          .options = kOptions,
          .positionals = kSessions,
          .examples = kPauseExamples,
          .run = RunPause};
}

Verb ResumeVerb() {
  return {.name = "resume",
          .summary = "let paused sessions go on",
          .options = kOptions,
          .positionals = kSessions,
          .examples = kResumeExamples,
          .run = RunResume};
}

Verb RmVerb() {
  return {.name = "rm",
          .summary = "destroy sessions, and everything in them",
          .options = kRmOptions,
          .positionals = kSessions,
          .examples = kRmExamples,
          .run = RunRm};
}

}  // namespace caisson::cli
