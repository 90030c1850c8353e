// Connection: one client's connection to the Server, and the Exchange of its current request.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/channel.h"
#include "net/http_body.h"
#include "net/http_head.h"
#include "net/server.h"

namespace caisson::net {

// The Date header's line, made once a second.
class DateLine {
 public:
  const std::string& Get();

 private:
  time_t at_ = -1;
  std::string line_;
};

// What a connection needs of its server; outlives it.
struct ConnectionContext {
  async::Loop& loop;
  const ServerLimits& limits;
  const Handler& handler;
  ServerStats& stats;
  const bool& draining;
  DateLine& date;
};

class Connection final : public Exchange, private BodyReader {
 public:
  Connection(ConnectionContext context, Fd fd, std::unique_ptr<Transport> transport, Peer peer);

  // Serves until the end; the task of a connection.
  Task<void> Run();
  // Waits for a request of which nothing has arrived.
  bool idle() const { return phase_ == Phase::kIdle; }
  Channel& channel() { return channel_; }

  // Exchange
  const Request& request() const override { return request_; }
  BodyReader& body() override { return *this; }
  void SetBodyLimit(uint64_t bytes) override { body_limit_ = bytes; }
  Task<Status> Send(Response response) override;
  Task<Status> Begin(ResponseHead head) override;
  Task<Status> Write(std::string piece) override;
  Task<Status> Finish() override;
  bool answered() const override { return answer_ != Answer::kNone; }
  async::Event& closed() override;
  Task<Result<std::unique_ptr<WebSocket>>> Upgrade(WebSocketOptions options) override;

 private:
  enum class Phase { kIdle, kHead, kHandler, kClosing };
  enum class Answer { kNone, kStreaming, kDone, kUpgraded };
  enum class Stream { kLength, kChunked, kUntilClose };
  enum class Got { kRequest, kFault, kClosed };

  // BodyReader
  Task<Result<std::string>> Next(size_t max) override;
  std::optional<uint64_t> content_length() const override;
  bool finished() const override { return decoder_.ended(); }
  bool stalled() const override { return body_stalled_; }

  Task<Got> ReadHead();
  Got TakeHead(size_t size);
  Task<void> Handle();
  Task<bool> Settle();
  Task<bool> DiscardBody();
  Task<void> Refuse();
  Task<void> Linger();
  Task<void> WatchForClose();
  void StartExchange(RequestHead head);
  bool StaysOpen(Answer answer) const;
  Result<std::string> HeadText(int status, const Headers& headers, Answer answer);
  Task<Status> Put(std::array<std::string, 3> parts);

  ConnectionContext context_;
  Channel channel_;
  Peer peer_;
  Phase phase_ = Phase::kIdle;
  HttpFault fault_;
  size_t served_ = 0;

  // The current exchange.
  Request request_;
  Framing framing_;
  BodyDecoder decoder_;
  uint64_t body_limit_ = 0, body_read_ = 0;
  bool keep_alive_ = true;
  bool body_stalled_ = false;
  bool continue_due_ = false;  // the client waits for 100
  bool head_only_ = false;     // the request is HEAD
  Answer answer_ = Answer::kNone;
  Stream stream_ = Stream::kLength;
  uint64_t stream_left_ = 0;  // kLength
  async::Event closed_;
  Task<void> close_watch_;
};

}  // namespace caisson::net
