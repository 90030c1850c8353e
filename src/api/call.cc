#include "api/call.h"

#include <algorithm>
#include <charconv>

#include "api/services.h"
#include "base/text.h"
#include "net/body.h"

namespace caisson::api {
namespace {

Error BadParameter(std::string_view name, const std::string& what, std::string remedy) {
  return Error(ErrorCode::kInvalidArgument, "query parameter \"" + std::string(name) + "\" " + what)
      .WithRemedy(std::move(remedy));
}

}  // namespace

sandbox::Access Call::access() const {
  sandbox::Access access;
  access.home = principal_.tenant;
  if (auth::ReachOf(principal_.role) != auth::Reach::kAll || principal_.session)
    access.tenant = principal_.tenant;
  if (auth::ReachOf(principal_.role) == auth::Reach::kKey) access.key_id = principal_.key_id;
  access.session = principal_.session;
  return access;
}

sandbox::Owner Call::owner() const { return {principal_.tenant, principal_.key_id}; }

const std::string& Call::Param(std::string_view name) const {
  const std::string* value = match_.Param(name);
  if (value == nullptr) std::abort();  // a handler asks for what its pattern does not have
  return *value;
}

Result<std::optional<std::string>> Call::Query(std::string_view name) const {
  std::optional<std::string> found;
  for (const auto& [key, value] : request().query) {
    if (key != name) continue;
    if (found) return BadParameter(name, "is given twice", "give it once");
    found = value;
  }
  return found;
}

Result<std::optional<int64_t>> Call::QueryInteger(std::string_view name, int64_t min,
                                                  int64_t max) const {
  CAISSON_ASSIGN(const auto text, Query(name));
  if (!text) return std::optional<int64_t>();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < min || value > max)
    return BadParameter(name, "is " + Quoted(*text) + ", not a whole number in range",
                        "give a number from " + std::to_string(min) + " to " + std::to_string(max));
  return std::optional<int64_t>(value);
}

Result<bool> Call::QueryFlag(std::string_view name) const {
  CAISSON_ASSIGN(const auto text, Query(name));
  if (!text || *text == "false" || *text == "0") return false;
  if (text->empty() || *text == "true" || *text == "1") return true;
  return BadParameter(name, "is " + Quoted(*text), "give true or false");
}

Status Call::CheckQuery() const {
  std::vector<std::string_view> known;
  for (const Parameter& parameter : route_.parameters)
    if (parameter.in == Parameter::In::kQuery) known.push_back(parameter.name);
  for (const auto& [key, value] : request().query) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string_view close = ClosestTo(key, known);
    std::string remedy = !close.empty()  ? "did you mean \"" + std::string(close) + "\"?"
                         : known.empty() ? "leave it out; this route has none"
                                         : "leave it out";
    return Error(ErrorCode::kInvalidArgument, "unknown query parameter " + Quoted(key))
        .WithRemedy(std::move(remedy));
  }
  return {};
}

Task<Result<json::Value>> Call::ReadJson() {
  const std::string_view type = request().headers.Get("content-type");
  const std::string_view media = net::TrimBlanks(type.substr(0, type.find(';')));
  // A body without a type is taken for what the route wants; one of another type is refused, which
  // also keeps HTML forms out.
  if (!media.empty() && !net::EqualsIgnoringCase(media, "application/json"))
    co_return Error(ErrorCode::kInvalidArgument,
                    "the body is " + Quoted(media) + ", and this route takes application/json")
        .WithRemedy("send JSON with Content-Type: application/json");
  auto text = co_await exchange_.body().ReadAll(kMaxJson);
  if (!text) co_return std::move(text).error();
  if (text->empty()) co_return json::Value(json::Object());
  co_return json::Parse(*text);
}

telemetry::Span Call::Trace(std::string_view name) const {
  return services_.tracer.Start(name, telemetry::SpanKind::kInternal, trace_);
}

std::string Call::object() const {
  if (!object_.empty()) return object_;
  std::string object(route_.group);
  if (!match_.params.empty()) object += "/" + match_.params.front().second;
  return object;
}

}  // namespace caisson::api
