// The heads of HTTP/1.x messages: where they end, and what they say. Pure functions over bytes.
//
// Strict: lines end in CR LF; nothing is folded; a message has one length or none. What a lenient
// neighbour might read otherwise is refused (RFC 9112 §2.2, §5, §6, §11).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "net/message.h"

namespace caisson::net {

struct HeadLimits {
  size_t max_first_line = 8192;
  size_t max_bytes = 32768;  // all of it, the empty line included
  size_t max_headers = 100;
};

// Why a message cannot be served, and the status that says so.
struct HttpFault {
  int status = 400;
  std::string why;
};

// Finds the end of a head that arrives in pieces; looks at every byte once.
class HeadScanner {
 public:
  enum class State { kMore, kDone, kFault };
  // `buffer` holds what has arrived of the head, from its start; it only ever grows.
  State Scan(std::string_view buffer, const HeadLimits& limits);
  size_t size() const { return scanned_; }  // kDone: of the head
  const HttpFault& fault() const { return fault_; }

 private:
  State Fail(int status, std::string why);

  size_t scanned_ = 0;     // where the search goes on
  size_t line_start_ = 0;  // of the line that is being looked at
  size_t lines_ = 0;       // complete ones
  HttpFault fault_;
};

// How a body's end is known.
struct Framing {
  enum class Kind { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  uint64_t length = 0;  // kLength
};

struct RequestHead {
  Request request;  // but for peer
  Framing framing;
  bool keep_alive = true;
  bool expects_continue = false;
};
// `head` as HeadScanner found it, the empty line included.
std::variant<RequestHead, HttpFault> ParseRequestHead(std::string_view head);

struct ReplyHead {
  int status = 0;
  Headers headers;
  Framing framing;
  bool keep_alive = true;
};
// `method` is that of the request: an answer to HEAD has no body.
std::variant<ReplyHead, HttpFault> ParseReplyHead(std::string_view head, std::string_view method);

// One header line without its line end.
std::variant<Header, HttpFault> ParseHeaderLine(std::string_view line);

}  // namespace caisson::net
