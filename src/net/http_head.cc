#include "net/http_head.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "net/url.h"

namespace caisson::net {
namespace {

constexpr size_t kMaxMethod = 32;

HttpFault Fault(int status, std::string why) { return {status, std::move(why)}; }

// Takes the next line off `rest`, without its CR LF. The scanner has seen that it has one.
std::string_view TakeLine(std::string_view& rest) {
  const size_t end = rest.find("\r\n");
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
  return line;
}

std::optional<HttpFault> ParseHeaders(std::string_view rest, Headers& headers) {
  while (!rest.empty()) {
    const std::string_view line = TakeLine(rest);
    if (line.empty()) break;
    auto parsed = ParseHeaderLine(line);
    if (auto* fault = std::get_if<HttpFault>(&parsed)) return std::move(*fault);
    auto& header = std::get<Header>(parsed);
    headers.Add(std::move(header.name), std::move(header.value));
  }
  return std::nullopt;
}

std::optional<uint64_t> ParseLength(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  uint64_t length = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    length = length * 10 + static_cast<uint64_t>(c - '0');
  }
  return length;
}

// The framing that headers state; nothing when they state none.
std::variant<std::optional<Framing>, HttpFault> StatedFraming(const Headers& headers,
                                                              int minor_version) {
  const size_t lengths = headers.Count("content-length");
  const size_t encodings = headers.Count("transfer-encoding");
  if (lengths > 1) return Fault(400, "more than one Content-Length");
  if (encodings > 1) return Fault(400, "more than one Transfer-Encoding");
  if (lengths + encodings == 0) return std::optional<Framing>();
  if (encodings == 1) {
    if (lengths == 1) return Fault(400, "both Content-Length and Transfer-Encoding");
    if (minor_version == 0) return Fault(400, "Transfer-Encoding in HTTP/1.0");
    if (!EqualsIgnoringCase(headers.Get("transfer-encoding"), "chunked"))
      return Fault(501, "a Transfer-Encoding other than chunked");
    return std::optional(Framing{.kind = Framing::Kind::kChunked});
  }
  const auto length = ParseLength(headers.Get("content-length"));
  if (!length) return Fault(400, "the Content-Length is not a number of bytes");
  return std::optional(Framing{.kind = Framing::Kind::kLength, .length = *length});
}

bool KeepAlive(const Headers& headers, int minor_version) {
  if (headers.HasToken("connection", "close")) return false;
  return minor_version >= 1 || headers.HasToken("connection", "keep-alive");
}

std::optional<HttpFault> CheckHost(const Request& request) {
  const size_t hosts = request.headers.Count("host");
  if (hosts > 1) return Fault(400, "more than one Host");
  if (hosts == 0)
    return request.minor_version == 0 ? std::nullopt
                                      : std::optional(Fault(400, "HTTP/1.1 without a Host"));
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~!$&'()*+,;=:[]%").find(c) != std::string_view::npos;
  };
  if (!std::ranges::all_of(request.host(), allowed))
    return Fault(400, "the Host is not a host: " + Quoted(request.host()));
  return std::nullopt;
}

std::optional<HttpFault> ParseTarget(std::string_view target, Request& request) {
  request.target = target;
  if (request.method == "CONNECT") return Fault(405, "this server is no proxy: CONNECT is refused");
  if (target == "*" && request.method == "OPTIONS") {
    request.path = "*";
    return std::nullopt;
  }
  if (!target.starts_with('/'))
    return Fault(400, "the request target does not start with '/' (this server is no proxy)");
  if (!std::ranges::all_of(target, [](char c) { return c > 0x20 && c < 0x7f && c != '#'; }))
    return Fault(400, "the request target has a character that must be percent-encoded");
  const size_t question = std::min(target.find('?'), target.size());
  auto path = ParsePath(target.substr(0, question));
  if (!path) return Fault(400, path.error().message());
  request.path = std::move(path->text);
  request.segments = std::move(path->segments);
  if (question + 1 < target.size()) {
    auto query = ParseQuery(target.substr(question + 1));
    if (!query) return Fault(400, query.error().message());
    request.query = *std::move(query);
  }
  return std::nullopt;
}

std::optional<HttpFault> ParseRequestLine(std::string_view line, Request& request) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return Fault(400, "the request line is not METHOD TARGET HTTP/1.1");
  const std::string_view method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(method) || method.size() > kMaxMethod) return Fault(400, "not a method");
  request.method = method;
  if (version == "HTTP/1.1") {
    request.minor_version = 1;
  } else if (version == "HTTP/1.0") {
    request.minor_version = 0;
  } else {
    const bool other = version.size() == 8 && version.starts_with("HTTP/") && version[6] == '.';
    return other ? Fault(505, "this server speaks HTTP/1.1 and HTTP/1.0")
                 : Fault(400, "the request line does not end in HTTP/1.1");
  }
  return ParseTarget(line.substr(first + 1, last - first - 1), request);
}

}  // namespace

