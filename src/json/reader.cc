#include "json/reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "base/units.h"

namespace caisson::json {
namespace {

Error Invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

// What came, in a few words.
std::string Shown(const Value& value) {
  if (value.is_string()) return Quoted(value.get_string());
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return Write(value);
}

std::string ShownNumber(double number) {
  std::string text;
  AppendNumber(text, number);
  return text;
}

// " from 1 to 10", " of at least 1", " of at most 10", or nothing when the range is everything.
template <typename T, typename Show>
std::string Bounds(Range<T> range, Show show) {
  const bool low = range.min != Range<T>().min;
  const bool high = range.max != Range<T>().max;
  if (low && high) return Concat({" from ", show(range.min), " to ", show(range.max)});
  if (low) return Concat({" of at least ", show(range.min)});
  if (high) return Concat({" of at most ", show(range.max)});
  return "";
}

std::string ShownSize(size_t size) { return std::to_string(size); }
std::string Bounds(Count count) { return Bounds(Range<size_t>{count.min, count.max}, ShownSize); }

// The whole number that `value` is, if it is one of T's.
template <typename T>
std::optional<T> WholeNumber(const Value& value) {
  if (const int64_t* number = value.if_int64()) {
    return std::in_range<T>(*number) ? std::optional(static_cast<T>(*number)) : std::nullopt;
  }
  if (const uint64_t* number = value.if_uint64()) {
    return std::in_range<T>(*number) ? std::optional(static_cast<T>(*number)) : std::nullopt;
  }
  const double* number = value.if_double();
  constexpr double kExact = 9007199254740992.0;  // 2^53: every whole number up to here is a double
  if (number == nullptr || std::abs(*number) > kExact || std::trunc(*number) != *number) return {};
  const auto whole = static_cast<int64_t>(*number);
  return std::in_range<T>(whole) ? std::optional(static_cast<T>(whole)) : std::nullopt;
}

std::optional<double> RealNumber(const Value& value) {
  if (const double* number = value.if_double()) return *number;
  if (const int64_t* number = value.if_int64()) return static_cast<double>(*number);
  if (const uint64_t* number = value.if_uint64()) return static_cast<double>(*number);
  return std::nullopt;
}

// The text that base/units.h is to read: a number counts base units.
std::optional<std::string> QuantityText(const Value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (const auto whole = WholeNumber<uint64_t>(value)) return std::to_string(*whole);
  const double* number = value.if_double();
  if (number == nullptr || *number < 0 || *number > 1e18) return std::nullopt;
  char digits[48];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, *number, std::chars_format::fixed, 9).ptr;
  return std::string(digits, end);
}

}  // namespace

Reader::Reader(const Value& value, std::string path)
    : object_(value.if_object()), path_(std::move(path)) {
  if (object_ == nullptr) Mismatch(path_.empty() ? "the request" : path_, "an object", value);
}

std::string Reader::PathOf(std::string_view name) const {
  return path_.empty() ? std::string(name) : Concat({path_, ".", name});
}

std::string Reader::ElementPath(std::string_view name, size_t index) const {
  return Concat({PathOf(name), "[", std::to_string(index), "]"});
}

