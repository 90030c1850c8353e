// events: what happens on a server.
#include <unistd.h>

#include "cli/api_client.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kOwn[] = {
    {.name = "follow",
     .short_name = 'f',
     .kind = ValueKind::kFlag,
     .help = "go on with what happens from now, until Ctrl-C"},
    {.name = "session",
     .kind = ValueKind::kSession,
     .placeholder = "SESSION",
     .help = "only what happens to this session"},
    {.name = "type",
     .occurs = Occurs::kMany,
     .placeholder = "TYPE",
     .help = "only this type, such as session.running or exec.ended"},
    {.name = "after",
     .kind = ValueKind::kInt,
     .placeholder = "NUMBER",
     .min = 0,
     .help = "begin after the event of this number (default: the first that is remembered)"},
};
constexpr auto kOptions = Joined(kOwn, kJsonOption, kConnectionOptions);
constexpr Example kExamples[] = {
    {"caisson events", "what is remembered"},
    {"caisson events -f --session web", "and what happens to one session, live"},
    {"caisson events -f --json --type session.destroyed", "for machines"},
};

constexpr size_t kPage = 1000;

Status Show(const json::Value& event, const Parsed& parsed) {
  if (parsed.Flag("json")) return PrintJson(event);
  const std::string type = TextAt(event, "type");
  if (type == "events.missed")
    return Print("events " + Shown(At(event, "from")) + " to " + Shown(At(event, "to")) +
                 " are not remembered any more\n");
  std::string line = OneLine(TextAt(event, "time")) + "  " + OneLine(type);
  const std::string session = TextAt(event, "session_id");
  if (!session.empty()) line += "  " + OneLine(session);
  const json::Value& details = At(event, "details");
  if (details.is_object() && !details.as_object().empty()) line += "  " + Shown(details);
  return Print(line + "\n");
}

// Shows what is remembered; gives the number that a stream goes on from.
Task<Result<uint64_t>> ShowPages(ApiClient* api, const Parsed* parsed, std::string target) {
  for (auto after = static_cast<uint64_t>(parsed->Get<int64_t>("after").value_or(0));;) {
    CAISSON_CO_ASSIGN(const json::Value page, co_await api->Get(target + std::to_string(after)));
    if (const json::Value& missed = At(page, "missed"); missed.is_object()) {
      json::Object event = missed.as_object();
      event["type"] = "events.missed";
      CAISSON_CO_TRY(Show(event, *parsed));
    }
    const json::Value& events = At(page, "events");
    const size_t count = events.is_array() ? events.as_array().size() : 0;
    for (size_t i = 0; i < count; ++i) CAISSON_CO_TRY(Show(events.as_array()[i], *parsed));
    after = CountAt(page, "next_after");
    if (count < kPage) co_return after;
  }
}

Task<Result<int>> Events(ApiClient* api, const Parsed* parsed) {
  const auto session = parsed->Get<std::string>("session");
  std::string target = session ? SessionTarget(*session, "/events") : "/api/events";
  target += "?limit=" + std::to_string(kPage);
  for (const auto& type : parsed->All<std::string>("type"))
    target += "&type=" + net::PercentEncode(type);
  target += "&after=";
  uint64_t after = 0;
  CAISSON_CO_ASSIGN(after, co_await ShowPages(api, parsed, target));
  if (!parsed->Flag("follow")) co_return 0;
  CAISSON_CO_ASSIGN(const auto lines, co_await api->Lines(target + std::to_string(after)));
  for (;;) {
    CAISSON_CO_ASSIGN(const auto event, co_await lines->Next());
    if (!event)
      co_return Error(ErrorCode::kUnavailable, "the server ended the stream of events")
          .WithRemedy("ask again");
    CAISSON_CO_TRY(Show(*event, *parsed));
  }
}

Result<int> Run(const Parsed& parsed) { return RunWithServer(parsed, Events); }

}  // namespace

Verb EventsVerb() {
  return {.name = "events",
          .summary = "show what happens to sessions and commands",
          .options = kOptions,
          .examples = kExamples,
          .run = Run};
}

}  // namespace caisson::cli
