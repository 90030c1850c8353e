// Arbitrary bytes as JSON: they are refused with a place, or what is read writes to a text that
// reads as the same value and writes to itself. Readers of any value end in a verdict.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/utf8.h"
#include "json/reader.h"

namespace {

namespace json = caisson::json;

enum class Kind { kOne, kTwo };
constexpr json::Choice<Kind> kKinds[] = {{"one", Kind::kOne}, {"two", Kind::kTwo}};

void Read(json::Reader& in) {
  in.Optional<std::string>("a", {.max = 4});
  in.Optional<int64_t>("b", {.min = -5});
  in.Optional<uint32_t>("c");
  in.Optional<double>("d");
  in.OptionalSize("e");
  in.OptionalDuration("f");
  in.OptionalCpus("g");
  in.OptionalEnum<Kind>("h", kKinds);
  in.OptionalList<std::string>("i", {.max = 3});
  in.OptionalMap("j");
  in.OptionalObject("k", Read);
  in.OptionalObjects("l", Read);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = json::Parse(text, {.max_bytes = 4096});
  if (!value) {
    if (value.error().message().empty()) std::abort();
    return 0;
  }
  const std::string written = json::Write(*value);
  const auto again = json::Parse(written);
  if (!again || json::Write(*again) != written) std::abort();
  if (!caisson::IsUtf8(written)) std::abort();
  if (!json::Parse(json::WriteIndented(*value))) std::abort();
  json::Reader in(*value);
  Read(in);
  if (const auto status = in.Finish(); !status && status.error().remedy().empty()) std::abort();
  return 0;
}
