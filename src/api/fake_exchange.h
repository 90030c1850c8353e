// An Exchange in memory: what was asked is given, what is answered is kept.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "net/exchange.h"
#include "net/websocket.h"

namespace caisson::api {

class FakeBody final : public net::BodyReader {
 public:
  explicit FakeBody(std::string bytes) : bytes_(std::move(bytes)), length_(bytes_.size()) {}
  Task<Result<std::string>> Next(size_t max) override {
    if (stalled_) co_return Error(ErrorCode::kDeadlineExceeded, "it did not arrive in time");
    std::string piece = bytes_.substr(0, max);
    bytes_.erase(0, piece.size());
    co_return piece;
  }
  std::optional<uint64_t> content_length() const override { return length_; }
  bool finished() const override { return bytes_.empty(); }
  bool stalled() const override { return stalled_; }
  void Stall() { stalled_ = true; }

 private:
  bool stalled_ = false;
  std::string bytes_;
  uint64_t length_;
};

class FakeExchange final : public net::Exchange {
 public:
  FakeExchange(async::Loop& loop, net::Request request, std::string body)
      : request_(std::move(request)), body_(std::move(body)), closed_(loop) {}

  const net::Request& request() const override { return request_; }
  net::BodyReader& body() override { return body_; }
  void SetBodyLimit(uint64_t) override {}
  Task<Status> Send(net::Response response) override {
    answer = std::move(response);
    co_return Status();
  }
  Task<Status> Begin(net::ResponseHead head) override {
    answer = net::Response{head.status, std::move(head.headers), ""};
    co_return Status();
  }
  Task<Status> Write(std::string piece) override {
    answer->body += piece;
    co_return Status();
  }
  Task<Status> Finish() override {
    finished = true;
    co_return Status();
  }
  bool answered() const override { return answer.has_value(); }
  async::Event& closed() override { return closed_; }
  Task<Result<std::unique_ptr<net::WebSocket>>> Upgrade(net::WebSocketOptions) override {
    co_return Error(ErrorCode::kInvalidArgument, "not a WebSocket");
  }

  // From now on, nothing of the body arrives.
  void StallBody() { body_.Stall(); }

  std::optional<net::Response> answer;
  bool finished = false;  // a stream was brought to its end

 private:
  net::Request request_;
  FakeBody body_;
  async::Event closed_;
};

}  // namespace caisson::api
