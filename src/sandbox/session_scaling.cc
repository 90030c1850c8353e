#include "sandbox/session_scaling.h"

#include <algorithm>
#include <set>

namespace caisson::sandbox {
namespace {

// The next limit of one resource; nothing when it stays.
template <typename T>
std::optional<T> Step(T now, T floor, T ceiling, double factor) {
  const T wanted = static_cast<T>(static_cast<double>(now) * factor);
  const T next = std::clamp(wanted, floor, ceiling);
  return next == now ? std::nullopt : std::optional<T>(next);
}

}  // namespace

Limits DecideScaling(const ScalingSpec& bounds, const DefaultLimits& now, const SandboxStats& stats,
                     std::chrono::milliseconds elapsed, const ScalingOptions& options,
                     ScalingState& state) {
  Limits limits;
  const std::optional<SandboxStats> last = std::exchange(state.last, stats);
  if (bounds.memory_ceiling != 0) {
    const double used =
        static_cast<double>(stats.memory_bytes) / static_cast<double>(now.memory_bytes);
    const bool killed = last && stats.oom_kills > last->oom_kills;
    state.memory_calm = used < options.memory_low && !killed ? state.memory_calm + 1 : 0;
    if (used > options.memory_high || killed) {
      limits.memory_bytes =
          Step(now.memory_bytes, bounds.memory_floor, bounds.memory_ceiling, options.up);
    } else if (state.memory_calm >= options.calm_rounds) {
      // Never below what would be high again.
      const auto least = static_cast<uint64_t>(static_cast<double>(stats.memory_bytes) * 1.5);
      const uint64_t floor = std::min(std::max(bounds.memory_floor, least), now.memory_bytes);
      limits.memory_bytes = Step(now.memory_bytes, floor, bounds.memory_ceiling, options.down);
      state.memory_calm = 0;
    }
  }
  if (bounds.cpu_ceiling != 0 && last && elapsed.count() > 0) {
    const std::chrono::duration<double> time = elapsed;
    const std::chrono::duration<double> throttled = stats.cpu_throttled - last->cpu_throttled;
    const std::chrono::duration<double> used = stats.cpu - last->cpu;
    const double share = used / time * 1000 / now.cpu_millis;
    const bool calm = throttled / time < 0.01 && share < options.cpu_low;
    state.cpu_calm = calm ? state.cpu_calm + 1 : 0;
    if (throttled / time > options.throttled_high) {
      limits.cpu_millis = Step(now.cpu_millis, bounds.cpu_floor, bounds.cpu_ceiling, options.up);
    } else if (state.cpu_calm >= options.calm_rounds) {
      limits.cpu_millis = Step(now.cpu_millis, bounds.cpu_floor, bounds.cpu_ceiling, options.down);
      state.cpu_calm = 0;
    }
  }
  return limits;
}

SessionScaler::SessionScaler(async::Loop& loop, const SessionTable& table, Apply apply,
                             ScalingOptions options)
    : loop_(loop), table_(table), apply_(std::move(apply)), options_(options), tasks_(loop) {
  tasks_.Spawn(RunTask());
}

Task<void> SessionScaler::RunTask() {
  for (auto last = async::Loop::Clock::now();;) {
    co_await loop_.Sleep(options_.interval);
    const auto now = async::Loop::Clock::now();
    co_await Round(std::chrono::duration_cast<std::chrono::milliseconds>(now - last));
    last = now;
  }
}

Task<void> SessionScaler::Round(std::chrono::milliseconds elapsed) {
  std::set<std::string> seen;
  for (const auto& session : table_.All()) {
    if (!session->spec().scaling.Scales() || session->state() != SessionState::kRunning) continue;
    seen.insert(session->id());
    const auto stats = co_await session->Stats();
    if (!stats || session->state() != SessionState::kRunning) continue;
    const Limits limits = DecideScaling(session->spec().scaling, EffectiveLimits(session->spec()),
                                        *stats, elapsed, options_, states_[session->id()]);
    if (!limits.memory_bytes && !limits.cpu_millis) continue;
    std::vector<std::pair<std::string, std::string>> details;
    if (limits.memory_bytes) details.emplace_back("memory", std::to_string(*limits.memory_bytes));
    if (limits.cpu_millis) details.emplace_back("cpu_millis", std::to_string(*limits.cpu_millis));
    const auto applied = co_await apply_(session, limits);
    if (!applied) details.emplace_back("refused", applied.error().message());
    session->Publish(EventKind::kSessionScaled, std::move(details));
  }
  std::erase_if(states_, [&](const auto& entry) { return !seen.contains(entry.first); });
}

}  // namespace caisson::sandbox
