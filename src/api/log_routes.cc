// /api/sessions/{id}/logs: what ran in a session and what it said, also after its end. One JSON
// object for each line: {"time_ms", "process", "event": "started|stdout|stderr|gap|ended", …}.
#include "api/call.h"
#include "api/event_stream.h"
#include "api/log_reader.h"
#include "api/routes.h"
#include "api/services.h"
#include "async/race.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

constexpr std::chrono::milliseconds kLook{250};
constexpr std::chrono::seconds kHeartbeat{15};

enum class Until { kNow, kSessionEnds };

Task<Status> SendLines(EventStream* stream, std::vector<std::string> lines) {
  for (const std::string& line : lines) {
    auto message = json::Parse(line);
    if (!message || !message->is_object()) continue;  // cut by a crash: it says nothing
    CAISSON_CO_TRY(co_await stream->Send("log", std::move(message->as_object())));
  }
  co_return Status();
}

// Until there is nothing more and, when followed, nothing more can come.
Task<Status> StreamLog(Call* call, EventStream* stream, std::string session_id, Until until) {
  auto& services = call->services();
  LogReader reader(services.kept->log, session_id);
  CAISSON_CO_TRY(co_await stream->Begin());
  auto quiet_since = async::Loop::Clock::now();
  bool ended = until == Until::kNow;
  for (;;) {
    co_await services.kept->log.Flush();
    CAISSON_CO_ASSIGN(auto lines, co_await reader.Next());
    if (!lines.empty()) {
      CAISSON_CO_TRY(co_await SendLines(stream, std::move(lines)));
      quiet_since = async::Loop::Clock::now();
      continue;
    }
    if (ended) break;
    const auto record = co_await services.sessions.Describe({}, session_id);
    ended = !record || HasEnded(record->state);
    if (ended) continue;  // what was logged before the end may not have been read
    if (async::Loop::Clock::now() - quiet_since > kHeartbeat) {
      CAISSON_CO_TRY(co_await stream->Heartbeat());
      quiet_since = async::Loop::Clock::now();
    }
    co_await services.loop.Sleep(kLook);
  }
  co_return co_await stream->Finish();
}

Task<Result<Reply>> SessionLogs(Call* call) {
  CAISSON_CO_ASSIGN(const bool follow, call->QueryFlag("follow"));
  auto& services = call->services();
  if (services.kept == nullptr)
    co_return Error(ErrorCode::kUnsupported, "this server keeps no logs of its sessions")
        .WithRemedy("start it with a data directory");
  CAISSON_CO_ASSIGN(const auto record,
                    co_await services.sessions.Describe(call->access(), call->Param("id")));
  EventStream stream(call->exchange(), WantedStream(call->request()).value_or(StreamKind::kNdjson));
  const Until until = follow ? Until::kSessionEnds : Until::kNow;
  auto first = co_await async::FirstOf(&services.loop, StreamLog(call, &stream, record.id, until),
                                       async::WaitFor(&call->exchange().closed()));
  if (first.index() == 0) CAISSON_CO_TRY(std::get<0>(std::move(first)));
  co_return Reply::Streamed();
}

}  // namespace

void AddLogRoutes(std::vector<Route>& routes) {
  routes.push_back({.method = "GET",
                    .pattern = "/api/sessions/{id}/logs",
                    .permission = {Verb::kRead, Resource::kLogs},
                    .handler = SessionLogs,
                    .id = "sessionLogs",
                    .group = "logs",
                    .summary = "What ran in a session and what it said, also after its end",
                    .outcomes = {{200, "", "application/x-ndjson"}, {200, "", "text/event-stream"}},
                    .parameters = {{"follow", "boolean", "Go on until the session ends"}}});
}

}  // namespace caisson::api
