// How a log line begins, and text that a terminal can be shown. Private to log/.
#pragma once

#include <string>
#include <string_view>

#include "log/sink.h"

namespace caisson::log {

// {"time":"2026-01-31T12:00:00.123Z","level":"info","message":"…"   (the object stays open)
// 2026-01-31T12:00:00.123Z info  …
std::string StartLine(Format format, std::string_view level, std::string_view message);

enum class Quoting { kNever, kIfNeeded };

// `text` without anything that a terminal acts on; in quotes when it has blanks or is empty.
void AppendPlain(std::string& out, std::string_view text, Quoting quoting);

}  // namespace caisson::log
