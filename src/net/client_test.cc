#include "net/client.h"

#include <sys/socket.h>

#include <optional>
#include <vector>

#include "net/ndjson.h"
#include "net/sse.h"
#include "net/test_net.h"

namespace caisson::net {
namespace {

Task<void> Echo(Exchange* exchange) {
  const Request& request = exchange->request();
  ResponseHead head{.headers = {{"X-Method", request.method},
                                {"X-Auth", std::string(request.headers.Get("authorization"))}}};
  if (!co_await exchange->Begin(std::move(head))) co_return;
  while (true) {
    auto piece = co_await exchange->body().Next();
    if (!piece) co_return;
    if (piece->empty()) break;
    if (!co_await exchange->Write(*std::move(piece))) co_return;
  }
  static_cast<void>((co_await exchange->Finish()).has_value());
}

class ClientTest : public NetTest {
 protected:
  std::unique_ptr<Client> MakeClient(ClientOptions options = {}) {
    return std::make_unique<Client>(loop_, Url{.host = "127.0.0.1", .port = port_},
                                    std::move(options));
  }
};

TEST_F(ClientTest, SendsAndReceivesAndKeepsTheConnection) {
  Start(Echo);
  const auto client = MakeClient({.headers = {{"Authorization", "Bearer x"}}});
  for (int i = 0; i < 3; ++i) {
    const auto answer =
        Run(client->Send({.method = "POST", .target = "/a?b", .body = std::string(300'000, 'y')}));
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->headers.Get("x-method"), "POST");
    EXPECT_EQ(answer->headers.Get("x-auth"), "Bearer x");
    EXPECT_EQ(answer->body, std::string(300'000, 'y'));
  }
  EXPECT_EQ(server_->stats().accepted, 1U);
  EXPECT_EQ(Run(client->Send({.method = "HEAD"}))->body, "");
  const auto large = Run(client->Send({.method = "POST", .body = "12345"}, 4));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code(), ErrorCode::kTooLarge);
}

TEST_F(ClientTest, StreamsARequestAndItsAnswerAtTheSameTime) {
  Start(Echo);
  const auto client = MakeClient();
  auto exchange = Run(client->Open({.method = "POST", .body = "one"}, Client::BodyKind::kStreamed));
  ASSERT_TRUE(exchange);
  EXPECT_EQ(Run((*exchange)->ReadHead())->status, 200);
  EXPECT_EQ(*Run((*exchange)->body().Next(100)), "one");
  EXPECT_TRUE(Run((*exchange)->Write("two")));
  EXPECT_EQ(*Run((*exchange)->body().Next(100)), "two");
  EXPECT_TRUE(Run((*exchange)->Finish()));
  EXPECT_EQ(*Run((*exchange)->body().Next(100)), "");
  EXPECT_TRUE((*exchange)->body().finished());
}

TEST_F(ClientTest, TriesAgainWhenAKeptConnectionWasClosed) {
  ServerLimits limits;
  limits.idle_timeout = std::chrono::milliseconds(1);
  limits.sweep_period = std::chrono::milliseconds(1);
  Start(Echo, limits);
  const auto client = MakeClient();
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Run(client->Send({})));
    EXPECT_TRUE(Eventually([this] { return server_->stats().connections == 0; }));
  }
}

TEST_F(ClientTest, SaysWhatIsWrong) {
  Client nobody(loop_, Url{.host = "127.0.0.1", .port = 1}, {});
  EXPECT_EQ(Run(nobody.Send({})).error().code(), ErrorCode::kUnavailable);
  Client no_socket(loop_, ParseUrl("unix:/nonexistent/x.sock").value(), {});
  EXPECT_EQ(Run(no_socket.Send({})).error().code(), ErrorCode::kUnavailable);
  Start(Echo);
  const auto client = MakeClient();
  EXPECT_EQ(Run(client->Send({.target = "no slash"})).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Run(client->Send({.headers = {{"A", "b\nc"}}})).error().code(),
            ErrorCode::kInvalidArgument);
}

Task<void> Wait(Exchange* exchange) { co_await exchange->closed().Wait(); }

TEST_F(ClientTest, GivesUpInTimeAndTheServerNotices) {
  Start(Wait);
  const auto client = MakeClient({.head_timeout = std::chrono::milliseconds(20)});
  EXPECT_EQ(Run(client->Send({})).error().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(Eventually([this] { return server_->stats().connections == 0; }));
}

Task<bool> Serve(async::Loop* loop, const ListenSocket* listener, std::string bytes) {
  async::Watch watch(*loop, listener->fd());
  while (true) {
    Fd fd(accept4(listener->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      co_await watch.Readable();
      continue;
    }
    const int raw = fd.get();
    Channel channel(*loop, std::move(fd), PlainTransport(raw), std::chrono::hours(1));
    static_cast<void>((co_await channel.FillMore()).has_value());
    static_cast<void>((co_await channel.Write({bytes, {}, {}})).has_value());
    channel.FinishWriting();
    while (co_await channel.FillMore()) channel.Consume(channel.buffered().size());
  }
}

TEST_F(ClientTest, RefusesMalformedAnswers) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::vector<std::pair<std::string, bool>> answers = {
      {ok + "Content-Length: 2\r\n\r\nhi", true},
      {ok + "\r\nuntil the end", true},
      {"HTTP/1.0 200 OK\r\n\r\nhi", true},
      {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", true},
      {"HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 0\r\n\r\n", true},
      {ok + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", true},
      {"", false},
      {"nonsense\r\n\r\n", false},
      {"HTTP/2.0 200 OK\r\n\r\n", false},
      {"HTTP/1.1 2x0 OK\r\n\r\n", false},
      {"HTTP/1.1 099 OK\r\n\r\n", false},
      {"HTTP/1.1 2000 OK\r\n\r\n", false},
      {"HTTP/1.1 200 OK\n\n", false},
      {ok + "Content-Length: 5\r\n\r\nhi", false},
      {ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nhi", false},
      {ok + "Content-Length: x\r\n\r\nhi", false},
      {ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", false},
      {ok + "Transfer-Encoding: gzip\r\n\r\n", false},
      {ok + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", false},
      {ok + "Transfer-Encoding: chunked\r\n\r\nz\r\n", false},
      {ok + "A: b\r\n c\r\n\r\n", false},
      {ok + "A: " + std::string(100'000, 'b'), false},
  };
  for (const auto& [bytes, good] : answers) {
    const ListenSocket listener = ListenSocket::Open("127.0.0.1:0", 8).value();
    port_ = listener.port();
    const auto client = MakeClient();
    auto first = Run(async::FirstOf(&loop_, client->Send({}), Serve(&loop_, &listener, bytes)));
    ASSERT_EQ(first.index(), 0U);
    const auto& answer = std::get<0>(first);
    EXPECT_EQ(answer.has_value(), good) << bytes.substr(0, 100);
    if (!answer) EXPECT_EQ(answer.error().code(), ErrorCode::kProtocol) << answer.error().message();
  }
}

// --- TLS ----------------------------------------------------------------------------------------

class TlsTest : public ClientTest {
 protected:
  void StartTls(std::shared_ptr<TlsServer> tls) {
    server_ = std::make_unique<Server>(loop_, ServerLimits{}, Echo);
    port_ = server_->Listen({.address = "127.0.0.1:0", .tls = std::move(tls)})->port;
  }
  Result<ClientResponse> Call(const std::string& pem, const std::string& host, std::string body) {
    Client client(loop_, Url{.scheme = Url::Scheme::kHttps, .host = host, .port = port_},
                  {.tls = TlsClient::FromPem(pem).value()});
    return Run(client.Send({.method = "POST", .body = std::move(body)}));
  }
};

TEST_F(TlsTest, CarriesRequestsAndLargeBodies) {
  auto tls = TlsServer::SelfSigned("127.0.0.1").value();
  const std::string pem = tls->CertificatePem();
  EXPECT_EQ(tls->Fingerprint().size(), 64U);
  StartTls(tls);
  const std::string body(1'000'000, 'z');
  auto answer = Call(pem, "127.0.0.1", body);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->body, body);
}

TEST_F(TlsTest, BelievesOnlyItsRoots) {
  auto tls = TlsServer::SelfSigned("127.0.0.1").value();
  StartTls(tls);
  const std::string other = TlsServer::SelfSigned("127.0.0.1").value()->CertificatePem();
  EXPECT_FALSE(Call(other, "127.0.0.1", ""));
  EXPECT_TRUE(Call(tls->CertificatePem(), "127.0.0.1", ""));
  EXPECT_FALSE(TlsClient::FromPem("nonsense"));
  EXPECT_FALSE(TlsClient::Create("/nonexistent.pem"));
}

TEST_F(TlsTest, ChecksTheName) {
  auto tls = TlsServer::SelfSigned("127.0.0.1").value();
  server_ = std::make_unique<Server>(loop_, ServerLimits{}, Echo);
  port_ = server_->Listen({.address = "127.0.0.2:0", .tls = tls})->port;
  EXPECT_FALSE(Call(tls->CertificatePem(), "127.0.0.2", "")) << "not a name of the certificate";
}

TEST_F(TlsTest, APlainRequestToATlsPortGetsNothing) {
  StartTls(TlsServer::SelfSigned("localhost").value());
  EXPECT_EQ(StatusOf(Talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n")), 0);
  EXPECT_TRUE(Eventually([this] { return server_->stats().connections == 0; }));
}

TEST_F(TlsTest, RefusesFilesThatCannotBeUsed) {
  EXPECT_EQ(TlsServer::FromFiles("/nonexistent", "/nonexistent").error().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(TlsServer::SelfSigned("a,DNS:b").error().code(), ErrorCode::kInvalidArgument);
}

// --- streams ------------------------------------------------------------------------------------

Task<void> Events(Exchange* exchange) {
  SseWriter events(exchange);
  static_cast<void>((co_await events.Begin()).has_value());
  static_cast<void>((co_await events.Heartbeat()).has_value());
  static_cast<void>((co_await events.Send({.event = "e", .data = "a\nb", .id = "7"})).has_value());
  static_cast<void>((co_await events.Finish()).has_value());
}
Task<void> Lines(Exchange* exchange) {
  NdjsonWriter lines(exchange);
  static_cast<void>((co_await lines.Begin()).has_value());
  EXPECT_FALSE(co_await lines.Send("{\n}"));
  static_cast<void>((co_await lines.Send("{}")).has_value());
  static_cast<void>((co_await lines.Heartbeat()).has_value());
  static_cast<void>((co_await lines.Send("[1]")).has_value());
  static_cast<void>((co_await lines.Finish()).has_value());
}

TEST_F(ClientTest, ReadsEventsAndLines) {
  Start([](Exchange* exchange) {
    return exchange->request().path == "/e" ? Events(exchange) : Lines(exchange);
  });
  const auto client = MakeClient();
  const auto events = Run(client->Send({.target = "/e"}));
  EXPECT_EQ(events->headers.Get("content-type"), "text/event-stream");
  EXPECT_EQ(events->body, ":\n\nevent: e\nid: 7\ndata: a\ndata: b\n\n");
  const auto lines = Run(client->Send({.target = "/l"}));
  EXPECT_EQ(lines->headers.Get("content-type"), "application/x-ndjson");
  EXPECT_EQ(lines->body, "{}\n\n[1]\n");
}

TEST(Sse, EncodesAnyText) {
  EXPECT_EQ(EncodeSse({.data = ""}), "data: \n\n");
  EXPECT_EQ(EncodeSse({.data = "a\r\nb\rc\n"}), "data: a\ndata: b\ndata: c\ndata: \n\n");
  EXPECT_EQ(EncodeSse({.event = "x\ny", .data = "d", .id = "1\r2"}),
            "event: xy\nid: 12\ndata: d\n\n");
  EXPECT_EQ(LastEventId({.headers = {{"last-event-id", "42"}}}), "42");
  EXPECT_EQ(LastEventId({}), std::nullopt);
}

}  // namespace
}  // namespace caisson::net
