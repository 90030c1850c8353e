#include "net/sse.h"

#include <algorithm>
#include <utility>

namespace caisson::net {
namespace {

// Without what would end the line.
void AppendField(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  for (const char c : value)
    if (c != '\n' && c != '\r' && c != '\0') out += c;
  out += '\n';
}

}  // namespace

std::string EncodeSse(const SseEvent& event) {
  std::string out;
  out.reserve(event.data.size() + 64);
  if (!event.event.empty()) AppendField(out, "event", event.event);
  if (!event.id.empty()) AppendField(out, "id", event.id);
  std::string_view rest = event.data;
  while (true) {
    const size_t end = std::min(rest.find('\n'), rest.find('\r'));
    out += "data: ";
    out += rest.substr(0, end);
    out += '\n';
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  out += '\n';
  return out;
}

std::optional<std::string> LastEventId(const Request& request) {
  const std::string* id = request.headers.Find("last-event-id");
  if (id == nullptr || id->empty()) return std::nullopt;
  return *id;
}

Task<Status> SseWriter::Begin(Headers headers) {
  headers.Set("Content-Type", "text/event-stream");
  headers.Set("Cache-Control", "no-store, no-transform");
  headers.Set("X-Accel-Buffering", "no");
  co_return co_await exchange_->Begin({.status = 200, .headers = std::move(headers)});
}

Task<Status> SseWriter::Send(SseEvent event) { return exchange_->Write(EncodeSse(event)); }
Task<Status> SseWriter::Heartbeat() { return exchange_->Write(":\n\n"); }
Task<Status> SseWriter::Finish() { return exchange_->Finish(); }

}  // namespace caisson::net
