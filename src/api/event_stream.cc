#include "api/event_stream.h"

namespace caisson::api {
namespace {

std::variant<net::SseWriter, net::NdjsonWriter> WriterFor(net::Exchange& exchange,
                                                          StreamKind kind) {
  if (kind == StreamKind::kSse) return net::SseWriter(&exchange);
  return net::NdjsonWriter(&exchange);
}

}  // namespace

std::optional<StreamKind> WantedStream(const net::Request& request) {
  for (const std::string_view field : request.headers.All("accept")) {
    if (field.find("text/event-stream") != std::string_view::npos) return StreamKind::kSse;
    if (field.find("application/x-ndjson") != std::string_view::npos) return StreamKind::kNdjson;
  }
  return std::nullopt;
}

EventStream::EventStream(net::Exchange& exchange, StreamKind kind)
    : writer_(WriterFor(exchange, kind)) {}

Task<Status> EventStream::Begin() {
  return std::visit([](auto& writer) { return writer.Begin(); }, writer_);
}

Task<Status> EventStream::Send(std::string name, json::Object message, std::string id) {
  return SendText(std::move(name), json::Write(message), std::move(id));
}

Task<Status> EventStream::SendText(std::string name, std::string message, std::string id) {
  if (auto* sse = std::get_if<net::SseWriter>(&writer_))
    return sse->Send({std::move(name), std::move(message), std::move(id)});
  return std::get<net::NdjsonWriter>(writer_).Send(std::move(message));
}

Task<Status> EventStream::Heartbeat() {
  return std::visit([](auto& writer) { return writer.Heartbeat(); }, writer_);
}

Task<Status> EventStream::Finish() {
  return std::visit([](auto& writer) { return writer.Finish(); }, writer_);
}

}  // namespace caisson::api
