// /api/sessions: create, list, inspect, change, pause, resume, destroy.
#include "api/call.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/session_input.h"
#include "api/session_json.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

Task<Result<Reply>> CreateSession(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  CAISSON_CO_ASSIGN(sandbox::SessionSpec spec, ReadSessionSpec(body));
  spec.idempotency_key = call->request().headers.Get("idempotency-key");
  telemetry::Span span = call->Trace("create session");
  span.Set("caisson.environment", spec.environment);
  const Stopwatch watch;
  auto session = co_await call->services().sessions.Create(call->owner(), std::move(spec));
  if (!session) {
    span.Fail(session.error().message());
    co_return std::move(session).error();
  }
  call->services().metrics.Created((*session)->record(), watch.elapsed());
  span.Set("caisson.session_id", (*session)->id());
  span.End();
  json::Object answer = ToJson(**session);
  co_return net::Response::Json(201, json::Write(answer))
      .WithHeader("Location", "/api/sessions/" + (*session)->id());
}

// "k=v" pairs of a filter, as in ?label=team=search&label=tier=1.
Result<sandbox::StringMap> LabelsOf(const net::Request& request) {
  sandbox::StringMap labels;
  for (const auto& [name, value] : request.query) {
    if (name != "label") continue;
    const size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error(ErrorCode::kInvalidArgument, "label filter \"" + value + "\" has no value")
          .WithRemedy("write label=NAME=VALUE");
    labels[value.substr(0, equals)] = value.substr(equals + 1);
  }
  return labels;
}

Result<std::vector<sandbox::SessionState>> StatesOf(const net::Request& request) {
  std::vector<sandbox::SessionState> states;
  for (const auto& [name, value] : request.query) {
    if (name != "state") continue;
    const auto state = sandbox::SessionStateFrom(value);
    if (!state)
      return Error(ErrorCode::kInvalidArgument, "there is no session state \"" + value + "\"")
          .WithRemedy("use creating, running, paused, stopping, destroyed, failed or lost");
    states.push_back(*state);
  }
  return states;
}

Task<Result<Reply>> ListSessions(Call* call) {
  sandbox::SessionQuery query;
  query.access = call->access();
  CAISSON_CO_ASSIGN(query.labels, LabelsOf(call->request()));
  CAISSON_CO_ASSIGN(query.states, StatesOf(call->request()));
  CAISSON_CO_ASSIGN(const auto cursor, call->Query("cursor"));
  CAISSON_CO_ASSIGN(const auto limit, call->QueryInteger("limit", 1, 1000));
  query.cursor = cursor.value_or("");
  query.limit = static_cast<int>(limit.value_or(100));
  CAISSON_CO_ASSIGN(const auto page, co_await call->services().sessions.List(std::move(query)));
  json::Array sessions;
  for (const auto& record : page.sessions) sessions.push_back(ToJson(record));
  json::Object answer{{"sessions", std::move(sessions)}};
  answer["next_cursor"] = page.next_cursor.empty() ? json::Value() : json::Value(page.next_cursor);
  co_return Reply::Json(200, answer);
}

Task<Result<Reply>> GetSession(Call* call) {
  auto& sessions = call->services().sessions;
  if (auto live = co_await sessions.Get(call->access(), call->Param("id")))
    co_return Reply::Json(200, ToJson(**live));
  CAISSON_CO_ASSIGN(const auto record,
                    co_await sessions.Describe(call->access(), call->Param("id")));
  co_return Reply::Json(200, ToJson(record));
}

Task<Result<Reply>> PatchSession(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  CAISSON_CO_ASSIGN(auto patch, ReadSessionPatch(body));
  auto& sessions = call->services().sessions;
  CAISSON_CO_TRY(co_await sessions.Patch(call->access(), call->Param("id"), std::move(patch)));
  co_return co_await GetSession(call);
}

Task<Result<Reply>> PauseSession(Call* call) {
  CAISSON_CO_ASSIGN(const auto record,
                    co_await call->services().sessions.Pause(call->access(), call->Param("id")));
  co_return Reply::Json(200, ToJson(record));
}

Task<Result<Reply>> ResumeSession(Call* call) {
  CAISSON_CO_ASSIGN(const auto record,
                    co_await call->services().sessions.Resume(call->access(), call->Param("id")));
  co_return Reply::Json(200, ToJson(record));
}

Task<Result<Reply>> TouchSession(Call* call) {
  CAISSON_CO_ASSIGN(const auto record,
                    co_await call->services().sessions.Touch(call->access(), call->Param("id")));
  co_return Reply::Json(200, ToJson(record));
}

