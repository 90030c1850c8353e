// A server on loopback and clients that send it any bytes, all on one loop.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "async/race.h"
#include "net/channel.h"
#include "net/server.h"

namespace caisson::net {

class NetTest : public ::testing::Test {
 protected:
  void Start(Handler handler, ServerLimits limits = {}) {
    server_ = std::make_unique<Server>(loop_, limits, std::move(handler));
    auto listening = server_->Listen({.address = "127.0.0.1:0"});
    ASSERT_TRUE(listening) << listening.error().message();
    port_ = listening->port;
  }

  // Runs a task, but not for ever.
  template <typename T>
  T Run(Task<T> task) {
    auto value =
        loop_.RunUntilDone(async::WithTimeout(&loop_, std::chrono::seconds(10), std::move(task)));
    if (!value) {
      ADD_FAILURE() << "the test hangs";
      throw std::runtime_error("the test hangs");
    }
    return *std::move(value);
  }

  std::unique_ptr<Channel> Connect() {
    return ConnectTo(NumericAddress("127.0.0.1", port_).value());
  }
  std::unique_ptr<Channel> ConnectTo(const SocketAddress& address) {
    Fd fd = StartConnect(address).value();
    auto transport = PlainTransport(fd.get());
    return std::make_unique<Channel>(loop_, std::move(fd), std::move(transport),
                                     std::chrono::hours(1));
  }

  // All that comes until the server closes.
  static Task<std::string> ReadToEnd(Channel* channel) {
    std::string all;
    while (true) {
      all += channel->buffered();
      channel->Consume(channel->buffered().size());
      if (!co_await channel->FillMore()) co_return all;
    }
  }
  // All that comes up to and including the first `mark`; the rest stays.
  static Task<std::string> ReadTo(Channel* channel, std::string mark) {
    while (true) {
      const size_t at = channel->buffered().find(mark);
      if (at != std::string_view::npos) {
        std::string text(channel->buffered().substr(0, at + mark.size()));
        channel->Consume(text.size());
        co_return text;
      }
      if (!co_await channel->FillMore()) co_return std::string(channel->buffered());
    }
  }
  static Task<std::string> Put(Channel* channel, std::string bytes) {
    if (!co_await channel->Write({std::move(bytes), {}, {}})) co_return "cannot write";
    co_return "";
  }
  static Task<std::string> Talk(Channel* channel, std::string bytes) {
    static_cast<void>(co_await Put(channel, std::move(bytes)));
    co_return co_await ReadToEnd(channel);
  }
  // Sends the bytes on a connection of their own and gives all that comes back.
  std::string Talk(std::string bytes) {
    const auto channel = Connect();
    return Run(Talk(channel.get(), std::move(bytes)));
  }
  // Waits until something is so, letting the loop work.
  template <typename Condition>
  bool Eventually(Condition condition) {
    return Run(Poll(&loop_, std::function<bool()>(condition)));
  }
  static Task<bool> Poll(async::Loop* loop, std::function<bool()> condition) {
    for (int i = 0; i < 20'000; ++i) {
      if (condition()) co_return true;
      co_await loop->Sleep(std::chrono::milliseconds(1));
    }
    co_return false;
  }

  async::Loop loop_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
};

inline int StatusOf(std::string_view answer) {
  if (!answer.starts_with("HTTP/1.1 ") || answer.size() < 12) return 0;
  return (answer[9] - '0') * 100 + (answer[10] - '0') * 10 + (answer[11] - '0');
}
inline std::string_view BodyOf(std::string_view answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string_view::npos ? std::string_view() : answer.substr(end + 4);
}

}  // namespace caisson::net
