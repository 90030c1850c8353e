#include "cli/api_client.h"

#include <algorithm>

#include "base/text.h"
#include "cli/output.h"

namespace caisson::cli {
namespace {

constexpr size_t kMaxAnswer = 64 << 20;
constexpr size_t kMaxProblem = 1 << 20;
constexpr size_t kMaxLine = 16 << 20;

ErrorCode CodeOfStatus(int status) {
  switch (status) {
    case 404:
      return ErrorCode::kNotFound;
    case 409:
      return ErrorCode::kConflict;
    case 410:
      return ErrorCode::kGone;
    case 403:
      return ErrorCode::kPermissionDenied;
    case 502:
    case 503:
      return ErrorCode::kUnavailable;
    case 504:
      return ErrorCode::kDeadlineExceeded;
    default:
      return status >= 400 && status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kProtocol;
  }
}

}  // namespace

Error ErrorOfAnswer(int status, std::string_view body) {
  const std::string said = std::to_string(status) + " " + std::string(net::ReasonOf(status));
  const auto problem = json::Parse(body, {.max_bytes = kMaxProblem});
  const std::string name = problem ? TextAt(*problem, "code") : "";
  if (name.empty())
    return Error(CodeOfStatus(status), "the server answered " + said)
        .WithRemedy("check that the URL is that of a Caisson server");
  const auto known = std::ranges::find(ErrorTable(), name, &ErrorInfo::name);
  std::string message = TextAt(*problem, "detail");
  if (message.empty()) message = "the server answered " + said;
  message += " (" + name;
  const std::string request = TextAt(*problem, "request_id");
  if (status >= 500 && !request.empty()) message += ", request " + request;
  message += ")";
  return Error(known == ErrorTable().end() ? CodeOfStatus(status) : known->code, message)
      .WithRemedy(TextAt(*problem, "remediation"));
}

Task<Result<std::optional<json::Value>>> LineStream::Next() {
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end == std::string::npos && !ended_) {
      if (buffer_.size() > kMaxLine)
        co_return Error(ErrorCode::kProtocol, "the server sent a line without an end");
      CAISSON_CO_ASSIGN(const std::string piece, co_await exchange_->body().Next());
      ended_ = piece.empty();
      buffer_ += piece;
      continue;
    }
    const std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end == std::string::npos ? end : end + 1);
    if (!net::TrimBlanks(line).empty()) {
      auto value = json::Parse(line, {.max_bytes = kMaxLine + (1 << 20)});
      if (!value) co_return std::move(value).error().WithCode(ErrorCode::kProtocol);
      co_return std::optional(*std::move(value));
    }
    if (ended_ && buffer_.empty()) co_return std::optional<json::Value>();
  }
}

Result<std::unique_ptr<ApiClient>> ApiClient::Create(async::Loop& loop,
                                                     const Connection& connection) {
  auto url = net::ParseUrl(connection.url.value);
  if (!url)
    return std::move(url)
        .error()
        .Because("the server's URL, from " + connection.url.source)
        .WithRemedy("write http://HOST:PORT, https://HOST or unix:/path/to.sock");
  net::ClientOptions options;
  options.head_timeout = std::chrono::milliseconds(0);  // a command may run for as long as it likes
  if (!connection.ca_file.value.empty()) {
    CAISSON_ASSIGN(options.tls, net::TlsClient::Create(connection.ca_file.value));
  }
  if (!net::IsFieldValue(connection.key.value))
    return Error(ErrorCode::kInvalidArgument,
                 "the key from " + connection.key.source + " has control characters in it")
        .WithRemedy("give it as it was shown when it was made");
  if (!connection.key.value.empty())
    options.headers.Set("Authorization", "Bearer " + connection.key.value);
  options.headers.Set("User-Agent", "caisson-cli/" CAISSON_VERSION);
  return std::unique_ptr<ApiClient>(
      new ApiClient(loop, *std::move(url), connection.url.value, std::move(options)));
}

net::Client& ApiClient::client() {
  if (!client_) {
    if (connect_timeout_) options_.connect_timeout = *connect_timeout_;
    client_ = std::make_unique<net::Client>(loop_, server_, options_);
  }
  return *client_;
}

