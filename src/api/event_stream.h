// EventStream: JSON messages to a client, as server-sent events or as lines, whichever it accepts.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "json/json.h"
#include "net/exchange.h"
#include "net/ndjson.h"
#include "net/sse.h"

namespace caisson::api {

enum class StreamKind { kSse, kNdjson };
// What the Accept header asks for; nothing when it wants neither.
std::optional<StreamKind> WantedStream(const net::Request& request);

class EventStream {
 public:
  EventStream(net::Exchange& exchange, StreamKind kind);

  Task<Status> Begin();
  // `name` is the event of SSE; `id` lets a client come back (Last-Event-ID), and may be empty.
  Task<Status> Send(std::string name, json::Object message, std::string id = {});
  // The same with a message that is written already, as json::Write does.
  Task<Status> SendText(std::string name, std::string message, std::string id = {});
  Task<Status> Heartbeat();
  Task<Status> Finish();

 private:
  std::variant<net::SseWriter, net::NdjsonWriter> writer_;
};

}  // namespace caisson::api
