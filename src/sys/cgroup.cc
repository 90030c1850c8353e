// Cgroup: one sandbox's groups. Limits and attaching; the life cycle is in cgroup_life.cc.
#include "sys/cgroup.h"

#include <cerrno>
#include <limits>
#include <new>
#include <utility>

#include "sys/cgroup_internal.h"

namespace caisson::sys {

using internal::DialectOf;
using internal::GroupDir;
using internal::Hierarchy;
using internal::kNoHostSwap;
using internal::MemoryCaps;
using internal::Version;

namespace {

constexpr auto kDestructorPatience = std::chrono::milliseconds(500);

std::optional<uint64_t> FieldOf(const CgroupLimits& limits, std::string_view report_name) {
  // kNoLimit32 in a 32-bit field is kNoLimit here.
  const auto widen = [](std::optional<uint32_t> value) -> std::optional<uint64_t> {
    if (!value) return std::nullopt;
    return *value == kNoLimit32 ? kNoLimit : *value;
  };
  const IoRate io = limits.io.value_or(IoRate{});
  if (report_name == "memory") return limits.memory_bytes;
  if (report_name == "swap") return limits.swap_bytes;
  if (report_name == "cpu") return widen(limits.cpu_millis);
  if (report_name == "cpu_weight") return widen(limits.cpu_weight);
  if (report_name == "pids") return widen(limits.pids);
  if (report_name == "io_read_bps") return io.read_bps;
  if (report_name == "io_write_bps") return io.write_bps;
  if (report_name == "io_read_iops") return io.read_iops;
  if (report_name == "io_write_iops") return io.write_iops;
  return std::nullopt;
}

IoRate Merged(const IoRate& old, const IoRate& asked) {
  const auto pick = [](std::optional<uint64_t> was, std::optional<uint64_t> is) {
    return is ? is : was;
  };
  return {pick(old.read_bps, asked.read_bps), pick(old.write_bps, asked.write_bps),
          pick(old.read_iops, asked.read_iops), pick(old.write_iops, asked.write_iops)};
}

// What to write so that `was` is in force again: nothing when it is, no limit when there was none.
template <typename T>
std::optional<T> Back(std::optional<T> was, std::optional<T> is) {
  if (was == is) return std::nullopt;
  return was.value_or(std::numeric_limits<T>::max());
}

CgroupLimits Difference(const CgroupLimits& before, const CgroupLimits& now) {
  CgroupLimits back;
  back.memory_bytes = Back(before.memory_bytes, now.memory_bytes);
  back.swap_bytes = Back(before.swap_bytes, now.swap_bytes);
  back.cpu_millis = Back(before.cpu_millis, now.cpu_millis);
  back.cpu_weight = Back(before.cpu_weight, now.cpu_weight);
  back.pids = Back(before.pids, now.pids);
  if (before.io == now.io) return back;
  const IoRate was = before.io.value_or(IoRate{}), is = now.io.value_or(IoRate{});
  back.io = IoRate{Back(was.read_bps, is.read_bps), Back(was.write_bps, is.write_bps),
                   Back(was.read_iops, is.read_iops), Back(was.write_iops, is.write_iops)};
  back.io_device = now.io_device;
  return back;
}

}  // namespace

Cgroup::Cgroup(CgroupTree* tree, std::string name) : tree_(tree), name_(std::move(name)) {}

Cgroup::Cgroup(Cgroup&& other) noexcept
    : tree_(std::exchange(other.tree_, nullptr)),
      name_(std::move(other.name_)),
      unified_fd_(std::move(other.unified_fd_)),
      peak_fd_(std::move(other.peak_fd_)),
      io_joined_(other.io_joined_),
      frozen_(other.frozen_),
      limits_(other.limits_),
      baseline_(std::move(other.baseline_)),
      stale_peak_(other.stale_peak_),
      seen_peak_(other.seen_peak_) {}

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  if (this != &other) {
    this->~Cgroup();
    new (this) Cgroup(std::move(other));
  }
  return *this;
}

