// HeadedExchange: an Exchange whose every answer, whole or streamed, carries headers that belong to
// the request rather than to the handler, and which remembers the answer's status. It adds
// Server-Timing (W3C): the milliseconds from its making to the answer's head.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "net/exchange.h"
#include "net/websocket.h"

namespace caisson::api {

class HeadedExchange final : public net::Exchange {
 public:
  explicit HeadedExchange(net::Exchange& inner) : inner_(inner) {}

  // To be added to the answer; set before it begins.
  net::Headers& headers() { return headers_; }
  // Of the answer; 0 before there is one.
  int status() const { return status_; }

  const net::Request& request() const override { return inner_.request(); }
  net::BodyReader& body() override { return inner_.body(); }
  void SetBodyLimit(uint64_t bytes) override { inner_.SetBodyLimit(bytes); }
  Task<Status> Send(net::Response response) override;
  Task<Status> Begin(net::ResponseHead head) override;
  Task<Status> Write(std::string piece) override { return inner_.Write(std::move(piece)); }
  Task<Status> Finish() override { return inner_.Finish(); }
  bool answered() const override { return inner_.answered(); }
  async::Event& closed() override { return inner_.closed(); }
  Task<Result<std::unique_ptr<net::WebSocket>>> Upgrade(net::WebSocketOptions options) override;

 private:
  void Complete(net::Headers& headers) const;

  net::Exchange& inner_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  net::Headers headers_;
  int status_ = 0;
};

}  // namespace caisson::api
