// /api/stream: one WebSocket for everything that is live: events, and the output of any number of
// commands, of any sessions that the caller may see.
//
// The client opens channels under names of its own and closes them:
//   {"type": "events", "channel": "e", "session": "…", "types": ["exec.ended"], "after": 41}
//   {"type": "follow", "channel": "p", "session": "…", "process": 3, "stdout_from": 0,
//   "stderr_from": 0}
//   {"type": "close", "channel": "p"}
// Each is answered by {"type": "opened" | "closed", "channel"} or {"type": "error", "channel",
// "code", "detail"}. What comes from a channel is {"channel": "p", "message": {…}}, the message as
// /api/events and …/output have it; a command's channel closes by itself after "ended".
//
// All channels share one outbox of bounded size: a client that reads slowly holds up its own
// channels and nothing else.
#include <deque>
#include <map>

#include "api/call.h"
#include "api/event_json.h"
#include "api/process_events.h"
#include "api/routes.h"
#include "api/services.h"
#include "async/race.h"
#include "async/task_set.h"
#include "base/text.h"
#include "net/websocket.h"
#include "sandbox/event_archive.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

constexpr size_t kMaxChannels = 64;
constexpr size_t kOutbox = 16;  // messages
constexpr std::chrono::seconds kHeartbeat{15};

class LiveSocket {
 public:
  LiveSocket(Call& call, net::WebSocket& socket)
      : call_(call), socket_(socket), loop_(call.services().loop), changed_(loop_), room_(loop_) {}

  // Sends what channels give, with heartbeats where they are silent.
  Task<Status> SendAll();
  // Carries out what the client asks until it closes or goes. What cannot be done is said so.
  Task<Status> ObeyAll();

 private:
  Task<Status> Obey(const json::Value* message, std::string* channel);
  Task<Status> OpenEvents(json::Reader* in, std::string channel);
  Task<Status> OpenFollow(json::Reader* in, std::string channel);
  void Open(const std::string& channel, Task<void> work);
  Task<void> TellEvents(std::string channel, std::unique_ptr<sandbox::EventReader> events);
  Task<void> TellProcess(std::string channel, std::shared_ptr<sandbox::ProcessFeed> process,
                         sandbox::FeedOffsets from);
  // Completes when there is room.
  Task<void> Put(const json::Object& message) { return Send(json::Write(message)); }
  // A message that is written out already, from a channel.
  Task<void> PutFrom(const std::string& channel, std::string_view message);
  Task<void> Send(std::string text);

  Call& call_;
  net::WebSocket& socket_;
  async::Loop& loop_;
  std::deque<std::string> outbox_;
  async::Event changed_, room_;
  std::map<std::string, std::unique_ptr<async::TaskSet>> channels_;
};

Task<void> LiveSocket::Send(std::string text) {
  while (outbox_.size() >= kOutbox) co_await room_.Wait();
  outbox_.push_back(std::move(text));
  changed_.Wake();
}

Task<void> LiveSocket::PutFrom(const std::string& channel, std::string_view message) {
  return Send(R"({"channel":)" + json::Write(json::Value(channel)) + R"(,"message":)" +
              std::string(message) + "}");
}

Task<Status> LiveSocket::SendAll() {
  for (;;) {
    if (outbox_.empty()) {
      const auto woken = co_await async::WithTimeout(&loop_, kHeartbeat, async::WaitFor(&changed_));
      if (!woken) CAISSON_CO_TRY(co_await socket_.Ping(""));
      continue;
    }
    std::string message = std::move(outbox_.front());
    outbox_.pop_front();
    room_.Wake();
    CAISSON_CO_TRY(co_await socket_.SendText(std::move(message)));
  }
}

Task<Status> LiveSocket::ObeyAll() {
  for (;;) {
    CAISSON_CO_ASSIGN(const auto message, co_await socket_.Receive());
    if (message.kind == net::WsMessage::Kind::kClose) co_return Status();
    std::string channel;
    const auto parsed = json::Parse(message.data);
    const auto done = parsed ? co_await Obey(&*parsed, &channel) : Status(parsed.error());
    if (done) continue;
    json::Object error{{"type", "error"},
                       {"channel", channel.empty() ? json::Value() : json::Value(channel)},
                       {"code", done.error().name()},
                       {"detail", done.error().message()}};
    if (!done.error().remedy().empty()) error["remediation"] = done.error().remedy();
    co_await Put(error);
  }
}

Task<Status> LiveSocket::Obey(const json::Value* message, std::string* channel) {
  json::Reader in(*message);
  const auto type = in.Required<std::string>("type");
  *channel = in.Required<std::string>("channel", {.min = 1, .max = 64});
  std::erase_if(channels_, [](const auto& entry) { return entry.second->size() == 0; });
  if (type == "close") {
    CAISSON_CO_TRY(in.Finish());
    if (channels_.erase(*channel) == 0)
      co_return Error(ErrorCode::kNotFound, "there is no channel " + Quoted(*channel));
    co_await Put({{"type", "closed"}, {"channel", *channel}});
    co_return Status();
  }
  if (channels_.contains(*channel))
    co_return Error(ErrorCode::kConflict, "the channel " + Quoted(*channel) + " is open already")
        .WithRemedy("close it first, or give another name");
  if (channels_.size() >= kMaxChannels)
    co_return Error(ErrorCode::kResourceExhausted, "no more channels can be open at a time")
        .WithRemedy("close one, or use another WebSocket");
  if (type == "events") co_return co_await OpenEvents(&in, *channel);
  if (type == "follow") co_return co_await OpenFollow(&in, *channel);
  CAISSON_CO_TRY(in.Finish());
  co_return Error(ErrorCode::kInvalidArgument, "there is no message of the type " + Quoted(type))
      .WithRemedy("send events, follow or close");
}

