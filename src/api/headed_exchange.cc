#include "api/headed_exchange.h"

#include "base/text.h"

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

// "total;dur=0.512": milliseconds with microseconds.
std::string TimingText(std::chrono::nanoseconds took) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  const std::string fraction = std::to_string(micros % 1000);
  return Concat({"total;dur=", std::to_string(micros / 1000), ".",
                 std::string_view("00").substr(0, 3 - fraction.size()), fraction});
}

}  // namespace

void HeadedExchange::Complete(net::Headers& headers) const {
  SetAll(headers, headers_);
  Harden(headers);
  const auto took = std::chrono::steady_clock::now() - begin_;
  headers.Set("Server-Timing", TimingText(took));
}

Task<Status> HeadedExchange::Send(net::Response response) {
  status_ = response.status;
  Complete(response.headers);
  return inner_.Send(std::move(response));
}

Task<Status> HeadedExchange::Begin(net::ResponseHead head) {
  status_ = head.status;
  Complete(head.headers);
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
