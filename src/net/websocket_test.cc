#include "net/websocket.h"

#include <array>
#include <optional>
#include <vector>

#include "net/client.h"
#include "net/test_net.h"
#include "net/websocket_frames.h"
#include "net/websocket_handshake.h"

namespace caisson::net {
namespace {

using namespace std::string_literals;
using Step = MessageAssembler::Step;

constexpr std::array<uint8_t, 4> kMask = {1, 2, 3, 4};

// A client's frame, however wrong: the first byte, the payload.
std::string Frame(uint8_t first, std::string payload) {
  std::string frame = MaskedFrameHead(Opcode::kText, payload.size(), kMask);
  frame[0] = static_cast<char>(first);
  ApplyMask(kMask, 0, payload.data(), payload.size());
  return frame + payload;
}
constexpr uint8_t kFin = 0x80;

TEST(WebSocketFrames, AcceptFollowsTheRfc) {
  EXPECT_EQ(AcceptFor("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocketFrames, MessagesOfEverySizeComeBackInPieces) {
  for (const size_t size : {0UL, 1UL, 125UL, 126UL, 127UL, 65535UL, 65536UL, 70000UL}) {
    const std::string payload(size, 'x');
    const std::string frame = Frame(kFin | 2, payload);
    for (const size_t piece : {1UL, 7UL, frame.size()}) {
      MessageAssembler assembler(WebSocketRole::kServer, 1 << 20);
      std::string buffer;
      Step step;
      for (size_t at = 0; at < frame.size() && step.kind == Step::Kind::kMore; at += piece) {
        buffer += frame.substr(at, piece);
        step = assembler.Next(buffer);
        buffer.erase(0, step.consumed);
      }
      ASSERT_EQ(step.kind, Step::Kind::kBinary) << size << " in pieces of " << piece;
      EXPECT_EQ(step.data, payload);
      EXPECT_EQ(buffer, "");
    }
  }
}

struct Case {
  std::string name;
  std::string bytes;
  std::vector<Step::Kind> kinds;
  uint16_t code = 0;
};

// After the cases of the Autobahn test suite.
std::vector<Case> Cases() {
  using enum Step::Kind;
  const std::string close1000 = "\x03\xe8"s;
  return {
      {"1.1 text", Frame(kFin | 1, "hi"), {kText}},
      {"1.1 empty text", Frame(kFin | 1, ""), {kText}},
      {"1.2 binary", Frame(kFin | 2, "\xff\xfe"), {kBinary}},
      {"2.1 ping", Frame(kFin | 9, ""), {kPing}},
      {"2.4 ping of 125", Frame(kFin | 9, std::string(125, 'x')), {kPing}},
      {"2.5 ping of 126", Frame(kFin | 9, std::string(126, 'x')), {kFault}, 1002},
      {"2.7 unasked pong", Frame(kFin | 10, "x"), {kPong}},
      {"2.10 pings in a row", Frame(kFin | 9, "a") + Frame(kFin | 9, "b"), {kPing, kPing}},
      {"3.1 reserved bit 1", Frame(kFin | 0x40 | 1, "x"), {kFault}, 1002},
      {"3.2 reserved bit 2", Frame(kFin | 0x20 | 1, "x"), {kFault}, 1002},
      {"3.3 reserved bit 3", Frame(kFin | 0x10 | 9, "x"), {kFault}, 1002},
      {"3.4 after good text",
       Frame(kFin | 1, "a") + Frame(kFin | 0x40 | 1, "x"),
       {kText, kFault},
       1002},
      {"4.1.1 opcode 3", Frame(kFin | 3, ""), {kFault}, 1002},
      {"4.1.5 opcode 7", Frame(kFin | 7, "x"), {kFault}, 1002},
      {"4.2.1 opcode 11", Frame(kFin | 11, ""), {kFault}, 1002},
      {"4.2.5 opcode 15", Frame(kFin | 15, "x"), {kFault}, 1002},
      {"5.1 fragmented ping", Frame(9, "a") + Frame(kFin | 0, "b"), {kFault}, 1002},
      {"5.2 fragmented pong", Frame(10, "a"), {kFault}, 1002},
      {"5.3 two fragments", Frame(1, "a") + Frame(kFin | 0, "b"), {kText}},
      {"5.6 ping between fragments",
       Frame(1, "a") + Frame(kFin | 9, "p") + Frame(kFin | 0, "b"),
       {kPing, kText}},
      {"5.9 continuation of nothing", Frame(kFin | 0, "a"), {kFault}, 1002},
      {"5.10 unfinished continuation of nothing", Frame(0, "a"), {kFault}, 1002},
      {"5.15 continuation after the end",
       Frame(1, "a") + Frame(kFin | 0, "b") + Frame(0, "c"),
       {kText, kFault},
       1002},
      {"5.18 message inside a message", Frame(1, "a") + Frame(kFin | 1, "b"), {kFault}, 1002},
      {"5.19 many fragments",
       Frame(2, "a") + Frame(0, "") + Frame(0, "b") + Frame(kFin | 0, ""),
       {kBinary}},
      {"6.1 empty fragments", Frame(1, "") + Frame(0, "") + Frame(kFin | 0, ""), {kText}},
      {"6.2 character over fragments", Frame(1, "\xce") + Frame(kFin | 0, "\xba"), {kText}},
      {"6.3 not UTF-8", Frame(kFin | 1, "\xce\xba\xe1\xbd\xb9\xed\xa0\x80"), {kFault}, 1007},
      {"6.4 not UTF-8 over fragments",
       Frame(1, "\xf4") + Frame(kFin | 0, "\x90\x80\x80"),
       {kFault},
       1007},
      {"6.6 cut inside a character", Frame(kFin | 1, "\xce"), {kFault}, 1007},
      {"6.10 overlong", Frame(kFin | 1, "\xc0\xaf"), {kFault}, 1007},
      {"6.12 five bytes", Frame(kFin | 1, "\xf8\x88\x80\x80\x80"), {kFault}, 1007},
      {"6.14 lone continuation", Frame(kFin | 1, "\x80"), {kFault}, 1007},
      {"6.20 surrogate", Frame(kFin | 1, "\xed\xbf\xbf"), {kFault}, 1007},
      {"6.22 noncharacter", Frame(kFin | 1, "\xef\xbf\xbf"), {kText}},
      {"7.1 close", Frame(kFin | 8, close1000), {kClose}, 1000},
      {"7.3.1 close without a code", Frame(kFin | 8, ""), {kClose}, 1005},
      {"7.3.2 half a code", Frame(kFin | 8, "\x03"), {kFault}, 1002},
      {"7.3.4 close with a reason", Frame(kFin | 8, close1000 + "bye"), {kClose}, 1000},
      {"7.3.5 reason of 123", Frame(kFin | 8, close1000 + std::string(123, 'x')), {kClose}, 1000},
      {"7.3.6 reason of 124", Frame(kFin | 8, close1000 + std::string(124, 'x')), {kFault}, 1002},
      {"7.5.1 reason not UTF-8", Frame(kFin | 8, close1000 + "\xff"), {kFault}, 1007},
      {"7.7.9 code 3000", Frame(kFin | 8, "\x0b\xb8"), {kClose}, 3000},
      {"7.7.13 code 4999", Frame(kFin | 8, "\x13\x87"), {kClose}, 4999},
      {"7.9.1 code 0", Frame(kFin | 8, "\0\0"s), {kFault}, 1002},
      {"7.9.2 code 999", Frame(kFin | 8, "\x03\xe7"), {kFault}, 1002},
      {"7.9.3 code 1004", Frame(kFin | 8, "\x03\xec"), {kFault}, 1002},
      {"7.9.4 code 1005", Frame(kFin | 8, "\x03\xed"), {kFault}, 1002},
      {"7.9.5 code 1006", Frame(kFin | 8, "\x03\xee"), {kFault}, 1002},
      {"7.9.9 code 2999", Frame(kFin | 8, "\x0b\xb7"), {kFault}, 1002},
      {"7.13.2 code 65535", Frame(kFin | 8, "\xff\xff"), {kFault}, 1002},
      {"fragmented close", Frame(8, ""), {kFault}, 1002},
      {"not masked", FrameHead(Opcode::kText, 1) + "x", {kFault}, 1002},
      {"length 5 in 16 bits", "\x81\xfe\0\x05"s, {kFault}, 1002},
      {"length 5 in 64 bits", "\x81\xff\0\0\0\0\0\0\0\x05"s, {kFault}, 1002},
      {"length with the top bit", "\x82\xff\x80\0\0\0\0\0\0\0"s + "\1\2\3\4", {kFault}, 1002},
      {"largest length", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"s + "\1\2\3\4", {kFault}, 1009},
      {"too large", Frame(kFin | 2, std::string(1001, 'x')), {kFault}, 1009},
      {"as large as may be", Frame(kFin | 2, std::string(1000, 'x')), {kBinary}},
      {"fragments too large",
       Frame(2, std::string(600, 'x')) + Frame(0, std::string(401, 'x')),
       {kFault},
       1009},
  };
}

TEST(WebSocketFrames, TheTableOfCases) {
  for (const Case& one : Cases()) {
    for (const size_t piece : {size_t{1}, one.bytes.size()}) {
      MessageAssembler assembler(WebSocketRole::kServer, 1000);
      std::vector<Step::Kind> kinds;
      uint16_t code = 0;
      std::string buffer;
      for (size_t at = 0; at < one.bytes.size() && code == 0; at += piece) {
        buffer += one.bytes.substr(at, piece);
        while (true) {
          const Step step = assembler.Next(buffer);
          buffer.erase(0, step.consumed);
          if (step.kind == Step::Kind::kMore) break;
          kinds.push_back(step.kind);
          code = step.code;
          if (code != 0) break;
        }
      }
      EXPECT_EQ(kinds, one.kinds) << one.name << " in pieces of " << piece;
      EXPECT_EQ(code, one.code) << one.name;
    }
  }
}

TEST(WebSocketFrames, AClientRefusesMaskedFrames) {
  MessageAssembler assembler(WebSocketRole::kClient, 1000);
  EXPECT_EQ(assembler.Next(Frame(kFin | 1, "x")).code, 1002);
}

TEST(WebSocketFrames, ACloseReasonIsCutBetweenCharacters) {
  std::string reason;
  while (reason.size() < 200) reason += "\xe2\x82\xac";
  const std::string payload = ClosePayload(1000, reason);
  EXPECT_LE(payload.size(), 125U);
  EXPECT_EQ((payload.size() - 2) % 3, 0U);
}

// --- over a connection --------------------------------------------------------------------------

struct Seen {
  std::vector<std::string> messages;
  std::optional<Error> end;
  uint16_t close_code = 0;
};
Task<void> Echo(Exchange* exchange, Seen* seen) {
  auto socket = co_await exchange->Upgrade({.subprotocols = {"v2", "v1"}, .max_message = 100'000});
  if (!socket) {
    static_cast<void>((co_await exchange->Send(Response::Problem(socket.error()))).has_value());
    co_return;
  }
  while (true) {
    auto message = co_await (*socket)->Receive();
    if (!message) {
      seen->end = message.error();
      co_return;
    }
    seen->messages.push_back(message->data);
    seen->close_code = message->close_code;
    if (message->kind == WsMessage::Kind::kText)
      static_cast<void>((co_await (*socket)->SendText(std::move(message->data))).has_value());
    if (message->kind == WsMessage::Kind::kBinary)
      static_cast<void>((co_await (*socket)->SendBinary(std::move(message->data))).has_value());
  }
}

class WebSocketTest : public NetTest {
 protected:
  void SetUp() override {
    Start([this](Exchange* exchange) { return Echo(exchange, &seen_); });
    client_ =
        std::make_unique<Client>(loop_, Url{.host = "127.0.0.1", .port = port_}, ClientOptions{});
  }
  static std::string Handshake(std::string_view headers) {
    return "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
           std::string(headers) + "\r\n";
  }
  Seen seen_;
  std::unique_ptr<Client> client_;
};

TEST_F(WebSocketTest, EchoesMessagesAndCloses) {
  auto socket = Run(client_->OpenWebSocket("/", {}, {.subprotocols = {"v1", "v2"}}));
  ASSERT_TRUE(socket) << socket.error().message();
  EXPECT_EQ((*socket)->subprotocol(), "v2") << "the server's preference";
  EXPECT_TRUE(Run((*socket)->Ping("are you there")));
  EXPECT_TRUE(Run((*socket)->SendText("h\xc3\xa4llo")));
  EXPECT_EQ(Run((*socket)->Receive())->data, "h\xc3\xa4llo");
  const std::string large(99'999, '\xff');
  EXPECT_TRUE(Run((*socket)->SendBinary(large)));
  const auto answer = Run((*socket)->Receive());
  EXPECT_EQ(answer->kind, WsMessage::Kind::kBinary);
  EXPECT_EQ(answer->data, large);
  EXPECT_FALSE(Run((*socket)->SendText("\xff")));
  EXPECT_TRUE(Run((*socket)->Close(4000, "enough")));
  const auto close = Run((*socket)->Receive());
  ASSERT_TRUE(close);
  EXPECT_EQ(close->kind, WsMessage::Kind::kClose);
  EXPECT_EQ(close->close_code, 4000);
  EXPECT_EQ(Run((*socket)->Receive()).error().code(), ErrorCode::kGone);
  EXPECT_EQ(Run((*socket)->SendText("late")).error().code(), ErrorCode::kGone);
  EXPECT_EQ(seen_.close_code, 4000);
  EXPECT_EQ(seen_.messages.back(), "enough");
}

TEST_F(WebSocketTest, SpeaksAsTheRfcShows) {
  const auto channel = Connect();
  // Sent ahead of the answer: it waits.
  Run(Put(channel.get(), Handshake("Sec-WebSocket-Protocol: a, v1\r\n") + Frame(kFin | 9, "p") +
                             Frame(kFin | 1, "hi")));
  const std::string head = Run(ReadTo(channel.get(), "\r\n\r\n"));
  EXPECT_EQ(StatusOf(head), 101);
  EXPECT_NE(head.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), std::string::npos);
  EXPECT_NE(head.find("Sec-WebSocket-Protocol: v1\r\n"), std::string::npos);
  EXPECT_EQ(Run(ReadTo(channel.get(), "hi")), "\x8a\x01p\x81\x02hi");
  EXPECT_EQ(Run(Talk(channel.get(), Frame(kFin | 8, "\x03\xe8"))), "\x88\x02\x03\xe8");
}

TEST_F(WebSocketTest, AbuseIsAnsweredWithTheCloseCodeForIt) {
  const std::vector<std::pair<std::string, std::string>> abuses = {
      {Frame(kFin | 3, ""), "\x03\xea"},
      {Frame(kFin | 1, "\xff"), "\x03\xef"},
      {Frame(kFin | 2, std::string(100'001, 'x')), "\x03\xf1"},
      {FrameHead(Opcode::kText, 1) + "x", "\x03\xea"}};
  for (const auto& [bytes, code] : abuses) {
    auto channel = Connect();
    Run(Put(channel.get(), Handshake("")));
    Run(ReadTo(channel.get(), "\r\n\r\n"));
    const std::string answer = Run(Talk(channel.get(), bytes));
    ASSERT_GE(answer.size(), 4U);
    EXPECT_EQ(answer[0], '\x88');
    EXPECT_EQ(answer.substr(2, 2), code);
    channel.reset();
    EXPECT_TRUE(Eventually([this] { return server_->stats().connections == 0; }));
    EXPECT_EQ(seen_.end->code(), ErrorCode::kProtocol);
  }
}

TEST_F(WebSocketTest, AClientThatGoesIsNoticed) {
  auto channel = Connect();
  Run(Put(channel.get(), Handshake("") + Frame(1, "unfinished")));
  Run(ReadTo(channel.get(), "\r\n\r\n"));
  channel.reset();
  EXPECT_TRUE(Eventually([this] { return server_->stats().connections == 0; }));
  EXPECT_EQ(seen_.end->code(), ErrorCode::kGone);
}

TEST_F(WebSocketTest, WhatIsNoProperHandshakeIsRefused) {
  const std::string good = Handshake("Connection: close\r\n");
  const auto without = [&good](std::string_view part, std::string_view instead) {
    std::string bytes = good;
    bytes.replace(bytes.find(part), part.size(), instead);
    return bytes;
  };
  for (const std::string& bytes :
       {without("GET", "POST"), without("HTTP/1.1", "HTTP/1.0"),
        without("Upgrade: websocket", "Upgrade: h2c"),
        without("Connection: Upgrade", "Connection: x"), without("Version: 13", "Version: 8"),
        without("dGhlIHNhbXBsZSBub25jZQ==", "short"),
        without("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZ!=="),
        without("Sec-WebSocket-Key", "X-Key")}) {
    EXPECT_EQ(StatusOf(Talk(bytes)), 400) << bytes;
  }
}

TEST_F(WebSocketTest, TheClientRefusesAWrongAnswer) {
  const auto refused =
      Run(client_->OpenWebSocket("/", {}, {.headers = {{"Sec-WebSocket-Version", "8"}}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kProtocol);
  EXPECT_NE(refused.error().message().find("400"), std::string::npos);
}

}  // namespace
}  // namespace caisson::net