Error ApiClient::Explain(Error error) const {
  if (error.code() != ErrorCode::kUnavailable && error.code() != ErrorCode::kDeadlineExceeded)
    return error;
  return std::move(error)
      .Because("no server at " + url_)
      .WithRemedy("start one with `caisson serve`, or name another with --url or CAISSON_API_URL");
}

Task<Result<json::Value>> ApiClient::Get(std::string target) {
  co_return co_await Send("GET", std::move(target));
}

Task<Result<json::Value>> ApiClient::Send(std::string method, std::string target,
                                          std::optional<json::Value> body, net::Headers headers) {
  net::ClientRequest request{
      .method = std::move(method), .target = std::move(target), .headers = std::move(headers)};
  request.headers.Set("Accept", "application/json");
  if (body) {
    request.headers.Set("Content-Type", "application/json");
    request.body = json::Write(*body);
  }
  auto answer = co_await client().Send(std::move(request), kMaxAnswer);
  if (!answer) co_return Explain(std::move(answer).error());
  if (answer->status < 200 || answer->status > 299)
    co_return ErrorOfAnswer(answer->status, answer->body);
  if (answer->body.empty()) co_return json::Value();
  auto value = json::Parse(answer->body, {.max_bytes = kMaxAnswer});
  if (!value)
    co_return std::move(value)
        .error()
        .Because("the server's answer")
        .WithCode(ErrorCode::kProtocol)
        .WithRemedy("check that " + url_ + " is a Caisson server");
  co_return *std::move(value);
}

Task<Result<std::unique_ptr<net::ClientExchange>>> ApiClient::Open(net::ClientRequest request,
                                                                   net::Client::BodyKind kind) {
  auto exchange = co_await client().Open(std::move(request), kind);
  if (!exchange) co_return Explain(std::move(exchange).error());
  co_return *std::move(exchange);
}

Task<Result<net::ResponseHead>> ApiClient::ReadAnswer(net::ClientExchange* exchange) {
  CAISSON_CO_ASSIGN(net::ResponseHead head, co_await exchange->ReadHead());
  if (head.status >= 200 && head.status <= 299) co_return std::move(head);
  CAISSON_CO_ASSIGN(const std::string body, co_await exchange->body().ReadAll(kMaxProblem));
  co_return ErrorOfAnswer(head.status, body);
}

Task<Result<std::unique_ptr<LineStream>>> ApiClient::Lines(std::string target) {
  net::ClientRequest request{.target = std::move(target)};
  request.headers.Set("Accept", "application/x-ndjson");
  CAISSON_CO_ASSIGN(auto exchange,
                    co_await Open(std::move(request), net::Client::BodyKind::kWhole));
  CAISSON_CO_TRY(co_await ReadAnswer(exchange.get()));
  co_return std::make_unique<LineStream>(std::move(exchange));
}

Task<Result<std::unique_ptr<net::WebSocket>>> ApiClient::Socket(std::string target,
                                                                std::string check) {
  net::WebSocketOptions options;
  options.max_message = kMaxLine;
  auto socket = co_await client().OpenWebSocket(std::move(target), {}, std::move(options));
  if (socket) co_return *std::move(socket);
  if (socket.error().code() == ErrorCode::kProtocol) {
    if (auto reason = co_await Get(std::move(check)); !reason) co_return std::move(reason).error();
  }
  co_return Explain(std::move(socket).error());
}

std::string SessionTarget(std::string_view session, std::string_view rest) {
  return Concat({"/api/sessions/", net::PercentEncode(session), rest});
}

std::string Query(
    std::initializer_list<std::pair<std::string_view, std::optional<std::string>>> of) {
  std::string query;
  for (const auto& [name, value] : of)
    if (value) query += Concat({query.empty() ? "?" : "&", name, "=", net::PercentEncode(*value)});
  return query;
}

Result<int> RunWithServer(const Parsed& parsed, ClientVerb verb) {
  CAISSON_ASSIGN(const Connection connection, ResolveConnection(parsed));
  async::Loop loop;
  CAISSON_ASSIGN(const auto api, ApiClient::Create(loop, connection));
  return loop.RunUntilDone(verb(api.get(), &parsed));
}

}  // namespace caisson::cli
