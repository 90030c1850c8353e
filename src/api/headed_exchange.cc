#include "api/headed_exchange.h"

namespace caisson::api {
namespace {

void SetAll(net::Headers& to, const net::Headers& headers) {
  for (const auto& [name, value] : headers) to.Set(name, value);
}

// Answers are about one caller's objects, and none is a page that others may frame or guess at.
void Harden(net::Headers& headers) {
  headers.Set("X-Content-Type-Options", "nosniff");
  if (headers.Find("cache-control") == nullptr) headers.Set("Cache-Control", "no-store");
}

}  // namespace

Task<Status> HeadedExchange::Send(net::Response response) {
  status_ = response.status;
  SetAll(response.headers, headers_);
  Harden(response.headers);
  return inner_.Send(std::move(response));
}

Task<Status> HeadedExchange::Begin(net::ResponseHead head) {
  status_ = head.status;
  SetAll(head.headers, headers_);
  Harden(head.headers);
  return inner_.Begin(std::move(head));
}

Task<Result<std::unique_ptr<net::WebSocket>>> HeadedExchange::Upgrade(
    net::WebSocketOptions options) {
  SetAll(options.headers, headers_);
  auto socket = co_await inner_.Upgrade(std::move(options));
  if (socket) status_ = 101;
  co_return socket;
}

}  // namespace caisson::api
