// Sizes, durations, CPU counts and percentages as people write them.
//
// Parsing is strict: signs, blanks, overflow and anything left over are refused with
// ErrorCode::kInvalidArgument, a message that quotes the text, and a remedy that shows an accepted
// example. Pure functions, thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace caisson {

// Bytes: "1048576", "512M", "1.5G", "1GiB". K, M, G, T, P, E and KiB, MiB, … are powers of 1024;
// kB, MB, … are powers of 1000. Letter case does not matter. A part of a byte is cut off.
Result<uint64_t> ParseSize(std::string_view text);
// For people: "512M", "1.5G", "1023B"; binary units, at most one decimal, rounded to nearest.
std::string FormatSize(uint64_t bytes);

// "5s", "1h30m", "250ms", "1.5s", or a plain number of seconds. The units d, h, m, s, ms, us, ns
// appear in that order, each at most once. At most 292 years.
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);
// "1h30m", "2.5s", "250ms"; exact, and ParseDuration reads it back. Negative values get a '-'.
std::string FormatDuration(std::chrono::nanoseconds duration);

// Thousandths of a core: "2", "0.5", "500m". More than zero, at most 8192 cores.
Result<uint32_t> ParseCpus(std::string_view text);
// "2", "0.5".
std::string FormatCpus(uint32_t millis);

// Hundredths of a percent: "50%", "12.5%", "50". 0 to 100 %.
Result<uint32_t> ParsePercent(std::string_view text);
// "50%", "12.5%".
std::string FormatPercent(uint32_t basis_points);

// A decimal integer with an optional '-'.
Result<int64_t> ParseInteger(std::string_view text);

}  // namespace caisson
