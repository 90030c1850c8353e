// The time of day, for records and people. Deadlines are kept on the loop's clock, which never
// jumps.
#pragma once

#include <chrono>
#include <functional>

namespace caisson::sandbox {

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;
using WallClock = std::function<WallTime()>;

inline WallTime SystemTime() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

}  // namespace caisson::sandbox