Cgroup::~Cgroup() {
  if (!tree_) return;
  CgroupTree* const tree = tree_;
  if (Remove(kDestructorPatience)) return;
  tree->leftovers_.push_back(std::move(name_));
}

bool Cgroup::Uses(const Hierarchy& hierarchy) const {
  return hierarchy.use == Hierarchy::Use::kSandboxes ||
         (hierarchy.use == Hierarchy::Use::kIoOnly && io_joined_);
}

Status Cgroup::AttachTo(const Hierarchy& hierarchy, pid_t pid) {
  if (pid <= 0)
    return Error(ErrorCode::kInvalidArgument, "not a process to attach: " + std::to_string(pid));
  const bool shared = hierarchy.use == Hierarchy::Use::kDevicesOnly;
  if (!shared && !Uses(hierarchy)) return {};
  const GroupDir dir = hierarchy.Group(shared ? "." : std::string_view(name_));
  const ShortText number = ShortText().Add(static_cast<uint64_t>(pid));
  const int error = dir.TryWrite("cgroup.procs", number.view());
  if (error == 0) return {};
  return internal::WriteError(dir, "cgroup.procs", number.view(), error)
      .Because("cannot attach the process to " + hierarchy.base);
}

Status Cgroup::Attach(pid_t pid) {
  for (const auto& hierarchy : tree_->hierarchies_) CAISSON_TRY(AttachTo(*hierarchy, pid));
  return {};
}

Status Cgroup::AttachCloned(pid_t pid) {
  for (const auto& hierarchy : tree_->hierarchies_)
    if (hierarchy->version == Version::k1) CAISSON_TRY(AttachTo(*hierarchy, pid));
  return {};
}

// blkio of v1 is joined late, with all processes that the group has by then. Those forked meanwhile
// by one not yet moved show up in the next round.
Status Cgroup::JoinIo() {
  const Hierarchy* io = tree_->Serving(Controller::kIo);
  if (io->use != Hierarchy::Use::kIoOnly || io_joined_) return {};
  const int error = internal::MakeDir(tree_->host_, io->instance_fd.get(), name_.c_str());
  if (error != 0 && error != EEXIST)
    return Error::FromErrno("cannot make the cgroup " + name_ + " below " + io->base, error);
  io_joined_ = true;
  const Hierarchy* tracking = Tracking();
  if (!tracking) return {};
  for (int round = 0; round < 100; ++round) {
    CAISSON_ASSIGN(const auto all, internal::ListProcesses(tracking->Group(name_)));
    CAISSON_ASSIGN(const auto inside, internal::ListProcesses(io->Group(name_)));
    if (inside.size() >= all.size()) return {};
    for (const pid_t pid : all) {
      const auto moved = AttachTo(*io, pid);
      if (!moved && moved.error().sys_errno() != ESRCH) return moved;
    }
  }
  return Error(ErrorCode::kResourceExhausted,
               "the processes of group " + name_ + " fork faster than they can be moved");
}

// Back to no I/O limit: v1's directory goes, v2's line is lifted.
Status Cgroup::LiftIo() {
  const Hierarchy* io = tree_->Serving(Controller::kIo);
  if (io && io->use != Hierarchy::Use::kIoOnly && limits_.io) {
    CgroupLimits lifted = {.io = IoRate{kNoLimit, kNoLimit, kNoLimit, kNoLimit},
                           .io_device = limits_.io_device};
    CAISSON_TRY(Write(lifted));
  }
  if (!io_joined_) return {};
  const int error = internal::RemoveDir(tree_->host_, io->instance_fd.get(), name_.c_str());
  if (error != 0 && error != ENOENT)
    return Error::FromErrno("cannot remove the cgroup " + name_ + " below " + io->base, error);
  io_joined_ = false;
  return {};
}