void LiveSocket::Open(const std::string& channel, Task<void> work) {
  auto& tasks = channels_[channel] = std::make_unique<async::TaskSet>(loop_);
  tasks->Spawn(std::move(work));
}

Task<Status> LiveSocket::OpenEvents(json::Reader* in, std::string channel) {
  const auto session = in->Optional<std::string>("session");
  const auto types = in->OptionalList<std::string>("types", {.max = 32});
  const auto after = in->Optional<int64_t>("after", {.min = 0, .max = INT64_MAX});
  CAISSON_CO_TRY(in->Finish());
  sandbox::EventFilter filter = VisibleTo(call_.principal());
  for (const auto& name : types.value_or(std::vector<std::string>())) {
    const auto kind = sandbox::EventKindFrom(name);
    if (!kind)
      co_return Error(ErrorCode::kInvalidArgument, "types: there is no event type " + Quoted(name))
          .WithRemedy("use some such as session.running, exec.ended or alert");
    filter.kinds.push_back(*kind);
  }
  auto& services = call_.services();
  if (session) {
    CAISSON_CO_ASSIGN(const auto record,
                      co_await services.sessions.Describe(call_.access(), *session));
    filter.session_id = record.id;
  }
  auto events = std::make_unique<sandbox::EventReader>(
      services.events, services.archive, std::move(filter),
      after ? std::optional(static_cast<uint64_t>(*after)) : std::nullopt);
  co_await Put({{"type", "opened"}, {"channel", channel}});
  Open(channel, TellEvents(channel, std::move(events)));
  co_return Status();
}

Task<void> LiveSocket::TellEvents(std::string channel,
                                  std::unique_ptr<sandbox::EventReader> events) {
  for (;;) {
    const auto item = co_await events->Next();
    if (!item) {
      co_await PutFrom(channel, json::Write(json::Object{{"type", "error"},
                                                         {"code", item.error().name()},
                                                         {"detail", item.error().message()}}));
      break;
    }
    const json::Object message = std::visit([](const auto& event) { return ToJson(event); }, *item);
    co_await PutFrom(channel, json::Write(message));
  }
  co_await Put({{"type", "closed"}, {"channel", channel}});
}

Task<Status> LiveSocket::OpenFollow(json::Reader* in, std::string channel) {
  const auto session = in->Required<std::string>("session");
  const auto process = in->Required<uint32_t>("process");
  const auto out = in->Optional<int64_t>("stdout_from", {.min = 0, .max = INT64_MAX});
  const auto err = in->Optional<int64_t>("stderr_from", {.min = 0, .max = INT64_MAX});
  CAISSON_CO_TRY(in->Finish());
  if (!call_.principal().Allows(Verb::kRead, Resource::kProcesses))
    co_return Error(ErrorCode::kPermissionDenied, "this key may not read the output of commands")
        .WithRemedy("use a key whose role and scopes allow it");
  CAISSON_CO_ASSIGN(const auto live,
                    co_await call_.services().sessions.Get(call_.access(), session));
  CAISSON_CO_ASSIGN(auto feed, live->FindProcess(process));
  const sandbox::FeedOffsets from{static_cast<uint64_t>(out.value_or(0)),
                                  static_cast<uint64_t>(err.value_or(0))};
  co_await Put({{"type", "opened"}, {"channel", channel}});
  Open(channel, TellProcess(channel, std::move(feed), from));
  co_return Status();
}

Task<void> LiveSocket::TellProcess(std::string channel,
                                   std::shared_ptr<sandbox::ProcessFeed> process,
                                   sandbox::FeedOffsets from) {
  const auto output = process->Subscribe(sandbox::Pace::kFollows, from);
  ProcessEvents events;
  co_await PutFrom(channel, StartedEvent(*process).json);
  while (auto item = co_await output->Next())
    for (const ProcessEvent& event : events.Take(*std::move(item)))
      co_await PutFrom(channel, event.json);
  co_await Put({{"type", "closed"}, {"channel", channel}});
}

Task<Result<Reply>> Stream(Call* call) {
  CAISSON_CO_ASSIGN(auto socket, co_await call->exchange().Upgrade({}));
  LiveSocket live(*call, *socket);
  (void)co_await async::FirstOf(&call->services().loop, live.SendAll(), live.ObeyAll());
  co_return Reply::Streamed();
}

}  // namespace

void AddStreamRoutes(std::vector<Route>& routes) {
  constexpr std::pair<std::string_view, std::string_view> kPlaces[] = {
      {"/api/stream", "stream"}, {"/stream", "originalStream"}};
  for (const auto& [pattern, id] : kPlaces)
    routes.push_back(
        {.method = "GET",
         .pattern = pattern,
         .permission = {Verb::kRead, Resource::kEvents},
         .handler = Stream,
         .id = id,
         .group = "events",
         .summary = "Events and the output of any number of commands over one WebSocket",
         .outcomes = {{101, ""}}});
}

}  // namespace caisson::api
