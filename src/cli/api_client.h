// ApiClient: one server, spoken to in JSON. Answers that are not 2xx are Errors, with the code,
// detail and remedy that the server gave.
//
// Lives on its Loop's thread; what it gave out must go first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "cli/connection.h"
#include "json/json.h"
#include "net/client.h"

namespace caisson::cli {

// A stream of JSON objects, one a line.
class LineStream {
 public:
  explicit LineStream(std::unique_ptr<net::ClientExchange> exchange)
      : exchange_(std::move(exchange)) {}
  // The next object, or nothing at the end.
  Task<Result<std::optional<json::Value>>> Next();

 private:
  std::unique_ptr<net::ClientExchange> exchange_;
  std::string buffer_;
  bool ended_ = false;
};

class ApiClient {
 public:
  // kInvalidArgument when the URL, the key or the file of certificates cannot be used.
  static Result<std::unique_ptr<ApiClient>> Create(async::Loop& loop, const Connection& connection);

  async::Loop& loop() { return loop_; }
  const std::string& url() const { return url_; }
  void set_connect_timeout(std::chrono::milliseconds timeout) { connect_timeout_ = timeout; }

  // One call. Null when the answer has no body.
  Task<Result<json::Value>> Get(std::string target);
  Task<Result<json::Value>> Send(std::string method, std::string target,
                                 std::optional<json::Value> body = {}, net::Headers headers = {});
  // A stream of lines for as long as the server keeps it open.
  Task<Result<std::unique_ptr<LineStream>>> Lines(std::string target);
  // A request whose body, or whose answer's, is streamed. ReadAnswer gives the head of a good one.
  Task<Result<std::unique_ptr<net::ClientExchange>>> Open(net::ClientRequest request,
                                                          net::Client::BodyKind kind);
  Task<Result<net::ResponseHead>> ReadAnswer(net::ClientExchange* exchange);
  // A WebSocket. When the server refuses it, `check` (a GET) is asked for the reason.
  Task<Result<std::unique_ptr<net::WebSocket>>> Socket(std::string target, std::string check);

 private:
  ApiClient(async::Loop& loop, net::Url server, std::string url, net::ClientOptions options)
      : loop_(loop),
        url_(std::move(url)),
        server_(std::move(server)),
        options_(std::move(options)) {}
  // Made when first needed, so that set_connect_timeout can come before.
  net::Client& client();
  Error Explain(Error error) const;

  async::Loop& loop_;
  std::string url_;
  net::Url server_;
  net::ClientOptions options_;
  std::optional<std::chrono::milliseconds> connect_timeout_;
  std::unique_ptr<net::Client> client_;
};

// The Error in an answer: a problem of RFC 9457, or whatever else came with that status.
Error ErrorOfAnswer(int status, std::string_view body);

// "/api/sessions/NAME" and what comes after it.
std::string SessionTarget(std::string_view session, std::string_view rest = {});
// "?a=1&b=2" of what has a value, encoded.
std::string Query(
    std::initializer_list<std::pair<std::string_view, std::optional<std::string>>> of);

// Runs a verb against the server that its options name.
using ClientVerb = Task<Result<int>> (*)(ApiClient* api, const Parsed* parsed);
Result<int> RunWithServer(const Parsed& parsed, ClientVerb verb);

}  // namespace caisson::cli
