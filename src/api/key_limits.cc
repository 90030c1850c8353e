#include "api/key_limits.h"

#include <algorithm>
#include <string>

namespace caisson::api {
namespace {

struct RateFields {
  std::string_view rate, burst;
};
constexpr RateFields kRequests{"requests_per_second", "request_burst"};
constexpr RateFields kCreates{"creates_per_second", "create_burst"};
constexpr RateFields kExecs{"execs_per_second", "exec_burst"};

std::optional<auth::Rate> ReadRate(json::Reader& in, RateFields fields) {
  const auto rate = in.Optional<double>(fields.rate, {.min = 0.001, .max = 1e6});
  const auto burst = in.Optional<double>(fields.burst, {.min = 1, .max = 1e6});
  if (!rate) {
    if (burst) in.Refuse(fields.burst, "is given without a rate", "give the rate as well");
    return std::nullopt;
  }
  return auth::Rate{*rate, burst.value_or(std::max(1.0, *rate))};
}

void AddRate(json::Object& to, RateFields fields, const std::optional<auth::Rate>& rate) {
  if (!rate) return;
  to[fields.rate] = rate->per_second;
  to[fields.burst] = rate->burst;
}

}  // namespace

KeyLimits ReadKeyLimits(json::Reader& in) {
  KeyLimits limits;
  limits.requests = ReadRate(in, kRequests);
  limits.creates = ReadRate(in, kCreates);
  limits.execs = ReadRate(in, kExecs);
  limits.sandboxes = in.Optional<int64_t>("sandboxes", {.min = 1, .max = 1'000'000});
  if (const auto cpus = in.OptionalCpus("cpus", {.min = 1})) limits.cpu_millis = *cpus;
  if (const auto memory = in.OptionalSize("memory", {.min = 1, .max = INT64_MAX}))
    limits.memory_bytes = static_cast<int64_t>(*memory);
  return limits;
}

Result<KeyLimits> ParseKeyLimits(std::string_view text) {
  CAISSON_ASSIGN(const json::Value value, json::Parse(text));
  json::Reader in(value);
  const KeyLimits limits = ReadKeyLimits(in);
  CAISSON_TRY(in.Finish());
  return limits;
}

json::Object ToJson(const KeyLimits& limits) {
  json::Object object;
  AddRate(object, kRequests, limits.requests);
  AddRate(object, kCreates, limits.creates);
  AddRate(object, kExecs, limits.execs);
  if (limits.sandboxes) object["sandboxes"] = *limits.sandboxes;
  if (limits.cpu_millis) object["cpus"] = static_cast<double>(*limits.cpu_millis) / 1000;
  if (limits.memory_bytes) object["memory"] = *limits.memory_bytes;
  return object;
}

}  // namespace caisson::api
