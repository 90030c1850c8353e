// What the kernel counted against a sandbox's limits, read without asking anybody.
#pragma once

#include <cstdint>

#include "sys/unique_fd.h"

namespace caisson::native {

struct LimitCounts {
  uint64_t oom_kills = 0;      // processes killed at the memory limit
  uint64_t refused_forks = 0;  // at the process limit
};

// Descriptors of cgroup event files; either may be absent, which counts as zero.
class LimitEvents {
 public:
  LimitEvents() = default;
  LimitEvents(sys::UniqueFd memory, sys::UniqueFd pids)
      : memory_(std::move(memory)), pids_(std::move(pids)) {}
  LimitCounts Read() const;

 private:
  sys::UniqueFd memory_, pids_;
};

// The number after `name ` at the start of a line of `text`; 0 when there is none.
uint64_t CountIn(const char* text, const char* name);

}  // namespace caisson::native
