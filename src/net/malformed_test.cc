// Requests that must not be served: each gets the status that says why, and the connection ends.
#include <string>
#include <vector>

#include "net/test_net.h"

namespace caisson::net {
namespace {

using namespace std::string_literals;

struct Case {
  std::string name;
  std::string bytes;
  int status;
};

std::string Get(std::string_view headers) {
  return "GET / HTTP/1.1\r\nHost: x\r\n" + std::string(headers) + "\r\n";
}
std::string Post(std::string_view headers, std::string_view body) {
  return "POST / HTTP/1.1\r\nHost: x\r\n" + std::string(headers) + "\r\n" + std::string(body);
}
std::string Chunked(std::string_view body) { return Post("Transfer-Encoding: chunked\r\n", body); }
std::string Target(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n\r\n";
}
std::string Repeat(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::vector<Case> Cases() {
  return {
      // request line
      {"empty line first", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"bare line feeds", "GET / HTTP/1.1\nHost: x\n\n", 400},
      {"bare line feed after the request line", "GET / HTTP/1.1\nHost: x\r\n\r\n", 400},
      {"bare line feed after a header", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", 400},
      {"bare line feed as the empty line", "GET / HTTP/1.1\r\nHost: x\r\n\n", 400},
      {"bare carriage return in the request line", "GET /\rx HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"only a carriage return before the version", "GET /\rHTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"no version", "GET /\r\nHost: x\r\n\r\n", 400},
      {"no target", "GET HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"empty target", "GET  HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"only a method", "GET\r\n\r\n", 400},
      {"space first", " GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"two spaces after the method", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"tab after the method", "GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"two spaces before the version", "GET /  HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"space after the version", "GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400},
      {"space in the target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"method with a slash", "GE/T / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"method with a colon", "G:T / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"method too long", Repeat("A", 33) + " / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"NUL in the method", "G\0T / HTTP/1.1\r\nHost: x\r\n\r\n"s, 400},
      {"lower case version", "GET / http/1.1\r\nHost: x\r\n\r\n", 400},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505},
      {"HTTP/2.0", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
      {"HTTP/0.9", "GET / HTTP/0.9\r\nHost: x\r\n\r\n", 505},
      {"HTTP/11.1", "GET / HTTP/11.1\r\nHost: x\r\n\r\n", 400},
      {"HTTP/1.", "GET / HTTP/1.\r\nHost: x\r\n\r\n", 400},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"TLS on a plain port", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x0a\x0a\n"s, 400},
      {"binary", "\x00\x01\x02\x03\n"s, 400},
      // target
      {"absolute form", Target("http://x/"), 400},
      {"absolute form of another host", Target("http://evil/"), 400},
      {"authority form", Target("x:80"), 400},
      {"CONNECT", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 405},
      {"CONNECT with a path", "CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n", 405},
      {"asterisk with GET", Target("*"), 400},
      {"relative path", Target("a"), 400},
      {"query alone", Target("?a"), 400},
      {"fragment", Target("/#a"), 400},
      {"raw UTF-8", Target("/\xc3\xa4"), 400},
      {"DEL in the target", Target("/\x7f"), 400},
      {"percent alone", Target("/%"), 400},
      {"percent and one digit", Target("/%4"), 400},
      {"percent and no digits", Target("/%zz"), 400},
      {"percent in the query", Target("/?a=%g0"), 400},
      {"encoded NUL", Target("/%00"), 400},
      {"encoded line feed", Target("/a%0ab"), 400},
      {"encoded NUL in the query", Target("/?a=%00"), 400},
      {"not UTF-8", Target("/%ff"), 400},
      {"overlong UTF-8", Target("/%c0%af"), 400},
      {"query not UTF-8", Target("/?a=%ff"), 400},
      {"dot dot", Target("/../etc/passwd"), 400},
      {"dot dot inside", Target("/a/../b"), 400},
      {"dot dot at the end", Target("/a/.."), 400},
      {"encoded dots", Target("/%2e%2e/etc/passwd"), 400},
      {"encoded slash and dots", Target("/a%2f..%2fb"), 400},
      {"dot", Target("/./a"), 400},
      {"target too long", Target("/" + Repeat("a", 9000)), 414},
      {"target that never ends", "GET /" + Repeat("a", 9000), 414},
      {"too many query parts", Target("/?" + Repeat("a&", 300)), 400},
      // headers
      {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", Get("Host: y\r\n"), 400},
      {"Host with a path", "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n", 400},
      {"Host with a user", "GET / HTTP/1.1\r\nHost: a@x\r\n\r\n", 400},
      {"Host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"space before the colon", Get("A : b\r\n"), 400},
      {"tab before the colon", Get("A\t: b\r\n"), 400},
      {"no colon", Get("Abc\r\n"), 400},
      {"empty name", Get(": b\r\n"), 400},
      {"folded header", Get("A: b\r\n c\r\n"), 400},
      {"folded with a tab", Get("A: b\r\n\tc\r\n"), 400},
      {"folded first header", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400},
      {"NUL in a value", Get("A: b\0c\r\n"s), 400},
      {"NUL in a name", Get("A\0: b\r\n"s), 400},
      {"control character in a value", Get("A: \x01\r\n"), 400},
      {"DEL in a value", Get("A: \x7f\r\n"), 400},
      {"carriage return in a value", Get("A: b\rc\r\n"), 400},
      {"carriage return in a name", Get("A\rB: c\r\n"), 400},
      {"two carriage returns", Get("A: b\r\r\n"), 400},
      {"UTF-8 in a name", Get("\xc3\xa4: b\r\n"), 400},
      {"brackets in a name", Get("A[b]: c\r\n"), 400},
      {"too many headers", Get(Repeat("A: b\r\n", 200)), 431},
      {"headers too long", Get("A: " + Repeat("b", 40000) + "\r\n"), 431},
      {"header that never ends", "GET / HTTP/1.1\r\nHost: x\r\nA: " + Repeat("b", 40000), 431},
      {"unknown expectation", Post("Expect: 200-ok\r\nContent-Length: 1\r\n", "a"), 417},
      // lengths
      {"both lengths", Post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
       400},
      {"both lengths, other order",
       Post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n"), 400},
      {"two lengths", Post("Content-Length: 1\r\nContent-Length: 2\r\n", "ab"), 400},
      {"the same length twice", Post("Content-Length: 1\r\nContent-Length: 1\r\n", "a"), 400},
      {"list of lengths", Post("Content-Length: 1, 1\r\n", "a"), 400},
      {"negative length", Post("Content-Length: -1\r\n", ""), 400},
      {"signed length", Post("Content-Length: +1\r\n", "a"), 400},
      {"hexadecimal length", Post("Content-Length: 0x1\r\n", "a"), 400},
      {"empty length", Post("Content-Length: \r\n", ""), 400},
      {"length with a space in it", Post("Content-Length: 1 1\r\n", "a"), 400},
      {"length that overflows", Post("Content-Length: 18446744073709551617\r\n", "a"), 400},
      {"chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {"gzip", Post("Transfer-Encoding: gzip\r\n", ""), 501},
      {"gzip, chunked", Post("Transfer-Encoding: gzip, chunked\r\n", ""), 501},
      {"chunked twice", Post("Transfer-Encoding: chunked, chunked\r\n", ""), 501},
      {"chunked in two lines",
       Post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", ""), 400},
      {"identity", Post("Transfer-Encoding: identity\r\n", ""), 501},
      {"xchunked", Post("Transfer-Encoding: xchunked\r\n", ""), 501},
      {"chunked with a vertical tab",
       Post("Transfer-Encoding: \x0b"
            "chunked\r\n",
            ""),
       400},
      // chunks: the handler reads the body and answers its error
      {"chunk size is no number", Chunked("z\r\n"), 400},
      {"chunk size missing", Chunked("\r\n"), 400},
      {"chunk size negative", Chunked("-1\r\n"), 400},
      {"chunk size with 0x", Chunked("0x1\r\na\r\n0\r\n\r\n"), 400},
      {"chunk size with a blank", Chunked("1 \r\na\r\n0\r\n\r\n"), 400},
      {"chunk size too large", Chunked("ffffffffffffffff\r\na"), 400},
      {"chunk size that overflows", Chunked("10000000000000001\r\na\r\n0\r\n\r\n"), 400},
      {"chunk size line that never ends", Chunked("1;" + Repeat("a", 300)), 400},
      {"chunk size ends in a line feed", Chunked("1\na\r\n0\r\n\r\n"), 400},
      {"chunk longer than its size", Chunked("1\r\nab\r\n0\r\n\r\n"), 400},
      {"chunk ends in a line feed", Chunked("1\r\na\n0\r\n\r\n"), 400},
      {"control character in an extension", Chunked("1;\x01\r\na\r\n0\r\n\r\n"), 400},
      {"malformed trailer", Chunked("0\r\nA b\r\n\r\n"), 400},
      {"folded trailer", Chunked("0\r\nA: b\r\n c\r\n\r\n"), 400},
      {"trailer too long", Chunked("0\r\n" + Repeat("A: b\r\n", 3000) + "\r\n"), 400},
      {"body over the limit", Post("Content-Length: 2000000\r\n", ""), 413},
  };
}

Task<void> ReadAndAnswer(Exchange* exchange) {
  auto body = co_await exchange->body().ReadAll((1 << 20) - 1);
  Response response =
      body ? Response::Text(200, *std::move(body)) : Response::Problem(body.error());
  static_cast<void>((co_await exchange->Send(std::move(response))).has_value());
}

class Malformed : public NetTest {};

TEST_F(Malformed, EachIsRefusedWithItsStatusAndTheConnectionCloses) {
  Start(ReadAndAnswer);
  const std::vector<Case> cases = Cases();
  EXPECT_GE(cases.size(), 80U);
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    // What follows must not be taken for another request.
    const std::string answer = Talk(one.bytes + "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(StatusOf(answer), one.status) << one.name << ": " << answer;
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << one.name;
    EXPECT_NE(answer.find("application/problem+json"), std::string::npos) << one.name;
    const size_t length = answer.find("\r\nContent-Length: ");
    EXPECT_EQ(answer.find("\r\nContent-Length: ", length + 1), std::string::npos)
        << one.name << ": a second answer: " << answer;
  }
  EXPECT_EQ(StatusOf(Talk("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")), 200);
}

TEST_F(Malformed, WhatLooksOddButIsLegalIsServed) {
  Start(ReadAndAnswer);
  const std::string close = "Connection: close\r\n";
  for (const std::string& bytes : {
           Get(close + "A:b\r\nB:\r\nC: \t d \t\r\nD: \xc3\xa4\r\n"),
           "OPTIONS * HTTP/1.1\r\nHost: x\r\n" + close + "\r\n",
           "GET //a//b/ HTTP/1.1\r\nHost: x\r\n" + close + "\r\n",
           "GET /%2e%2e%2e HTTP/1.1\r\nHost: [::1]:80\r\n" + close + "\r\n",
           "GET / HTTP/1.0\r\n\r\n"s,
           "WHATEVER /?%3d&&a=b=c& HTTP/1.1\r\nHost:\r\n" + close + "\r\n",
           Post(close + "Content-Length: 0\r\n", ""),
           Post(close + "Transfer-Encoding: Chunked\r\n",
                "1;x=\"y\"\r\na\r\n0001\r\nb\r\n0\r\nA: b\r\n\r\n"),
       }) {
    EXPECT_EQ(StatusOf(Talk(bytes)), 200) << bytes;
  }
}

TEST_F(Malformed, ChunksOverTheLimitGet413) {
  Start(ReadAndAnswer);
  const std::string chunk = "10000\r\n" + Repeat("a", 0x10000) + "\r\n";
  EXPECT_EQ(StatusOf(Talk(Post("Connection: close\r\nTransfer-Encoding: chunked\r\n",
                               Repeat(chunk, 17) + "0\r\n\r\n"))),
            413);
}

TEST_F(Malformed, ARequestCutShortGetsNoAnswerAndTheServerGoesOn) {
  Start(ReadAndAnswer);
  const std::string whole = Post("Content-Length: 5\r\n", "hello");
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto channel = Connect();
    Run(Put(channel.get(), whole.substr(0, size)));
    channel->FinishWriting();
    const std::string answer = Run(ReadToEnd(channel.get()));
    EXPECT_TRUE(answer.empty() || StatusOf(answer) == 499) << size << ": " << answer;
  }
  EXPECT_TRUE(Eventually([this] { return server_->stats().connections == 0; }));
}

}  // namespace
}  // namespace caisson::net
