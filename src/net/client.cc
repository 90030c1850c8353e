#include "net/client.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "async/race.h"
#include "async/thread_pool.h"
#include "base/text.h"
#include "net/channel.h"
#include "net/http_body.h"
#include "net/http_head.h"
#include "net/websocket_handshake.h"

namespace caisson::net {
namespace {

constexpr std::chrono::hours kNoWriteLimit(24);

Error Protocol(std::initializer_list<std::string_view> message) {
  return {ErrorCode::kProtocol, Concat(message)};
}

// Methods whose repetition does no harm (RFC 9110 §9.2.2).
bool MayRepeat(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS";
}

enum class Announce { kNothing, kLength, kChunked };

Result<std::string> HeadText(const ClientRequest& request, const Headers& common,
                             std::string_view authority, Announce announce) {
  const auto legal = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!IsToken(request.method) || !request.target.starts_with('/') ||
      !std::ranges::all_of(request.target, legal))
    return Error(ErrorCode::kInvalidArgument,
                 Concat({"not a request: ", request.method, " ", Quoted(request.target)}));
  std::string text = Concat({request.method, " ", request.target, " HTTP/1.1\r\n"});
  if (request.headers.Find("host") == nullptr) text += Concat({"Host: ", authority, "\r\n"});
  const auto put = [&text](const Header& header) {
    text += Concat({header.name, ": ", header.value, "\r\n"});
  };
  for (const Headers* headers : {&common, &request.headers}) {
    for (const Header& header : *headers) {
      if (!IsToken(header.name) || !IsFieldValue(header.value))
        return Error(ErrorCode::kInvalidArgument, "a malformed header: " + Quoted(header.name));
      // What the request says itself goes before what is common.
      if (headers == &request.headers || request.headers.Find(header.name) == nullptr) put(header);
    }
  }
  if (announce == Announce::kLength)
    text += Concat({"Content-Length: ", std::to_string(request.body.size()), "\r\n"});
  if (announce == Announce::kChunked) text += "Transfer-Encoding: chunked\r\n";
  return text += "\r\n";
}

}  // namespace

struct Client::State {
  State(async::Loop& loop, Url server, ClientOptions options)
      : loop(loop), server(std::move(server)), options(std::move(options)) {}

  async::Loop& loop;
  const Url server;
  ClientOptions options;
  std::vector<std::unique_ptr<Channel>> idle;
  std::unique_ptr<async::ThreadPool> lookups;  // made when a name is first looked up

  class Exchange;
  Task<Result<std::vector<SocketAddress>>> Addresses();
  Task<Result<std::unique_ptr<Channel>>> ConnectAny();
  Task<Result<std::unique_ptr<Channel>>> Connect();
  std::unique_ptr<Channel> TakeIdle();
  Task<Result<std::unique_ptr<Exchange>>> Start(ClientRequest request, BodyKind kind,
                                                std::unique_ptr<Channel> channel);
};

class Client::State::Exchange final : public ClientExchange, private BodyReader {
 public:
  Exchange(State* state, std::unique_ptr<Channel> channel, std::string method, bool sending)
      : state_(state),
        channel_(std::move(channel)),
        method_(std::move(method)),
        sending_(sending) {}
  ~Exchange() override {
    if (!channel_ || sending_ || !keep_alive_ || !head_read_ || !decoder_.ended()) return;
    if (!channel_->broken() && channel_->buffered().empty() &&
        state_->idle.size() < state_->options.max_idle_connections) {
      channel_->Shrink();
      state_->idle.push_back(std::move(channel_));
    }
  }

  Task<Status> Write(std::string piece) override {
    if (!sending_) co_return Error(ErrorCode::kInternal, "the request is complete");
    if (piece.empty()) co_return Status();
    std::string size = ChunkHead(piece.size());
    co_return co_await channel_->Write({std::move(size), std::move(piece), std::string(kChunkEnd)});
  }
  Task<Status> Finish() override {
    if (!sending_) co_return Error(ErrorCode::kInternal, "the request is complete");
    sending_ = false;
    co_return co_await channel_->Write({std::string(kLastChunk), {}, {}});
  }
  Task<Result<ResponseHead>> ReadHead() override;
  BodyReader& body() override { return *this; }

