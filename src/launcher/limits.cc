#include "launcher/limits.h"

#include <sys/stat.h>

namespace caisson::launcher {
namespace {

namespace w = wire::launcher;

std::optional<uint64_t> Wanted(uint64_t value) {
  return value == w::kNoLimit ? std::nullopt : std::optional<uint64_t>(value);
}
std::optional<uint32_t> Wanted32(uint64_t value) {
  if (value == w::kNoLimit) return std::nullopt;
  return value > 0xFFFFFFFEu ? 0xFFFFFFFEu : static_cast<uint32_t>(value);
}

uint32_t BitOf(std::string_view name) {
  if (name == "memory") return w::kMemoryBit;
  if (name == "swap") return w::kSwapBit;
  if (name == "cpu") return w::kCpuBit;
  if (name == "pids") return w::kPidsBit;
  return 0;
}

void Lift(sys::CgroupLimits& limits, std::string_view name) {
  if (name == "memory") limits.memory_bytes.reset();
  if (name == "swap") limits.swap_bytes.reset();
  if (name == "cpu") limits.cpu_millis.reset();
  if (name == "pids") limits.pids.reset();
}

}  // namespace

ProcessWall WallOf(const Host& host, w::Profile profile) {
  if (!host.rootless || !host.counts_processes_by_namespace) return ProcessWall::kCgroup;
  return host.ids.kind == IdPlan::Kind::kSingle || profile == w::Profile::kStrict
             ? ProcessWall::kCgroupOrRlimit
             : ProcessWall::kCgroup;
}

Result<LimitPlan> PlanLimits(const Host& host, const w::Limits& limits, ProcessWall wall) {
  LimitPlan plan;
  plan.cgroup.memory_bytes = Wanted(limits.memory_bytes);
  plan.cgroup.swap_bytes = Wanted(limits.swap_bytes);
  plan.cgroup.cpu_millis = Wanted32(limits.cpu_millis);
  plan.cgroup.pids = Wanted32(limits.pids);
  sys::IoRate io{Wanted(limits.io_read_bps), Wanted(limits.io_write_bps),
                 Wanted(limits.io_read_iops), Wanted(limits.io_write_iops)};
  if (io.read_bps || io.write_bps || io.read_iops || io.write_iops) {
    struct stat info{};
    if (stat(host.state_dir.c_str(), &info) != 0)
      return Error::FromErrno("find the disk that an I/O rate applies to");
    plan.cgroup.io = io;
    plan.cgroup.io_device = info.st_dev;
  }
  const sys::CgroupLimits asked = plan.cgroup;
  for (const auto& report : host.cgroups->Check(asked)) {
    if (report.enforced) continue;
    if (report.name == "pids" && wall == ProcessWall::kCgroupOrRlimit) {
      Lift(plan.cgroup, report.name);
      plan.process_rlimit = limits.pids;
      plan.facts.push_back({"pids", 1, limits.pids, std::string(kRlimitOfProcesses), ""});
      continue;
    }
    if ((limits.defaulted & BitOf(report.name)) == 0)
      return Error(ErrorCode::kLimitRefused, "the " + std::string(report.name) +
                                                 " limit cannot be enforced here: " + report.reason)
          .WithRemedy(report.remedy.empty()
                          ? "leave this limit out, or run on a host that can enforce it"
                          : report.remedy);
    Lift(plan.cgroup, report.name);
    plan.facts.push_back({std::string(report.name), 0, 0, "", report.reason});
  }
  return plan;
}

Result<DiskBackend> ChooseDisk(const Host& host, w::DiskBackend wanted, const w::Limits& limits) {
  auto probe = [&](DiskBackend backend) -> const DiskProbe& {
    return host.disks[static_cast<size_t>(backend)];
  };
  auto insist = [&](DiskBackend backend) -> Result<DiskBackend> {
    if (probe(backend).works) return backend;
    return Error(ErrorCode::kLimitRefused, "the disk back end " + std::string(NameOf(backend)) +
                                               " does not work here: " + probe(backend).detail)
        .WithRemedy("leave the choice to Caisson (--disk-backend auto)");
  };
  switch (wanted) {
    case w::DiskBackend::kTmpfs:
      return insist(DiskBackend::kTmpfs);
    case w::DiskBackend::kLoop:
      return insist(DiskBackend::kLoop);
    case w::DiskBackend::kQuota:
      return insist(DiskBackend::kQuota);
    case w::DiskBackend::kAuto:
      break;
  }
  // Memory is fastest, and honest as long as a full disk leaves the memory limit room to breathe.
  if (limits.memory_bytes == w::kNoLimit || limits.disk_bytes <= limits.memory_bytes / 2)
    return DiskBackend::kTmpfs;
  for (const DiskBackend backend : {DiskBackend::kQuota, DiskBackend::kLoop})
    if (probe(backend).works) return backend;
  return Error(ErrorCode::kLimitRefused, "a disk of " + std::to_string(limits.disk_bytes) +
                                             " bytes does not fit in half of the memory limit, and "
                                             "no other back end works here: quota: " +
                                             probe(DiskBackend::kQuota).detail +
                                             "; loop: " + probe(DiskBackend::kLoop).detail)
      .WithRemedy("ask for a smaller disk or more memory");
}

std::vector<w::LimitFact> ToFacts(const std::vector<sys::LimitReport>& reports) {
  std::vector<w::LimitFact> facts;
  for (const auto& report : reports)
    facts.push_back({std::string(report.name), static_cast<uint8_t>(report.enforced), report.value,
                     report.by, report.reason});
  return facts;
}

w::LimitFact DiskFact(const char* name, uint64_t value, DiskBackend backend) {
  std::string by = backend == DiskBackend::kTmpfs  ? "tmpfs (counts as memory too)"
                   : backend == DiskBackend::kLoop ? "ext4 image on a loop device"
                                                   : "project quota";
  return {name, 1, value, std::move(by), ""};
}

w::Counters ToCounters(const sys::CgroupStats& stats, const DiskStats& disk) {
  w::Counters counters;
  counters.memory_current = stats.memory_current.value_or(0);
  counters.memory_peak = stats.memory_peak.value_or(0);
  counters.oom_kills = stats.oom_kills.value_or(0);
  counters.cpu_us = stats.cpu_usage_us.value_or(0);
  counters.cpu_throttled_us = stats.throttled_us.value_or(0);
  counters.pids_current = stats.pids_current.value_or(0);
  counters.pids_limit_hits = stats.pids_limit_hits.value_or(0);
  counters.io_read_bytes = stats.io_read_bytes.value_or(0);
  counters.io_write_bytes = stats.io_write_bytes.value_or(0);
  counters.disk_bytes = disk.bytes_limit;
  counters.disk_used_bytes = disk.bytes_used;
  counters.disk_inodes = disk.inodes_limit;
  counters.disk_used_inodes = disk.inodes_used;
  return counters;
}

}  // namespace caisson::launcher
