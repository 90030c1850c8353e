// /api/events: what happens, as it happens: a page of what is remembered, server-sent events, lines
// of JSON, or a WebSocket.
//
// Who comes back says the last number it saw (Last-Event-ID, or ?after=) and gets what came since;
// what is no longer kept is told as "events.missed". An event is told when it is in the store, so
// whatever a client has seen, the next server knows too.
#include <algorithm>
#include <charconv>

#include "api/call.h"
#include "api/event_json.h"
#include "api/event_stream.h"
#include "api/routes.h"
#include "api/services.h"
#include "async/race.h"
#include "base/text.h"
#include "net/sse.h"
#include "net/websocket.h"
#include "sandbox/event_archive.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;
using sandbox::EventItem;
using sandbox::EventReader;

constexpr std::chrono::seconds kHeartbeat{15};

struct Wanted {
  sandbox::EventFilter filter;
  std::optional<uint64_t> after;
};

Result<std::vector<sandbox::EventKind>> KindsOf(const net::Request& request) {
  std::vector<sandbox::EventKind> kinds;
  for (const auto& [name, value] : request.query) {
    if (name != "type") continue;
    const auto kind = sandbox::EventKindFrom(value);
    if (!kind)
      return Error(ErrorCode::kInvalidArgument, "there is no event type " + Quoted(value))
          .WithRemedy("use one such as session.running, exec.ended or alert");
    kinds.push_back(*kind);
  }
  return kinds;
}

Result<std::optional<uint64_t>> AfterOf(const Call& call) {
  CAISSON_ASSIGN(const auto given, call.QueryInteger("after", 0, INT64_MAX));
  if (given) return std::optional<uint64_t>(static_cast<uint64_t>(*given));
  const auto last = net::LastEventId(call.request());
  if (!last) return std::optional<uint64_t>();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(last->data(), last->data() + last->size(), number);
  if (error != std::errc() || end != last->data() + last->size())
    return Error(ErrorCode::kInvalidArgument, "Last-Event-ID is " + Quoted(*last))
        .WithRemedy("give the id of an event of this server, or leave it out");
  return std::optional<uint64_t>(number);
}

Result<Wanted> WantedOf(const Call& call) {
  Wanted wanted;
  wanted.filter = VisibleTo(call.principal());
  CAISSON_ASSIGN(wanted.filter.kinds, KindsOf(call.request()));
  CAISSON_ASSIGN(wanted.after, AfterOf(call));
  return wanted;
}

// The next event; nothing when there is none for as long as a heartbeat.
Task<Result<std::optional<EventItem>>> NextOf(async::Loop* loop, EventReader* events) {
  auto item = co_await async::WithTimeout(loop, kHeartbeat, events->Next());
  if (!item) co_return std::optional<EventItem>();
  if (!*item) co_return std::move(*item).error();
  co_return std::optional(**std::move(item));
}

json::Object MessageOf(const EventItem& item) {
  return std::visit([](const auto& event) { return ToJson(event); }, item);
}

Task<Status> Stream(async::Loop* loop, EventStream* stream, EventReader* events) {
  CAISSON_CO_TRY(co_await stream->Begin());
  for (;;) {
    CAISSON_CO_ASSIGN(const auto item, co_await NextOf(loop, events));
    if (!item) {
      CAISSON_CO_TRY(co_await stream->Heartbeat());
      continue;
    }
    json::Object message = MessageOf(*item);
    std::string name(message.at("type").as_string());
    const auto* event = std::get_if<sandbox::SessionEvent>(&*item);
    std::string id = event == nullptr ? "" : std::to_string(event->sequence);
    CAISSON_CO_TRY(co_await stream->Send(std::move(name), std::move(message), std::move(id)));
  }
}

Task<Status> SendAll(async::Loop* loop, net::WebSocket* socket, EventReader* events) {
  for (;;) {
    CAISSON_CO_ASSIGN(const auto item, co_await NextOf(loop, events));
    if (!item) {
      CAISSON_CO_TRY(co_await socket->Ping(""));
      continue;
    }
    CAISSON_CO_TRY(co_await socket->SendText(json::Write(MessageOf(*item))));
  }
}

// A client has nothing to say here but good-bye.
Task<Status> ReceiveAll(net::WebSocket* socket) {
  for (;;) {
    CAISSON_CO_ASSIGN(const auto message, co_await socket->Receive());
    if (message.kind == net::WsMessage::Kind::kClose) co_return Status();
  }
}

