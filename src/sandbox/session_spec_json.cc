#include "sandbox/session_spec_json.h"

#include <array>

#include "json/json.h"
#include "json/reader.h"

namespace caisson::sandbox {
namespace {

constexpr std::array<json::Choice<Profile>, 2> kProfiles = {
    {{"default", Profile::kDefault}, {"strict", Profile::kStrict}}};
constexpr std::array<json::Choice<WarmUse>, 2> kWarmUses = {
    {{"when_ready", WarmUse::kWhenReady}, {"never", WarmUse::kNever}}};

template <typename E, size_t N>
std::string_view NameIn(const std::array<json::Choice<E>, N>& table, E value) {
  for (const auto& choice : table)
    if (choice.value == value) return choice.name;
  return table[0].name;
}

// One list of the limits serves both directions: `each(name, field)`.
template <typename L, typename Each>
void EachLimit(L& limits, Each each) {
  each("memory", limits.memory_bytes);
  each("swap", limits.swap_bytes);
  each("cpu_millis", limits.cpu_millis);
  each("pids", limits.pids);
  each("disk", limits.disk_bytes);
  each("disk_inodes", limits.disk_inodes);
  each("open_files", limits.open_files);
  each("io_read_bps", limits.io_read_bps);
  each("io_write_bps", limits.io_write_bps);
  each("io_read_iops", limits.io_read_iops);
  each("io_write_iops", limits.io_write_iops);
  each("memory_bandwidth_percent", limits.memory_bandwidth_percent);
  each("output", limits.output_bytes);
}
template <typename S, typename Each>
void EachCount(S& stats, Each each) {
  each("memory_bytes", stats.memory_bytes);
  each("memory_peak_bytes", stats.memory_peak_bytes);
  each("oom_kills", stats.oom_kills);
  each("pids", stats.pids);
  each("pids_limit_hits", stats.pids_limit_hits);
  each("io_read_bytes", stats.io_read_bytes);
  each("io_write_bytes", stats.io_write_bytes);
  each("disk_bytes", stats.disk_bytes);
  each("disk_used_bytes", stats.disk_used_bytes);
  each("disk_inodes", stats.disk_inodes);
  each("disk_used_inodes", stats.disk_used_inodes);
}
template <typename S, typename Each>
void EachBound(S& scaling, Each each) {
  each("memory_floor", scaling.memory_floor);
  each("memory_ceiling", scaling.memory_ceiling);
  each("cpu_floor", scaling.cpu_floor);
  each("cpu_ceiling", scaling.cpu_ceiling);
}

json::Object ToObject(const StringMap& map) {
  json::Object object;
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

}  // namespace

std::string SpecToJson(const SessionSpec& spec) {
  json::Object limits;
  EachLimit(spec.limits, [&](const char* name, const auto& value) {
    if (value) limits[name] = *value;
  });
  if (spec.limits.wall_time) limits["wall_time_ms"] = spec.limits.wall_time->count();
  json::Object object = {{"environment", spec.environment},
                         {"provider", spec.provider},
                         {"profile", NameIn(kProfiles, spec.profile)},
                         {"user", spec.user},
                         {"limits", std::move(limits)},
                         {"network", spec.network},
                         {"env", ToObject(spec.env)},
                         {"timeout_ms", spec.timeout.count()},
                         {"warm", NameIn(kWarmUses, spec.warm)}};
  json::Array artifacts;
  for (const auto& glob : spec.artifacts) artifacts.emplace_back(glob);
  object["artifacts"] = std::move(artifacts);
  if (spec.scaling.Scales()) {
    json::Object scaling;
    EachBound(spec.scaling, [&](const char* name, auto value) { scaling[name] = value; });
    object["scaling"] = std::move(scaling);
  }
  return json::Write(object);
}

Result<SessionSpec> SpecFromJson(std::string_view text) {
  CAISSON_ASSIGN(const json::Value value, json::Parse(text));
  SessionSpec spec;
  json::Reader in(value);
  spec.environment = in.Optional<std::string>("environment").value_or(spec.environment);
  spec.provider = in.Optional<std::string>("provider").value_or("");
  spec.profile = in.OptionalEnum<Profile>("profile", kProfiles).value_or(spec.profile);
  spec.user = in.Optional<std::string>("user").value_or("");
  spec.network = in.Optional<std::string>("network").value_or(spec.network);
  spec.env = in.OptionalMap("env").value_or(StringMap());
  spec.timeout =
      std::chrono::milliseconds(in.Optional<int64_t>("timeout_ms").value_or(spec.timeout.count()));
  spec.warm = in.OptionalEnum<WarmUse>("warm", kWarmUses).value_or(spec.warm);
  spec.artifacts = in.OptionalList<std::string>("artifacts").value_or(std::vector<std::string>());
  in.OptionalObject("limits", [&](json::Reader& limits) {
    EachLimit(spec.limits, [&]<typename T>(const char* name, std::optional<T>& field) {
      field = limits.Optional<T>(name);
    });
    if (const auto ms = limits.Optional<int64_t>("wall_time_ms"))
      spec.limits.wall_time = std::chrono::milliseconds(*ms);
  });
  in.OptionalObject("scaling", [&](json::Reader& scaling) {
    EachBound(spec.scaling, [&]<typename T>(const char* name, T& field) {
      field = scaling.Optional<T>(name).value_or(0);
    });
  });
  CAISSON_TRY(in.Finish());
  return spec;
}

std::string MapToJson(const StringMap& map) { return json::Write(ToObject(map)); }

Result<StringMap> MapFromJson(std::string_view text) {
  CAISSON_ASSIGN(const json::Value value, json::Parse(text));
  if (!value.is_object()) return Error(ErrorCode::kInvalidArgument, "expected an object of texts");
  StringMap map;
  for (const auto& [key, member] : value.get_object()) {
    if (!member.is_string())
      return Error(ErrorCode::kInvalidArgument, "expected an object of texts");
    map[std::string(key)] = std::string(member.get_string());
  }
  return map;
}

std::string StatsToJson(const SandboxStats& stats) {
  json::Object object;
  EachCount(stats, [&](const char* name, uint64_t count) { object[name] = count; });
  object["cpu_us"] = stats.cpu.count();
  object["cpu_throttled_us"] = stats.cpu_throttled.count();
  return json::Write(object);
}

Result<SandboxStats> StatsFromJson(std::string_view text) {
  CAISSON_ASSIGN(const json::Value value, json::Parse(text));
  SandboxStats stats;
  json::Reader in(value);
  EachCount(stats, [&](const char* name, uint64_t& count) {
    count = in.Optional<uint64_t>(name).value_or(0);
  });
  stats.cpu = std::chrono::microseconds(in.Optional<int64_t>("cpu_us").value_or(0));
  stats.cpu_throttled =
      std::chrono::microseconds(in.Optional<int64_t>("cpu_throttled_us").value_or(0));
  CAISSON_TRY(in.Finish());
  return stats;
}

}  // namespace caisson::sandbox
