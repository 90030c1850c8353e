// Traces: spans of work with W3C trace context (https://www.w3.org/TR/trace-context/).
//
//   Span span = tracer.Start("POST /api/sessions", SpanKind::kServer, ParseTraceparent(header));
//   Span child = tracer.Start("create", SpanKind::kInternal, span.context());
//   child.Set("provider", "native");
//   …                               // a Span ends where it is destroyed, or at End()
//
// What ended waits in the Tracer's bounded queue until an exporter takes it (telemetry/otlp.h);
// with no exporter, use a Sampler that takes none, and spans cost next to nothing. A Tracer
// outlives its Spans and is thread-safe; a Span belongs to one thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace caisson::telemetry {

using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

enum class Sampled { kNo, kYes };

// What one process tells the next about a span.
struct SpanContext {
  TraceId trace = {};
  SpanId span = {};
  Sampled sampled = Sampled::kNo;
};

std::string Hex(const TraceId& id);
std::string Hex(const SpanId& id);

// The header `traceparent`; nothing when it is malformed, which the standard says to ignore.
std::optional<SpanContext> ParseTraceparent(std::string_view header);
std::string MakeTraceparent(const SpanContext& context);

enum class SpanKind { kInternal = 1, kServer = 2, kClient = 3 };  // the numbers of OTLP

using AttributeValue = std::variant<std::string, int64_t, double, bool>;
using Attribute = std::pair<std::string, AttributeValue>;

// A span that has ended.
struct SpanData {
  SpanContext context;
  SpanId parent = {};  // all zero: none
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  std::chrono::system_clock::time_point start, end;
  std::vector<Attribute> attributes;
  bool failed = false;
  std::string failure;
};

// Which traces are kept, as OTEL_TRACES_SAMPLER has it. The ratio is of trace ids, so that all who
// look at one trace decide alike.
struct Sampler {
  enum class Parents { kFollow, kIgnore };
  double ratio = 1;                    // of the traces that begin here: 0 none, 1 all
  Parents parents = Parents::kFollow;  // kFollow: do as the caller of a remote span did

  // "always_on", "always_off", "traceidratio", and each with "parentbased_" before it. `argument`
  // is the ratio, for those that have one; empty is 1.
  static Result<Sampler> Parse(std::string_view name, std::string_view argument);
  Sampled Decide(const TraceId& trace, const std::optional<SpanContext>& parent) const;
};

class Tracer;

class Span {
 public:
  Span(Span&&) noexcept = default;
  Span& operator=(Span&& other) noexcept;
  ~Span() { End(); }

  // For children, here or behind a `traceparent`; right for spans that are not kept, too.
  const SpanContext& context() const { return context_; }

  // Without effect on spans that are not kept, or have ended. At most 64 attributes are taken.
  void Set(std::string_view key, std::string_view value) { Add(key, std::string(value)); }
  void Set(std::string_view key, const char* value) { Add(key, std::string(value)); }
  void Set(std::string_view key, int64_t value) { Add(key, value); }
  void Set(std::string_view key, double value) { Add(key, value); }
  void Rename(std::string_view name);
  void Fail(std::string_view why);
  void End();

 private:
  friend class Tracer;
  Span(Tracer* tracer, SpanContext context, std::unique_ptr<SpanData> data)
      : tracer_(tracer), context_(context), data_(std::move(data)) {}
  void Add(std::string_view key, AttributeValue value);

  Tracer* tracer_;
  SpanContext context_;
  std::unique_ptr<SpanData> data_;  // null: not kept, or ended
};

class Tracer {
 public:
  explicit Tracer(Sampler sampler, size_t capacity = 4096)
      : sampler_(sampler), capacity_(capacity) {}
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  Span Start(std::string_view name, SpanKind kind, std::optional<SpanContext> parent = {});

  // Up to `max` spans that have ended, oldest first; they are the caller's from here.
  std::vector<SpanData> Take(size_t max);
  size_t waiting() const;
  // Spans that found the queue full.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  friend class Span;
  void Put(SpanData span);

  const Sampler sampler_;
  const size_t capacity_;
  std::atomic<uint64_t> dropped_ = 0;
  mutable std::mutex mutex_;
  std::deque<SpanData> ended_;
};

}  // namespace caisson::telemetry
