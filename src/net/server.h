// Server: HTTP/1.1 on TCP, TLS and unix sockets, each exchange given to one handler.
//
// Theory of operation. Each connection is one task that reads a request's head, runs the handler,
// and goes on with the next; requests sent ahead wait in a bounded buffer and in the kernel. What
// is ambiguous (two lengths, bare line feeds, folded headers) is refused and the connection closed,
// so that no proxy and this server can disagree about where a request ends. Time limits are kept by
// one sweeper that looks at every connection a few times a second. When descriptors run out, a
// reserve is given up to accept and close one connection, and accepting pauses.
//
// Lives on its Loop's thread and is destroyed there, not from one of its own handlers: this ends
// every connection at once. For a calm end, await Drain first.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "async/loop.h"
#include "net/exchange.h"
#include "net/tls.h"

namespace caisson::net {

struct ServerLimits {
  size_t max_connections = 4096;                     // more are answered 503 and closed
  size_t max_request_line = 8192;                    // 414
  size_t max_head_bytes = 32768;                     // request line and headers, at most 65535: 431
  size_t max_headers = 100;                          // 431
  uint64_t max_body_bytes = 16 << 20;                // 413, unless the handler sets another
  size_t max_requests = 0;                           // on one connection; 0: any number
  std::chrono::milliseconds header_timeout{10'000};  // from its first byte to its end: 408
  std::chrono::milliseconds idle_timeout{75'000};    // between requests
  std::chrono::milliseconds body_timeout{30'000};    // without a byte of an awaited body
  std::chrono::milliseconds write_timeout{30'000};   // without a byte taken by the client
  std::chrono::milliseconds sweep_period{250};
  int backlog = 1024;
};

// Where to listen: one of
//   "HOST:PORT"   a numeric address ("127.0.0.1:8080", "[::]:8080"); port 0 lets the kernel choose
//   "unix:PATH"   mode 0600; a stale socket there is replaced, one in use is kConflict
//   "fd:N"        a listening socket that was handed over (systemd)
struct ListenOptions {
  std::string address;
  std::shared_ptr<TlsServer> tls;  // null: plain
};

struct Listening {
  size_t number;        // of this listener, as in Peer::listener
  std::string address;  // "127.0.0.1:34567", "unix:/run/x.sock"
  uint16_t port = 0;    // 0 on a unix socket
};

struct ServerStats {
  size_t connections = 0;       // open now
  size_t running = 0;           // exchanges given to the handler and not yet done
  uint64_t accepted = 0;        // since the start
  uint64_t refused = 0;         // connections answered 503, or closed for want of descriptors
  uint64_t requests = 0;        // given to the handler
  uint64_t bad_requests = 0;    // answered 4xx without the handler
  uint64_t timeouts = 0;        // connections ended by a time limit
  uint64_t handler_throws = 0;  // handlers that ended with an exception
};

class Server {
 public:
  Server(async::Loop& loop, ServerLimits limits, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Starts to accept. Errors: kInvalidArgument (address), kConflict (in use), kPermissionDenied,
  // kIo.
  Result<Listening> Listen(ListenOptions options);

  // Stops accepting, closes idle connections, lets running exchanges finish (their answers say
  // "Connection: close"), and completes when none is left or `grace` has passed, then cutting
  // off the rest. A second call, with a shorter grace, makes both end sooner.
  Task<void> Drain(std::chrono::milliseconds grace);
  // Drain has been called: health checks tell.
  bool draining() const;

  ServerStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace caisson::net
