// What the verbs that talk to a server show: colours, ages, and fields of its answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/colour.h"
#include "json/json.h"

namespace caisson::cli {

// Whether standard output is a terminal that wants colours (NO_COLOR, TERM=dumb).
Colour ColourOfOutput();
// The columns of standard output; nothing when it is no terminal.
std::optional<size_t> WidthOfOutput();

// `text` on one line and unable to move the cursor: what guests and other users wrote is shown so.
std::string OneLine(std::string_view text);

// A field of an object; empty, 0 or null when it is missing or of another type.
std::string TextAt(const json::Value& object, std::string_view name);
double NumberAt(const json::Value& object, std::string_view name);
uint64_t CountAt(const json::Value& object, std::string_view name);
const json::Value& At(const json::Value& object, std::string_view name);
// Any value as a person would write it: texts without quotes, objects as "a=1,b=2".
std::string Shown(const json::Value& value);

// Seconds since 1970 of "2026-01-31T12:00:00.123Z"; nothing when it is none.
std::optional<double> ParseTime(std::string_view text);
double Now();
// The largest unit alone: "45s", "3m", "2h", "9d". Negative and unknown times are "-".
std::string Span(double seconds);

// Writes a JSON value as one line on standard output. kIo when it cannot.
Status PrintJson(const json::Value& value);
Status Print(std::string_view text);

}  // namespace caisson::cli
