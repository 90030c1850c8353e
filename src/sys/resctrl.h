// Memory bandwidth of a sandbox through resctrl (Intel MBA, AMD QoS; Documentation/filesystems/
// resctrl.rst). A group is a directory of the resctrl file system with a line
// `MB:<domain>=<percent>` in its schemata; the tasks in it share that much of each domain's
// bandwidth.
//
// The hardware has few groups (num_closids, often 8 to 16), so they are made only when asked for
// and never pooled. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::sys {

// Where the host's files are and how directories are made; replaced by tests.
struct ResctrlPaths {
  std::string proc = "/proc";
  std::string root = "/sys/fs/resctrl";
  // 0 or errno, like mkdirat(2) and unlinkat(2) with AT_REMOVEDIR.
  int (*make_dir)(int dir_fd, const char* name) = nullptr;
  int (*remove_dir)(int dir_fd, const char* name) = nullptr;
};

class ResctrlGroup {
 public:
  // A group for one sandbox with `percent` (1 to 100) of the memory bandwidth in every domain,
  // rounded up to the hardware's minimum and step. kLimitRefused with reason and remedy when this
  // host cannot limit bandwidth or has no group left; kConflict when the name is taken.
  static Result<ResctrlGroup> Create(const ResctrlPaths& paths, std::string_view instance,
                                     std::string_view name, uint32_t percent);
  ResctrlGroup(ResctrlGroup&& other) noexcept;
  ResctrlGroup& operator=(ResctrlGroup&& other) noexcept;
  ~ResctrlGroup();  // removes the group; its tasks fall back to the default one

  // The percentage in force, read back: the highest of all domains.
  uint32_t percent() const { return percent_; }
  static constexpr std::string_view kBy = "resctrl MB schemata";

  // Moves every thread of the process; those it starts later inherit the group.
  Status Attach(pid_t pid);
  // Changes the percentage of the live group.
  Status Update(uint32_t percent);

  // Says why bandwidth cannot be limited here, or nothing when it can.
  static Status Probe(const ResctrlPaths& paths);
  // Removes every group of an instance. Returns how many.
  static size_t Sweep(const ResctrlPaths& paths, std::string_view instance);

 private:
  ResctrlGroup() = default;
  ResctrlPaths paths_;
  std::string name_;  // empty when moved from
  UniqueFd root_;
  uint32_t percent_ = 0;
};

}  // namespace caisson::sys