  // No byte of the answer has come, and the server has closed.
  bool closed_before_answer() const { return !answered_ && channel_->ended(); }
  std::unique_ptr<Channel> TakeChannel() { return std::move(channel_); }

 private:
  Task<Result<std::string>> Next(size_t max) override;
  std::optional<uint64_t> content_length() const override {
    if (framing_.kind == Framing::Kind::kLength) return framing_.length;
    return framing_.kind == Framing::Kind::kNone ? std::optional<uint64_t>(0) : std::nullopt;
  }
  bool finished() const override { return decoder_.ended(); }
  Task<Result<ReplyHead>> ReadOneHead();

  State* state_;
  std::unique_ptr<Channel> channel_;
  std::string method_;
  bool sending_;
  bool answered_ = false, head_read_ = false, keep_alive_ = false;
  Framing framing_;
  BodyDecoder decoder_;
};

Task<Result<ReplyHead>> Client::State::Exchange::ReadOneHead() {
  const HeadLimits limits{
      .max_first_line = 8192,
      .max_bytes = std::min(state_->options.max_head_bytes, Channel::kMaxBuffer - 1),
      .max_headers = 1000};
  HeadScanner scanner;
  while (true) {
    if (!channel_->buffered().empty()) {
      answered_ = true;
      const auto scanned = scanner.Scan(channel_->buffered(), limits);
      if (scanned == HeadScanner::State::kFault)
        co_return Protocol({"the server's answer is malformed: ", scanner.fault().why});
      if (scanned == HeadScanner::State::kDone) break;
    }
    auto filled = co_await channel_->FillMore();
    if (filled) continue;
    if (filled.error().code() == ErrorCode::kGone)
      co_return Protocol({"the server closed the connection without an answer"});
    co_return std::move(filled).error();
  }
  auto parsed = ParseReplyHead(channel_->buffered().substr(0, scanner.size()), method_);
  channel_->Consume(scanner.size());
  if (auto* fault = std::get_if<HttpFault>(&parsed))
    co_return Protocol({"the server's answer is malformed: ", fault->why});
  co_return std::get<ReplyHead>(std::move(parsed));
}

Task<Result<ResponseHead>> Client::State::Exchange::ReadHead() {
  while (true) {
    CAISSON_CO_ASSIGN(ReplyHead reply, co_await ReadOneHead());
    if (reply.status < 200 && reply.status != 101) continue;
    head_read_ = true;
    keep_alive_ = reply.keep_alive && reply.status != 101;
    framing_ = reply.framing;
    decoder_ = BodyDecoder(framing_);
    ResponseHead head{.status = reply.status, .headers = std::move(reply.headers)};
    if (framing_.kind == Framing::Kind::kLength) head.content_length = framing_.length;
    co_return std::move(head);
  }
}

Task<Result<std::string>> Client::State::Exchange::Next(size_t max) {
  if (!head_read_) co_return Error(ErrorCode::kInternal, "the answer's head has not been read");
  while (true) {
    const BodyDecoder::Step step = decoder_.Next(channel_->buffered(), std::max<size_t>(max, 1));
    std::string data(step.data);
    channel_->Consume(step.consumed);
    switch (step.kind) {
      case BodyDecoder::Step::Kind::kEnd:
        co_return std::string();
      case BodyDecoder::Step::Kind::kData:
        co_return std::move(data);
      case BodyDecoder::Step::Kind::kFault:
        co_return Protocol({"the answer's body is malformed: ", step.why});
      case BodyDecoder::Step::Kind::kMore:
        break;
    }
    auto filled = co_await channel_->FillMore();
    if (filled) continue;
    if (channel_->end_is_clean() && decoder_.EndsHere()) co_return std::string();
    if (filled.error().code() == ErrorCode::kGone)
      co_return Protocol({"the connection ended in the middle of the answer"});
    co_return std::move(filled).error();
  }
}

