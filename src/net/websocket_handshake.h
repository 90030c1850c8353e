// The opening handshake of WebSockets (RFC 6455 §4), and what makes them out of connections.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/channel.h"
#include "net/message.h"
#include "net/websocket.h"
#include "net/websocket_frames.h"

namespace caisson::net {

struct HandshakeAnswer {
  std::string head;  // of the 101, the empty line included
  std::string subprotocol;
};
// kInvalidArgument when the request does not ask for a WebSocket as it must.
Result<HandshakeAnswer> AnswerHandshake(const Request& request, const WebSocketOptions& options);

// A fresh Sec-WebSocket-Key.
std::string NewHandshakeKey();
// The Sec-WebSocket-Accept that answers it.
std::string AcceptFor(std::string_view key);

// Over a channel that outlives it.
std::unique_ptr<WebSocket> MakeWebSocket(Channel* channel, WebSocketRole role,
                                         std::string subprotocol, size_t max_message);
// Over a channel of its own.
std::unique_ptr<WebSocket> MakeWebSocket(std::unique_ptr<Channel> channel, WebSocketRole role,
                                         std::string subprotocol, size_t max_message);

}  // namespace caisson::net
