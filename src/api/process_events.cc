#include "api/process_events.h"

#include "api/session_json.h"
#include "base/text.h"
#include "base/utf8.h"

namespace caisson::api {
namespace {

std::string_view NameOf(sandbox::Stream stream) {
  return stream == sandbox::Stream::kStdout ? "stdout" : "stderr";
}

// How many bytes at the end are the beginning of a character that is not complete.
size_t OpenTail(std::string_view bytes) {
  for (size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;  // inside of a character
    const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

ProcessEvent OutputEvent(sandbox::Stream stream, uint64_t offset, std::string_view bytes) {
  const std::string_view name = NameOf(stream);
  ProcessEvent event{name, {}};
  event.json.reserve(bytes.size() + bytes.size() / 8 + 4096);
  event.json += Concat({R"({"type":")", name, R"(","offset":)", std::to_string(offset)});
  if (IsUtf8(bytes)) {
    event.json += R"(,"data":)";
    json::AppendString(event.json, bytes);
  } else {
    event.json += Concat({R"(,"data_base64":")", ToBase64(bytes), "\""});
  }
  event.json += '}';
  return event;
}

}  // namespace

ProcessEvent StartedEvent(const sandbox::ProcessFeed& process) {
  return {"started",
          json::Write(json::Object{
              {"type", "started"}, {"process_id", process.handle()}, {"pid", process.pid()}})};
}

void ProcessEvents::Flush(sandbox::Stream stream, std::vector<ProcessEvent>& to) {
  Held& held = HeldOf(stream);
  if (held.bytes.empty()) return;
  to.push_back(OutputEvent(stream, held.offset, held.bytes));
  held.bytes.clear();
}

std::vector<ProcessEvent> ProcessEvents::Take(sandbox::FeedItem item) {
  std::vector<ProcessEvent> events;
  if (auto* chunk = std::get_if<sandbox::OutputChunk>(&item)) {
    Held& held = HeldOf(chunk->stream);
    if (held.bytes.empty())
      held = {chunk->offset, std::move(chunk->data)};
    else
      held.bytes += chunk->data;
    const size_t ready = held.bytes.size() - OpenTail(held.bytes);
    if (ready > 0) {
      events.push_back(
          OutputEvent(chunk->stream, held.offset, std::string_view(held.bytes).substr(0, ready)));
      held.bytes.erase(0, ready);
      held.offset += ready;
    }
  } else if (const auto* gap = std::get_if<sandbox::OutputGap>(&item)) {
    Flush(gap->stream, events);
    events.push_back({"gap", json::Write(json::Object{{"type", "gap"},
                                                      {"stream", NameOf(gap->stream)},
                                                      {"from", gap->from},
                                                      {"to", gap->to}})});
  } else {
    Flush(sandbox::Stream::kStdout, events);
    Flush(sandbox::Stream::kStderr, events);
    json::Object ended{{"type", "ended"}};
    AddOutcome(ended, std::get<sandbox::ExecOutcome>(item));
    events.push_back({"ended", json::Write(ended)});
  }
  return events;
}

}  // namespace caisson::api
