// What part of a file a request asks for, and how the answer's head describes it (RFC 9110 §8, §13,
// §14). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/message.h"

namespace caisson::api {

// A file as a client sees it.
struct Content {
  std::string path;  // the last part is the name it is saved under
  uint64_t size = 0;
  std::string etag;         // with its quotes
  std::string media_type;   // empty: by the path
  uint64_t modified_s = 0;  // seconds since 1970; 0: not told
};

// The head, and the bytes from `begin` up to `end` to be sent with it. Of 304 and 416, none.
struct ContentPlan {
  net::ResponseHead head;
  uint64_t begin = 0, end = 0;
};
// 200 with all; 206 with one range; 304 when the client has it (If-None-Match); 412 when it wants
// another version (If-Match); 416 when the range lies outside. Several ranges, malformed ones and
// those with an If-Range that does not fit are passed over, as RFC 9110 §14.2 allows.
ContentPlan PlanContent(const net::Request& request, const Content& content);
// The problem to answer with when the plan is 412 or 416.
net::Response ContentRefusal(std::string_view request_id, const ContentPlan& plan,
                             std::string_view path);

// "text/plain; charset=utf-8" and the like, by the name's ending; application/octet-stream
// otherwise.
std::string_view MediaTypeOf(std::string_view path);
// `attachment; filename="…"` with the name as RFC 6266 wants it.
std::string AttachmentOf(std::string_view path);
// An HTTP date (RFC 9110 §5.6.7).
std::string HttpDate(uint64_t seconds);

// "bytes 0-9/100" or "bytes 0-9/*" of a request that sends a part. Nothing when it is malformed.
struct PartialBody {
  uint64_t first = 0, last = 0;
  std::optional<uint64_t> total;
};
std::optional<PartialBody> ParseContentRange(std::string_view value);

}  // namespace caisson::api
