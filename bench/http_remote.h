// Remote: a running `caisson serve`, as http_bench talks to it: one loop, kept connections.
//
// Anything but the answer that a call hopes for is an Error with what the server said. Lives on its
// loop's thread; what it gave out must go first.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "json/json.h"
#include "net/client.h"

namespace caisson::bench {

// Events of a streamed command, one JSON object a line.
class RemoteEvents {
 public:
  explicit RemoteEvents(std::unique_ptr<net::ClientExchange> exchange)
      : exchange_(std::move(exchange)) {}
  // The next one's text; nothing at the end.
  Task<Result<std::optional<std::string>>> Next();
  // The rest of the stream up to its end, counted but not looked at.
  Task<Result<uint64_t>> CountRest();

 private:
  std::unique_ptr<net::ClientExchange> exchange_;
  std::string buffer_;
  size_t begin_ = 0;
};

class Remote {
 public:
  Remote(async::Loop& loop, net::Url server, pid_t pid);

  async::Loop& loop() { return loop_; }
  pid_t pid() const { return pid_; }  // the server's
  net::Client& client() { return client_; }

  // One call with a JSON body ("" for none); a status other than `wanted` is an error.
  Task<Result<net::ClientResponse>> Call(std::string method, std::string target, std::string body,
                                         int wanted);

  struct Session {
    std::string id;
    double server_us = 0;  // what its Server-Timing said
  };
  // `body` as POST /api/sessions takes it.
  Task<Result<Session>> Create(std::string body = "{}");
  // `/bin/true`; anything but exit code 0 is an error.
  Task<Status> RunTrue(std::string id);
  Task<Status> Destroy(std::string id);
  Task<Result<RemoteEvents>> Stream(std::string id, std::string body);

  // A figure of /metrics that has no labels.
  Task<Result<double>> Metric(std::string name);

 private:
  async::Loop& loop_;
  const pid_t pid_;
  net::Client client_;
};

// The exit code in an exec's answer or its "ended" event is 0.
Status CheckExit(std::string_view text);

// A body for POST …/exec.
std::string ExecBody(std::initializer_list<std::string_view> argv);

}  // namespace caisson::bench
