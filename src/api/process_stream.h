// A command's output to a client, for as long as both last.
#pragma once

#include <memory>

#include "api/call.h"
#include "api/event_stream.h"
#include "sandbox/process_feed.h"
#include "sandbox/session.h"

namespace caisson::api {

// What can be read from: a subscription, or a foreground command.
class FeedSource {
 public:
  virtual ~FeedSource() = default;
  virtual Task<std::optional<sandbox::FeedItem>> Next() = 0;
};

// Streams everything that `source` gives, with heartbeats where it is silent. When the client goes,
// so does this.
Task<Result<Reply>> StreamProcess(Call* call, StreamKind kind, sandbox::ProcessFeed* process,
                                  FeedSource* source);

// The same over a WebSocket, with the client's messages going to the command:
//   {"type": "stdin", "data": "…"} or "data_base64"; binary messages are input as they are
//   {"type": "eof"}, {"type": "resize", "rows": 40, "cols": 120}, {"type": "signal", "signal":
//   "SIGINT"}
Task<Result<Reply>> ServeProcessSocket(Call* call, std::shared_ptr<sandbox::ProcessFeed> process,
                                       FeedSource* source, net::WebSocket* socket);

}  // namespace caisson::api
