#include "api/content.h"

#include <time.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "base/utf8.h"
#include "net/url.h"

namespace caisson::api {
namespace {

struct MediaType {
  std::string_view ending, type;
};
constexpr MediaType kMediaTypes[] = {
    {"bmp", "image/bmp"},
    {"c", "text/plain; charset=utf-8"},
    {"cc", "text/plain; charset=utf-8"},
    {"conf", "text/plain; charset=utf-8"},
    {"cpp", "text/plain; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"gif", "image/gif"},
    {"go", "text/plain; charset=utf-8"},
    {"gz", "application/gzip"},
    {"h", "text/plain; charset=utf-8"},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ipynb", "application/x-ipynb+json"},
    {"java", "text/plain; charset=utf-8"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"jsonl", "application/x-ndjson"},
    {"log", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"ndjson", "application/x-ndjson"},
    {"parquet", "application/vnd.apache.parquet"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"py", "text/x-python; charset=utf-8"},
    {"rs", "text/plain; charset=utf-8"},
    {"sh", "text/x-shellscript; charset=utf-8"},
    {"sql", "text/plain; charset=utf-8"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"toml", "text/plain; charset=utf-8"},
    {"ts", "text/plain; charset=utf-8"},
    {"txt", "text/plain; charset=utf-8"},
    {"wav", "audio/wav"},
    {"webp", "image/webp"},
    {"xml", "application/xml"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
};

std::string_view LeafOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::optional<uint64_t> Digits(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Whether a list of entity tags has `etag`. Ours are strong; a weak one of the same text fits only
// where the comparison may be weak.
enum class Comparison { kStrong, kWeak };
bool HasTag(const net::Headers& headers, std::string_view name, std::string_view etag,
            Comparison comparison) {
  for (std::string_view list : headers.All(name)) {
    while (!list.empty()) {
      const size_t comma = std::min(list.find(','), list.size());
      std::string_view tag = net::TrimBlanks(list.substr(0, comma));
      list.remove_prefix(std::min(comma + 1, list.size()));
      if (comparison == Comparison::kWeak && tag.starts_with("W/")) tag.remove_prefix(2);
      if (tag == etag || tag == "*") return true;
    }
  }
  return false;
}

struct Range {
  uint64_t begin, end;
};
enum class Wanted { kAll, kPart, kOutside };
struct Choice {
  Wanted wanted = Wanted::kAll;
  Range range{0, 0};
};

Choice RangeOf(const net::Request& request, const Content& content) {
  std::string_view value = request.headers.Get("range");
  if (request.headers.Count("range") != 1 || !value.starts_with("bytes=")) return {};
  if (const std::string* only_if = request.headers.Find("if-range");
      only_if != nullptr && *only_if != content.etag)
    return {};
  value = net::TrimBlanks(value.substr(6));
  const size_t dash = value.find('-');
  if (dash == std::string_view::npos || value.contains(',')) return {};
  const auto first = Digits(value.substr(0, dash)), last = Digits(value.substr(dash + 1));
  if (!first && last && dash == 0) {  // the last so many
    if (*last == 0 || content.size == 0) return {Wanted::kOutside, {}};
    return {Wanted::kPart, {content.size - std::min(*last, content.size), content.size}};
  }
  if (!first || (!last && dash + 1 != value.size()) || (last && *last < *first)) return {};
  if (*first >= content.size) return {Wanted::kOutside, {}};
  return {Wanted::kPart, {*first, last ? std::min(*last, content.size - 1) + 1 : content.size}};
}

}  // namespace

std::string_view MediaTypeOf(std::string_view path) {
  const std::string_view leaf = LeafOf(path);
  const size_t dot = leaf.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return "application/octet-stream";
  const std::string_view ending = leaf.substr(dot + 1);
  for (const MediaType& known : kMediaTypes)
    if (net::EqualsIgnoringCase(known.ending, ending)) return known.type;
  return "application/octet-stream";
}

std::string AttachmentOf(std::string_view path) {
  const std::string name = ToUtf8(LeafOf(path));
  std::string plain;
  for (const char c : name)
    plain += c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '%' ? c : '_';
  std::string value = "attachment; filename=\"" + plain + "\"";
  if (plain != name) value += "; filename*=UTF-8''" + net::PercentEncode(name);
  return value;
}

std::string HttpDate(uint64_t seconds) {
  const auto time = static_cast<time_t>(seconds);
  struct tm parts{};
  char text[64];
  if (gmtime_r(&time, &parts) == nullptr) return {};
  return {text, strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

ContentPlan PlanContent(const net::Request& request, const Content& content) {
  ContentPlan plan;
  net::Headers& headers = plan.head.headers;
  headers.Set("ETag", content.etag);
  headers.Set("Accept-Ranges", "bytes");
  headers.Set("Cache-Control", "private, no-cache");
  if (content.modified_s != 0) headers.Set("Last-Modified", HttpDate(content.modified_s));
  plan.head.content_length = 0;
  if (request.headers.Find("if-match") != nullptr &&
      !HasTag(request.headers, "if-match", content.etag, Comparison::kStrong)) {
    plan.head.status = 412;
    return plan;
  }
  if (HasTag(request.headers, "if-none-match", content.etag, Comparison::kWeak)) {
    plan.head.status = 304;
    plan.head.content_length.reset();
    return plan;
  }
  const Choice choice = RangeOf(request, content);
  if (choice.wanted == Wanted::kOutside) {
    plan.head.status = 416;
    headers.Set("Content-Range", "bytes */" + std::to_string(content.size));
    return plan;
  }
  plan.end = content.size;
  if (choice.wanted == Wanted::kPart) {
    plan.head.status = 206;
    plan.begin = choice.range.begin;
    plan.end = choice.range.end;
    headers.Set("Content-Range", "bytes " + std::to_string(plan.begin) + "-" +
                                     std::to_string(plan.end - 1) + "/" +
                                     std::to_string(content.size));
  }
  // The bytes come from a sandbox: a browser saves them, and runs nothing of them as our page.
  headers.Set("Content-Type", content.media_type.empty() ? std::string(MediaTypeOf(content.path))
                                                         : content.media_type);
  headers.Set("Content-Disposition", AttachmentOf(content.path));
  headers.Set("X-Content-Type-Options", "nosniff");
  headers.Set("Content-Security-Policy", "sandbox; default-src 'none'");
  plan.head.content_length = plan.end - plan.begin;
  return plan;
}

net::Response ContentRefusal(std::string_view request_id, const ContentPlan& plan,
                             std::string_view path) {
  const Error error =
      plan.head.status == 416
          ? Error(ErrorCode::kInvalidArgument, "the range lies outside of " + Quoted(path))
                .WithRemedy("ask for bytes that Content-Range says are there")
          : Error(ErrorCode::kConflict, Quoted(path) + " is another version than If-Match names")
                .WithRemedy("read it again and use its ETag");
  net::Response response = net::Response::Problem(plan.head.status, error, request_id);
  for (const auto& [name, value] : plan.head.headers) response.headers.Set(name, value);
  return response;
}

std::optional<PartialBody> ParseContentRange(std::string_view value) {
  if (!value.starts_with("bytes ")) return std::nullopt;
  value.remove_prefix(6);
  const size_t dash = value.find('-'), slash = value.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash)
    return std::nullopt;
  const auto first = Digits(value.substr(0, dash));
  const auto last = Digits(value.substr(dash + 1, slash - dash - 1));
  const auto total = Digits(value.substr(slash + 1));
  if (!first || !last || *last < *first || (!total && value.substr(slash + 1) != "*"))
    return std::nullopt;
  if (total && *last >= *total) return std::nullopt;
  return PartialBody{*first, *last, total};
}

}  // namespace caisson::api
