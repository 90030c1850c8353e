#include "api/time_text.h"

#include <charconv>
#include <chrono>

#include "api/session_json.h"
#include "base/text.h"

namespace caisson::api {
namespace {

// Takes exactly `digits` digits off the front.
std::optional<int> TakeNumber(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value);
  if (error != std::errc() || end != text.data() + digits || text.front() == '-')
    return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

bool TakeLetter(std::string_view& text, char letter) {
  if (text.empty() || text.front() != letter) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<int64_t> TakeDay(std::string_view& text) {
  const auto year = TakeNumber(text, 4);
  if (!year || !TakeLetter(text, '-')) return std::nullopt;
  const auto month = TakeNumber(text, 2);
  if (!month || !TakeLetter(text, '-')) return std::nullopt;
  const auto day = TakeNumber(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

// "12:00:00", with a fraction of one to three digits.
std::optional<int64_t> TakeClock(std::string_view& text) {
  const auto hour = TakeNumber(text, 2);
  if (!hour || *hour > 23 || !TakeLetter(text, ':')) return std::nullopt;
  const auto minute = TakeNumber(text, 2);
  if (!minute || *minute > 59 || !TakeLetter(text, ':')) return std::nullopt;
  const auto second = TakeNumber(text, 2);
  if (!second || *second > 59) return std::nullopt;
  int64_t millis = ((*hour * 60LL + *minute) * 60 + *second) * 1000;
  if (!TakeLetter(text, '.')) return millis;
  int unit = 100;
  for (; unit > 0; unit /= 10) {
    const auto digit = TakeNumber(text, 1);
    if (!digit) break;
    millis += int64_t{*digit} * unit;
  }
  if (unit == 100) return std::nullopt;  // a point without a digit
  return millis;
}

std::optional<int64_t> Parse(std::string_view text) {
  constexpr int64_t kDay = 24LL * 3600 * 1000;
  const auto day = TakeDay(text);
  if (!day) return std::nullopt;
  if (text.empty()) return *day * kDay;
  if (!TakeLetter(text, 'T')) return std::nullopt;
  const auto clock = TakeClock(text);
  if (!clock || text != "Z") return std::nullopt;
  return *day * kDay + *clock;
}

}  // namespace

int64_t NowMs() { return sandbox::SystemTime().time_since_epoch().count(); }

std::string TimeText(int64_t time_ms) {
  return ToText(sandbox::WallTime(std::chrono::milliseconds(time_ms)));
}

json::Value TimeOrNull(const std::optional<int64_t>& time_ms) {
  return time_ms ? json::Value(TimeText(*time_ms)) : json::Value();
}

Result<int64_t> ParseTime(std::string_view name, std::string_view text) {
  if (const auto time = Parse(text)) return *time;
  return Error(ErrorCode::kInvalidArgument, Concat({name, " is ", Quoted(text), ", not a time"}))
      .WithRemedy("write 2026-01-31 or 2026-01-31T12:00:00Z (UTC)");
}

}  // namespace caisson::api
