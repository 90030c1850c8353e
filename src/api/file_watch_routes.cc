// /api/sessions/{id}/files/watch: changes below a path as they happen, as server-sent events,
// lines or WebSocket messages:
//
//   {"type": "watching", "path": "/work"}                          first, when nothing is missed
//   {"type": "created", "path": "/workspace/a.txt"}
//   {"type": "overflow"}                                           changes were lost: look again
#include "api/event_stream.h"
#include "api/file_access.h"
#include "api/routes.h"
#include "api/services.h"
#include "async/race.h"
#include "net/websocket.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

constexpr std::chrono::seconds kHeartbeat{15};

std::string_view NameOf(sandbox::FileChange change) {
  switch (change) {
    case sandbox::FileChange::kCreated:
      return "created";
    case sandbox::FileChange::kWritten:
      return "written";
    case sandbox::FileChange::kRemoved:
      return "removed";
    case sandbox::FileChange::kRenamed:
      return "renamed";
    case sandbox::FileChange::kAttributes:
      return "attributes";
    case sandbox::FileChange::kOverflow:
      break;
  }
  return "overflow";
}

json::Object ToJson(const std::string& root, const sandbox::FileEvent& event) {
  json::Object object{{"type", NameOf(event.change)}};
  if (event.change != sandbox::FileChange::kOverflow)
    object["path"] = event.path.empty() ? root : JoinPath(root, event.path);
  return object;
}

// Where messages go: a stream of events, or a WebSocket.
class WatchOutput {
 public:
  virtual ~WatchOutput() = default;
  virtual Task<Status> Send(json::Object message) = 0;
  virtual Task<Status> Heartbeat() = 0;
};

class StreamOutput final : public WatchOutput {
 public:
  explicit StreamOutput(EventStream& stream) : stream_(stream) {}
  Task<Status> Send(json::Object message) override {
    std::string name(message.at("type").as_string());
    return stream_.Send(std::move(name), std::move(message));
  }
  Task<Status> Heartbeat() override { return stream_.Heartbeat(); }

 private:
  EventStream& stream_;
};

class SocketOutput final : public WatchOutput {
 public:
  explicit SocketOutput(net::WebSocket& socket) : socket_(socket) {}
  Task<Status> Send(json::Object message) override {
    return socket_.SendText(json::Write(message));
  }
  Task<Status> Heartbeat() override { return socket_.Ping(""); }

 private:
  net::WebSocket& socket_;
};

// Until the sandbox or the client has gone.
Task<Status> Tell(async::Loop* loop, sandbox::FileWatch* watch, std::string root,
                  WatchOutput* output) {
  CAISSON_CO_TRY(co_await output->Send({{"type", "watching"}, {"path", root}}));
  for (;;) {
    auto event = co_await async::WithTimeout(loop, kHeartbeat, watch->Next());
    if (!event) {
      CAISSON_CO_TRY(co_await output->Heartbeat());
    } else if (!*event) {
      co_return co_await output->Send({{"type", "ended"}, {"detail", event->error().message()}});
    } else {
      CAISSON_CO_TRY(co_await output->Send(ToJson(root, **event)));
    }
  }
}

// A client says nothing but good-bye.
Task<Status> AwaitClose(net::WebSocket* socket) {
  for (;;) {
    CAISSON_CO_ASSIGN(const auto message, co_await socket->Receive());
    if (message.kind == net::WsMessage::Kind::kClose) co_return Status();
  }
}

Task<Result<Reply>> WatchSocket(Call* call, sandbox::FileWatch* watch, std::string path) {
  async::Loop& loop = call->services().loop;
  CAISSON_CO_ASSIGN(auto socket, co_await call->exchange().Upgrade({}));
  SocketOutput output(*socket);
  auto first = co_await async::FirstOf(&loop, Tell(&loop, watch, std::move(path), &output),
                                       AwaitClose(socket.get()));
  if (first.index() == 0 && std::get<0>(first)) {
    (void)co_await socket->Close(1000, "the sandbox has ended");
    (void)co_await async::WithTimeout(&loop, std::chrono::seconds(2), AwaitClose(socket.get()));
  }
  co_return Reply::Streamed();
}

Task<Status> TellStream(async::Loop* loop, sandbox::FileWatch* watch, std::string path,
                        EventStream* stream) {
  CAISSON_CO_TRY(co_await stream->Begin());
  StreamOutput output(*stream);
  CAISSON_CO_TRY(co_await Tell(loop, watch, std::move(path), &output));
  co_return co_await stream->Finish();
}

Task<Result<Reply>> WatchFiles(Call* call) {
  CAISSON_CO_ASSIGN(const std::string path, QueryPath(*call));
  CAISSON_CO_ASSIGN(const bool recursive, call->QueryFlag("recursive"));
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call));
  CAISSON_CO_ASSIGN(
      const auto watch,
      co_await at.files->Watch(path, at.user,
                               recursive ? sandbox::Recursion::kYes : sandbox::Recursion::kNo));
  if (call->request().headers.HasToken("upgrade", "websocket"))
    co_return co_await WatchSocket(call, watch.get(), path);
  async::Loop& loop = call->services().loop;
  EventStream stream(call->exchange(), WantedStream(call->request()).value_or(StreamKind::kSse));
  (void)co_await async::FirstOf(&loop, TellStream(&loop, watch.get(), path, &stream),
                                async::WaitFor(&call->exchange().closed()));
  co_return Reply::Streamed();
}

}  // namespace

void AddFileWatchRoutes(std::vector<Route>& routes) {
  routes.push_back(
      {.method = "GET",
       .pattern = "/api/sessions/{id}/files/watch",
       .permission = {Verb::kRead, Resource::kFiles},
       .handler = WatchFiles,
       .id = "watchFiles",
       .group = "files",
       .summary = "Changes of a file or directory as they happen; over a WebSocket when upgraded",
       .outcomes = {{200, "", "text/event-stream"}, {200, "", "application/x-ndjson"}, {101, ""}},
       .parameters = {{"path", "FilePath", "Absolute, inside the sandbox", Parameter::In::kQuery,
                       Parameter::Need::kRequired},
                      {"user", "string", "As whom; default: the session's user"},
                      {"recursive", "boolean", "Directories below as well"}}});
}

}  // namespace caisson::api
