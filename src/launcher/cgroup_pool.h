// A pool of cgroups with the limits already set that the last sandbox asked for.
//
// Memory cgroups are used again instead of removed: a removed one lives on as long as a page of its
// page cache does, and thousands of those cost gigabytes of kernel memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/cgroup.h"

namespace caisson::launcher {

bool SameLimits(const sys::CgroupLimits& a, const sys::CgroupLimits& b);

struct LimitedCgroup {
  sys::Cgroup cgroup;
  std::vector<sys::LimitReport> reports;  // of the limits in force
};

class CgroupPool {
 public:
  CgroupPool(sys::CgroupTree& tree, size_t target) : tree_(tree), target_(target) {}

  Result<LimitedCgroup> Take(const sys::CgroupLimits& limits);
  // An ended sandbox's group, whose processes are gone. Kept for later; cleaned by Work.
  void Return(sys::Cgroup cgroup) { used_.push_back(std::move(cgroup)); }

  // One step: clean a used group, or make one ahead. False when there is nothing to do.
  bool Work();
  size_t ready() const { return ready_.size(); }

 private:
  struct Applied {
    sys::CgroupLimits limits;
    std::vector<sys::LimitReport> reports;
  };
  Result<sys::Cgroup> Make();
  Result<LimitedCgroup> Limit(sys::Cgroup cgroup, const sys::CgroupLimits& limits);
  sys::Cgroup TakeUsed();  // there is one
  // A used group as good as new, under the limits asked for last. One that cannot be is removed.
  Result<LimitedCgroup> Renew(sys::Cgroup used);

  sys::CgroupTree& tree_;
  size_t target_;
  uint64_t made_ = 0;
  sys::CgroupLimits last_;
  std::optional<Applied> applied_;  // what the kernel said when limits were set last
  std::vector<LimitedCgroup> ready_;
  std::vector<sys::Cgroup> used_;
  bool failed_ = false;
};

}  // namespace caisson::launcher
