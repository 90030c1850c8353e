// ls: the sessions of a server.
#include "cli/output.h"
#include "cli/session_list.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kOwn[] = {
    {.name = "all",
     .short_name = 'a',
     .kind = ValueKind::kFlag,
     .help = "also those that have ended"},
    {.name = "state",
     .occurs = Occurs::kMany,
     .placeholder = "STATE",
     .help = "only those that are creating, running, paused, stopping, destroyed, failed or lost"},
    {.name = "label",
     .short_name = 'l',
     .occurs = Occurs::kMany,
     .placeholder = "NAME=VALUE",
     .help = "only those with this label"},
    {.name = "quiet",
     .short_name = 'q',
     .kind = ValueKind::kFlag,
     .section = "Output",
     .help = "print their ids alone"},
    {.name = "names",
     .kind = ValueKind::kFlag,
     .section = "Output",
     .help = "print what each can be called by: its name, or else its id"},
};
constexpr auto kOptions = Joined(kOwn, kJsonOption, kConnectionOptions);
constexpr Example kExamples[] = {
    {"caisson ls", "what runs"},
    {"caisson ls --all --label team=search", "also what has ended, of one team"},
    {"caisson ls -q | xargs caisson rm", "destroy them all"},
};
constexpr std::string_view kStates[] = {"creating",  "running", "paused", "stopping",
                                        "destroyed", "failed",  "lost"};

std::string Until(const json::Value& session, std::string_view field) {
  const auto time = ParseTime(TextAt(session, field));
  return time ? Span(*time - Now()) : "-";
}

std::string Since(const json::Value& session, std::string_view field) {
  const auto time = ParseTime(TextAt(session, field));
  return time ? Span(Now() - *time) : "-";
}

std::string AsTable(const std::vector<json::Value>& sessions) {
  Table table({{"SESSION"},
               {"NAME", Align::kLeft, Fit::kCut},
               {"STATE"},
               {"ENVIRONMENT", Align::kLeft, Fit::kCut},
               {"PROVIDER"},
               {"AGE", Align::kRight},
               {"EXPIRES", Align::kRight},
               {"LABELS", Align::kLeft, Fit::kCut}});
  for (const json::Value& session : sessions) {
    const std::string state = TextAt(session, "state");
    const bool over = !At(session, "ended_at").is_null();
    table.Add({TextAt(session, "session_id"), TextAt(session, "name"),
               Cell(state, TintOfState(state)), TextAt(session, "environment"),
               TextAt(session, "provider"), Since(session, "created_at"),
               over ? "-" : Until(session, "expires_at"), Shown(At(session, "labels"))});
  }
  return table.Show(WidthOfOutput(), ColourOfOutput());
}

Task<Result<int>> List(ApiClient* api, const Parsed* parsed) {
  ListFilter filter{parsed->All<std::string>("state"), parsed->All<std::string>("label")};
  if (parsed->Flag("all")) {
    if (!filter.states.empty())
      co_return Error(ErrorCode::kInvalidArgument, "--all and --state contradict each other")
          .WithRemedy("give one of the two");
    filter.states.assign(std::begin(kStates), std::end(kStates));
  }
  // A shell that completes a name does not wait for a server that is not there.
  if (parsed->Flag("names")) api->set_connect_timeout(std::chrono::seconds(1));
  CAISSON_CO_ASSIGN(const auto sessions, co_await ListSessions(api, std::move(filter)));
  std::string out;
  for (const json::Value& session : sessions) {
    const std::string id = TextAt(session, "session_id"), name = TextAt(session, "name");
    if (parsed->Flag("json"))
      out += json::Write(session) + "\n";
    else if (parsed->Flag("names"))
      out += OneLine(name.empty() ? id : name) + "\n";
    else if (parsed->Flag("quiet"))
      out += OneLine(id) + "\n";
  }
  if (!parsed->Flag("json") && !parsed->Flag("names") && !parsed->Flag("quiet"))
    out = AsTable(sessions);
  CAISSON_CO_TRY(Print(out));
  co_return 0;
}

Result<int> Run(const Parsed& parsed) { return RunWithServer(parsed, List); }

}  // namespace

Task<Result<std::vector<json::Value>>> ListSessions(ApiClient* api, ListFilter filter) {
  std::string base = "/api/sessions?limit=500";
  for (const auto& state : filter.states) base += "&state=" + net::PercentEncode(state);
  for (const auto& label : filter.labels) base += "&label=" + net::PercentEncode(label);
  std::vector<json::Value> sessions;
  for (std::string cursor;;) {
    CAISSON_CO_ASSIGN(
        const json::Value page,
        co_await api->Get(base + (cursor.empty() ? "" : "&cursor=") + net::PercentEncode(cursor)));
    if (const json::Value& list = At(page, "sessions"); list.is_array())
      for (const json::Value& session : list.as_array()) sessions.push_back(session);
    cursor = TextAt(page, "next_cursor");
    if (cursor.empty()) co_return std::move(sessions);
  }
}

Verb LsVerb() {
  return {.name = "ls",
          .summary = "list the sessions of a server",
          .options = kOptions,
          .examples = kExamples,
          .run = Run};
}

}  // namespace caisson::cli