Task<Result<Reply>> DestroySession(Call* call) {
  auto& sessions = call->services().sessions;
  CAISSON_CO_ASSIGN(const auto sandbox_id, call->Query("sandbox_id"));
  if (sandbox_id) {
    CAISSON_CO_ASSIGN(const auto record,
                      co_await sessions.Describe(call->access(), call->Param("id")));
    if (record.sandbox_id != *sandbox_id)
      co_return Error(ErrorCode::kConflict,
                      "session " + record.id + " has another sandbox than " + *sandbox_id)
          .WithRemedy("leave sandbox_id out, or give the one that the session names");
  }
  const Stopwatch watch;
  const auto live = co_await sessions.Get(call->access(), call->Param("id"));
  CAISSON_CO_TRY(co_await sessions.Destroy(call->access(), call->Param("id"), "asked for"));
  if (live) call->services().metrics.Destroyed((*live)->record(), watch.elapsed());
  co_return Reply::Nothing();
}

Task<Result<Reply>> SessionStats(Call* call) {
  CAISSON_CO_ASSIGN(const auto session,
                    co_await call->services().sessions.Get(call->access(), call->Param("id")));
  CAISSON_CO_ASSIGN(const auto stats, co_await session->Stats());
  co_return Reply::Json(200, ToJson(stats));
}

}  // namespace

void AddSessionRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) { routes.push_back(std::move(route)); };
  add({.method = "POST",
       .pattern = "/api/sessions",
       .permission = {Verb::kCreate, Resource::kSessions},
       .handler = CreateSession,
       .id = "createSession",
       .group = "sessions",
       .summary = "Create a session and the sandbox behind it",
       .request = "SessionCreate",
       .outcomes = {{201, "Session"}},
       .parameters = {{"Idempotency-Key", "string",
                       "The same key with the same request gives the same session",
                       Parameter::In::kHeader}},
       .cost = Cost::kCreate,
       .audited = Audited::kAlways});
  add({.method = "GET",
       .pattern = "/api/sessions",
       .permission = {Verb::kRead, Resource::kSessions},
       .handler = ListSessions,
       .id = "listSessions",
       .group = "sessions",
       .summary = "List sessions, newest first",
       .outcomes = {{200, "SessionList"}},
       .parameters = {
           {"label", "LabelFilters", "NAME=VALUE; may be repeated, all must match"},
           {"state", "SessionStates", "May be repeated; default: those that have not ended"},
           {"cursor", "string", "next_cursor of the page before"},
           {"limit", "PageSize", "1 to 1000; default 100"}}});
  add({.method = "GET",
       .pattern = "/api/sessions/{id}",
       .permission = {Verb::kRead, Resource::kSessions},
       .handler = GetSession,
       .id = "getSession",
       .group = "sessions",
       .summary = "A session by id or name: state, isolation, limits",
       .outcomes = {{200, "Session"}}});
  add({.method = "PATCH",
       .pattern = "/api/sessions/{id}",
       .permission = {Verb::kUpdate, Resource::kSessions},
       .handler = PatchSession,
       .id = "patchSession",
       .group = "sessions",
       .summary = "Change timeout (from now), limits, metadata or labels of a live session",
       .request = "SessionPatch",
       .outcomes = {{200, "Session"}},
       .audited = Audited::kAlways});
  add({.method = "DELETE",
       .pattern = "/api/sessions/{id}",
       .permission = {Verb::kDelete, Resource::kSessions},
       .handler = DestroySession,
       .id = "destroySession",
       .group = "sessions",
       .summary = "Destroy a session and everything in it",
       .outcomes = {{204, ""}},
       .parameters = {{"sandbox_id", "string", "Refuse unless this is the session's sandbox"}},
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/api/sessions/{id}/pause",
       .permission = {Verb::kUpdate, Resource::kSessions},
       .handler = PauseSession,
       .id = "pauseSession",
       .group = "sessions",
       .summary = "Freeze every process of a session",
       .outcomes = {{200, "Session"}},
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/api/sessions/{id}/resume",
       .permission = {Verb::kUpdate, Resource::kSessions},
       .handler = ResumeSession,
       .id = "resumeSession",
       .group = "sessions",
       .summary = "Let a paused session go on",
       .outcomes = {{200, "Session"}},
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/api/sessions/{id}/touch",
       .permission = {Verb::kUpdate, Resource::kSessions},
       .handler = TouchSession,
       .id = "touchSession",
       .group = "sessions",
       .summary = "Let the session's timeout begin anew",
       .outcomes = {{200, "Session"}}});
  add({.method = "GET",
       .pattern = "/api/sessions/{id}/metrics",
       .permission = {Verb::kRead, Resource::kSessions},
       .handler = SessionStats,
       .id = "sessionMetrics",
       .group = "sessions",
       .summary = "What a session uses now, from the kernel",
       .outcomes = {{200, "SandboxStats"}}});
}

}  // namespace caisson::api
