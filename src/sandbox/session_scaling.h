// Live vertical scaling: a session's limits move between its floor and ceiling as pressure changes.
//
// Up at once and by large steps, down slowly and only after pressure has been low for a while, so
// that limits do not flutter.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "async/task_set.h"
#include "sandbox/session_table.h"

namespace caisson::sandbox {

struct ScalingOptions {
  std::chrono::milliseconds interval = std::chrono::seconds(1);
  double memory_high = 0.85, memory_low = 0.40;  // of the limit
  double throttled_high = 0.10, cpu_low = 0.40;  // of the time; of the limit
  double up = 1.5, down = 0.75;                  // factors of one step
  int calm_rounds = 5;                           // low for so long before a step down
};

// What was seen of one session in the last round.
struct ScalingState {
  std::optional<SandboxStats> last;
  int memory_calm = 0, cpu_calm = 0;
};

// The limits that should hold, where they differ from `now`; empty fields stay. Pure but for
// `state`, which it brings up to date. `elapsed` is the time since the last look.
Limits DecideScaling(const ScalingSpec& bounds, const DefaultLimits& now, const SandboxStats& stats,
                     std::chrono::milliseconds elapsed, const ScalingOptions& options,
                     ScalingState& state);

class SessionScaler {
 public:
  // Sets the limits of a session and writes them down.
  using Apply = std::function<Task<Status>(std::shared_ptr<Session>, Limits)>;

  // The table outlives it.
  SessionScaler(async::Loop& loop, const SessionTable& table, Apply apply, ScalingOptions options);

  // One look at every session that scales.
  Task<void> Round(std::chrono::milliseconds elapsed);

 private:
  Task<void> RunTask();
  async::Loop& loop_;
  const SessionTable& table_;
  const Apply apply_;
  const ScalingOptions options_;
  std::map<std::string, ScalingState> states_;  // by session
  async::TaskSet tasks_;
};

}  // namespace caisson::sandbox
