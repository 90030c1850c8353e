// Exchange: one request and the answer to it, for a handler.
//
// Owned by the server's connection; valid until the handler's task ends. A handler either sends one
// Response, or begins one, writes any number of pieces and finishes, or upgrades. What it leaves
// undone the server mends: no answer becomes a 500 problem, an answer begun but not finished
// cuts the connection, so that the client can tell. When the connection ends, the handler is told
// by closed() and by its next read or write; it is not ended. All on the loop's thread, one writer
// at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "async/event.h"
#include "async/task.h"
#include "net/body.h"
#include "net/message.h"

namespace caisson::net {

class WebSocket;
struct WebSocketOptions;

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;
  // The request's body. The first read answers "Expect: 100-continue".
  virtual BodyReader& body() = 0;
  // Changes the most that the body may have (before it is read); the default is of ServerLimits.
  virtual void SetBodyLimit(uint64_t bytes) = 0;

  // The whole answer. Completes when the kernel has taken it.
  virtual Task<Status> Send(Response response) = 0;
  // An answer in pieces. Write completes when the kernel has taken the piece: whoever awaits it
  // goes no faster than the client reads, and nothing piles up. To HEAD, only the head goes out.
  virtual Task<Status> Begin(ResponseHead head) = 0;
  virtual Task<Status> Write(std::string piece) = 0;
  virtual Task<Status> Finish() = 0;
  // Begin, Send or Upgrade has been called.
  virtual bool answered() const = 0;

  // Set when the client has closed its side of the connection: it has gone or, rarely, has only
  // finished sending (writes then still succeed). Watching costs something: from the first call on.
  virtual async::Event& closed() = 0;

  // Turns the connection into a WebSocket (RFC 6455), which must not outlive the Exchange.
  // A request that does not ask for one properly is kInvalidArgument, and not yet answered.
  virtual Task<Result<std::unique_ptr<WebSocket>>> Upgrade(WebSocketOptions options) = 0;
};

using Handler = std::function<Task<void>(Exchange*)>;

}  // namespace caisson::net
