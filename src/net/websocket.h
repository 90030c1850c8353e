// WebSocket: RFC 6455 messages over a connection, either end. No extension is offered or taken.
//
// Receive answers pings and takes part in the closing handshake by itself, so it is to be awaited
// for as long as the WebSocket is used. Send may be awaited meanwhile; sends go out one after the
// other. What breaks the protocol closes the connection with the code for it: 1002 (framing), 1007
// (text that is not UTF-8), 1009 (too large).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "net/headers.h"

namespace caisson::net {

struct WebSocketOptions {
  // What the server speaks, best first; the first that the client also names is chosen. When the
  // client names some and none is common, the WebSocket is without one.
  std::vector<std::string> subprotocols;
  size_t max_message = 1 << 20;  // 1009
  Headers headers;               // more headers for the 101 answer
};

struct WsMessage {
  enum class Kind { kText, kBinary, kClose };
  Kind kind = Kind::kText;
  std::string data;         // kClose: the reason
  uint16_t close_code = 0;  // kClose: 1005 when the other end gave none
};

class WebSocket {
 public:
  virtual ~WebSocket() = default;

  // The next message, put together from its fragments. Gives kClose once, when the other end
  // closes (its close frame has been answered then); after that, and when the connection breaks,
  // kGone. A violation is kProtocol, after the close frame for it has been sent.
  virtual Task<Result<WsMessage>> Receive() = 0;
  // Complete when the kernel has taken it. kGone after the close.
  virtual Task<Status> SendText(std::string text) = 0;
  virtual Task<Status> SendBinary(std::string bytes) = 0;
  // A heartbeat; the answer is taken by Receive.
  virtual Task<Status> Ping(std::string payload) = 0;
  // Says good-bye; Receive then gives the other end's close. `code`: 1000, 1001, 1008, 1011,
  // 3000-4999…
  virtual Task<Status> Close(uint16_t code, std::string reason) = 0;

  virtual std::string_view subprotocol() const = 0;  // empty: none
};

}  // namespace caisson::net
