// /api/sessions/{id}/processes: the commands of a session, those that run and those that have
// ended, also when the session has. What runs is known here; what has ended is on record.
#include "api/call.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/session_input.h"
#include "api/session_json.h"
#include "async/race.h"
#include "sandbox/command_records.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;
using FeedPtr = std::shared_ptr<sandbox::ProcessFeed>;

enum class Wanted { kAll, kRunning, kEnded };

Result<Wanted> WantedOf(const Call& call) {
  CAISSON_ASSIGN(const auto state, call.Query("state"));
  if (!state) return Wanted::kAll;
  if (*state == "running") return Wanted::kRunning;
  if (*state == "ended") return Wanted::kEnded;
  return Error(ErrorCode::kInvalidArgument, "state: there is no process state \"" + *state + "\"")
      .WithRemedy("use running or ended, or leave it out for both");
}

// The session when it lives, by its id.
std::shared_ptr<sandbox::Session> LiveSession(Call* call, const std::string& id) {
  return call->services().sessions.sessions().FindId(id);
}

// Newest first.
json::Array Known(const sandbox::Session& session, Wanted wanted) {
  auto feeds = session.Processes();
  json::Array list;
  for (auto feed = feeds.rbegin(); feed != feeds.rend(); ++feed)
    if (wanted == Wanted::kAll ||
        ((*feed)->outcome() ? Wanted::kEnded : Wanted::kRunning) == wanted)
      list.push_back(ToJson(**feed));
  return list;
}

// Those that have ended, with what is still at hand of their output.
Task<Result<std::string>> AddEnded(Call* call, json::Array* list, std::string session_id) {
  CAISSON_CO_ASSIGN(const auto cursor, call->Query("cursor"));
  CAISSON_CO_ASSIGN(const auto limit, call->QueryInteger("limit", 1, 1000));
  CAISSON_CO_ASSIGN(auto page,
                    co_await call->services().commands->ListEnded(
                        session_id, cursor.value_or(""), static_cast<int>(limit.value_or(100))));
  const auto session = LiveSession(call, session_id);
  for (const auto& record : page.commands) {
    const auto live = session ? session->FindProcess(record.process)
                              : Result<FeedPtr>(Error(ErrorCode::kNotFound, "it has ended"));
    json::Object object = ToJson(record);
    if (live && (*live)->outcome()) object["output"] = OutputRange(**live);
    list->push_back(std::move(object));
  }
  co_return std::move(page.next_cursor);
}

Task<Result<Reply>> ListProcesses(Call* call) {
  CAISSON_CO_ASSIGN(const Wanted wanted, WantedOf(*call));
  CAISSON_CO_ASSIGN(const auto cursor, call->Query("cursor"));
  CAISSON_CO_ASSIGN(const auto record,
                    co_await call->services().sessions.Describe(call->access(), call->Param("id")));
  const auto session = LiveSession(call, record.id);
  const bool recorded = call->services().commands != nullptr;
  json::Array list;
  // What runs comes before what has ended, so it is on the first page.
  if (session && !cursor) list = Known(*session, recorded ? Wanted::kRunning : wanted);
  if (wanted == Wanted::kEnded && recorded) list.clear();
  std::string next;
  if (recorded && wanted != Wanted::kRunning) {
    CAISSON_CO_ASSIGN(next, co_await AddEnded(call, &list, record.id));
  }
  co_return Reply::Json(
      200, json::Object{{"processes", std::move(list)},
                        {"next_cursor", next.empty() ? json::Value() : json::Value(next)}});
}

// A command that is at hand; or the record of one that is not, and has ended.
struct Found {
  FeedPtr process;
  std::optional<sandbox::CommandRecord> record;
};

Task<Result<Found>> FindCommand(Call* call) {
  CAISSON_CO_ASSIGN(const uint32_t handle, ParseHandle(call->Param("process")));
  CAISSON_CO_ASSIGN(const auto described,
                    co_await call->services().sessions.Describe(call->access(), call->Param("id")));
  if (const auto session = LiveSession(call, described.id))
    if (auto process = session->FindProcess(handle))
      co_return Found{.process = *std::move(process), .record = {}};
  if (call->services().commands != nullptr) {
    CAISSON_CO_ASSIGN(auto record, co_await call->services().commands->Find(described.id, handle));
    if (record) co_return Found{.process = nullptr, .record = std::move(record)};
  }
  co_return Error(ErrorCode::kNotFound,
                  "no process " + std::to_string(handle) + " in session " + described.id)
      .WithRemedy("list the session's processes");
}

Task<Result<Reply>> GetProcess(Call* call) {
  CAISSON_CO_ASSIGN(const Found found, co_await FindCommand(call));
  co_return Reply::Json(200, found.process ? ToJson(*found.process) : ToJson(*found.record));
}

Task<std::monostate> Ended(FeedPtr process) {
  (void)co_await process->Wait();
  co_return std::monostate();
}

// As it stands when it has ended or the time is over, whichever comes first.
Task<Result<Reply>> WaitProcess(Call* call) {
  CAISSON_CO_ASSIGN(const auto seconds, call->QueryInteger("timeout", 0, 3600));
  CAISSON_CO_ASSIGN(const Found found, co_await FindCommand(call));
  if (!found.process) co_return Reply::Json(200, ToJson(*found.record));
  async::Loop& loop = call->services().loop;
  auto wait =
      async::WithTimeout(&loop, std::chrono::seconds(seconds.value_or(60)), Ended(found.process));
  auto first =
      co_await async::FirstOf(&loop, std::move(wait), async::WaitFor(&call->exchange().closed()));
  if (first.index() == 1) co_return Reply::Streamed();
  co_return Reply::Json(200, ToJson(*found.process));
}

}  // namespace

void AddProcessRoutes(std::vector<Route>& routes) {
  routes.push_back(
      {.method = "GET",
       .pattern = "/api/sessions/{id}/processes",
       .permission = {Verb::kRead, Resource::kProcesses},
       .handler = ListProcesses,
       .id = "listProcesses",
       .group = "processes",
       .summary = "Commands of a session, also after its end: those that run, then the ended ones, "
                  "newest first",
       .outcomes = {{200, "ProcessList"}},
       .parameters = {{"state", "ProcessState", "Only those that are running, or ended"},
                      {"cursor", "string", "next_cursor of the page before"},
                      {"limit", "PageSize", "Ended ones of a page: 1 to 1000; default 100"}}});
  routes.push_back({.method = "GET",
                    .pattern = "/api/sessions/{id}/processes/{process}",
                    .permission = {Verb::kRead, Resource::kProcesses},
                    .handler = GetProcess,
                    .id = "getProcess",
                    .group = "processes",
                    .summary = "One command: running, or how it ended",
                    .outcomes = {{200, "Process"}}});
  routes.push_back(
      {.method = "GET",
       .pattern = "/api/sessions/{id}/processes/{process}/wait",
       .permission = {Verb::kRead, Resource::kProcesses},
       .handler = WaitProcess,
       .id = "waitProcess",
       .group = "processes",
       .summary = "Wait until a command has ended, or the time is over",
       .outcomes = {{200, "Process"}},
       .parameters = {{"timeout", "WaitSeconds", "Seconds; default 60, at most 3600"}}});
}

}  // namespace caisson::api
