#include "net/url.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "base/utf8.h"
#include "net/headers.h"

namespace caisson::net {
namespace {

Error Bad(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsControl(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

Result<std::string> DecodeQueryPart(std::string_view part) {
  std::string spaced(part);
  std::ranges::replace(spaced, '+', ' ');
  CAISSON_ASSIGN(std::string text, PercentDecode(spaced));
  if (!IsUtf8(text) || text.find('\0') != std::string::npos)
    return Bad("the query is not UTF-8 text: " + Quoted(part));
  return text;
}

bool IsHostCharacter(char c) { return IsUnreserved(c) || c == ':'; }

Result<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0)
    return Bad("not a port: " + Quoted(text));
  return port;
}

}  // namespace

Result<std::string> PercentDecode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return Bad("a '%' without two hex digits in " + Quoted(text));
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string PercentEncode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (IsUnreserved(c)) {
      out += c;
    } else {
      out += '%';
      out += kHex[static_cast<uint8_t>(c) >> 4];
      out += kHex[static_cast<uint8_t>(c) & 15];
    }
  }
  return out;
}

Result<QueryPairs> ParseQuery(std::string_view query) {
  QueryPairs pairs;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    if (pairs.size() == kMaxQueryPairs)
      return Bad(Concat({"the query has more than ", std::to_string(kMaxQueryPairs), " parts"}));
    const size_t equals = std::min(pair.find('='), pair.size());
    CAISSON_ASSIGN(std::string name, DecodeQueryPart(pair.substr(0, equals)));
    CAISSON_ASSIGN(std::string value,
                   DecodeQueryPart(pair.substr(std::min(equals + 1, pair.size()))));
    pairs.emplace_back(std::move(name), std::move(value));
  }
  return pairs;
}

Result<Path> ParsePath(std::string_view encoded) {
  if (!encoded.starts_with('/')) return Bad("the path does not start with '/': " + Quoted(encoded));
  Path path;
  std::string_view rest = encoded;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const size_t end = std::min(rest.find('/'), rest.size());
    CAISSON_ASSIGN(std::string segment, PercentDecode(rest.substr(0, end)));
    rest.remove_prefix(end);
    if (segment == "." || segment == "..")
      return Bad("the path has '.' or '..' in it: " + Quoted(encoded));
    path.text += '/';
    path.text += segment;
    path.segments.push_back(std::move(segment));
  }
  if (std::ranges::any_of(path.text, IsControl))
    return Bad("the path has a control character in it: " + Quoted(encoded));
  if (!IsUtf8(path.text)) return Bad("the path is not UTF-8: " + Quoted(encoded));
  // An encoded slash must not bring back what is refused above.
  if (path.text.find("/../") != std::string::npos || path.text.find("/./") != std::string::npos ||
      path.text.ends_with("/..") || path.text.ends_with("/."))
    return Bad("the path has '.' or '..' in it: " + Quoted(encoded));
  return path;
}

std::string Url::Authority() const {
  if (scheme == Scheme::kUnix) return "localhost";
  const bool v6 = host.find(':') != std::string::npos;
  std::string out = v6 ? Concat({"[", host, "]"}) : host;
  if (port != (scheme == Scheme::kHttp ? 80 : 443)) out += ":" + std::to_string(port);
  return out;
}

Result<Url> ParseUrl(std::string_view text) {
  Url url;
  if (text.starts_with("unix:")) {
    url.scheme = Url::Scheme::kUnix;
    url.host = text.substr(5);
    if (!url.host.starts_with('/') || url.host.find('\0') != std::string::npos)
      return Bad("not an absolute path of a socket: " + Quoted(text));
    return url;
  }
  const size_t colon = std::min(text.find("://"), text.size());
  if (EqualsIgnoringCase(text.substr(0, colon), "https")) {
    url.scheme = Url::Scheme::kHttps;
  } else if (!EqualsIgnoringCase(text.substr(0, colon), "http")) {
    return Bad(Concat({"not an http, https or unix address: ", Quoted(text)}));
  }
  std::string_view rest = text.substr(std::min(colon + 3, text.size()));
  const size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, slash);
  rest.remove_prefix(slash);
  if (!std::ranges::all_of(rest, [](char c) { return c > 0x20 && c != 0x7f && c != '#'; }))
    return Bad("a character that does not belong into a URL: " + Quoted(text));
  url.target = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);

  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return Bad("a '[' without its ']': " + Quoted(text));
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return Bad("not a URL: " + Quoted(text));
  } else {
    const size_t end = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, end);
    port = authority.substr(end);
  }
  if (url.host.empty() || !std::ranges::all_of(url.host, IsHostCharacter))
    return Bad("not a host name or address: " + Quoted(text));
  url.port = url.scheme == Url::Scheme::kHttp ? 80 : 443;
  if (!port.empty()) {
    CAISSON_ASSIGN(url.port, ParsePort(port.substr(1)));
  }
  return url;
}

}  // namespace caisson::net
