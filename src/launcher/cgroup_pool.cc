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

Result<LimitedCgroup> CgroupPool::Limit(sys::Cgroup cgroup, const sys::CgroupLimits& limits) {
  CAISSON_ASSIGN(auto reports, cgroup.ApplyLimits(limits));
  applied_ = {cgroup.limits(), reports};
  return LimitedCgroup{std::move(cgroup), std::move(reports)};
}

Result<LimitedCgroup> CgroupPool::Renew(sys::Cgroup used) {
  if (applied_ && SameLimits(used.limits(), last_) && SameLimits(used.limits(), applied_->limits)) {
    CAISSON_TRY(used.RecycleInForce());
    return LimitedCgroup{std::move(used), applied_->reports};
  }
  CAISSON_TRY(used.Recycle());
  return Limit(std::move(used), last_);
}

sys::Cgroup CgroupPool::TakeUsed() {
  sys::Cgroup used = std::move(used_.back());
  used_.pop_back();
  return used;
}

Result<LimitedCgroup> CgroupPool::Take(const sys::CgroupLimits& limits) {
  last_ = limits;
  failed_ = false;
  if (!ready_.empty()) {
    LimitedCgroup taken = std::move(ready_.back());
    ready_.pop_back();
    if (SameLimits(taken.cgroup.limits(), limits)) return taken;
    // Made for other limits; starts anew.
    if (taken.cgroup.Recycle()) return Limit(std::move(taken.cgroup), limits);
  }
  // Under load nothing is cleaned ahead. One more group for each life would be one more for good.
  while (!used_.empty()) {
    auto renewed = Renew(TakeUsed());
    if (renewed) return renewed;
  }
  CAISSON_ASSIGN(auto cgroup, Make());
  return Limit(std::move(cgroup), limits);
}

bool CgroupPool::Work() {
  if (!used_.empty()) {
    sys::Cgroup cgroup = TakeUsed();
    if (ready_.size() >= kKeep) {
      (void)cgroup.Remove(std::chrono::milliseconds(50));  // else the tree's leftovers have it
    } else if (auto renewed = Renew(std::move(cgroup))) {
      ready_.push_back(*std::move(renewed));
    }
    return true;
  }
  if (failed_ || ready_.size() >= target_) return false;
  auto made = Make();
  auto limited = made ? Limit(*std::move(made), last_) : Result<LimitedCgroup>(made.error());
  if (!limited) {
    failed_ = true;  // the next Take says why
    return false;
  }
  ready_.push_back(*std::move(limited));
  return true;
}

}  // namespace caisson::launcher