std::variant<Header, HttpFault> ParseHeaderLine(std::string_view line) {
  if (line.starts_with(' ') || line.starts_with('\t')) return Fault(400, "a folded header line");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return Fault(400, "a header line without a colon");
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = TrimBlanks(line.substr(colon + 1));
  if (!IsToken(name)) return Fault(400, "not a header name: " + Quoted(name));
  if (!IsFieldValue(value)) return Fault(400, "a control character in the header " + Quoted(name));
  return Header{std::string(name), std::string(value)};
}

HeadScanner::State HeadScanner::Fail(int status, std::string why) {
  fault_ = Fault(status, std::move(why));
  return State::kFault;
}

HeadScanner::State HeadScanner::Scan(std::string_view buffer, const HeadLimits& limits) {
  while (true) {
    const size_t feed = buffer.find('\n', scanned_);
    const size_t seen = feed == std::string_view::npos ? buffer.size() : feed + 1;
    if (lines_ == 0 && seen - line_start_ > limits.max_first_line)
      return Fail(414, "the first line is too long");
    if (seen > limits.max_bytes) return Fail(431, "the headers are too long");
    scanned_ = seen;
    if (feed == std::string_view::npos) return State::kMore;
    if (feed == line_start_ || buffer[feed - 1] != '\r')
      return Fail(400, "a line that does not end in CR LF");
    const bool empty = feed - 1 == line_start_;
    line_start_ = feed + 1;
    if (empty) {
      if (lines_ == 0) return Fail(400, "an empty line where the first line should be");
      return State::kDone;
    }
    if (++lines_ > limits.max_headers + 1) return Fail(431, "too many headers");
  }
}

std::variant<RequestHead, HttpFault> ParseRequestHead(std::string_view head) {
  RequestHead result;
  Request& request = result.request;
  if (auto fault = ParseRequestLine(TakeLine(head), request)) return *std::move(fault);
  if (auto fault = ParseHeaders(head, request.headers)) return *std::move(fault);
  if (auto fault = CheckHost(request)) return *std::move(fault);
  auto framing = StatedFraming(request.headers, request.minor_version);
  if (auto* fault = std::get_if<HttpFault>(&framing)) return std::move(*fault);
  result.framing = std::get<0>(framing).value_or(Framing{});
  if (result.framing.kind == Framing::Kind::kLength && result.framing.length == 0)
    result.framing.kind = Framing::Kind::kNone;
  result.keep_alive = KeepAlive(request.headers, request.minor_version);
  if (const std::string* expect = request.headers.Find("expect")) {
    if (!EqualsIgnoringCase(*expect, "100-continue"))
      return Fault(417, "an expectation other than 100-continue");
    result.expects_continue =
        request.minor_version >= 1 && result.framing.kind != Framing::Kind::kNone;
  }
  return result;
}

std::variant<ReplyHead, HttpFault> ParseReplyHead(std::string_view head, std::string_view method) {
  ReplyHead reply;
  const std::string_view line = TakeLine(head);
  const bool shaped = line.size() >= 12 && line.starts_with("HTTP/1.") &&
                      (line[7] == '0' || line[7] == '1') && line[8] == ' ' &&
                      (line.size() == 12 || line[12] == ' ');
  if (!shaped || !IsFieldValue(line)) return Fault(502, "not a status line: " + Quoted(line));
  for (const char c : line.substr(9, 3)) {
    if (c < '0' || c > '9') return Fault(502, "not a status: " + Quoted(line));
    reply.status = reply.status * 10 + (c - '0');
  }
  if (reply.status < 100) return Fault(502, "not a status: " + Quoted(line));
  if (auto fault = ParseHeaders(head, reply.headers)) return *std::move(fault);
  const int minor_version = line[7] - '0';
  auto framing = StatedFraming(reply.headers, minor_version);
  if (auto* fault = std::get_if<HttpFault>(&framing)) return std::move(*fault);
  reply.keep_alive = KeepAlive(reply.headers, minor_version);
  const bool bodiless =
      reply.status < 200 || reply.status == 204 || reply.status == 304 || method == "HEAD";
  if (bodiless) return reply;
  reply.framing = std::get<0>(framing).value_or(Framing{.kind = Framing::Kind::kUntilClose});
  if (reply.framing.kind == Framing::Kind::kUntilClose) reply.keep_alive = false;
  return reply;
}

}  // namespace caisson::net
