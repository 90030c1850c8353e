#include "log/line.h"

#include <stdio.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "json/json.h"

namespace caisson::log {
namespace {

// Now, in UTC, to the millisecond (RFC 3339).
std::string Timestamp() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts = {};
  gmtime_r(&now.tv_sec, &parts);
  char text[40];
  const size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text + length, sizeof text - length, ".%03ldZ", now.tv_nsec / 1'000'000);
  return text;
}

std::string_view ColourOf(std::string_view level) {
  if (level == "error") return "\033[31m";
  if (level == "warn") return "\033[33m";
  return level == "debug" ? "\033[2m" : "\033[32m";
}

bool NeedsQuotes(std::string_view text) {
  return text.empty() || std::ranges::any_of(text, [](char c) {
           return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\\' || c == '=' ||
                  c == 0x7f;
         });
}

// C1 controls and bidirectional overrides: valid UTF-8 that terminals act on.
size_t ActiveSequence(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.size() >= 2 && at(0) == 0xc2 && at(1) < 0xa0) return 2;
  if (text.size() < 3 || at(0) != 0xe2) return 0;
  const bool overrides = (at(1) == 0x80 && at(2) >= 0xa8 && at(2) <= 0xae) ||
                         (at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9);
  return overrides ? 3 : 0;
}

}  // namespace

void AppendPlain(std::string& out, std::string_view text, Quoting quoting) {
  std::string quoted;
  json::AppendString(quoted, text);  // escapes control characters, makes it UTF-8
  std::string_view safe = quoted;
  if (quoting == Quoting::kNever || !NeedsQuotes(text)) safe = safe.substr(1, safe.size() - 2);
  while (!safe.empty()) {
    const size_t active = ActiveSequence(safe);
    if (active > 0) {
      out += '?';
    } else {
      out += safe[0];
    }
    safe.remove_prefix(std::max<size_t>(active, 1));
  }
}

std::string StartLine(Format format, std::string_view level, std::string_view message) {
  std::string line;
  line.reserve(256);
  if (format == Format::kJson) {
    line += "{\"time\":\"";
    line += Timestamp();
    line += "\",\"level\":\"";
    line += level;
    line += "\",\"message\":";
    json::AppendString(line, message);
    return line;
  }
  const bool coloured = format == Format::kColoured;
  if (coloured) line += "\033[2m";
  line += Timestamp();
  line += coloured ? "\033[0m " : " ";
  if (coloured) line += ColourOf(level);
  line += level;
  if (coloured) line += "\033[0m";
  line.append(level.size() < 6 ? 6 - level.size() : 1, ' ');
  AppendPlain(line, message, Quoting::kNever);
  return line;
}

}  // namespace caisson::log
