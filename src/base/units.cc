#include "base/units.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/text.h"

namespace caisson {
namespace {

using Wide = unsigned __int128;

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr std::array<Unit, 7> kDurationUnits = {{
    {"d", 86'400'000'000'000},
    {"h", 3'600'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
}};

// A non-negative decimal number: whole + fraction / scale, and how it goes on.
struct Number {
  uint64_t whole = 0;
  uint64_t fraction = 0;
  uint64_t scale = 1;
  std::string_view rest;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads digits with an optional fraction of at most nine digits from the front of `text`.
std::optional<Number> ReadNumber(std::string_view text) {
  constexpr size_t kFractionDigits = 9;
  Number number;
  size_t at = 0;
  for (; at < text.size() && IsDigit(text[at]); ++at) {
    if (__builtin_mul_overflow(number.whole, 10u, &number.whole)) return std::nullopt;
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    if (__builtin_add_overflow(number.whole, digit, &number.whole)) return std::nullopt;
  }
  if (at == 0) return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    const size_t start = ++at;
    for (; at < text.size() && IsDigit(text[at]); ++at) {
      if (at - start == kFractionDigits) return std::nullopt;
      number.fraction = number.fraction * 10 + static_cast<uint64_t>(text[at] - '0');
      number.scale *= 10;
    }
    if (at == start) return std::nullopt;
  }
  number.rest = text.substr(at);
  return number;
}

// number × factor, the part below one cut off. At most 2^64 × 2^64, so it cannot overflow.
Wide Scaled(const Number& number, uint64_t factor) {
  return Wide{number.whole} * factor + Wide{number.fraction} * factor / number.scale;
}

// number × factor when that is whole, else nothing.
std::optional<Wide> ExactlyScaled(const Number& number, uint64_t factor) {
  if (Wide{number.fraction} * factor % number.scale != 0) return std::nullopt;
  return Scaled(number, factor);
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// What one of a size's suffix stands for, or 0 when there is no such suffix.
uint64_t SizeFactor(std::string_view suffix) {
  constexpr std::string_view kLetters = "kmgtpe";
  if (suffix.empty() || suffix == "b" || suffix == "B") return 1;
  const size_t power = kLetters.find(Lower(suffix[0]));
  if (power == std::string_view::npos) return 0;
  suffix.remove_prefix(1);
  uint64_t base = 1024;
  if (suffix.size() == 1 && Lower(suffix[0]) == 'b') {
    base = 1000;
  } else if (!suffix.empty()) {
    if (suffix.size() != 2 || Lower(suffix[0]) != 'i' || Lower(suffix[1]) != 'b') return 0;
  }
  uint64_t factor = 1;
  for (size_t i = 0; i <= power; ++i) factor *= base;
  return factor;
}

Error Refuse(std::string_view text, std::string_view complaint, std::string remedy) {
  std::string message = Quoted(text);
  message += ' ';
  message += complaint;
  return Error(ErrorCode::kInvalidArgument, std::move(message)).WithRemedy(std::move(remedy));
}

constexpr char kSizeExample[] = "write a size such as 512M, 2G, 1GiB or 1048576";
constexpr char kDurationExample[] = "write a duration such as 5s, 250ms or 1h30m";
constexpr char kCpusExample[] = "write a number of cores such as 0.5, 500m or 2";
constexpr char kPercentExample[] = "write a percentage such as 50% or 12.5%";
constexpr char kIntegerExample[] = "write a whole number such as 42";

// "12.5": value / scale without trailing zeros.
std::string Decimal(uint64_t value, uint64_t scale) {
  std::string out = std::to_string(value / scale);
  uint64_t left = value % scale;
  if (left == 0) return out;
  out += '.';
  while (left != 0) {
    scale /= 10;
    out += static_cast<char>('0' + left / scale);
    left %= scale;
  }
  return out;
}

// Reads one "1.5h" from the front of `text`; `next_unit` is the first unit still allowed.
struct DurationPart {
  Wide nanoseconds;
  size_t unit;
  std::string_view rest;
};
std::optional<DurationPart> ReadDurationPart(std::string_view text, size_t next_unit) {
  const auto number = ReadNumber(text);
  if (!number) return std::nullopt;
  const size_t letters = std::min(number->rest.find_first_of("0123456789."), number->rest.size());
  const std::string_view name = number->rest.substr(0, letters);
  for (size_t unit = next_unit; unit < kDurationUnits.size(); ++unit) {
    if (kDurationUnits[unit].name != name) continue;
    return DurationPart{Scaled(*number, kDurationUnits[unit].factor), unit,
                        number->rest.substr(letters)};
  }
  return std::nullopt;
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  const auto number = ReadNumber(text);
  const uint64_t factor = number ? SizeFactor(number->rest) : 0;
  if (factor == 0) return Refuse(text, "is not a size", kSizeExample);
  if (factor == 1 && number->scale != 1) {
    return Refuse(text, "is not a whole number of bytes", kSizeExample);
  }
  const Wide bytes = Scaled(*number, factor);
  if (bytes > std::numeric_limits<uint64_t>::max()) {
    return Refuse(text, "is too large a size", kSizeExample);
  }
  return static_cast<uint64_t>(bytes);
}

std::string FormatSize(uint64_t bytes) {
  constexpr std::string_view kUnits = "BKMGTPE";
  size_t unit = 0;
  uint64_t factor = 1;
  while (unit + 1 < kUnits.size() && bytes / factor >= 1024) {
    factor *= 1024;
    ++unit;
  }
  auto tenths = static_cast<uint64_t>((Wide{bytes} * 10 + factor / 2) / factor);
  if (tenths >= 10240 && unit + 1 < kUnits.size()) {  // 1023.96K rounds up to the next unit
    tenths = 10;
    ++unit;
  }
  return Decimal(tenths, 10) + kUnits[unit];
}

Result<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  constexpr auto kMax = static_cast<Wide>(std::numeric_limits<int64_t>::max());
  Wide total = 0;
  if (const auto seconds = ReadNumber(text); seconds && seconds->rest.empty()) {
    total = Scaled(*seconds, 1'000'000'000);
  } else {
    std::string_view left = text;
    size_t next_unit = 0;
    do {
      const auto part = ReadDurationPart(left, next_unit);
      if (!part) return Refuse(text, "is not a duration", kDurationExample);
      total += part->nanoseconds;
      next_unit = part->unit + 1;
      left = part->rest;
    } while (!left.empty());
  }
  if (total > kMax) return Refuse(text, "is too long a duration", kDurationExample);
  return std::chrono::nanoseconds(static_cast<int64_t>(total));
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  std::string out;
  const bool negative = duration.count() < 0;
  uint64_t left = static_cast<uint64_t>(duration.count());
  if (negative) {
    left = 0 - left;
    out += '-';
  }
  if (left == 0) return "0s";
  constexpr size_t kSeconds = 3;
  for (size_t unit = 0; unit < kSeconds; ++unit) {
    const auto& [name, factor] = kDurationUnits[unit];
    if (left < factor) continue;
    out += std::to_string(left / factor);
    out += name;
    left %= factor;
  }
  if (left == 0) return out;
  const bool compound = out.size() > (negative ? 1u : 0u);
  for (size_t unit = kSeconds; unit < kDurationUnits.size(); ++unit) {
    const auto& [name, factor] = kDurationUnits[unit];
    if (left < factor && !(compound && unit == kSeconds)) continue;
    out += Decimal(left, factor);
    return out += name;
  }
  return out;
}

Result<uint32_t> ParseCpus(std::string_view text) {
  constexpr uint64_t kMaxMillis = 8192 * 1000;
  const auto number = ReadNumber(text);
  std::optional<Wide> millis;
  if (number && number->rest.empty()) millis = ExactlyScaled(*number, 1000);
  if (number && number->rest == "m") millis = ExactlyScaled(*number, 1);
  if (!millis) return Refuse(text, "is not a number of cores", kCpusExample);
  if (*millis == 0) return Refuse(text, "is no core at all; it must be more than 0", kCpusExample);
  if (*millis > kMaxMillis) return Refuse(text, "is more than 8192 cores", kCpusExample);
  return static_cast<uint32_t>(*millis);
}

std::string FormatCpus(uint32_t millis) { return Decimal(millis, 1000); }

Result<uint32_t> ParsePercent(std::string_view text) {
  const auto number = ReadNumber(text);
  std::optional<Wide> points;
  if (number && (number->rest.empty() || number->rest == "%")) points = ExactlyScaled(*number, 100);
  if (!points) return Refuse(text, "is not a percentage", kPercentExample);
  if (*points > 10'000) return Refuse(text, "is more than 100%", kPercentExample);
  return static_cast<uint32_t>(*points);
}

std::string FormatPercent(uint32_t basis_points) { return Decimal(basis_points, 100) + '%'; }

Result<int64_t> ParseInteger(std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto number = ReadNumber(text.substr(negative ? 1 : 0));
  if (!number || !number->rest.empty() || number->scale != 1) {
    return Refuse(text, "is not a whole number", kIntegerExample);
  }
  const uint64_t limit =
      static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
  if (number->whole > limit) return Refuse(text, "is out of range", kIntegerExample);
  return static_cast<int64_t>(negative ? 0 - number->whole : number->whole);
}

}  // namespace caisson
