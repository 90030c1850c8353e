#include <algorithm>
#include <utility>

#include "base/options.h"
#include "base/text.h"
#include "base/units.h"

namespace caisson {
namespace {

Error Invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Result<bool> ParseTruth(std::string_view text) {
  for (const auto yes : {"true", "yes", "on", "1"}) {
    if (text == yes) return true;
  }
  for (const auto no : {"false", "no", "off", "0"}) {
    if (text == no) return false;
  }
  return Invalid(Quoted(text) + " is neither true nor false").WithRemedy("write true or false");
}

Result<std::string> ParseChoice(const Option& option, std::string_view text) {
  const auto choices = ChoicesOf(option.choices);
  if (std::ranges::find(choices, text) != choices.end()) return std::string(text);
  std::string list;
  for (const auto choice : choices) list += Concat({list.empty() ? "" : ", ", choice});
  const auto close = ClosestTo(text, choices);
  std::string remedy = close.empty() ? "" : Concat({"did you mean ", close, "? "});
  return Invalid(Quoted(text) + " is not one of the choices")
      .WithRemedy(std::move(remedy) + "the choices are " + list);
}

std::string FormatBound(ValueKind kind, int64_t bound) {
  switch (kind) {
    case ValueKind::kSize:
      return FormatSize(static_cast<uint64_t>(bound));
    case ValueKind::kDuration:
      return FormatDuration(std::chrono::nanoseconds(bound));
    case ValueKind::kCpus:
      return FormatCpus(static_cast<uint32_t>(bound));
    case ValueKind::kPercent:
      return FormatPercent(static_cast<uint32_t>(bound));
    default:
      return std::to_string(bound);
  }
}

Status CheckBounds(const Option& option, std::string_view text, int64_t value) {
  const bool low = value < option.min;
  if (!low && value <= option.max) return {};
  const std::string bound = FormatBound(option.kind, low ? option.min : option.max);
  return Invalid(Concat({Quoted(text), low ? " is too small" : " is too large"}))
      .WithRemedy(Concat({low ? "the least allowed is " : "the most allowed is ", bound}));
}

// A number of some unit, checked against the row's bounds.
template <typename T>
Result<OptionValue> Bounded(const Option& option, std::string_view text, Result<T> parsed) {
  CAISSON_ASSIGN(const T value, std::move(parsed));
  if constexpr (std::is_same_v<T, std::chrono::nanoseconds>) {
    CAISSON_TRY(CheckBounds(option, text, value.count()));
  } else {
    if (!std::in_range<int64_t>(value)) {  // no file, memory or offset is that large
      return Invalid(Quoted(text) + " is too large").WithRemedy("write less than 8E");
    }
    CAISSON_TRY(CheckBounds(option, text, static_cast<int64_t>(value)));
  }
  return OptionValue(std::in_place_type<T>, value);
}

Result<OptionValue> ParseKind(const Option& option, std::string_view text) {
  switch (option.kind) {
    case ValueKind::kFlag: {
      CAISSON_ASSIGN(const bool truth, ParseTruth(text));
      return OptionValue(truth);
    }
    case ValueKind::kInt:
      return Bounded(option, text, ParseInteger(text));
    case ValueKind::kSize:
      return Bounded(option, text, ParseSize(text));
    case ValueKind::kDuration:
      return Bounded(option, text, ParseDuration(text));
    case ValueKind::kCpus:
      return Bounded(option, text, ParseCpus(text));
    case ValueKind::kPercent:
      return Bounded(option, text, ParsePercent(text));
    case ValueKind::kEnum: {
      CAISSON_ASSIGN(std::string choice, ParseChoice(option, text));
      return OptionValue(std::move(choice));
    }
    case ValueKind::kSession:
      if (text.empty()) return Invalid("the session has no name").WithRemedy("name a session");
      return OptionValue(std::string(text));
    case ValueKind::kPath:
      if (text.empty()) return Invalid("the path is empty").WithRemedy("name a file or directory");
      [[fallthrough]];
    case ValueKind::kString:
      return OptionValue(std::string(text));
  }
  return Error(ErrorCode::kInternal, "option of unknown kind");
}

}  // namespace

std::vector<std::string_view> ChoicesOf(std::string_view choices) {
  std::vector<std::string_view> parts;
  while (!choices.empty()) {
    const size_t end = std::min(choices.find('|'), choices.size());
    parts.push_back(choices.substr(0, end));
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return parts;
}

Result<OptionValue> ParseValue(const Option& option, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return Invalid(Quoted(text) + " has a NUL byte in it").WithRemedy("remove the NUL byte");
  }
  CAISSON_ASSIGN(OptionValue value, ParseKind(option, text));
  if (option.check != nullptr) CAISSON_TRY(option.check(text));
  return value;
}

}  // namespace caisson
