// Reader: the fields of a JSON object, declared one by one as they are read.
//
//   json::Reader in(body);
//   spec.name = in.Required<std::string>("name", {.min = 1, .max = 64});
//   spec.memory = in.OptionalSize("memory", {.min = 4 << 20});
//   spec.profile = in.OptionalEnum<Profile>("profile", kProfiles).value_or(Profile::kDefault);
//   in.OptionalObject("limits", [&](json::Reader& limits) { … });
//   in.OptionalObjects("mounts", [&](json::Reader& mount) { … });
//   CAISSON_TRY(in.Finish());
//
// The first thing that is wrong is kept, and Finish() returns it; a read that failed gives an empty
// value, so nothing read may be acted on before Finish() is asked. Finish() also refuses every
// field that was not declared, with the declared one it resembles. Errors are kInvalidArgument,
// name the field by its path (`limits.memory`, `mounts[2].source`), and say what was expected and
// what came. null is the same as absent for an Optional field.
//
// The value and the names given must outlive the Reader. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace caisson::json {

// What a field may hold; of a string, how many bytes.
template <typename T>
struct Range {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
};
template <>
struct Range<bool> {};
template <>
struct Range<std::chrono::nanoseconds> {
  std::chrono::nanoseconds min = std::chrono::nanoseconds::min();
  std::chrono::nanoseconds max = std::chrono::nanoseconds::max();
};
template <>
struct Range<std::string> {
  size_t min = 0;
  size_t max = std::numeric_limits<size_t>::max();
};

// How many elements a list or map may have.
struct Count {
  size_t min = 0;
  size_t max = std::numeric_limits<size_t>::max();
};

// A row of the table that an enumeration is read by.
template <typename E>
struct Choice {
  std::string_view name;
  E value;
};

using StringMap = std::map<std::string, std::string>;

class Reader {
 public:
  // `path` is where the value stands in the request, for messages; empty for the request itself. A
  // value that is no object is an error that Finish() returns.
  explicit Reader(const Value& value, std::string path = "");
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // T is bool, int32_t, int64_t, uint32_t, uint64_t, double or std::string. Whole numbers may be
  // written with a fraction of zero (2.0).
  template <typename T>
  T Required(std::string_view name, Range<T> range = {}) {
    const Value* value = TakeRequired(name);
    return value == nullptr ? T() : Convert<T>(*value, PathOf(name), range).value_or(T());
  }
  template <typename T>
  std::optional<T> Optional(std::string_view name, Range<T> range = {}) {
    const Value* value = Take(name);
    return value == nullptr ? std::nullopt : Convert<T>(*value, PathOf(name), range);
  }

  // One of the names in `table`.
  template <typename E>
  E RequiredEnum(std::string_view name, std::span<const Choice<E>> table) {
    const Value* value = TakeRequired(name);
    return value == nullptr ? E() : ConvertEnum(*value, PathOf(name), table).value_or(E());
  }
  template <typename E>
  std::optional<E> OptionalEnum(std::string_view name, std::span<const Choice<E>> table) {
    const Value* value = Take(name);
    return value == nullptr ? std::nullopt : ConvertEnum(*value, PathOf(name), table);
  }

  // Quantities: a number in base units (bytes, seconds, cores) or a text as base/units.h reads it
  // ("512M", "1h30m", "500m"). Cores are given as thousandths.
  std::optional<uint64_t> OptionalSize(std::string_view name, Range<uint64_t> range = {});
  std::optional<std::chrono::nanoseconds> OptionalDuration(
      std::string_view name, Range<std::chrono::nanoseconds> range = {});
  std::optional<uint32_t> OptionalCpus(std::string_view name, Range<uint32_t> range = {});

