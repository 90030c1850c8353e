// OTLP/HTTP in JSON: spans as a collector takes them at /v1/traces, and the sending of what a
// Tracer gathered. (https://opentelemetry.io/docs/specs/otlp/; the JSON is proto3's mapping, with
// ids in hex and 64-bit integers as strings.)
//
// The bytes go through a SpanSink, which somebody with an HTTP client implements.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/loop.h"
#include "async/task.h"
#include "base/result.h"
#include "log/logger.h"
#include "log/secret.h"
#include "telemetry/trace.h"

namespace caisson::telemetry {

// What the standard variables ask for.
struct OtlpSettings {
  std::string endpoint;  // the whole URL of the traces; empty: nothing is exported
  std::vector<std::pair<std::string, log::Secret>> headers;
  std::vector<Attribute> resource;  // has service.name
  Sampler sampler;                  // takes nothing when nothing is exported

  using Environment = std::function<std::optional<std::string>(std::string_view)>;
  // From OTEL_EXPORTER_OTLP_(TRACES_)ENDPOINT, …_HEADERS and …_PROTOCOL, OTEL_SERVICE_NAME,
  // OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER(_ARG), OTEL_TRACES_EXPORTER and
  // OTEL_SDK_DISABLED. Empty is the same as unset. Errors name the variable.
  static Result<OtlpSettings> FromEnvironment(const Environment& env);
};

// The body of one request.
std::string EncodeSpans(std::span<const Attribute> resource, std::string_view version,
                        std::span<const SpanData> spans);

class SpanSink {
 public:
  virtual ~SpanSink() = default;
  // Posts `body` as application/json. An error that InfoOf() calls retryable is tried again.
  virtual Task<Status> Send(std::string body) = 0;
};

struct ExportOptions {
  std::chrono::milliseconds interval{5000};
  size_t batch = 512;
  int attempts = 5;                             // of one batch
  std::chrono::milliseconds first_pause{1000};  // before the second attempt; doubles
};

// Sends what ends, until it is destroyed. Batches that cannot be delivered are dropped and logged.
// All that is pointed at outlives the task.
Task<void> ExportSpans(async::Loop* loop, Tracer* tracer, SpanSink* sink, OtlpSettings settings,
                       std::string version, ExportOptions options, const log::Logger* log);

// Sends what waits, each batch once: for the end of the program.
Task<Status> FlushSpans(Tracer* tracer, SpanSink* sink, std::vector<Attribute> resource,
                        std::string version, size_t batch);

}  // namespace caisson::telemetry
