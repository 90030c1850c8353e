#include "cli/output.h"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cli/dispatch.h"
#include "cli/terminal.h"

namespace caisson::cli {

Colour ColourOfOutput() {
  const char* no_colour = getenv("NO_COLOR");
  const char* term = getenv("TERM");
  const bool wanted = (no_colour == nullptr || *no_colour == '\0') &&
                      (term == nullptr || strcmp(term, "dumb") != 0);
  return wanted && isatty(STDOUT_FILENO) != 0 ? Colour::kYes : Colour::kNo;
}

std::optional<size_t> WidthOfOutput() {
  if (isatty(STDOUT_FILENO) == 0) return std::nullopt;
  return SizeOfTerminal(STDOUT_FILENO).cols;
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 = byte == 0xc2 && i + 1 < text.size() &&
                    static_cast<unsigned char>(text[i + 1]) < 0xa0;  // U+0080 to U+009F
    if (c1) ++i;
    line += byte == '\n' || byte == '\t' ? ' ' : c1 || byte < 0x20 || byte == 0x7f ? '?' : text[i];
  }
  return line;
}

const json::Value& At(const json::Value& object, std::string_view name) {
  static const json::Value kNull;
  const json::Value* found = object.is_object() ? object.as_object().if_contains(name) : nullptr;
  return found == nullptr ? kNull : *found;
}

std::string TextAt(const json::Value& object, std::string_view name) {
  const json::Value& value = At(object, name);
  return value.is_string() ? std::string(value.as_string()) : std::string();
}

double NumberAt(const json::Value& object, std::string_view name) {
  const json::Value& value = At(object, name);
  if (value.is_int64()) return static_cast<double>(value.as_int64());
  if (value.is_uint64()) return static_cast<double>(value.as_uint64());
  return value.is_double() ? value.as_double() : 0;
}

uint64_t CountAt(const json::Value& object, std::string_view name) {
  const json::Value& value = At(object, name);
  if (value.is_int64()) return value.as_int64() < 0 ? 0 : static_cast<uint64_t>(value.as_int64());
  return value.is_uint64() ? value.as_uint64() : 0;
}

std::string Shown(const json::Value& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return OneLine(std::string_view(value.as_string()));
  std::string text;
  if (value.is_object()) {
    for (const auto& [name, member] : value.as_object())
      text += (text.empty() ? "" : ",") + OneLine(name) + "=" + Shown(member);
  } else if (value.is_array()) {
    for (const auto& element : value.as_array())
      text += (text.empty() ? "" : ", ") + Shown(element);
  } else {
    text = json::Write(value);
  }
  return text.empty() ? "-" : text;
}

std::optional<double> ParseTime(std::string_view text) {
  const std::string copy(text);
  tm parts{};
  const char* rest = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  double fraction = 0;
  if (*rest == '.') {
    char* end = nullptr;
    fraction = strtod(rest, &end);
    rest = end;
  }
  if (strcmp(rest, "Z") != 0) return std::nullopt;
  return static_cast<double>(timegm(&parts)) + fraction;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string Span(double seconds) {
  if (!(seconds >= 0)) return "-";
  constexpr struct {
    double size;
    char unit;
  } kUnits[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
  for (const auto& [size, unit] : kUnits)
    if (seconds >= size) return std::to_string(static_cast<int64_t>(seconds / size)) + unit;
  return "0s";
}

Status Print(std::string_view text) {
  if (WriteOut(text)) return {};
  return Error::FromErrno("cannot write to standard output");
}

Status PrintJson(const json::Value& value) { return Print(json::Write(value) + "\n"); }

}  // namespace caisson::cli