const Value* Reader::Take(std::string_view name) {
  declared_.push_back(name);
  const Value* value = object_ == nullptr ? nullptr : object_->if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

const Value* Reader::TakeRequired(std::string_view name) {
  const Value* value = Take(name);
  if (value == nullptr && missing_.empty()) missing_ = name;
  return value;
}

void Reader::Keep(Error error) {
  if (!error_) error_ = std::move(error);
}

void Reader::Mismatch(const std::string& path, std::string_view expected, const Value& got) {
  Keep(Invalid(Concat({path, ": expected ", expected, ", got ", Shown(got)}))
           .WithRemedy(Concat({"give ", path, " as ", expected})));
}

void Reader::Refuse(std::string_view name, std::string_view message, std::string remedy) {
  Keep(Invalid(Concat({PathOf(name), ": ", message})).WithRemedy(std::move(remedy)));
}

template <>
std::optional<bool> Reader::Convert(const Value& value, const std::string& path, Range<bool>) {
  if (const bool* truth = value.if_bool()) return *truth;
  Mismatch(path, "true or false", value);
  return std::nullopt;
}

template <>
std::optional<std::string> Reader::Convert(const Value& value, const std::string& path,
                                           Range<std::string> range) {
  const String* text = value.if_string();
  if (text != nullptr && text->size() >= range.min && text->size() <= range.max) {
    return std::string(*text);
  }
  const std::string bounds = Bounds(Count{range.min, range.max});
  std::string expected = "a string";
  if (!bounds.empty()) expected = Concat({"a string", bounds, " bytes"});
  if (range.min == 1 && range.max == Range<std::string>().max) expected = "a string, not empty";
  Mismatch(path, expected, value);
  return std::nullopt;
}

template <>
std::optional<double> Reader::Convert(const Value& value, const std::string& path,
                                      Range<double> range) {
  const auto number = RealNumber(value);
  if (number && *number >= range.min && *number <= range.max) return number;
  Mismatch(path, "a number" + Bounds(range, ShownNumber), value);
  return std::nullopt;
}

template <typename T>
std::optional<T> Reader::Convert(const Value& value, const std::string& path, Range<T> range) {
  const auto number = WholeNumber<T>(value);
  if (number && *number >= range.min && *number <= range.max) return number;
  const auto show = [](T bound) { return std::to_string(bound); };
  std::string bounds = Bounds(range, show);
  // A number that the type cannot hold needs the type's own bounds in the message.
  if (bounds.empty() && RealNumber(value)) {
    bounds = Concat({" from ", show(range.min), " to ", show(range.max)});
  }
  Mismatch(path, "a whole number" + bounds, value);
  return std::nullopt;
}
template std::optional<int32_t> Reader::Convert(const Value&, const std::string&, Range<int32_t>);
template std::optional<int64_t> Reader::Convert(const Value&, const std::string&, Range<int64_t>);
template std::optional<uint32_t> Reader::Convert(const Value&, const std::string&, Range<uint32_t>);
template std::optional<uint64_t> Reader::Convert(const Value&, const std::string&, Range<uint64_t>);

std::optional<size_t> Reader::ChoiceOf(const Value& value, const std::string& path,
                                       const std::vector<std::string_view>& names) {
  const String* text = value.if_string();
  if (text != nullptr) {
    const auto found = std::ranges::find(names, std::string_view(*text));
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
  }
  std::string list;
  for (const auto name : names) list += Concat({list.empty() ? "" : ", ", name});
  const auto close = text == nullptr ? std::string_view() : ClosestTo(*text, names);
  Keep(Invalid(Concat({path, ": expected one of ", list, ", got ", Shown(value)}))
           .WithRemedy(close.empty() ? Concat({"give ", path, " as one of ", list})
                                     : Concat({"did you mean ", close, "?"})));
  return std::nullopt;
}

template <typename T, typename Parse, typename Show>
std::optional<T> Reader::Quantity(std::string_view name, Range<T> range, std::string_view what,
                                  Parse parse, Show show) {
  const Value* value = Take(name);
  if (value == nullptr) return std::nullopt;
  if (const auto text = QuantityText(*value)) {
    const Result<T> quantity = parse(*text);
    if (quantity && *quantity >= range.min && *quantity <= range.max) return *quantity;
  }
  Mismatch(PathOf(name), Concat({what, Bounds(range, show)}), *value);
  return std::nullopt;
}

std::optional<uint64_t> Reader::OptionalSize(std::string_view name, Range<uint64_t> range) {
  return Quantity(name, range, "a size (in bytes, or like \"512M\")", ParseSize, FormatSize);
}

std::optional<std::chrono::nanoseconds> Reader::OptionalDuration(
    std::string_view name, Range<std::chrono::nanoseconds> range) {
  return Quantity(name, range, "a duration (in seconds, or like \"1h30m\")", ParseDuration,
                  FormatDuration);
}

std::optional<uint32_t> Reader::OptionalCpus(std::string_view name, Range<uint32_t> range) {
  return Quantity(name, range, "a number of cores (like 0.5, or \"500m\")", ParseCpus, FormatCpus);
}

const Array* Reader::ListOf(const Value& value, const std::string& path, Count count) {
  const Array* array = value.if_array();
  if (array != nullptr && array->size() >= count.min && array->size() <= count.max) return array;
  const std::string bounds = Bounds(count);
  const std::string expected = Concat({"a list", bounds, bounds.empty() ? "" : " elements"});
  if (array == nullptr) {
    Mismatch(path, expected, value);
  } else {
    Keep(Invalid(Concat({path, ": expected ", expected, ", got ", ShownSize(array->size())}))
             .WithRemedy(Concat({"give ", path, " as ", expected})));
  }
  return nullptr;
}

std::optional<StringMap> Reader::OptionalMap(std::string_view name, Count count,
                                             Range<std::string> range) {
  const Value* value = Take(name);
  if (value == nullptr) return std::nullopt;
  const Object* object = value->if_object();
  if (object == nullptr) {
    Mismatch(PathOf(name), "an object of strings", *value);
    return std::nullopt;
  }
  if (object->size() < count.min || object->size() > count.max) {
    const std::string expected = Concat({"an object", Bounds(count), " members"});
    Refuse(name, Concat({"expected ", expected, ", got ", ShownSize(object->size())}),
           Concat({"give ", PathOf(name), " as ", expected}));
    return std::nullopt;
  }
  StringMap map;
  for (const auto& member : *object) {
    const std::string path = Concat({PathOf(name), "[", Quoted(member.key()), "]"});
    auto text = Convert(member.value(), path, range);
    if (!text) return std::nullopt;
    map.emplace(member.key(), *std::move(text));
  }
  return map;
}

// A misspelt field is both unknown and missing: the unknown one is the better message.
Status Reader::Finish() {
  if (error_) return *error_;
  if (object_ == nullptr) return {};
  for (const auto& member : *object_) {
    const std::string_view name = member.key();
    if (std::ranges::find(declared_, name) != declared_.end()) continue;
    const auto close = ClosestTo(name, declared_);
    std::string message = Concat({"unknown field ", Quoted(name)});
    if (!path_.empty()) message += Concat({" in ", path_});
    return Invalid(std::move(message))
        .WithRemedy(close.empty() ? "leave it out" : Concat({"did you mean ", PathOf(close), "?"}));
  }
  if (missing_.empty()) return {};
  return Invalid(Concat({PathOf(missing_), ": is missing"}))
      .WithRemedy(Concat({"give ", PathOf(missing_)}));
}

}  // namespace caisson::json
