#include "telemetry/trace.h"

#include <sys/random.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <span>

#include "base/text.h"

namespace caisson::telemetry {
namespace {

constexpr size_t kMaxAttributes = 64;

std::string HexOf(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// Two lower-case digits, or -1: the standard allows no capitals.
int HexByte(std::string_view text) {
  int byte = 0;
  for (const char c : text.substr(0, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return -1;
    byte = byte * 16 + digit;
  }
  return byte;
}

// The id that `text` spells; nothing when it does not, or is all zero.
template <typename Id>
std::optional<Id> ParseId(std::string_view text) {
  Id id = {};
  for (size_t i = 0; i < id.size(); ++i) {
    const int byte = HexByte(text.substr(i * 2, 2));
    if (byte < 0) return std::nullopt;
    id[i] = static_cast<uint8_t>(byte);
  }
  return id == Id{} ? std::nullopt : std::optional(id);
}

template <typename Id>
Id RandomId() {
  Id id = {};
  while (id == Id{}) {
    // Blocks only before the kernel's pool is ready, and never gives less for so few bytes.
    if (getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) std::abort();
  }
  return id;
}

}  // namespace

std::string Hex(const TraceId& id) { return HexOf(id); }
std::string Hex(const SpanId& id) { return HexOf(id); }

// version "-" trace-id "-" parent-id "-" flags; later versions may go on after that.
std::optional<SpanContext> ParseTraceparent(std::string_view header) {
  constexpr size_t kLength = 55;
  if (header.size() < kLength || header[2] != '-' || header[35] != '-' || header[52] != '-') {
    return std::nullopt;
  }
  const int version = HexByte(header);
  const int flags = HexByte(header.substr(53));
  if (version < 0 || version == 0xff || flags < 0) return std::nullopt;
  if (version == 0 && header.size() != kLength) return std::nullopt;
  if (header.size() > kLength && header[kLength] != '-') return std::nullopt;
  const auto trace = ParseId<TraceId>(header.substr(3, 32));
  const auto span = ParseId<SpanId>(header.substr(36, 16));
  if (!trace || !span) return std::nullopt;
  return SpanContext{*trace, *span, (flags & 1) != 0 ? Sampled::kYes : Sampled::kNo};
}

std::string MakeTraceparent(const SpanContext& context) {
  return Concat({"00-", Hex(context.trace), "-", Hex(context.span), "-",
                 context.sampled == Sampled::kYes ? "01" : "00"});
}

Result<Sampler> Sampler::Parse(std::string_view name, std::string_view argument) {
  constexpr std::array<std::string_view, 6> kNames = {"always_on",
                                                      "always_off",
                                                      "traceidratio",
                                                      "parentbased_always_on",
                                                      "parentbased_always_off",
                                                      "parentbased_traceidratio"};
  if (std::ranges::find(kNames, name) == kNames.end()) {
    const auto close = ClosestTo(name, kNames);
    return Error(ErrorCode::kInvalidArgument, Quoted(name) + " is no sampler")
        .WithRemedy(close.empty() ? "write e.g. parentbased_traceidratio"
                                  : Concat({"did you mean ", close, "?"}));
  }
  Sampler sampler;
  if (!name.starts_with("parentbased_")) sampler.parents = Parents::kIgnore;
  if (name.ends_with("always_off")) sampler.ratio = 0;
  if (!name.ends_with("traceidratio") || argument.empty()) return sampler;
  const char* end = argument.data() + argument.size();
  const auto read = std::from_chars(argument.data(), end, sampler.ratio);
  if (read.ec != std::errc() || read.ptr != end || !(sampler.ratio >= 0 && sampler.ratio <= 1)) {
    return Error(ErrorCode::kInvalidArgument, Quoted(argument) + " is no ratio")
        .WithRemedy("write a number from 0 to 1, e.g. 0.1");
  }
  return sampler;
}

Sampled Sampler::Decide(const TraceId& trace, const std::optional<SpanContext>& parent) const {
  if (parent && parents == Parents::kFollow) return parent->sampled;
  if (ratio >= 1) return Sampled::kYes;
  uint64_t low = 0;  // the last 8 bytes are the random ones of every kind of trace id
  for (size_t i = 8; i < trace.size(); ++i) low = low << 8 | trace[i];
  const double place = static_cast<double>(low >> 11) / 9007199254740992.0;  // 2^53
  return place < ratio ? Sampled::kYes : Sampled::kNo;
}

Span& Span::operator=(Span&& other) noexcept {
  if (this == &other) return *this;
  End();
  tracer_ = other.tracer_;
  context_ = other.context_;
  data_ = std::move(other.data_);
  return *this;
}

void Span::Add(std::string_view key, AttributeValue value) {
  if (data_ == nullptr) return;
  const auto same = std::ranges::find(data_->attributes, key, &Attribute::first);
  if (same != data_->attributes.end()) {
    same->second = std::move(value);
  } else if (data_->attributes.size() < kMaxAttributes) {
    data_->attributes.emplace_back(key, std::move(value));
  }
}

void Span::Rename(std::string_view name) {
  if (data_ != nullptr) data_->name = name;
}

void Span::Fail(std::string_view why) {
  if (data_ == nullptr) return;
  data_->failed = true;
  data_->failure = why;
}

void Span::End() {
  if (data_ == nullptr) return;
  data_->end = std::chrono::system_clock::now();
  tracer_->Put(std::move(*data_));
  data_.reset();
}

Span Tracer::Start(std::string_view name, SpanKind kind, std::optional<SpanContext> parent) {
  SpanContext context;
  context.trace = parent ? parent->trace : RandomId<TraceId>();
  context.span = RandomId<SpanId>();
  context.sampled = sampler_.Decide(context.trace, parent);
  if (context.sampled == Sampled::kNo) return {this, context, nullptr};
  auto data = std::make_unique<SpanData>();
  data->context = context;
  if (parent) data->parent = parent->span;
  data->name = name;
  data->kind = kind;
  data->start = std::chrono::system_clock::now();
  return {this, context, std::move(data)};
}

void Tracer::Put(SpanData span) {
  const std::lock_guard lock(mutex_);
  if (ended_.size() >= capacity_) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  } else {
    ended_.push_back(std::move(span));
  }
}

std::vector<SpanData> Tracer::Take(size_t max) {
  const std::lock_guard lock(mutex_);
  const auto end = ended_.begin() + static_cast<ptrdiff_t>(std::min(max, ended_.size()));
  std::vector<SpanData> spans(std::make_move_iterator(ended_.begin()),
                              std::make_move_iterator(end));
  ended_.erase(ended_.begin(), end);
  return spans;
}

size_t Tracer::waiting() const {
  const std::lock_guard lock(mutex_);
  return ended_.size();
}

}  // namespace caisson::telemetry