Task<Result<Reply>> ServeSocket(Call* call, EventReader* events) {
  CAISSON_CO_ASSIGN(auto socket, co_await call->exchange().Upgrade({}));
  async::Loop& loop = call->services().loop;
  (void)co_await async::FirstOf(&loop, SendAll(&loop, socket.get(), events),
                                ReceiveAll(socket.get()));
  co_return Reply::Streamed();
}

Task<Result<Reply>> PageOf(Call* call, EventReader* events, int64_t limit) {
  sandbox::EventBus& bus = call->services().events;
  uint64_t last = bus.next_sequence() - 1;
  co_await bus.Settled();
  json::Array list;
  json::Value missed;
  while (static_cast<int64_t>(list.size()) < limit) {
    CAISSON_CO_ASSIGN(const auto item, co_await events->Poll());
    if (!item) break;
    if (const auto* gap = std::get_if<sandbox::EventsMissed>(&*item)) {
      // One range names all that is missing from this page.
      const auto from = missed.is_null() ? gap->from : missed.at("from").to_number<uint64_t>();
      missed = json::Object{{"from", from}, {"to", gap->to}};
      continue;
    }
    const auto& event = std::get<sandbox::SessionEvent>(*item);
    last = std::max(last, event.sequence);
    if (static_cast<int64_t>(list.size()) + 1 == limit) last = event.sequence;
    list.push_back(ToJson(event));
  }
  co_return Reply::Json(
      200, json::Object{
               {"events", std::move(list)}, {"missed", std::move(missed)}, {"next_after", last}});
}

Task<Result<Reply>> Serve(Call* call, Wanted wanted) {
  auto& services = call->services();
  CAISSON_CO_ASSIGN(const auto limit, call->QueryInteger("limit", 1, 1000));
  const bool upgrades = call->request().headers.HasToken("connection", "upgrade");
  const auto kind = WantedStream(call->request());
  if (!upgrades && !kind && !wanted.after) wanted.after = 0;
  EventReader events(services.events, services.archive, std::move(wanted.filter), wanted.after);
  if (upgrades) co_return co_await ServeSocket(call, &events);
  if (!kind) co_return co_await PageOf(call, &events, limit.value_or(100));
  EventStream stream(call->exchange(), *kind);
  async::Loop& loop = services.loop;
  (void)co_await async::FirstOf(&loop, Stream(&loop, &stream, &events),
                                async::WaitFor(&call->exchange().closed()));
  co_return Reply::Streamed();
}

Task<Result<Reply>> Events(Call* call) {
  CAISSON_CO_ASSIGN(Wanted wanted, WantedOf(*call));
  CAISSON_CO_ASSIGN(const auto session, call->Query("session"));
  // A token sees its own session's, whichever it asks for.
  if (session && !call->principal().session) wanted.filter.session_id = *session;
  co_return co_await Serve(call, std::move(wanted));
}

Task<Result<Reply>> SessionEvents(Call* call) {
  CAISSON_CO_ASSIGN(Wanted wanted, WantedOf(*call));
  CAISSON_CO_ASSIGN(const auto record,
                    co_await call->services().sessions.Describe(call->access(), call->Param("id")));
  wanted.filter.session_id = record.id;
  co_return co_await Serve(call, std::move(wanted));
}

std::vector<Parameter> Parameters() {
  return {{"type", "EventTypes", "Only events of this type; may be repeated"},
          {"after", "Offset", "Begin after this sequence number; a stream begins now by default"},
          {"limit", "PageSize", "Of a page: 1 to 1000; default 100"},
          {"Last-Event-ID", "string", "The same as after", Parameter::In::kHeader}};
}

std::vector<Outcome> Outcomes() {
  return {{200, "EventPage"},
          {200, "", "text/event-stream"},
          {200, "", "application/x-ndjson"},
          {101, ""}};
}

}  // namespace

void AddEventRoutes(std::vector<Route>& routes) {
  auto parameters = Parameters();
  parameters.insert(parameters.begin(), {"session", "string", "Only events of this session"});
  routes.push_back({.method = "GET",
                    .pattern = "/api/events",
                    .permission = {Verb::kRead, Resource::kEvents},
                    .handler = Events,
                    .id = "listEvents",
                    .group = "events",
                    .summary = "What happens: a page, a stream (by Accept) or a WebSocket",
                    .outcomes = Outcomes(),
                    .parameters = std::move(parameters)});
  routes.push_back({.method = "GET",
                    .pattern = "/api/sessions/{id}/events",
                    .permission = {Verb::kRead, Resource::kEvents},
                    .handler = SessionEvents,
                    .id = "listSessionEvents",
                    .group = "events",
                    .summary = "What happens to one session, also after its end",
                    .outcomes = Outcomes(),
                    .parameters = Parameters()});
}

}  // namespace caisson::api
