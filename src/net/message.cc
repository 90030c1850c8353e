#include "net/message.h"

#include "base/text.h"
#include "base/utf8.h"

namespace caisson::net {
namespace {

// `text` as a JSON string, quotes included.
std::string JsonString(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : ToUtf8(text)) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

Response WithType(int status, std::string_view type, std::string body) {
  return {status, {{"Content-Type", std::string(type)}}, std::move(body)};
}

}  // namespace

std::string Peer::ToString() const {
  if (credentials) return "unix:uid=" + std::to_string(credentials->uid);
  if (port == 0) return address;
  const bool v6 = address.find(':') != std::string::npos;
  return Concat({v6 ? "[" : "", address, v6 ? "]:" : ":", std::to_string(port)});
}

const std::string* Request::QueryValue(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name) return &value;
  return nullptr;
}

Response Response::Text(int status, std::string text) {
  return WithType(status, "text/plain; charset=utf-8", std::move(text));
}
Response Response::Json(int status, std::string json) {
  return WithType(status, "application/json", std::move(json));
}
Response Response::Html(int status, std::string html) {
  return WithType(status, "text/html; charset=utf-8", std::move(html));
}
Response Response::Empty(int status) { return {status, {}, {}}; }

Response Response::Problem(const Error& error, std::string_view request_id) {
  return Problem(InfoOf(error.code()).http_status, error, request_id);
}

Response Response::Problem(int status, const Error& error, std::string_view request_id) {
  std::string body =
      Concat({R"({"type":"about:blank","title":)", JsonString(ReasonOf(status)), R"(,"status":)",
              std::to_string(status), R"(,"code":)", JsonString(error.name()), R"(,"detail":)",
              JsonString(error.message())});
  if (!error.remedy().empty()) body += R"(,"remediation":)" + JsonString(error.remedy());
  body += InfoOf(error.code()).retryable ? R"(,"retryable":true)" : R"(,"retryable":false)";
  if (!request_id.empty()) body += R"(,"request_id":)" + JsonString(request_id);
  body += '}';
  Response response = WithType(status, "application/problem+json", std::move(body));
  if (status == 503 || status == 429) response.headers.Add("Retry-After", "1");
  return response;
}

std::string_view ReasonOf(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 423:
      return "Locked";
    case 426:
      return "Upgrade Required";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "";
  }
}

}  // namespace caisson::net
