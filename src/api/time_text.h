// Times as requests and answers have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/json.h"

namespace caisson::api {

// Milliseconds since 1970, now.
int64_t NowMs();

// Milliseconds since 1970 as "2026-01-31T12:00:00.123Z".
std::string TimeText(int64_t time_ms);
// The same, or null.
json::Value TimeOrNull(const std::optional<int64_t>& time_ms);

// "2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123Z" to milliseconds since 1970.
// kInvalidArgument for anything else, saying what is taken; `name` is what the caller called it.
Result<int64_t> ParseTime(std::string_view name, std::string_view text);

}  // namespace caisson::api
