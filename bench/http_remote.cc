#include "http_remote.h"

#include <cstdlib>

#include "base/text.h"

namespace caisson::bench {
namespace {

constexpr size_t kConnections = 512;  // kept at most
constexpr size_t kMaxLine = 16 << 20;
constexpr size_t kPiece = 256 << 10;

net::ClientOptions Options() {
  net::ClientOptions options;
  options.max_idle_connections = kConnections;
  return options;
}

Error Unexpected(std::string_view what, int status, std::string_view body) {
  return Error(ErrorCode::kProtocol,
               Concat({what, " was answered ", std::to_string(status), ": ", body.substr(0, 300)}));
}

std::string TargetOf(std::string_view id, std::string_view rest) {
  return Concat({"/api/sessions/", id, rest});
}

}  // namespace

Task<Result<std::optional<std::string>>> RemoteEvents::Next() {
  for (;;) {
    const size_t end = buffer_.find('\n', begin_);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(begin_, end - begin_);
      begin_ = end + 1;
      co_return std::optional(std::move(line));
    }
    buffer_.erase(0, std::exchange(begin_, 0));
    if (buffer_.size() > kMaxLine)
      co_return Error(ErrorCode::kProtocol, "the server sent a line without an end");
    CAISSON_CO_ASSIGN(const std::string piece, co_await exchange_->body().Next(kPiece));
    if (piece.empty()) co_return std::optional<std::string>();
    buffer_ += piece;
  }
}

Task<Result<uint64_t>> RemoteEvents::CountRest() {
  uint64_t count = buffer_.size() - begin_;
  for (;;) {
    CAISSON_CO_ASSIGN(const std::string piece, co_await exchange_->body().Next(kPiece));
    if (piece.empty()) co_return count;
    count += piece.size();
  }
}

Remote::Remote(async::Loop& loop, net::Url server, pid_t pid)
    : loop_(loop), pid_(pid), client_(loop, std::move(server), Options()) {}

Task<Result<net::ClientResponse>> Remote::Call(std::string method, std::string target,
                                               std::string body, int wanted) {
  net::ClientRequest request{.method = std::move(method), .target = std::move(target)};
  if (!body.empty()) request.headers.Set("Content-Type", "application/json");
  request.body = std::move(body);
  const std::string what = Concat({request.method, " ", request.target});
  CAISSON_CO_ASSIGN(auto response, co_await client_.Send(std::move(request)));
  if (response.status != wanted) co_return Unexpected(what, response.status, response.body);
  co_return std::move(response);
}

Task<Result<Remote::Session>> Remote::Create(std::string body) {
  CAISSON_CO_ASSIGN(const auto response,
                    co_await Call("POST", "/api/sessions", std::move(body), 201));
  constexpr std::string_view kPrefix = "/api/sessions/";
  const std::string_view location = response.headers.Get("location");
  constexpr std::string_view kTiming = "total;dur=";
  const std::string_view timing = response.headers.Get("server-timing");
  if (!location.starts_with(kPrefix) || !timing.starts_with(kTiming))
    co_return Error(ErrorCode::kProtocol,
                    "the answer to a create lacks its Location or its Server-Timing");
  const std::string millis(timing.substr(kTiming.size()));
  co_return Session{std::string(location.substr(kPrefix.size())),
                    std::strtod(millis.c_str(), nullptr) * 1e3};
}

Task<Status> Remote::RunTrue(std::string id) {
  CAISSON_CO_ASSIGN(const auto response, co_await Call("POST", TargetOf(id, "/exec"),
                                                       R"({"argv": ["/bin/true"]})", 200));
  co_return CheckExit(response.body);
}

Task<Status> Remote::Destroy(std::string id) {
  CAISSON_CO_TRY(co_await Call("DELETE", TargetOf(id, ""), "", 204));
  co_return Status();
}

Task<Result<RemoteEvents>> Remote::Stream(std::string id, std::string body) {
  net::ClientRequest request{.method = "POST", .target = TargetOf(id, "/exec")};
  request.headers.Set("Content-Type", "application/json");
  request.headers.Set("Accept", "application/x-ndjson");
  request.body = std::move(body);
  CAISSON_CO_ASSIGN(auto exchange,
                    co_await client_.Open(std::move(request), net::Client::BodyKind::kWhole));
  CAISSON_CO_ASSIGN(const auto head, co_await exchange->ReadHead());
  if (head.status != 200) {
    CAISSON_CO_ASSIGN(const std::string said, co_await exchange->body().ReadAll(1 << 20));
    co_return Unexpected("a streamed exec", head.status, said);
  }
  co_return RemoteEvents(std::move(exchange));
}

Task<Result<double>> Remote::Metric(std::string name) {
  CAISSON_CO_ASSIGN(const auto response, co_await Call("GET", "/metrics", "", 200));
  const size_t at = response.body.find("\n" + name + " ");
  if (at == std::string::npos)
    co_return Error(ErrorCode::kNotFound, "the server has no metric " + name);
  co_return std::strtod(response.body.c_str() + at + name.size() + 2, nullptr);
}

Status CheckExit(std::string_view text) {
  const auto value = json::Parse(text);
  const auto* object = value ? value->if_object() : nullptr;
  const auto* code = object == nullptr ? nullptr : object->if_contains("exit_code");
  if (code != nullptr && code->is_int64() && code->as_int64() == 0) return {};
  return Error(ErrorCode::kInternal,
               Concat({"a command in a sandbox did not succeed: ", text.substr(0, 300)}));
}

std::string ExecBody(std::initializer_list<std::string_view> argv) {
  json::Array words;
  for (const std::string_view word : argv) words.emplace_back(word);
  return json::Write(json::Object{{"argv", std::move(words)}});
}

}  // namespace caisson::bench
