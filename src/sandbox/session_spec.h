// SessionSpec: what a create asks for. A plain value; CheckSpec says what is wrong with it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sandbox/limits.h"
#include "sandbox/spec.h"

namespace caisson::sandbox {

using StringMap = std::map<std::string, std::string>;

// How far limits may move while the session lives. A resource whose ceiling is 0 does not scale.
struct ScalingSpec {
  uint64_t memory_floor = 0, memory_ceiling = 0;  // bytes
  uint32_t cpu_floor = 0, cpu_ceiling = 0;        // thousandths of a core

  bool Scales() const { return memory_ceiling != 0 || cpu_ceiling != 0; }
  bool operator==(const ScalingSpec&) const = default;
};

enum class WarmUse {
  kWhenReady,  // a prepared sandbox when there is one that fits
  kNever,
};

inline constexpr std::chrono::seconds kDefaultTimeout = std::chrono::hours(1);
inline constexpr std::chrono::seconds kLongestTimeout = std::chrono::hours(24 * 30);
inline constexpr std::chrono::seconds kLongestQueueWait = std::chrono::minutes(10);

struct SessionSpec {
  std::string environment = "host";
  std::string provider;  // empty: the server's default
  Profile profile = Profile::kDefault;
  std::string user;  // of commands that name none
  Limits limits;
  IsolationLevel min_isolation = IsolationLevel::kAny;
  std::string network = "none";
  StringMap env;       // of every command
  StringMap metadata;  // the caller's own, kept and given back
  StringMap labels;    // the same, and lists can be filtered by them
  std::string name;    // unique among the tenant's live sessions; may be empty
  std::chrono::milliseconds timeout = kDefaultTimeout;  // of the session's life
  std::vector<std::string> artifacts;                   // globs of files kept at its end
  ScalingSpec scaling;
  WarmUse warm = WarmUse::kWhenReady;
  // How long the create may wait when the host is full; empty: it is refused at once.
  std::optional<std::chrono::milliseconds> queue;
  std::string idempotency_key;  // may be empty
};

// kInvalidArgument, kLimitRefused or kUnsupported, naming the field.
Status CheckSpec(const SessionSpec& spec);

// The checks of what can be changed later, one by one.
Status CheckTimeout(std::chrono::milliseconds timeout);
Status CheckName(std::string_view name);
Status CheckLabels(const StringMap& labels);
Status CheckMetadata(const StringMap& metadata);
Status CheckEnv(const StringMap& env);
Status CheckGlobs(const std::vector<std::string>& globs);

// The same for the same request: SHA-256 over every field but the idempotency key and the queue.
std::string DigestOf(const SessionSpec& spec);

// The limits that hold for a session: what was asked for, else the profile's.
DefaultLimits EffectiveLimits(const SessionSpec& spec);

}  // namespace caisson::sandbox
