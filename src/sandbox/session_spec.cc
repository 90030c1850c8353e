#include "sandbox/session_spec.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/units.h"
#include "base/utf8.h"

namespace caisson::sandbox {
namespace {

constexpr size_t kMaxEntries = 64;
constexpr size_t kMaxEnvEntries = 256;
constexpr size_t kMaxEnvBytes = 64 * 1024;
constexpr size_t kMaxGlobs = 32;

Error Invalid(std::string message, std::string remedy) {
  return Error(ErrorCode::kInvalidArgument, std::move(message)).WithRemedy(std::move(remedy));
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == '/';
}
bool IsName(std::string_view text, size_t max) {
  return !text.empty() && text.size() <= max && std::ranges::all_of(text, IsNameCharacter);
}
bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

Status CheckEntries(const StringMap& entries, std::string_view what, size_t max_value) {
  if (entries.size() > kMaxEntries)
    return Invalid(fmt::format("there are {} entries of {}", entries.size(), what),
                   fmt::format("give at most {}", kMaxEntries));
  for (const auto& [key, value] : entries) {
    if (!IsName(key, 64))
      return Invalid(fmt::format("{} cannot be a key of {}", Quoted(key), what),
                     "use 1 to 64 letters, digits, '.', '_', '-' and '/'");
    if (value.size() > max_value || HasNul(value) || !IsUtf8(value))
      return Invalid(fmt::format("the value of {} in {} is too long or no text", Quoted(key), what),
                     fmt::format("give UTF-8 text of at most {} bytes without NUL", max_value));
  }
  return {};
}

Status CheckScaling(const ScalingSpec& scaling) {
  auto check = [](uint64_t floor, uint64_t ceiling, std::string_view what) -> Status {
    if (floor == 0 && ceiling == 0) return {};
    if (floor == 0 || ceiling == 0 || floor > ceiling)
      return Invalid(fmt::format("the scaling bounds of {} are not a floor below a ceiling", what),
                     "give both, the floor not above the ceiling");
    return {};
  };
  CAISSON_TRY(check(scaling.memory_floor, scaling.memory_ceiling, "memory"));
  return check(scaling.cpu_floor, scaling.cpu_ceiling, "cpu");
}

// What is given explicitly must lie between the bounds.
Status CheckScaledLimits(const SessionSpec& spec) {
  CAISSON_TRY(CheckScaling(spec.scaling));
  const auto& s = spec.scaling;
  if (spec.limits.memory_bytes && s.memory_ceiling != 0 &&
      (*spec.limits.memory_bytes < s.memory_floor || *spec.limits.memory_bytes > s.memory_ceiling))
    return Invalid("the memory limit lies outside its scaling bounds",
                   "leave it away, or give one between floor and ceiling");
  if (spec.limits.cpu_millis && s.cpu_ceiling != 0 &&
      (*spec.limits.cpu_millis < s.cpu_floor || *spec.limits.cpu_millis > s.cpu_ceiling))
    return Invalid("the CPU limit lies outside its scaling bounds",
                   "leave it away, or give one between floor and ceiling");
  return {};
}

Status CheckKey(std::string_view key) {
  const bool printable = std::ranges::all_of(key, [](char c) { return c > ' ' && c < '\x7f'; });
  if (key.size() > 255 || !printable)
    return Invalid("the idempotency key is too long or holds other than printable ASCII",
                   "use e.g. a UUID");
  return {};
}

template <typename T>
void PutOptional(ByteWriter& out, const std::optional<T>& value) {
  out.Int(static_cast<uint8_t>(value.has_value()));
  if (value) out.Int(static_cast<uint64_t>(*value));
}
void PutMap(ByteWriter& out, const StringMap& map) {
  out.List(map, [&](const auto& entry) {
    out.Bytes(entry.first);
    out.Bytes(entry.second);
  });
}
void PutLimits(ByteWriter& out, const Limits& limits) {
  PutOptional(out, limits.memory_bytes);
  PutOptional(out, limits.swap_bytes);
  PutOptional(out, limits.cpu_millis);
  PutOptional(out, limits.pids);
  PutOptional(out, limits.disk_bytes);
  PutOptional(out, limits.disk_inodes);
  PutOptional(out, limits.open_files);
  PutOptional(out, limits.io_read_bps);
  PutOptional(out, limits.io_write_bps);
  PutOptional(out, limits.io_read_iops);
  PutOptional(out, limits.io_write_iops);
  PutOptional(out, limits.memory_bandwidth_percent);
  out.Int(static_cast<int64_t>(limits.wall_time ? limits.wall_time->count() : -1));
  PutOptional(out, limits.output_bytes);
}

}  // namespace

Status CheckTimeout(std::chrono::milliseconds timeout) {
  if (timeout >= std::chrono::seconds(1) && timeout <= kLongestTimeout) return {};
  return Invalid(fmt::format("a session cannot have a timeout of {}", FormatDuration(timeout)),
                 fmt::format("give one between 1s and {}", FormatDuration(kLongestTimeout)));
}

Status CheckName(std::string_view name) {
  if (name.empty() || (IsName(name, 64) && name.find('/') == std::string_view::npos)) return {};
  return Invalid(fmt::format("{} cannot be the name of a session", Quoted(name)),
                 "use 1 to 64 letters, digits, '.', '_' and '-'");
}

Status CheckLabels(const StringMap& labels) { return CheckEntries(labels, "labels", 256); }
Status CheckMetadata(const StringMap& metadata) { return CheckEntries(metadata, "metadata", 4096); }

Status CheckEnv(const StringMap& env) {
  size_t bytes = 0;
  for (const auto& [name, value] : env) {
    bytes += name.size() + value.size() + 2;
    if (name.empty() || name.find('=') != std::string::npos || HasNul(name) || HasNul(value))
      return Invalid(fmt::format("{} cannot be an environment variable", Quoted(name)),
                     "use names without '=' and no NUL bytes");
  }
  if (env.size() > kMaxEnvEntries || bytes > kMaxEnvBytes)
    return Invalid(fmt::format("the environment has {} variables and {} bytes", env.size(), bytes),
                   fmt::format("give at most {} variables of {} bytes together; put large data in "
                               "files",
                               kMaxEnvEntries, kMaxEnvBytes));
  return {};
}

Status CheckGlobs(const std::vector<std::string>& globs) {
  if (globs.size() > kMaxGlobs)
    return Invalid(fmt::format("there are {} artifact patterns", globs.size()),
                   fmt::format("give at most {}", kMaxGlobs));
  for (const auto& glob : globs) {
    const bool plain = !glob.empty() && glob.size() <= 1024 && !HasNul(glob) &&
                       ("/" + glob + "/").find("/../") == std::string::npos;
    if (!plain)
      return Invalid(fmt::format("{} cannot be an artifact pattern", Quoted(glob)),
                     "give a path inside without `..`, e.g. /workspace/*.csv; relative ones start "
                     "at /workspace");
  }
  return {};
}

Status CheckSpec(const SessionSpec& spec) {
  if (spec.environment.empty() || spec.environment.size() > 256 || HasNul(spec.environment))
    return Invalid("the environment has no usable name", "use `host`");
  if (spec.network != "none")
    return Error(ErrorCode::kUnsupported,
                 fmt::format("the network {} is not available", Quoted(spec.network)))
        .WithRemedy("use `none`: sandboxes have loopback only");
  if (spec.user.size() > 64 || HasNul(spec.user))
    return Invalid("the user has no usable name", "give a name of at most 64 bytes or a uid");
  if (spec.queue && (spec.queue->count() < 0 || *spec.queue > kLongestQueueWait))
    return Invalid("a create cannot wait that long",
                   fmt::format("give at most {}", FormatDuration(kLongestQueueWait)));
  CAISSON_TRY(CheckName(spec.name));
  CAISSON_TRY(CheckTimeout(spec.timeout));
  CAISSON_TRY(CheckEnv(spec.env));
  CAISSON_TRY(CheckMetadata(spec.metadata));
  CAISSON_TRY(CheckLabels(spec.labels));
  CAISSON_TRY(CheckGlobs(spec.artifacts));
  CAISSON_TRY(CheckScaledLimits(spec));
  return CheckKey(spec.idempotency_key);
}

std::string DigestOf(const SessionSpec& spec) {
  std::string bytes;
  ByteWriter out(bytes);
  for (const std::string* text :
       {&spec.environment, &spec.provider, &spec.user, &spec.network, &spec.name})
    out.Bytes(*text);
  out.Int(static_cast<uint8_t>(spec.profile));
  PutLimits(out, spec.limits);
  for (const StringMap* map : {&spec.env, &spec.metadata, &spec.labels}) PutMap(out, *map);
  out.Int(static_cast<int64_t>(spec.timeout.count()));
  out.List(spec.artifacts, [&](const std::string& glob) { out.Bytes(glob); });
  out.Int(spec.scaling.memory_floor);
  out.Int(spec.scaling.memory_ceiling);
  out.Int(spec.scaling.cpu_floor);
  out.Int(spec.scaling.cpu_ceiling);
  out.Int(static_cast<uint8_t>(spec.warm));
  // Requests without it have the digest that they had before there was such a demand.
  if (spec.min_isolation != IsolationLevel::kAny) out.Int(static_cast<uint8_t>(spec.min_isolation));
  Sha256 sha;
  sha.Update(bytes);
  return sha.HexDigest();
}

DefaultLimits EffectiveLimits(const SessionSpec& spec) {
  DefaultLimits limits = spec.profile == Profile::kStrict ? kStrictLimits : kDefaultLimits;
  const Limits& asked = spec.limits;
  limits.memory_bytes = asked.memory_bytes.value_or(limits.memory_bytes);
  limits.swap_bytes = asked.swap_bytes.value_or(limits.swap_bytes);
  limits.cpu_millis = asked.cpu_millis.value_or(limits.cpu_millis);
  limits.pids = asked.pids.value_or(limits.pids);
  limits.disk_bytes = asked.disk_bytes.value_or(limits.disk_bytes);
  limits.disk_inodes = asked.disk_inodes.value_or(limits.disk_inodes);
  limits.open_files = asked.open_files.value_or(limits.open_files);
  limits.wall_time = asked.wall_time.value_or(limits.wall_time);
  limits.output_bytes = asked.output_bytes.value_or(limits.output_bytes);
  return limits;
}

}  // namespace caisson::sandbox
