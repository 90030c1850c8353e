// Reply: what a route's handler gives back: an answer, or word that it has answered already.
#pragma once

#include <optional>
#include <utility>

#include "json/json.h"
#include "net/message.h"

namespace caisson::api {

class Reply {
 public:
  Reply(net::Response response) : response_(std::move(response)) {}  // NOLINT: implicit
  static Reply Json(int status, const json::Value& value) {
    return net::Response::Json(status, json::Write(value));
  }
  static Reply Nothing() { return net::Response::Empty(204); }
  // The handler has streamed its answer through the exchange.
  static Reply Streamed() { return Reply(); }

  std::optional<net::Response>& response() { return response_; }

 private:
  Reply() = default;
  std::optional<net::Response> response_;
};

}  // namespace caisson::api