  // A list of values of one type; each is held to `range`.
  template <typename T>
  std::vector<T> RequiredList(std::string_view name, Count count = {}, Range<T> range = {}) {
    const Value* value = TakeRequired(name);
    return value == nullptr ? std::vector<T>() : ConvertList(*value, name, count, range);
  }
  template <typename T>
  std::optional<std::vector<T>> OptionalList(std::string_view name, Count count = {},
                                             Range<T> range = {}) {
    const Value* value = Take(name);
    if (value == nullptr) return std::nullopt;
    return ConvertList(*value, name, count, range);
  }

  // An object of strings under names of the caller's choosing (environment, labels).
  std::optional<StringMap> OptionalMap(std::string_view name, Count count = {},
                                       Range<std::string> range = {});

  // Nested objects: `read` gets a Reader of each, which is finished for it.
  template <typename Read>
  void RequiredObject(std::string_view name, Read&& read) {
    if (const Value* value = TakeRequired(name)) ReadNested(*value, PathOf(name), read);
  }
  // Gives whether the field is there.
  template <typename Read>
  bool OptionalObject(std::string_view name, Read&& read) {
    const Value* value = Take(name);
    if (value != nullptr) ReadNested(*value, PathOf(name), read);
    return value != nullptr;
  }
  template <typename Read>
  bool OptionalObjects(std::string_view name, Read&& read, Count count = {}) {
    const Value* value = Take(name);
    if (value == nullptr) return false;
    const Array* array = ListOf(*value, PathOf(name), count);
    for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
      ReadNested((*array)[i], ElementPath(name, i), read);
    }
    return true;
  }

  // Anything at all, as it is; null when the field is absent or null.
  const Value* Any(std::string_view name) { return Take(name); }

  // An error of the caller's own about a field: "limits.memory: `message`". Kept like the others.
  void Refuse(std::string_view name, std::string_view message, std::string remedy);

  // The path of a field, for messages of the caller's own.
  std::string PathOf(std::string_view name) const;

  // What is wrong with the object and those in it, if anything.
  Status Finish();

 private:
  const Value* Take(std::string_view name);
  const Value* TakeRequired(std::string_view name);
  std::string ElementPath(std::string_view name, size_t index) const;
  const Array* ListOf(const Value& value, const std::string& path, Count count);

  template <typename T>
  std::optional<T> Convert(const Value& value, const std::string& path, Range<T> range);
  // The index of the name in `names` that `value` is.
  std::optional<size_t> ChoiceOf(const Value& value, const std::string& path,
                                 const std::vector<std::string_view>& names);
  template <typename E>
  std::optional<E> ConvertEnum(const Value& value, const std::string& path,
                               std::span<const Choice<E>> table) {
    std::vector<std::string_view> names;
    for (const auto& choice : table) names.push_back(choice.name);
    const auto index = ChoiceOf(value, path, names);
    return index ? std::optional<E>(table[*index].value) : std::nullopt;
  }
  template <typename T>
  std::vector<T> ConvertList(const Value& value, std::string_view name, Count count,
                             Range<T> range) {
    std::vector<T> list;
    const Array* array = ListOf(value, PathOf(name), count);
    for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
      auto element = Convert<T>((*array)[i], ElementPath(name, i), range);
      if (!element) break;
      list.push_back(*std::move(element));
    }
    return list;
  }
  // A field that is a number in base units or a text that `parse` reads.
  template <typename T, typename Parse, typename Show>
  std::optional<T> Quantity(std::string_view name, Range<T> range, std::string_view what,
                            Parse parse, Show show);
  template <typename Read>
  void ReadNested(const Value& value, std::string path, Read& read) {
    Reader nested(value, std::move(path));
    read(nested);
    if (auto status = nested.Finish(); !status) Keep(std::move(status).error());
  }

  void Keep(Error error);
  void Mismatch(const std::string& path, std::string_view expected, const Value& got);

  const Object* object_;  // null when the value is none
  std::string path_;
  std::vector<std::string_view> declared_;
  std::optional<Error> error_;
  std::string_view missing_;  // the first required field that is not there
};

}  // namespace caisson::json
