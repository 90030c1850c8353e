// CgroupTree::Check: which limits this host can enforce, and which are possible at all.
#include <fcntl.h>

#include <limits>

#include "sys/cgroup.h"
#include "sys/cgroup_internal.h"

namespace caisson::sys {

using internal::Dialect;
using internal::Hierarchy;

namespace {

constexpr uint64_t kMinMemory = 1 << 20;
constexpr uint32_t kMaxCpuMillis = 8'192'000;
constexpr uint32_t kMaxWeight = 10'000;
constexpr uint32_t kMaxPids = 4'194'304;

bool HostHasSwap(const CgroupHost& host) {
  const auto text = ReadText(AT_FDCWD, (host.proc + "/swaps").c_str());
  if (!text) return true;  // unknown counts as yes
  std::string_view rest = *text;
  NextPiece(rest, '\n');  // the heading
  return !rest.empty();
}

template <typename T>
std::string OutOfRange(T value, T least, T most, std::string_view unit) {
  if (value >= least && value <= most) return {};
  std::string text = std::to_string(value) + " is not possible; it has to be ";
  if (most == std::numeric_limits<T>::max()) {
    text += std::to_string(least) + " or more ";
  } else {
    text += std::to_string(least) + " to " + std::to_string(most) + " ";
  }
  return text.append(unit);
}

}  // namespace

LimitReport CgroupTree::Judge(std::string_view name, Controller controller,
                              std::string impossible) const {
  LimitReport report = {.name = name};
  const Hierarchy* serving = Serving(controller);
  if (!impossible.empty()) {
    report.reason = std::move(impossible);
    report.remedy = "ask for a limit in that range";
  } else if (!serving) {
    report.reason = this->report(controller).reason;
    report.remedy = this->report(controller).remedy;
  } else {
    report.enforced = true;
  }
  return report;
}

void CgroupTree::CheckMemory(const CgroupLimits& limits, const CgroupLimits& now,
                             std::vector<LimitReport>& reports) const {
  const Hierarchy* serving = Serving(Controller::kMemory);
  const auto& files =
      internal::DialectOf(serving ? serving->version : internal::Version::k2).files();
  if (limits.memory_bytes) {
    reports.push_back(Judge("memory", Controller::kMemory,
                            OutOfRange(*limits.memory_bytes, kMinMemory, kNoLimit, "bytes")));
    if (reports.back().enforced) reports.back().by = files.memory;
  }
  if (!limits.swap_bytes) return;
  LimitReport swap = Judge("swap", Controller::kMemory, {});
  const bool counted = serving && serving->has_swap_file;
  if (counted && serving->version == internal::Version::k1 && *limits.swap_bytes != kNoLimit &&
      limits.memory_bytes.value_or(now.memory_bytes.value_or(kNoLimit)) == kNoLimit) {
    swap.enforced = false;
    swap.reason = "cgroup v1 limits swap only together with memory";
    swap.remedy = "set a memory limit as well";
  } else if (counted) {
    swap.by = files.swap;
  } else if (!HostHasSwap(host_)) {
    swap = {.name = "swap", .enforced = true, .by = std::string(internal::kNoHostSwap)};
  } else if (serving) {
    swap.enforced = false;
    swap.reason = "the kernel does not count swap per cgroup and the host has swap";
    swap.remedy = "start the kernel with swapaccount=1, or turn swap off: swapoff -a";
  }
  reports.push_back(std::move(swap));
}

void CgroupTree::CheckIo(const CgroupLimits& limits, std::vector<LimitReport>& reports) const {
  if (!limits.io) return;
  const Hierarchy* serving = Serving(Controller::kIo);
  const auto disk = internal::WholeDisk(host_, limits.io_device);
  const auto add = [&](std::string_view name, std::optional<uint64_t> rate) {
    if (!rate) return;
    LimitReport report =
        Judge(name, Controller::kIo, OutOfRange<uint64_t>(*rate, 1, kNoLimit, "per second"));
    if (report.enforced && !disk) {
      report.enforced = false;
      report.reason = disk.error().message();
      report.remedy = disk.error().remedy();
    }
    if (report.enforced) report.by = internal::DialectOf(serving->version).files().io;
    reports.push_back(std::move(report));
  };
  add("io_read_bps", limits.io->read_bps);
  add("io_write_bps", limits.io->write_bps);
  add("io_read_iops", limits.io->read_iops);
  add("io_write_iops", limits.io->write_iops);
}

std::vector<LimitReport> CgroupTree::CheckFrom(const CgroupLimits& limits,
                                               const CgroupLimits& now) const {
  std::vector<LimitReport> reports;
  reports.reserve(9);
  CheckMemory(limits, now, reports);
  const auto add = [&](std::string_view name, Controller controller, std::optional<uint32_t> value,
                       uint32_t most, std::string_view unit,
                       std::string_view internal::LimitFiles::* file) {
    if (!value) return;
    std::string impossible;
    if (*value != kNoLimit32) impossible = OutOfRange<uint32_t>(*value, 1, most, unit);
    LimitReport report = Judge(name, controller, std::move(impossible));
    if (report.enforced)
      report.by = internal::DialectOf(Serving(controller)->version).files().*file;
    reports.push_back(std::move(report));
  };
  add("cpu", Controller::kCpu, limits.cpu_millis, kMaxCpuMillis, "thousandths of a core",
      &internal::LimitFiles::cpu);
  add("cpu_weight", Controller::kCpu, limits.cpu_weight, kMaxWeight, "as a weight",
      &internal::LimitFiles::cpu_weight);
  add("pids", Controller::kPids, limits.pids, kMaxPids, "processes", &internal::LimitFiles::pids);
  CheckIo(limits, reports);
  return reports;
}

std::vector<LimitReport> CgroupTree::Check(const CgroupLimits& limits) const {
  return CheckFrom(limits, {});
}

}  // namespace caisson::sys
