// Cgroup: counters, freezing, killing, and the way back into the pool or out of the kernel.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/cgroup.h"
#include "sys/cgroup_internal.h"

namespace caisson::sys {

using internal::Counters;
using internal::Deadline;
using internal::DialectOf;
using internal::GroupDir;
using internal::Hierarchy;
using internal::Version;

namespace {

// Memory that a recycled group may still be charged for: kernel objects on their way out.
constexpr uint64_t kResidue = 2 << 20;

std::optional<uint64_t> Since(std::optional<uint64_t> now, std::optional<uint64_t> then) {
  if (!now || !then) return now;
  return *now > *then ? *now - *then : 0;
}

Error NoTracking(std::string_view what) {
  return Error(ErrorCode::kUnsupported,
               std::string(what) + ": no cgroup hierarchy holds the sandbox's processes")
      .WithRemedy("run `caisson doctor`");
}

}  // namespace

const Hierarchy* Cgroup::Tracking() const {
  if (const Hierarchy* unified = tree_->Unified()) return unified;
  for (const Controller controller : {Controller::kFreezer, Controller::kPids, Controller::kMemory,
                                      Controller::kCpu, Controller::kCpuAcct}) {
    const Hierarchy* serving = tree_->Serving(controller);
    if (serving && serving->use == Hierarchy::Use::kSandboxes) return serving;
  }
  return nullptr;
}

Counters Cgroup::ReadCounters() const {
  Counters counters;
  for (const auto& one : tree_->hierarchies_) {
    if (one->version == Version::k1 && Uses(*one))
      DialectOf(Version::k1).ReadCpu(*one, one->Group(name_), counters);
  }
  if (const Hierarchy* unified = tree_->Unified())
    DialectOf(Version::k2).ReadCpu(*unified, unified->Group(name_), counters);
  if (const Hierarchy* memory = tree_->Serving(Controller::kMemory))
    counters.oom_kills = DialectOf(memory->version).OomKills(memory->Group(name_));
  if (const Hierarchy* pids = tree_->Serving(Controller::kPids)) {
    char buffer[128];
    const auto text = pids->Group(name_).TryRead("pids.events", buffer);
    if (text) counters.pids_limit_hits = NumberOf(*text, "max");
  }
  if (const Hierarchy* io = tree_->Serving(Controller::kIo); io && Uses(*io))
    DialectOf(io->version).ReadIo(io->Group(name_), counters);
  return counters;
}

std::optional<uint64_t> Cgroup::ReadPeak(const Hierarchy& memory, CgroupStats& stats) {
  const GroupDir dir = memory.Group(name_);
  if (memory.version == Version::k1) return dir.TryNumber("memory.max_usage_in_bytes");
  if (peak_fd_) {
    char buffer[32];
    const ssize_t size = ::pread(peak_fd_.get(), buffer, sizeof(buffer), 0);
    if (size > 0) return ParseNumber(std::string_view(buffer, static_cast<size_t>(size)));
  }
  const auto peak = dir.TryNumber("memory.peak");  // Linux 5.19
  if (peak && *peak > stale_peak_) return peak;
  seen_peak_ = std::max(seen_peak_, stats.memory_current.value_or(0));
  stats.memory_peak_exact = false;
  return seen_peak_;
}

// v2's memory.peak is reset per descriptor, since Linux 6.12; a former life's record stays
// otherwise.
void Cgroup::ResetPeak(const Hierarchy& memory) {
  const GroupDir dir = memory.Group(name_);
  if (memory.version == Version::k1) {
    dir.TryWrite("memory.max_usage_in_bytes", "0\n");
    return;
  }
  seen_peak_ = 0;
  stale_peak_ = dir.TryNumber("memory.peak").value_or(0);
  if (!peak_fd_)
    peak_fd_.Reset(::openat(dir.parent, dir.Path("memory.peak").c_str(), O_RDWR | O_CLOEXEC));
  if (peak_fd_ && ::write(peak_fd_.get(), "reset\n", 6) != 6) peak_fd_.Reset();
}

CgroupStats Cgroup::Stats() {
  CgroupStats stats;
  if (const Hierarchy* memory = tree_->Serving(Controller::kMemory)) {
    const GroupDir dir = memory->Group(name_);
    const auto& dialect = DialectOf(memory->version);
    stats.memory_current = dir.TryNumber(dialect.memory_current_file());
    stats.swap_current = dialect.SwapCurrent(dir);
    stats.memory_peak = ReadPeak(*memory, stats);
  }
  if (const Hierarchy* pids = tree_->Serving(Controller::kPids))
    stats.pids_current = pids->Group(name_).TryNumber("pids.current");
  const Counters now = ReadCounters();
  const Counters then = baseline_ ? *baseline_ : Counters{};
  stats.oom_kills = Since(now.oom_kills, then.oom_kills);
  stats.cpu_usage_us = Since(now.cpu_usage_us, then.cpu_usage_us);
  stats.cpu_user_us = Since(now.cpu_user_us, then.cpu_user_us);
  stats.cpu_system_us = Since(now.cpu_system_us, then.cpu_system_us);
  stats.throttled_us = Since(now.throttled_us, then.throttled_us);
  stats.pids_limit_hits = Since(now.pids_limit_hits, then.pids_limit_hits);
  stats.io_read_bytes = Since(now.io_read_bytes, then.io_read_bytes);
  stats.io_write_bytes = Since(now.io_write_bytes, then.io_write_bytes);
  stats.cpu_stalled_us = Since(now.cpu_stalled_us, then.cpu_stalled_us);
  stats.memory_stalled_us = Since(now.memory_stalled_us, then.memory_stalled_us);
  stats.io_stalled_us = Since(now.io_stalled_us, then.io_stalled_us);
  return stats;
}

const Hierarchy* Cgroup::Freezing() const {
  const Hierarchy* unified = tree_->Unified();
  return unified ? unified : tree_->Serving(Controller::kFreezer);
}

Status Cgroup::Freeze(std::chrono::milliseconds deadline) {
  const Hierarchy* freezing = Freezing();
  if (!freezing) return NoTracking("cannot freeze");
  CAISSON_TRY(internal::FreezeGroup(freezing->Group(name_), freezing->version, Deadline(deadline)));
  frozen_ = true;
  return {};
}

Status Cgroup::Thaw() {
  const Hierarchy* freezing = Freezing();
  if (!freezing) return NoTracking("cannot thaw");
  CAISSON_TRY(internal::ThawGroup(freezing->Group(name_), freezing->version));
  frozen_ = false;
  return {};
}

Status Cgroup::KillAll(std::chrono::milliseconds deadline) {
  const Hierarchy* tracking = Tracking();
  if (!tracking) return NoTracking("cannot kill");
  const GroupDir dir = tracking->Group(name_);
  if (tracking->version == Version::k2 && dir.Has("cgroup.kill"))
    return internal::KillGroup(dir, Version::k2, nullptr, Deadline(deadline));

  // Without cgroup.kill a fork bomb could outrun the loop: no new processes meanwhile.
  const Hierarchy* pids = tree_->Serving(Controller::kPids);
  if (pids) pids->Group(name_).TryWrite("pids.max", "0\n");
  const Hierarchy* freezing = Freezing();
  const GroupDir freezer = freezing ? freezing->Group(name_) : dir;
  const bool thaw = freezing && freezing->version == Version::k1;
  const auto killed =
      internal::KillGroup(dir, tracking->version, thaw ? &freezer : nullptr, Deadline(deadline));
  if (pids) (void)internal::SetPids(pids->Group(name_), limits_.pids.value_or(kNoLimit32));
  return killed;
}

Result<bool> Cgroup::Empty() const {
  for (const auto& hierarchy : tree_->hierarchies_) {
    if (!Uses(*hierarchy)) continue;
    CAISSON_ASSIGN(const bool empty, internal::IsEmpty(hierarchy->Group(name_)));
    if (!empty) return false;
  }
  return true;
}

// Afterwards nothing of the former life is left but counters and limits.
Status Cgroup::Clear() {
  CAISSON_ASSIGN(const bool empty, Empty());
  if (!empty) return Error(ErrorCode::kConflict, "group " + name_ + " still has processes");
  if (frozen_) CAISSON_TRY(Thaw());
  const Hierarchy* memory = tree_->Serving(Controller::kMemory);
  if (memory) {
    const GroupDir dir = memory->Group(name_);
    const auto& dialect = DialectOf(memory->version);
    auto charged = dir.TryNumber(dialect.memory_current_file());
    if (charged.value_or(0) > kResidue) {
      dialect.Reclaim(dir);
      charged = dir.TryNumber(dialect.memory_current_file());
    }
    if (charged.value_or(kNoLimit) > kResidue) {
      return Error(ErrorCode::kConflict, "group " + name_ + " is still charged for " +
                                             std::to_string(charged.value_or(0)) +
                                             " bytes of its former life");
    }
  }
  return {};
}

void Cgroup::StartCounting() {
  if (const Hierarchy* memory = tree_->Serving(Controller::kMemory)) ResetPeak(*memory);
  baseline_ = std::make_unique<Counters>(ReadCounters());
}

Status Cgroup::Recycle() {
  CAISSON_TRY(Clear());
  CgroupLimits lifted;
  if (limits_.memory_bytes) lifted.memory_bytes = kNoLimit;
  if (limits_.swap_bytes) lifted.swap_bytes = kNoLimit;
  if (limits_.cpu_millis) lifted.cpu_millis = kNoLimit32;
  if (limits_.cpu_weight) lifted.cpu_weight = kNoLimit32;
  if (limits_.pids) lifted.pids = kNoLimit32;
  CAISSON_TRY(Write(lifted));
  CAISSON_TRY(LiftIo());
  limits_ = {};
  StartCounting();
  return {};
}

Status Cgroup::RecycleInForce() {
  CAISSON_TRY(Clear());
  StartCounting();
  return {};
}

Status Cgroup::Remove(std::chrono::milliseconds deadline) {
  if (!tree_) return {};
  const Deadline until(deadline);
  if (Tracking()) {
    const auto empty = Empty();
    if (empty && !*empty) CAISSON_TRY(KillAll(deadline));
  }
  peak_fd_.Reset();
  if (const Hierarchy* memory = tree_->Serving(Controller::kMemory)) {
    // What stays charged would keep the group in the kernel after rmdir, as a dying one.
    const GroupDir dir = memory->Group(name_);
    const auto& dialect = DialectOf(memory->version);
    if (dir.TryNumber(dialect.memory_current_file()).value_or(0) > 0) dialect.Reclaim(dir);
  }
  for (const auto& hierarchy : tree_->hierarchies_) {
    if (hierarchy->use == Hierarchy::Use::kDevicesOnly) continue;
    for (int attempt = 0;; ++attempt) {
      const int error =
          internal::RemoveDir(tree_->host_, hierarchy->instance_fd.get(), name_.c_str());
      if (error == 0 || error == ENOENT) break;
      if (error != EBUSY || until.Passed())
        return Error::FromErrno("cannot remove the cgroup " + name_ + " below " + hierarchy->base,
                                error);
      internal::BackOff(attempt);
    }
  }
  unified_fd_.Reset();
  tree_ = nullptr;
  return {};
}

}  // namespace caisson::sys
