// A command's output and end as JSON messages, the same on every kind of stream:
//
//   {"type": "started", "process_id": 3, "pid": 7}
//   {"type": "stdout", "offset": 0, "data": "…"}        or "data_base64" where it is not UTF-8
//   {"type": "gap", "stream": "stdout", "from": 10, "to": 90}      bytes that are gone
//   {"type": "ended", "exit_code": 0, "outcome": {…}, "usage": {…}, "duration_ms": 1.2}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "sandbox/process_feed.h"

namespace caisson::api {

// One message, written out: output is most of what a server sends, and needs no values for it.
struct ProcessEvent {
  std::string_view type;
  std::string json;
};
ProcessEvent StartedEvent(const sandbox::ProcessFeed& process);

class ProcessEvents {
 public:
  // The messages for one item of a feed. A character whose bytes come in two chunks is kept whole:
  // its first bytes wait for the rest.
  std::vector<ProcessEvent> Take(sandbox::FeedItem item);

 private:
  struct Held {
    uint64_t offset = 0;
    std::string bytes;
  };
  void Flush(sandbox::Stream stream, std::vector<ProcessEvent>& to);
  Held& HeldOf(sandbox::Stream stream) { return stream == sandbox::Stream::kStdout ? out_ : err_; }

  Held out_, err_;
};

}  // namespace caisson::api
