#include "net/ndjson.h"

#include <utility>

namespace caisson::net {

Task<Status> NdjsonWriter::Begin(Headers headers) {
  headers.Set("Content-Type", "application/x-ndjson");
  headers.Set("Cache-Control", "no-store, no-transform");
  headers.Set("X-Accel-Buffering", "no");
  co_return co_await exchange_->Begin({.status = 200, .headers = std::move(headers)});
}

Task<Status> NdjsonWriter::Send(std::string json) {
  if (json.contains('\n') || json.contains('\r'))
    co_return Error(ErrorCode::kInternal, "a line of NDJSON has a line break in it");
  json += '\n';
  co_return co_await exchange_->Write(std::move(json));
}

Task<Status> NdjsonWriter::Heartbeat() { return exchange_->Write("\n"); }
Task<Status> NdjsonWriter::Finish() { return exchange_->Finish(); }

}  // namespace caisson::net