Result<MemoryCaps> Cgroup::WriteMemory(const CgroupLimits& limits) {
  const Hierarchy* memory = tree_->Serving(Controller::kMemory);
  if (!memory)
    return MemoryCaps{kNoLimit, 0};  // only a swap limit on a host without swap gets here
  const MemoryCaps from = {limits_.memory_bytes.value_or(kNoLimit),
                           limits_.swap_bytes.value_or(kNoLimit)};
  const MemoryCaps to = {limits.memory_bytes.value_or(from.memory),
                         limits.swap_bytes.value_or(from.swap)};
  CAISSON_ASSIGN(const MemoryCaps now,
                 DialectOf(memory->version).SetMemory(*memory, memory->Group(name_), from, to));
  if (limits.memory_bytes) limits_.memory_bytes = limits.memory_bytes;
  if (limits.swap_bytes) limits_.swap_bytes = limits.swap_bytes;
  return now;
}

Result<CgroupLimits> Cgroup::Write(const CgroupLimits& limits) {
  CgroupLimits now;
  if (limits.memory_bytes || limits.swap_bytes) {
    CAISSON_ASSIGN(const MemoryCaps caps, WriteMemory(limits));
    now.memory_bytes = caps.memory;
    now.swap_bytes = caps.swap;
  }
  const Hierarchy* cpu = tree_->Serving(Controller::kCpu);
  if (limits.cpu_millis) {
    const uint32_t from = limits_.cpu_millis.value_or(kNoLimit32);
    CAISSON_ASSIGN(now.cpu_millis,
                   DialectOf(cpu->version).SetCpu(cpu->Group(name_), from, *limits.cpu_millis));
    limits_.cpu_millis = limits.cpu_millis;
  }
  if (limits.cpu_weight) {
    CAISSON_ASSIGN(now.cpu_weight,
                   DialectOf(cpu->version).SetWeight(cpu->Group(name_), *limits.cpu_weight));
    limits_.cpu_weight = limits.cpu_weight;
  }
  if (limits.pids) {
    const Hierarchy* pids = tree_->Serving(Controller::kPids);
    CAISSON_ASSIGN(now.pids, internal::SetPids(pids->Group(name_), *limits.pids));
    limits_.pids = limits.pids;
  }
  if (limits.io && *limits.io != IoRate{}) {
    const Hierarchy* io = tree_->Serving(Controller::kIo);
    CAISSON_ASSIGN(const dev_t disk, internal::WholeDisk(tree_->host_, limits.io_device));
    CAISSON_TRY(JoinIo());
    CAISSON_ASSIGN(now.io, DialectOf(io->version).SetIo(io->Group(name_), disk, *limits.io));
    limits_.io = Merged(limits_.io.value_or(IoRate{}), *limits.io);
    limits_.io_device = limits.io_device;
  }
  return now;
}

// Best effort: what was in force a moment ago was accepted then. A limit that cannot be put back
// stays at the value that was asked for last, which is never weaker than what the caller wanted.
void Cgroup::PutBack(const CgroupLimits& before) {
  (void)Write(Difference(before, limits_));
  limits_ = before;
}

Result<std::vector<LimitReport>> Cgroup::ApplyLimits(const CgroupLimits& limits) {
  std::vector<LimitReport> reports = tree_->CheckFrom(limits, limits_);
  for (const LimitReport& report : reports) {
    if (report.enforced) continue;
    return Error(ErrorCode::kLimitRefused,
                 "the " + std::string(report.name) + " limit cannot be enforced: " + report.reason)
        .WithRemedy(report.remedy);
  }
  const CgroupLimits before = limits_;
  auto applied = Write(limits);
  if (!applied) {
    PutBack(before);
    return std::move(applied).error();
  }
  for (LimitReport& report : reports) {
    if (report.by == kNoHostSwap) continue;
    report.value = FieldOf(*applied, report.name).value_or(kNoLimit);
    if (report.value <= FieldOf(limits, report.name).value_or(kNoLimit)) continue;
    PutBack(before);
    return Error(ErrorCode::kLimitRefused, "the kernel keeps the " + std::string(report.name) +
                                               " limit at " + std::to_string(report.value));
  }
  return reports;
}

}  // namespace caisson::sys
