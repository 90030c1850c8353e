#include "launcher/cgroup_pool.h"

#include <chrono>

#include "launcher/hooks.h"

namespace caisson::launcher {
namespace {

constexpr size_t kKeep = 128;  // clean groups kept beyond what is kept ready

}  // namespace

bool SameLimits(const sys::CgroupLimits& a, const sys::CgroupLimits& b) {
  return a.memory_bytes == b.memory_bytes && a.swap_bytes == b.swap_bytes &&
         a.cpu_millis == b.cpu_millis && a.cpu_weight == b.cpu_weight && a.pids == b.pids &&
         a.io == b.io && a.io_device == b.io_device;
}

Result<sys::Cgroup> CgroupPool::Make() {
  auto made = tree_.Create("s" + std::to_string(++made_));
  CrashPoint("cgroup made");
  return made;
}

Result<LimitedCgroup> CgroupPool::Take(const sys::CgroupLimits& limits) {
  last_ = limits;
  failed_ = false;
  if (!ready_.empty() && SameLimits(ready_.back().cgroup.limits(), limits)) {
    LimitedCgroup taken = std::move(ready_.back());
    ready_.pop_back();
    return taken;
  }
  if (!ready_.empty()) {  // made for other limits; starts anew
    sys::Cgroup cgroup = std::move(ready_.back().cgroup);
    ready_.pop_back();
    if (cgroup.Recycle()) {
      CAISSON_ASSIGN(auto reports, cgroup.ApplyLimits(limits));
      return LimitedCgroup{std::move(cgroup), std::move(reports)};
    }
  }
  CAISSON_ASSIGN(auto cgroup, Make());
  CAISSON_ASSIGN(auto reports, cgroup.ApplyLimits(limits));
  return LimitedCgroup{std::move(cgroup), std::move(reports)};
}

bool CgroupPool::Work() {
  if (!used_.empty()) {
    sys::Cgroup cgroup = std::move(used_.back());
    used_.pop_back();
    if (ready_.size() < kKeep && cgroup.Recycle()) {
      auto reports = cgroup.ApplyLimits(last_);
      if (reports) {
        ready_.push_back({std::move(cgroup), *std::move(reports)});
        return true;
      }
    }
    (void)cgroup.Remove(std::chrono::milliseconds(50));  // else the tree's leftovers have it
    return true;
  }
  if (failed_ || ready_.size() >= target_) return false;
  auto made = Make();
  auto reports =
      made ? made->ApplyLimits(last_) : Result<std::vector<sys::LimitReport>>(made.error());
  if (!reports) {
    failed_ = true;  // the next Take says why
    return false;
  }
  ready_.push_back({*std::move(made), *std::move(reports)});
  return true;
}

}  // namespace caisson::launcher
