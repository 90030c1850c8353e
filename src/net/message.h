// Request and Response: what a handler is given, and what it gives back. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "net/headers.h"

namespace caisson::net {

// Who is at the other end of a connection.
struct Peer {
  // Of a client on a unix socket, from the kernel (SO_PEERCRED).
  struct Credentials {
    uint32_t uid = 0;
    uint32_t gid = 0;
    int32_t pid = 0;
  };
  std::string address;    // "127.0.0.1", "::1", "unix"
  uint16_t port = 0;      // 0 on a unix socket
  bool loopback = false;  // this machine: 127.0.0.0/8, ::1 or a unix socket
  bool tls = false;
  std::optional<Credentials> credentials;
  size_t listener = 0;  // the number that Server::Listen gave

  std::string ToString() const;  // "127.0.0.1:4711", "[::1]:4711", "unix:uid=0"
};

struct Request {
  std::string method;  // a token, in the case it came
  std::string target;  // as sent, origin-form: "/a%20b?x=1"; "*" with OPTIONS alone
  std::string path;    // decoded, valid UTF-8, starts with '/', no control characters, no ".", ".."
  // The path's parts, decoded one by one: an encoded slash stays inside its part. "/a/b" gives
  // {"a", "b"}; "/" gives {""}; "/a/" gives {"a", ""}.
  std::vector<std::string> segments;
  // Decoded, in order, duplicates kept.
  std::vector<std::pair<std::string, std::string>> query;
  Headers headers;
  int minor_version = 1;  // HTTP/1.0 or HTTP/1.1
  Peer peer;

  // The first value of that name in the query, or nullptr.
  const std::string* QueryValue(std::string_view name) const;
  // The Host header (with port, as sent); empty on HTTP/1.0 without one.
  std::string_view host() const { return headers.Get("host"); }
};

// A status and headers; framing (Content-Length, Transfer-Encoding, Connection, Date) is not the
// handler's: a head that carries one of them, or a malformed field, is refused as kInternal.
struct ResponseHead {
  int status = 200;
  Headers headers;
  // Of a streamed body whose length is known; otherwise it is chunked.
  std::optional<uint64_t> content_length;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;

  static Response Text(int status, std::string text);
  static Response Json(int status, std::string json);
  static Response Html(int status, std::string html);
  static Response Empty(int status = 204);
  // RFC 9457: application/problem+json with the error's status, code, detail, remediation,
  // retryable and, if given, request_id. 503 and 429 carry Retry-After: 1.
  static Response Problem(const Error& error, std::string_view request_id = {});
  // The same with a status of the caller's choice (414, 431, …).
  static Response Problem(int status, const Error& error, std::string_view request_id = {});

  Response WithHeader(std::string name, std::string value) && {
    headers.Set(std::move(name), std::move(value));
    return std::move(*this);
  }
};

// "Not Found" for 404; empty when the status has no name here.
std::string_view ReasonOf(int status);

}  // namespace caisson::net
