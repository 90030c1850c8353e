#include "api/process_stream.h"

#include "api/process_events.h"
#include "api/services.h"
#include "api/session_input.h"
#include "async/race.h"
#include "base/encoding.h"
#include "net/websocket.h"

namespace caisson::api {
namespace {

constexpr std::chrono::seconds kHeartbeat{15};

// The next item, or nothing when it took as long as a heartbeat; ended when there is no more.
struct Arrival {
  std::optional<sandbox::FeedItem> item;
  bool ended = false;
};
Task<Arrival> NextOf(async::Loop* loop, FeedSource* source) {
  auto came = co_await async::WithTimeout(loop, kHeartbeat, source->Next());
  if (!came) co_return Arrival{};
  if (!*came) co_return Arrival{{}, true};
  co_return Arrival{**std::move(came), false};
}

Task<Status> StreamEvents(async::Loop* loop, EventStream* stream, sandbox::ProcessFeed* process,
                          FeedSource* source) {
  CAISSON_CO_TRY(co_await stream->Begin());
  CAISSON_CO_TRY(co_await stream->SendText("started", StartedEvent(*process).json));
  ProcessEvents events;
  for (;;) {
    Arrival arrival = co_await NextOf(loop, source);
    if (arrival.ended) break;
    if (!arrival.item) {
      CAISSON_CO_TRY(co_await stream->Heartbeat());
      continue;
    }
    for (ProcessEvent& event : events.Take(*std::move(arrival.item)))
      CAISSON_CO_TRY(co_await stream->SendText(std::string(event.type), std::move(event.json)));
  }
  co_return co_await stream->Finish();
}

Task<Status> SendEvents(async::Loop* loop, net::WebSocket* socket, sandbox::ProcessFeed* process,
                        FeedSource* source) {
  CAISSON_CO_TRY(co_await socket->SendText(StartedEvent(*process).json));
  ProcessEvents events;
  for (;;) {
    Arrival arrival = co_await NextOf(loop, source);
    if (arrival.ended) break;
    if (!arrival.item) {
      CAISSON_CO_TRY(co_await socket->Ping(""));
      continue;
    }
    for (ProcessEvent& event : events.Take(*std::move(arrival.item)))
      CAISSON_CO_TRY(co_await socket->SendText(std::move(event.json)));
  }
  co_return co_await socket->Close(1000, "the command has ended");
}

// One message of the client's, carried out.
Task<Status> Obey(sandbox::ProcessFeed* process, json::Value message) {
  json::Reader in(message);
  const auto type = in.Required<std::string>("type");
  if (type == "stdin") {
    const auto text = in.Optional<std::string>("data");
    const auto encoded = in.Optional<std::string>("data_base64");
    CAISSON_CO_TRY(in.Finish());
    std::optional<std::string> bytes = encoded ? FromBase64(*encoded) : text;
    if (!bytes)
      co_return Error(ErrorCode::kInvalidArgument, "a stdin message without data, or not base64")
          .WithRemedy("give \"data\" (text) or \"data_base64\"");
    co_return co_await process->Write(*std::move(bytes));
  }
  if (type == "eof") {
    CAISSON_CO_TRY(in.Finish());
    co_return co_await process->CloseStdin();
  }
  if (type == "resize") {
    const auto rows = in.Required<uint32_t>("rows", {.min = 1, .max = 1000});
    const auto cols = in.Required<uint32_t>("cols", {.min = 1, .max = 1000});
    CAISSON_CO_TRY(in.Finish());
    co_return co_await process->Resize(static_cast<uint16_t>(rows), static_cast<uint16_t>(cols));
  }
  if (type == "signal") {
    const json::Value* signal = in.Any("signal");
    CAISSON_CO_TRY(in.Finish());
    CAISSON_CO_ASSIGN(const int number, SignalFrom(signal == nullptr ? json::Value() : *signal));
    co_return co_await process->Signal(number, sandbox::SignalScope::kTree);
  }
  co_return Error(ErrorCode::kInvalidArgument, "there is no message of the type \"" + type + "\"")
      .WithRemedy("send stdin, eof, resize or signal");
}

json::Object ErrorEvent(const Error& error) {
  json::Object event{{"type", "error"}, {"code", error.name()}, {"detail", error.message()}};
  if (!error.remedy().empty()) event["remediation"] = error.remedy();
  return event;
}

// Carries out what the client sends until it closes or goes. What cannot be done is said so; the
// connection stays.
Task<Status> ObeyAll(sandbox::ProcessFeed* process, net::WebSocket* socket) {
  for (;;) {
    CAISSON_CO_ASSIGN(auto message, co_await socket->Receive());
    if (message.kind == net::WsMessage::Kind::kClose) co_return Status();
    Status done;
    if (message.kind == net::WsMessage::Kind::kBinary) {
      done = co_await process->Write(std::move(message.data));
    } else {
      auto parsed = json::Parse(message.data);
      done = parsed ? co_await Obey(process, *std::move(parsed)) : Status(parsed.error());
    }
    if (!done) CAISSON_CO_TRY(co_await socket->SendText(json::Write(ErrorEvent(done.error()))));
  }
}

// After our close, the client's; it has a moment for it.
Task<Status> AwaitClose(net::WebSocket* socket) {
  for (;;) {
    CAISSON_CO_ASSIGN(const auto message, co_await socket->Receive());
    if (message.kind == net::WsMessage::Kind::kClose) co_return Status();
  }
}

}  // namespace

Task<Result<Reply>> StreamProcess(Call* call, StreamKind kind, sandbox::ProcessFeed* process,
                                  FeedSource* source) {
  async::Loop& loop = call->services().loop;
  EventStream stream(call->exchange(), kind);
  (void)co_await async::FirstOf(&loop, StreamEvents(&loop, &stream, process, source),
                                async::WaitFor(&call->exchange().closed()));
  co_return Reply::Streamed();
}

Task<Result<Reply>> ServeProcessSocket(Call* call, std::shared_ptr<sandbox::ProcessFeed> process,
                                       FeedSource* source, net::WebSocket* socket) {
  async::Loop& loop = call->services().loop;
  auto first = co_await async::FirstOf(&loop, SendEvents(&loop, socket, process.get(), source),
                                       ObeyAll(process.get(), socket));
  if (first.index() == 0 && std::get<0>(first))
    (void)co_await async::WithTimeout(&loop, std::chrono::seconds(2), AwaitClose(socket));
  co_return Reply::Streamed();
}

}  // namespace caisson::api
