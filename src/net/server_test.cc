#include "net/server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "net/test_net.h"

namespace caisson::net {
namespace {

using std::chrono::milliseconds;

const std::string kGet = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string kGetAndClose = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

Task<void> Hello(Exchange* exchange) {
  static_cast<void>((co_await exchange->Send(Response::Text(200, "hello"))).has_value());
}

Task<void> EchoPath(Exchange* exchange) {
  static_cast<void>(
      (co_await exchange->Send(Response::Text(200, exchange->request().path))).has_value());
}

Task<void> EchoBody(Exchange* exchange) {
  if (!co_await exchange->Begin({})) co_return;
  while (true) {
    auto piece = co_await exchange->body().Next();
    if (!piece) co_return;
    if (piece->empty()) break;
    if (!co_await exchange->Write(*std::move(piece))) co_return;
  }
  static_cast<void>((co_await exchange->Finish()).has_value());
}

class ServerTest : public NetTest {
 public:
  using NetTest::ReadToEnd;
};

TEST_F(ServerTest, AnswersAndKeepsTheConnection) {
  Start(EchoPath);
  const auto channel = Connect();
  for (int i = 0; i < 3; ++i) {
    Run(Put(channel.get(), kGet));
    const std::string head = Run(ReadTo(channel.get(), "\r\n\r\n"));
    EXPECT_EQ(StatusOf(head), 200);
    EXPECT_NE(head.find("Content-Length: 2\r\n"), std::string::npos) << head;
    EXPECT_NE(head.find("\r\nDate: "), std::string::npos) << head;
    EXPECT_EQ(head.find("Connection:"), std::string::npos) << head;
    EXPECT_EQ(Run(ReadTo(channel.get(), "/a")), "/a");
  }
  EXPECT_EQ(server_->stats().accepted, 1U);
  EXPECT_EQ(server_->stats().requests, 3U);
}

Task<bool> PutAndWait(Channel* channel, std::string bytes) {
  EXPECT_TRUE(co_await channel->Write({std::move(bytes), {}, {}}));
  co_await channel->loop().Sleep(std::chrono::hours(1));
  co_return false;
}

TEST_F(ServerTest, AnswersRequestsSentAheadInTheirOrder) {
  Start(EchoPath);
  std::string requests, expected;
  constexpr int kMany = 5000;  // more than any buffer takes at once
  for (int i = 0; i < kMany; ++i) {
    requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
    expected += "/" + std::to_string(i) + "\n";
  }
  requests += kGetAndClose;
  expected += "/a\n";
  const auto channel = Connect();
  auto first = Run(async::FirstOf(&loop_, ReadToEnd(channel.get()),
                                  PutAndWait(channel.get(), std::move(requests))));
  ASSERT_EQ(first.index(), 0U);
  const std::string answer = std::get<0>(std::move(first));
  std::string bodies;
  std::string_view rest = answer;
  while (!rest.empty()) {
    const std::string_view body = BodyOf(rest);
    ASSERT_TRUE(body.starts_with('/'));
    const size_t size = std::min(body.find("HTTP/1.1 "), body.size());
    bodies += std::string(body.substr(0, size)) + "\n";
    rest = body.substr(size);
  }
  EXPECT_EQ(bodies, expected);
}

TEST_F(ServerTest, GivesTheHandlerPathQueryHeadersAndPeer) {
  Request seen;
  Start([&seen](Exchange* exchange) {
    seen = exchange->request();
    return Hello(exchange);
  });
  Talk(
      "GET /a%20b/c%2Fd?x=1&x=2&y=%C3%A4+z HTTP/1.1\r\nhOST: h:1\r\nConnection: close\r\nA: "
      "1\r\na: 2\r\n\r\n");
  EXPECT_EQ(seen.path, "/a b/c/d");
  EXPECT_EQ(seen.segments, (std::vector<std::string>{"a b", "c/d"}));
  EXPECT_EQ(seen.query, (std::vector<std::pair<std::string, std::string>>{
                            {"x", "1"}, {"x", "2"}, {"y", "\xc3\xa4 z"}}));
  EXPECT_EQ(seen.host(), "h:1");
  EXPECT_EQ(seen.headers.All("A"), (std::vector<std::string_view>{"1", "2"}));
  EXPECT_EQ(seen.peer.address, "127.0.0.1");
  EXPECT_TRUE(seen.peer.loopback);
  EXPECT_FALSE(seen.peer.tls);
  EXPECT_NE(seen.peer.port, 0);
}

TEST_F(ServerTest, StreamsBodiesBothWays) {
  Start(EchoBody);
  const std::string answer = Talk(
      "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
  EXPECT_NE(answer.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(BodyOf(answer), "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
}

TEST_F(ServerTest, EndsAStreamWithTheConnectionForHttp10) {
  Start(EchoBody);
  const std::string answer = Talk("POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(answer.find("Transfer-Encoding"), std::string::npos);
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
  EXPECT_EQ(BodyOf(answer), "hello");
}

TEST_F(ServerTest, KeepsAnHttp10ConnectionWhenAsked) {
  Start(Hello);
  const auto channel = Connect();
  for (int i = 0; i < 2; ++i) {
    Run(Put(channel.get(), "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    const std::string answer = Run(ReadTo(channel.get(), "hello"));
    EXPECT_NE(answer.find("Connection: keep-alive\r\n"), std::string::npos) << answer;
  }
}

TEST_F(ServerTest, AnswersHeadWithoutABody) {
  Start([](Exchange* exchange) {
    return exchange->request().path == "/stream" ? EchoBody(exchange) : Hello(exchange);
  });
  std::string answer = Talk("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_EQ(BodyOf(answer), "");
  answer =
      Talk("HEAD /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_EQ(StatusOf(answer), 200);
  EXPECT_EQ(BodyOf(answer), "");
}

TEST_F(ServerTest, SaysContinueOnlyWhenTheBodyIsRead) {
  Start([](Exchange* exchange) {
    return exchange->request().path == "/read" ? EchoBody(exchange) : Hello(exchange);
  });
  const std::string headers =
      " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  // EchoBody begins its answer first: the client need not be told any more.
  std::string answer = Talk("POST /other" + headers);
  EXPECT_EQ(StatusOf(answer), 200);
  EXPECT_NE(answer.find("Connection: close"), std::string::npos) << "the body may or may not come";
  EXPECT_EQ(answer.find("100 Continue"), std::string::npos);
}

Task<void> ReadThenAnswer(Exchange* exchange) {
  auto body = co_await exchange->body().ReadAll(100);
  Response response =
      body ? Response::Text(200, *std::move(body)) : Response::Problem(body.error());
  static_cast<void>((co_await exchange->Send(std::move(response))).has_value());
}

TEST_F(ServerTest, AsksForAnAwaitedBody) {
  Start(ReadThenAnswer);
  const auto channel = Connect();
  Run(Put(channel.get(),
          "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n"));
  EXPECT_EQ(Run(ReadTo(channel.get(), "\r\n\r\n")), "HTTP/1.1 100 Continue\r\n\r\n");
  Run(Put(channel.get(), "hi" + kGetAndClose));
  EXPECT_EQ(StatusOf(Run(ReadTo(channel.get(), "hi"))), 200);
  EXPECT_EQ(StatusOf(Run(ReadToEnd(channel.get()))), 200) << "the next request is served";
}

TEST_F(ServerTest, SkipsASmallBodyThatTheHandlerLeft) {
  Start(Hello);
  const std::string answer =
      Talk("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 21\r\n\r\nGET /x HTTP/1.1\r\n\r\n\r\n" +
           kGetAndClose);
  EXPECT_EQ(server_->stats().requests, 2U) << answer;
}

TEST_F(ServerTest, ClosesWhenALargeBodyIsLeftButTheAnswerArrives) {
  Start(Hello);
  const auto channel = Connect();
  Run(Put(channel.get(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" +
                             std::string(200'000, 'a')));
  const std::string answer = Run(ReadToEnd(channel.get()));
  EXPECT_EQ(BodyOf(answer), "hello");
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
}

Task<void> Throw(Exchange* exchange) {
  if (exchange->request().path == "/begun")
    static_cast<void>((co_await exchange->Begin({})).has_value());
  throw std::runtime_error("a secret");
}

TEST_F(ServerTest, AnswersAProblemWhenTheHandlerThrowsAndGoesOn) {
  Start(Throw);
  const std::string answer = Talk(kGet + kGetAndClose);
  EXPECT_EQ(StatusOf(answer), 500);
  EXPECT_NE(answer.find("\"code\":\"internal\""), std::string::npos);
  EXPECT_EQ(answer.find("secret"), std::string::npos);
  EXPECT_EQ(server_->stats().handler_throws, 2U);
}

TEST_F(ServerTest, CutsTheConnectionWhenABegunAnswerCannotBeFinished) {
  Start(Throw);
  const std::string answer = Talk("GET /begun HTTP/1.1\r\nHost: x\r\n\r\n" + kGet);
  EXPECT_EQ(StatusOf(answer), 200);
  EXPECT_EQ(BodyOf(answer), "") << "no last chunk: the client can tell";
}

Task<void> DoNothing(Exchange* /*exchange*/) { co_return; }

TEST_F(ServerTest, AnswersAProblemWhenTheHandlerDoesNot) {
  Start(DoNothing);
  EXPECT_EQ(StatusOf(Talk(kGetAndClose)), 500);
}

Task<void> Misuse(Exchange* exchange, std::vector<bool>* worked) {
  const auto note = [worked](const Status& status) { worked->push_back(status.has_value()); };
  note(co_await exchange->Write("before the head"));
  note(co_await exchange->Finish());
  note(co_await exchange->Send(Response::Text(200, "").WithHeader("Content-Length", "1")));
  note(co_await exchange->Send(Response::Text(200, "").WithHeader("A", "b\r\nSet-Cookie: c")));
  note(co_await exchange->Send(Response::Text(200, "").WithHeader("A b", "c")));
  note(co_await exchange->Send({.status = 204, .body = "x"}));
  note(co_await exchange->Send({.status = 99}));
  note(co_await exchange->Begin({.content_length = 3}));
  note(co_await exchange->Write("ab"));
  note(co_await exchange->Finish());
  note(co_await exchange->Write("cd"));
  note(co_await exchange->Write("c"));
  note(co_await exchange->Finish());
  note(co_await exchange->Send(Response::Text(200, "again")));
}

TEST_F(ServerTest, RefusesWhatAHandlerMayNotDo) {
  std::vector<bool> worked;
  Start([&worked](Exchange* exchange) { return Misuse(exchange, &worked); });
  const std::string answer = Talk(kGetAndClose);
  EXPECT_EQ(BodyOf(answer), "abc");
  EXPECT_EQ(worked, (std::vector<bool>{false, false, false, false, false, false, false, true, true,
                                       false, false, true, true, false}));
}

// --- back-pressure and clients that go ----------------------------------------------------------

struct Flood {
  uint64_t written = 0;
  bool failed = false;
  bool ended = false;
};
Task<void> WriteForEver(Exchange* exchange, Flood* flood) {
  if (!co_await exchange->Begin({})) co_return;
  while (co_await exchange->Write(std::string(65536, 'x'))) flood->written += 65536;
  flood->failed = true;
}

TEST_F(ServerTest, ASlowReaderHoldsTheWriterBack) {
  Flood flood;
  Start([&flood](Exchange* exchange) { return WriteForEver(exchange, &flood); });
  const auto channel = Connect();
  Run(Put(channel.get(), kGet));
  // It stops by itself: when nothing is read, the kernel's buffers are all there is.
  uint64_t before = 1;
  int still = 0;
  EXPECT_TRUE(Eventually([&] {
    still = flood.written > 0 && flood.written == before ? still + 1 : 0;
    before = flood.written;
    return still > 100;
  }));
  EXPECT_LT(flood.written, 64U << 20);
  // Reading lets it go on.
  Run(ReadTo(channel.get(), "\r\n\r\n"));
  size_t got = 0;
  while (flood.written == before && got < (256U << 20)) {
    ASSERT_TRUE(Run(channel->FillMore()));
    got += channel->buffered().size();
    channel->Consume(channel->buffered().size());
  }
  EXPECT_GT(flood.written, before);
  EXPECT_FALSE(flood.failed);
}

TEST_F(ServerTest, TheWriterIsToldWhenTheClientHasGone) {
  Flood flood;
  Start([&flood](Exchange* exchange) { return WriteForEver(exchange, &flood); });
  auto channel = Connect();
  Run(Put(channel.get(), kGet));
  Run(ReadTo(channel.get(), "\r\n\r\n"));
  channel.reset();
  EXPECT_TRUE(Eventually([&] { return flood.failed && server_->stats().connections == 0; }));
}

TEST_F(ServerTest, ASlowReaderIsCutOffInTime) {
  Flood flood;
  ServerLimits limits;
  limits.write_timeout = milliseconds(50);
  limits.sweep_period = milliseconds(10);
  Start([&flood](Exchange* exchange) { return WriteForEver(exchange, &flood); }, limits);
  const auto channel = Connect();
  Run(Put(channel.get(), kGet));
  EXPECT_TRUE(Eventually([&] { return flood.failed && server_->stats().connections == 0; }));
  EXPECT_EQ(server_->stats().timeouts, 1U);
}

Task<void> AwaitClose(Exchange* exchange, bool* closed) {
  co_await exchange->closed().Wait();
  *closed = true;
  static_cast<void>((co_await exchange->Send(Response::Text(200, "too late?"))).has_value());
}

TEST_F(ServerTest, ClosedIsSetWhenTheClientGoes) {
  bool closed = false;
  Start([&closed](Exchange* exchange) { return AwaitClose(exchange, &closed); });
  auto channel = Connect();
  Run(Put(channel.get(), kGet));
  EXPECT_TRUE(Eventually([this] { return server_->stats().running == 1; }));
  EXPECT_FALSE(closed);
  channel.reset();
  EXPECT_TRUE(Eventually([&] { return closed && server_->stats().connections == 0; }));
}

TEST_F(ServerTest, AClientThatHasOnlyFinishedSendingGetsItsAnswer) {
  bool closed = false;
  Start([&closed](Exchange* exchange) { return AwaitClose(exchange, &closed); });
  const auto channel = Connect();
  Run(Put(channel.get(), kGet));
  channel->FinishWriting();
  EXPECT_EQ(BodyOf(Run(ReadToEnd(channel.get()))), "too late?");
}

// --- time limits --------------------------------------------------------------------------------

TEST_F(ServerTest, AHeadThatDoesNotArriveInTimeGets408) {
  ServerLimits limits;
  limits.header_timeout = milliseconds(30);
  limits.sweep_period = milliseconds(5);
  Start(Hello, limits);
  EXPECT_EQ(StatusOf(Talk("GET / HTTP/1.1\r\nHos")), 408);
  EXPECT_EQ(Talk(""), "") << "a connection without a request is closed silently";
  EXPECT_EQ(server_->stats().timeouts, 2U);
}

TEST_F(ServerTest, AnIdleConnectionIsClosed) {
  ServerLimits limits;
  limits.idle_timeout = milliseconds(30);
  limits.sweep_period = milliseconds(5);
  Start(Hello, limits);
  EXPECT_EQ(BodyOf(Talk(kGet)), "hello");
}

TEST_F(ServerTest, ABodyThatStopsArrivingIsGivenUp) {
  ServerLimits limits;
  limits.body_timeout = milliseconds(30);
  limits.sweep_period = milliseconds(5);
  Start(ReadThenAnswer, limits);
  EXPECT_EQ(StatusOf(Talk("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")), 504);
}

// --- limits -------------------------------------------------------------------------------------

TEST_F(ServerTest, TooManyConnectionsGet503) {
  ServerLimits limits;
  limits.max_connections = 2;
  Start(Hello, limits);
  const auto first = Connect(), second = Connect();
  EXPECT_TRUE(Eventually([this] { return server_->stats().connections == 2; }));
  const std::string answer = Talk(kGet);
  EXPECT_EQ(StatusOf(answer), 503);
  EXPECT_NE(answer.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_EQ(server_->stats().refused, 1U);
  Run(Put(first.get(), kGetAndClose));
  EXPECT_EQ(BodyOf(Run(ReadToEnd(first.get()))), "hello");
}

TEST_F(ServerTest, AConnectionServesAsManyRequestsAsItMay) {
  ServerLimits limits;
  limits.max_requests = 2;
  Start(Hello, limits);
  const std::string answer = Talk(kGet + kGet + kGet);
  EXPECT_EQ(server_->stats().requests, 2U);
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
}

TEST_F(ServerTest, WithoutDescriptorsItTurnsAwayAndRecovers) {
  Start(Hello);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto waiting = Connect();  // in the queue; the loop has not run yet
  const auto next = Connect();
  rlimit none = before;
  // Above all that is open: what the server gives back must lie below the limit.
  const Fd probe(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 900));
  ASSERT_TRUE(probe);
  none.rlim_cur = static_cast<rlim_t>(probe.get()) + 1;
  // Everything below the limit is taken: no descriptor is left.
  std::vector<Fd> taken;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  while (true) {
    Fd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd) break;
    taken.push_back(std::move(fd));
  }
  EXPECT_EQ(Run(ReadToEnd(waiting.get())), "");
  EXPECT_EQ(Run(ReadToEnd(next.get())), "") << "the reserve is there again";
  EXPECT_EQ(server_->stats().refused, 2U);
  taken.clear();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(BodyOf(Talk(kGetAndClose)), "hello");
}

// --- draining -----------------------------------------------------------------------------------

Task<void> AnswerWhenSet(Exchange* exchange, async::Event* event) {
  co_await event->Wait();
  static_cast<void>((co_await exchange->Send(Response::Text(200, "late"))).has_value());
}
Task<bool> Drained(Server* server, milliseconds grace) {
  co_await server->Drain(grace);
  co_return true;
}

// The clients' side of a drain: the idle one is closed, and then the busy one gets its answer.
Task<bool> WatchDrain(async::Event* event, std::unique_ptr<Channel> idle,
                      std::unique_ptr<Channel> busy, std::string* answer) {
  EXPECT_EQ(co_await ServerTest::ReadToEnd(idle.get()), "");
  event->Set();
  *answer = co_await ServerTest::ReadToEnd(busy.get());
  busy.reset();
  co_await event->loop().Sleep(std::chrono::hours(1));
  co_return false;
}

TEST_F(ServerTest, DrainLetsRunningExchangesFinishAndClosesTheRest) {
  async::Event event(loop_);
  Start([&event](Exchange* exchange) { return AnswerWhenSet(exchange, &event); });
  auto idle = Connect(), busy = Connect();
  Run(Put(busy.get(), kGet));
  EXPECT_TRUE(Eventually(
      [this] { return server_->stats().running == 1 && server_->stats().connections == 2; }));
  std::string answer;
  const auto drained =
      Run(async::FirstOf(&loop_, Drained(server_.get(), std::chrono::minutes(10)),
                         WatchDrain(&event, std::move(idle), std::move(busy), &answer)));
  EXPECT_EQ(drained.index(), 0U);
  EXPECT_EQ(BodyOf(answer), "late");
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(server_->draining());
  EXPECT_EQ(Talk(kGet), "") << "nobody listens any more";
}

Task<bool> DrainAndWait(Server* server, async::Loop* loop) {
  co_await server->Drain(milliseconds(1));
  co_await loop->Sleep(std::chrono::hours(1));
  co_return false;
}

TEST_F(ServerTest, ASecondDrainEndsSooner) {
  async::Event never(loop_);
  Start([&never](Exchange* exchange) { return AnswerWhenSet(exchange, &never); });
  const auto busy = Connect();
  Run(Put(busy.get(), kGet));
  EXPECT_TRUE(Eventually([this] { return server_->stats().running == 1; }));
  const auto drained = Run(async::FirstOf(&loop_, Drained(server_.get(), std::chrono::hours(1)),
                                          DrainAndWait(server_.get(), &loop_)));
  EXPECT_EQ(drained.index(), 0U);
  EXPECT_EQ(server_->stats().connections, 0U);
  EXPECT_EQ(Run(ReadToEnd(busy.get())), "");
}

TEST_F(ServerTest, DestroyingItEndsEverything) {
  async::Event never(loop_);
  Start([&never](Exchange* exchange) { return AnswerWhenSet(exchange, &never); });
  const auto busy = Connect(), idle = Connect();
  Run(Put(busy.get(), kGet));
  EXPECT_TRUE(Eventually(
      [this] { return server_->stats().running == 1 && server_->stats().connections == 2; }));
  server_.reset();
  EXPECT_EQ(Run(ReadToEnd(busy.get())) + Run(ReadToEnd(idle.get())), "");
}

// --- listening ----------------------------------------------------------------------------------

TEST_F(ServerTest, ListensOnAUnixSocketForItsOwnerAlone) {
  Request seen;
  Start([&seen](Exchange* exchange) {
    seen = exchange->request();
    return Hello(exchange);
  });
  const std::string path = ::testing::TempDir() + "net-" + std::to_string(getpid()) + ".sock";
  auto listening = server_->Listen({.address = "unix:" + path});
  ASSERT_TRUE(listening) << listening.error().message();
  EXPECT_EQ(listening->address, "unix:" + path);
  struct stat info{};
  ASSERT_EQ(lstat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const auto channel = ConnectTo(UnixAddress(path).value());
  EXPECT_EQ(BodyOf(Run(Talk(channel.get(), kGetAndClose))), "hello");
  ASSERT_TRUE(seen.peer.credentials);
  EXPECT_EQ(seen.peer.credentials->uid, getuid());
  EXPECT_EQ(seen.peer.credentials->pid, getpid());
  EXPECT_TRUE(seen.peer.loopback);
  EXPECT_EQ(seen.peer.listener, listening->number);

  Server other(loop_, {}, Hello);
  auto taken = other.Listen({.address = "unix:" + path});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), ErrorCode::kConflict);
  server_.reset();
  EXPECT_NE(lstat(path.c_str(), &info), 0) << "the socket's file goes with it";
}

TEST_F(ServerTest, ReplacesAStaleSocketButNoFile) {
  Start(Hello);
  const std::string path = ::testing::TempDir() + "stale-" + std::to_string(getpid()) + ".sock";
  {
    const SocketAddress address = UnixAddress(path).value();
    const Fd stale(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(stale.get(), reinterpret_cast<const sockaddr*>(address.bytes.data()),
                   static_cast<socklen_t>(address.bytes.size())),
              0);
  }
  EXPECT_TRUE(server_->Listen({.address = "unix:" + path}));
  const std::string file = path + ".txt";
  {
    const Fd made(open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
  auto refused = server_->Listen({.address = "unix:" + file});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kConflict);
  EXPECT_EQ(unlink(file.c_str()), 0) << "the file is still there";
}

TEST_F(ServerTest, RefusesAddressesThatAreNone) {
  Start(Hello);
  for (const char* address :
       {"", "80", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
        "1.2.3:80", "[::1:80", "unix:", "fd:", "fd:0", "fd:999999"}) {
    const auto listening = server_->Listen({.address = address});
    ASSERT_FALSE(listening) << address;
    EXPECT_EQ(listening.error().code(), ErrorCode::kInvalidArgument) << address;
  }
  const auto taken = server_->Listen({.address = "127.0.0.1:" + std::to_string(port_)});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), ErrorCode::kConflict);
}

}  // namespace
}  // namespace caisson::net
