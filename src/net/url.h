// Percent-encoding, request targets, query strings and URLs (RFC 3986, as far as HTTP needs it).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace caisson::net {

// "%41" to "A". kInvalidArgument when a percent sign is not followed by two hex digits.
Result<std::string> PercentDecode(std::string_view text);
// All but unreserved characters encoded: fit for one segment, and for a query's name or value.
std::string PercentEncode(std::string_view text);

using QueryPairs = std::vector<std::pair<std::string, std::string>>;
// "a=1&b&a=2": decoded ('+' is a space), in order, duplicates kept. At most `kMaxQueryPairs`; must
// be valid UTF-8 without NUL.
inline constexpr size_t kMaxQueryPairs = 256;
Result<QueryPairs> ParseQuery(std::string_view query);

struct Path {
  std::string text;  // decoded
  std::vector<std::string> segments;
};
// The path of an origin-form target. kInvalidArgument for what Request::path promises not to hold.
Result<Path> ParsePath(std::string_view encoded);

// An address of a server or a resource: "http://host[:port][/path[?query]]", "https://…", or
// "unix:/path/to.sock" (then target is "/"). No user information, no fragment.
struct Url {
  enum class Scheme { kHttp, kHttps, kUnix };
  Scheme scheme = Scheme::kHttp;
  std::string host;  // a name or an address, without brackets; kUnix: the socket's path
  uint16_t port = 0;
  std::string target = "/";

  // For the Host header: "host", "host:8080", "[::1]:8080"; kUnix: "localhost".
  std::string Authority() const;
};
Result<Url> ParseUrl(std::string_view text);

}  // namespace caisson::net
