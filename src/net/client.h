// Client: HTTP/1.1 to one server, over TCP, TLS or a unix socket. For the CLI and for tests; calls
// to the world at large are fetch.h's.
//
// Connections are kept and used again. Name lookups run on a thread of the Client's. Lives on its
// Loop's thread; what it gave out must go first.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/loop.h"
#include "net/body.h"
#include "net/message.h"
#include "net/tls.h"
#include "net/url.h"
#include "net/websocket.h"

namespace caisson::net {

struct ClientOptions {
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds head_timeout{60'000};  // until the answer's head; 0: none
  size_t max_head_bytes = 65536;
  size_t max_idle_connections = 8;
  std::shared_ptr<TlsClient> tls;  // for https; null: the system's roots
  Headers headers;                 // sent with every request, e.g. Authorization
};

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";
  Headers headers;
  std::string body;  // sent with Content-Length
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
};

// One request on its way, and the answer to it.
class ClientExchange {
 public:
  virtual ~ClientExchange() = default;  // gives the connection back, or closes it

  // More of a body that was announced as streamed (see Client::Open).
  virtual Task<Status> Write(std::string piece) = 0;
  virtual Task<Status> Finish() = 0;
  // The answer's head; 1xx are skipped. Then body() reads on.
  virtual Task<Result<ResponseHead>> ReadHead() = 0;
  virtual BodyReader& body() = 0;
};

class Client {
 public:
  Client(async::Loop& loop, Url server, ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The whole exchange; an answer's body over `max_body` is kTooLarge. Errors:
  // kUnavailable (cannot connect), kDeadlineExceeded, kProtocol, kIo. A kept connection that turns
  // out to be closed before any byte of the answer is replaced once, for methods that may be
  // repeated.
  Task<Result<ClientResponse>> Send(ClientRequest request, size_t max_body = 64 << 20);

  // Sends the head and leaves the rest to the caller.
  enum class BodyKind {
    kWhole,
    kStreamed
  };  // kStreamed: chunked; `request.body` is its first piece
  Task<Result<std::unique_ptr<ClientExchange>>> Open(ClientRequest request, BodyKind kind);

  // A WebSocket on a connection of its own. kProtocol when the server answers otherwise; the
  // message has its status.
  Task<Result<std::unique_ptr<WebSocket>>> OpenWebSocket(std::string target, Headers headers,
                                                         WebSocketOptions options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace caisson::net
