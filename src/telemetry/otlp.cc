#include "telemetry/otlp.h"

#include <algorithm>

#include "base/text.h"
#include "json/json.h"

namespace caisson::telemetry {
namespace {

std::string Nanoseconds(std::chrono::system_clock::time_point time) {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

json::Object EncodeAttribute(const Attribute& attribute) {
  json::Object value;
  if (const auto* text = std::get_if<std::string>(&attribute.second)) {
    value["stringValue"] = *text;
  } else if (const auto* whole = std::get_if<int64_t>(&attribute.second)) {
    value["intValue"] = std::to_string(*whole);
  } else if (const auto* number = std::get_if<double>(&attribute.second)) {
    value["doubleValue"] = *number;
  } else {
    value["boolValue"] = std::get<bool>(attribute.second);
  }
  return {{"key", attribute.first}, {"value", std::move(value)}};
}

json::Array EncodeAttributes(std::span<const Attribute> attributes) {
  json::Array all;
  for (const Attribute& attribute : attributes) all.push_back(EncodeAttribute(attribute));
  return all;
}

json::Object EncodeSpan(const SpanData& span) {
  json::Object out{{"traceId", Hex(span.context.trace)}, {"spanId", Hex(span.context.span)}};
  if (span.parent != SpanId{}) out["parentSpanId"] = Hex(span.parent);
  out["name"] = span.name;
  out["kind"] = static_cast<int>(span.kind);
  out["startTimeUnixNano"] = Nanoseconds(span.start);
  out["endTimeUnixNano"] = Nanoseconds(span.end);
  if (!span.attributes.empty()) out["attributes"] = EncodeAttributes(span.attributes);
  if (span.failed) out["status"] = json::Object{{"code", 2}, {"message", span.failure}};
  return out;
}

// --- settings -----------------------------------------------------------------------------------

std::string_view Trimmed(std::string_view text) {
  const size_t start = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(start);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

Result<std::string> PercentDecoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const std::string_view kDigits = "0123456789abcdef";
    const auto digit = [&](size_t at) {
      return at < text.size() ? kDigits.find(static_cast<char>(text[at] | 0x20))
                              : std::string_view::npos;
    };
    const size_t high = digit(i + 1), low = digit(i + 2);
    if (high == std::string_view::npos || low == std::string_view::npos) {
      return Error(ErrorCode::kInvalidArgument, "two hexadecimal digits belong after %")
          .WithRemedy("write a percent sign itself as %25");
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

// "a=1,b=two%20words" (W3C Baggage).
Result<Pairs> ParsePairs(std::string_view text) {
  Pairs pairs;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view member = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (member.empty()) continue;
    const size_t equals = member.find('=');
    const std::string_view key = Trimmed(member.substr(0, equals));
    if (equals == std::string_view::npos || key.empty()) {
      return Error(ErrorCode::kInvalidArgument, "a part of it is no KEY=VALUE")
          .WithRemedy("write KEY=VALUE pairs with commas between them");
    }
    CAISSON_ASSIGN(std::string value, PercentDecoded(Trimmed(member.substr(equals + 1))));
    pairs.emplace_back(key, std::move(value));
  }
  return pairs;
}

// The standard variables, read through a function; the empty ones are unset.
class Variables {
 public:
  explicit Variables(const OtlpSettings::Environment& env) : env_(env) {}

  std::string Get(std::string_view name) const { return env_(name).value_or(""); }
  // The one for traces, or else the general one.
  std::pair<std::string, std::string> ForTraces(std::string_view name) const {
    std::string own = Concat({"OTEL_EXPORTER_OTLP_TRACES_", name});
    std::string value = Get(own);
    if (!value.empty()) return {std::move(own), std::move(value)};
    own = Concat({"OTEL_EXPORTER_OTLP_", name});
    value = Get(own);
    return {std::move(own), std::move(value)};
  }
  Result<Pairs> GetPairs(std::string_view name, std::string_view value) const {
    auto pairs = ParsePairs(value);
    if (!pairs) return std::move(pairs).error().Because(Concat({"environment variable ", name}));
    return pairs;
  }

 private:
  const OtlpSettings::Environment& env_;
};

Error Wrong(std::string_view variable, std::string_view what, std::string remedy) {
  return Error(ErrorCode::kInvalidArgument, Concat({"environment variable ", variable, ": ", what}))
      .WithRemedy(std::move(remedy));
}

Result<std::string> Endpoint(const Variables& variables) {
  if (variables.Get("OTEL_SDK_DISABLED") == "true") return std::string();
  const std::string exporter = variables.Get("OTEL_TRACES_EXPORTER");
  if (exporter == "none") return std::string();
  if (!exporter.empty() && exporter != "otlp") {
    return Wrong("OTEL_TRACES_EXPORTER", Quoted(exporter) + " is not supported",
                 "write otlp or none");
  }
  const auto [variable, value] = variables.ForTraces("ENDPOINT");
  if (value.empty()) return std::string();
  if (!value.starts_with("http://") && !value.starts_with("https://")) {
    return Wrong(variable, Quoted(value) + " is no http or https URL",
                 "write e.g. http://localhost:4318");
  }
  const auto [protocol_variable, protocol] = variables.ForTraces("PROTOCOL");
  if (!protocol.empty() && protocol != "http/json") {
    return Wrong(protocol_variable, Quoted(protocol) + " is not supported",
                 "write http/json, which every collector takes on port 4318");
  }
  if (variable.find("TRACES") != std::string::npos) return value;
  return Concat({std::string_view(value).substr(0, value.find_last_not_of('/') + 1), "/v1/traces"});
}

}  // namespace

Result<OtlpSettings> OtlpSettings::FromEnvironment(const Environment& env) {
  const Variables variables(env);
  OtlpSettings settings;
  CAISSON_ASSIGN(settings.endpoint, Endpoint(variables));
  const auto [headers_variable, headers] = variables.ForTraces("HEADERS");
  CAISSON_ASSIGN(Pairs pairs, variables.GetPairs(headers_variable, headers));
  for (auto& [key, value] : pairs)
    settings.headers.emplace_back(key, log::Secret(std::move(value)));
  CAISSON_ASSIGN(Pairs resource, variables.GetPairs("OTEL_RESOURCE_ATTRIBUTES",
                                                    variables.Get("OTEL_RESOURCE_ATTRIBUTES")));
  std::string service = variables.Get("OTEL_SERVICE_NAME");
  for (auto& [key, value] : resource) {
    if (key != "service.name") {
      settings.resource.emplace_back(key, std::move(value));
    } else if (service.empty()) {
      service = std::move(value);
    }
  }
  settings.resource.emplace_back("service.name", service.empty() ? "caisson" : std::move(service));
  std::string sampler = variables.Get("OTEL_TRACES_SAMPLER");
  if (sampler.empty()) sampler = "parentbased_always_on";
  auto parsed = Sampler::Parse(sampler, variables.Get("OTEL_TRACES_SAMPLER_ARG"));
  if (!parsed) return std::move(parsed).error().Because("environment variable OTEL_TRACES_SAMPLER");
  settings.sampler = *parsed;
  if (settings.endpoint.empty()) settings.sampler = {0, Sampler::Parents::kIgnore};
  return settings;
}

std::string EncodeSpans(std::span<const Attribute> resource, std::string_view version,
                        std::span<const SpanData> spans) {
  json::Array encoded;
  for (const SpanData& span : spans) encoded.push_back(EncodeSpan(span));
  const json::Object scope{{"scope", {{"name", "caisson"}, {"version", version}}},
                           {"spans", std::move(encoded)}};
  const json::Object of_resource{{"resource", {{"attributes", EncodeAttributes(resource)}}},
                                 {"scopeSpans", json::Array{scope}}};
  return json::Write(json::Object{{"resourceSpans", json::Array{of_resource}}});
}

Task<void> ExportSpans(async::Loop* loop, Tracer* tracer, SpanSink* sink, OtlpSettings settings,
                       std::string version, ExportOptions options, const log::Logger* log) {
  for (;;) {
    if (tracer->waiting() < options.batch) co_await loop->Sleep(options.interval);
    const std::vector<SpanData> spans = tracer->Take(options.batch);
    if (spans.empty()) continue;
    const std::string body = EncodeSpans(settings.resource, version, spans);
    auto pause = options.first_pause;
    for (int attempt = 1;; ++attempt) {
      const Status sent = co_await sink->Send(body);
      if (sent) break;
      if (attempt >= options.attempts || !InfoOf(sent.error().code()).retryable) {
        log->Warn("spans could not be delivered and are dropped", sent.error(),
                  {{"spans", spans.size()}, {"attempts", attempt}});
        break;
      }
      co_await loop->Sleep(pause);
      pause *= 2;
    }
  }
}

Task<Status> FlushSpans(Tracer* tracer, SpanSink* sink, std::vector<Attribute> resource,
                        std::string version, size_t batch) {
  for (;;) {
    const std::vector<SpanData> spans = tracer->Take(batch);
    if (spans.empty()) co_return Status();
    Status sent = co_await sink->Send(EncodeSpans(resource, version, spans));
    if (!sent) co_return sent;
  }
}

}  // namespace caisson::telemetry
