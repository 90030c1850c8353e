// What one key may do how often, and have at a time, where that differs from the server's defaults.
#pragma once

#include <optional>
#include <string_view>

#include "auth/rate_limit.h"
#include "json/json.h"
#include "json/reader.h"

namespace caisson::api {

struct KeyLimits {
  std::optional<auth::Rate> requests, creates, execs;
  std::optional<int64_t> sandboxes, cpu_millis, memory_bytes;
};

// Fields: requests_per_second, request_burst, …, sandboxes, cpus, memory. Errors are the Reader's.
KeyLimits ReadKeyLimits(json::Reader& in);
// From what ToJson gave.
Result<KeyLimits> ParseKeyLimits(std::string_view text);
json::Object ToJson(const KeyLimits& limits);

}  // namespace caisson::api