Task<Result<std::vector<SocketAddress>>> Client::State::Addresses() {
  if (server.scheme == Url::Scheme::kUnix) {
    CAISSON_CO_ASSIGN(SocketAddress address, UnixAddress(server.host));
    co_return std::vector{std::move(address)};
  }
  if (auto numeric = NumericAddress(server.host, server.port))
    co_return std::vector{*std::move(numeric)};
  if (!lookups) lookups = std::make_unique<async::ThreadPool>(1);
  co_return co_await async::Offload(&loop, lookups.get(), [host = server.host, port = server.port] {
    return LookUp(host, port);
  });
}

Task<Result<std::unique_ptr<Channel>>> Client::State::ConnectAny() {
  CAISSON_CO_ASSIGN(const auto addresses, co_await Addresses());
  int last_error = ECONNREFUSED;
  for (const SocketAddress& address : addresses) {
    auto fd = StartConnect(address);
    if (!fd) {
      last_error = fd.error().sys_errno();
      continue;
    }
    {
      async::Watch watch(loop, fd->get());
      co_await watch.Writable();
    }
    if (const int error = ConnectError(fd->get()); error != 0) {
      last_error = error;
      continue;
    }
    std::unique_ptr<Transport> transport;
    if (server.scheme == Url::Scheme::kHttps) {
      if (!options.tls) {
        CAISSON_CO_ASSIGN(options.tls, TlsClient::Create(""));
      }
      transport = TlsTransport(fd->get(), *options.tls, server.host);
      if (!transport) co_return Error(ErrorCode::kInternal, "preparing a TLS connection");
    } else {
      transport = PlainTransport(fd->get());
    }
    co_return std::make_unique<Channel>(loop, *std::move(fd), std::move(transport), kNoWriteLimit);
  }
  const std::string where =
      server.scheme == Url::Scheme::kUnix ? "unix:" + server.host : server.Authority();
  co_return Error::FromErrno(Concat({"connecting to ", where}), last_error)
      .WithCode(ErrorCode::kUnavailable)
      .WithRemedy("check that the server runs and listens there");
}

Task<Result<std::unique_ptr<Channel>>> Client::State::Connect() {
  auto connected = co_await async::WithTimeout(&loop, options.connect_timeout, ConnectAny());
  if (!connected)
    co_return Error(ErrorCode::kDeadlineExceeded,
                    Concat({"connecting to ", server.Authority(), " took too long"}));
  co_return *std::move(connected);
}

// A kept connection that the server has not closed meanwhile, as far as one can see.
std::unique_ptr<Channel> Client::State::TakeIdle() {
  while (!idle.empty()) {
    auto channel = std::move(idle.back());
    idle.pop_back();
    if (channel->TryFill() == Channel::Fill::kWait) return channel;
  }
  return nullptr;
}

Task<Result<std::unique_ptr<Client::State::Exchange>>> Client::State::Start(
    ClientRequest request, BodyKind kind, std::unique_ptr<Channel> channel) {
  const bool streamed = kind == BodyKind::kStreamed;
  const bool has_body = !request.body.empty() || request.method == "POST" ||
                        request.method == "PUT" || request.method == "PATCH";
  const Announce announce = streamed   ? Announce::kChunked
                            : has_body ? Announce::kLength
                                       : Announce::kNothing;
  CAISSON_CO_ASSIGN(std::string head,
                    HeadText(request, options.headers, server.Authority(), announce));
  Channel* raw = channel.get();
  auto exchange = std::make_unique<Exchange>(this, std::move(channel), request.method, streamed);
  if (streamed) {
    CAISSON_CO_TRY(co_await raw->Write({std::move(head), {}, {}}));
    CAISSON_CO_TRY(co_await exchange->Write(std::move(request.body)));
    co_return std::move(exchange);
  }
  // A server may answer and close before it has read everything: then the answer counts.
  auto written = co_await raw->Write({std::move(head), std::move(request.body), {}});
  if (!written && written.error().sys_errno() != EPIPE && written.error().sys_errno() != ECONNRESET)
    co_return std::move(written).error();
  co_return std::move(exchange);
}

