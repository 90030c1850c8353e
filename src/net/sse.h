// SseWriter: a stream of server-sent events (WHATWG HTML §9.2) over an Exchange.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/exchange.h"

namespace caisson::net {

struct SseEvent {
  std::string event;  // empty: "message"
  std::string data;   // any text; its lines become data lines
  std::string id;     // empty: none; no line breaks, no NUL
};

class SseWriter {
 public:
  explicit SseWriter(Exchange* exchange) : exchange_(exchange) {}

  // Sends the head: 200, text/event-stream, not to be stored or transformed.
  Task<Status> Begin(Headers headers = {});
  Task<Status> Send(SseEvent event);
  // A comment: keeps proxies and both ends from giving up on a silent stream.
  Task<Status> Heartbeat();
  Task<Status> Finish();

 private:
  Exchange* exchange_;
};

// Where the client wants to go on from: the Last-Event-ID header, or nothing.
std::optional<std::string> LastEventId(const Request& request);
// The event as it goes over the wire. Line breaks in `event` and `id` are dropped.
std::string EncodeSse(const SseEvent& event);

}  // namespace caisson::net