Client::Client(async::Loop& loop, Url server, ClientOptions options)
    : state_(std::make_unique<State>(loop, std::move(server), std::move(options))) {}
Client::~Client() = default;

Task<Result<std::unique_ptr<ClientExchange>>> Client::Open(ClientRequest request, BodyKind kind) {
  auto channel = state_->TakeIdle();
  if (!channel) {
    CAISSON_CO_ASSIGN(channel, co_await state_->Connect());
  }
  CAISSON_CO_ASSIGN(auto exchange,
                    co_await state_->Start(std::move(request), kind, std::move(channel)));
  co_return std::unique_ptr<ClientExchange>(std::move(exchange));
}

namespace {

// The task's value, or kDeadlineExceeded; no limit when it is zero.
template <typename T>
Task<Result<T>> Within(async::Loop* loop, std::chrono::milliseconds limit, Task<Result<T>> task) {
  if (limit.count() == 0) co_return co_await std::move(task);
  auto value = co_await async::WithTimeout(loop, limit, std::move(task));
  if (!value) co_return Error(ErrorCode::kDeadlineExceeded, "the server did not answer in time");
  co_return *std::move(value);
}

}  // namespace

Task<Result<ClientResponse>> Client::Send(ClientRequest request, size_t max_body) {
  for (bool again = true; true; again = false) {
    auto channel = again ? state_->TakeIdle() : nullptr;
    const bool kept = channel != nullptr;
    if (!channel) {
      CAISSON_CO_ASSIGN(channel, co_await state_->Connect());
    }
    CAISSON_CO_ASSIGN(auto exchange,
                      co_await state_->Start(request, BodyKind::kWhole, std::move(channel)));
    auto head = co_await Within(&state_->loop, state_->options.head_timeout, exchange->ReadHead());
    if (!head) {
      if (kept && exchange->closed_before_answer() && MayRepeat(request.method)) continue;
      co_return std::move(head).error();
    }
    CAISSON_CO_ASSIGN(std::string body, co_await exchange->body().ReadAll(max_body));
    co_return ClientResponse{head->status, std::move(head->headers), std::move(body)};
  }
}

Task<Result<std::unique_ptr<WebSocket>>> Client::OpenWebSocket(std::string target, Headers headers,
                                                               WebSocketOptions options) {
  const std::string key = NewHandshakeKey();
  headers.Set("Connection", "Upgrade");
  headers.Set("Upgrade", "websocket");
  headers.Set("Sec-WebSocket-Version", "13");
  headers.Set("Sec-WebSocket-Key", key);
  for (const Header& header : options.headers) headers.Set(header.name, header.value);
  std::string offered;
  for (const std::string& name : options.subprotocols)
    offered += Concat({offered.empty() ? "" : ", ", name});
  if (!offered.empty()) headers.Set("Sec-WebSocket-Protocol", offered);

  CAISSON_CO_ASSIGN(auto channel, co_await state_->Connect());
  ClientRequest request{.target = std::move(target), .headers = std::move(headers)};
  CAISSON_CO_ASSIGN(auto exchange, co_await state_->Start(std::move(request), BodyKind::kWhole,
                                                          std::move(channel)));
  CAISSON_CO_ASSIGN(
      const ResponseHead head,
      co_await Within(&state_->loop, state_->options.head_timeout, exchange->ReadHead()));
  if (head.status != 101)
    co_return Protocol(
        {"the server refused the WebSocket with status ", std::to_string(head.status)});
  const std::string chosen(head.headers.Get("sec-websocket-protocol"));
  const bool known = chosen.empty() ||
                     std::ranges::find(options.subprotocols, chosen) != options.subprotocols.end();
  if (head.headers.Get("sec-websocket-accept") != AcceptFor(key) ||
      !head.headers.HasToken("upgrade", "websocket") || !known ||
      head.headers.Find("sec-websocket-extensions") != nullptr)
    co_return Protocol({"the server's answer to the WebSocket handshake is wrong"});
  co_return MakeWebSocket(exchange->TakeChannel(), WebSocketRole::kClient, chosen,
                          options.max_message);
}

}  // namespace caisson::net
