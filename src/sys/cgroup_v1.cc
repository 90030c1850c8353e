// Limits and counters as cgroup v1 spells them (Documentation/admin-guide/cgroup-v1).
#include <sys/sysmacros.h>

#include <cerrno>

#include "sys/cgroup_internal.h"

namespace caisson::sys::internal {
namespace {

constexpr LimitFiles kFiles = {
    .memory = "cgroup v1 memory.limit_in_bytes",
    .swap = "cgroup v1 memory.memsw.limit_in_bytes",
    .cpu = "cgroup v1 cpu.cfs_quota_us",
    .cpu_weight = "cgroup v1 cpu.shares",
    .pids = "cgroup v1 pids.max",
    .io = "cgroup v1 blkio.throttle (buffered writes are not throttled on v1)",
};

constexpr std::string_view kMemory = "memory.limit_in_bytes";
constexpr std::string_view kMemoryAndSwap = "memory.memsw.limit_in_bytes";
constexpr std::string_view kUsage = "memory.usage_in_bytes";

uint64_t Total(MemoryCaps caps) {
  if (caps.memory == kNoLimit || caps.swap >= kNoLimit - caps.memory) return kNoLimit;
  return caps.memory + caps.swap;
}

Result<uint64_t> WriteCap(const GroupDir& dir, std::string_view file, uint64_t bytes) {
  auto written = ExchangeNumber(dir, file, ValueOr(bytes, "-1").view());
  if (!written && written.error().sys_errno() == EBUSY)
    return MemoryInUse(dir, file == kMemory ? kUsage : "memory.memsw.usage_in_bytes", bytes);
  return written;
}

class V1 final : public Dialect {
 public:
  const LimitFiles& files() const override { return kFiles; }

  // The kernel keeps memory <= memory + swap at every moment, so the order of the two writes
  // depends on which way the sum goes.
  Result<MemoryCaps> SetMemory(const Hierarchy& hierarchy, const GroupDir& dir, MemoryCaps from,
                               MemoryCaps to) const override {
    const uint64_t old_total = Total(from), total = Total(to);
    if (!hierarchy.has_swap_file) {
      CAISSON_ASSIGN(const uint64_t memory, WriteCap(dir, kMemory, to.memory));
      return MemoryCaps{memory, kNoLimit};
    }
    uint64_t memory = 0, both = 0;
    if (total >= old_total) {
      CAISSON_ASSIGN(both, WriteCap(dir, kMemoryAndSwap, total));
      auto written = WriteCap(dir, kMemory, to.memory);
      if (!written) {
        (void)WriteCap(dir, kMemoryAndSwap, old_total);
        return std::move(written).error();
      }
      memory = *written;
    } else {
      CAISSON_ASSIGN(memory, WriteCap(dir, kMemory, to.memory));
      auto written = WriteCap(dir, kMemoryAndSwap, total);
      if (!written) {
        (void)WriteCap(dir, kMemory, from.memory);
        return std::move(written).error();
      }
      both = *written;
    }
    if (both == kNoLimit || memory == kNoLimit) return MemoryCaps{memory, kNoLimit};
    return MemoryCaps{memory, both - memory};
  }

  // The quota's share of the period must at no moment exceed the larger of old and new, or a parent
  // with a limit of its own refuses: a longer period goes first, a shorter one last.
  Result<uint32_t> SetCpu(const GroupDir& dir, uint32_t from, uint32_t to) const override {
    const uint32_t old_period = PeriodFor(from), period = PeriodFor(to);
    const bool lifted = to == kNoLimit32;
    if (period > old_period) CAISSON_TRY(WritePeriod(dir, period));
    auto quota = ExchangeNumber(dir, "cpu.cfs_quota_us",
                                ValueOr(lifted ? kNoLimit : QuotaFor(to), "-1").view());
    if (!quota) {
      if (period > old_period) (void)WritePeriod(dir, old_period);
      if (quota.error().sys_errno() != EINVAL) return std::move(quota).error();
      return Error(ErrorCode::kLimitRefused,
                   "the kernel refuses " + std::to_string(to) +
                       " thousandths of a core: the cgroup above has a lower CPU limit")
          .WithRemedy(
              "ask for less CPU, or raise cpu.cfs_quota_us of the cgroup that Caisson "
              "runs in");
    }
    if (period < old_period) CAISSON_TRY(WritePeriod(dir, period));
    if (*quota == kNoLimit) return kNoLimit32;
    return static_cast<uint32_t>(*quota * 1000 / period);
  }

  Result<uint32_t> SetWeight(const GroupDir& dir, uint32_t weight) const override {
    const uint64_t shares = weight == kNoLimit32 ? 1024 : uint64_t{weight} * 1024 / 100;
    CAISSON_ASSIGN(const uint64_t now,
                   ExchangeNumber(dir, "cpu.shares", ShortText().Add(shares).view()));
    return static_cast<uint32_t>((now * 100 + 512) / 1024);
  }

  Result<IoRate> SetIo(const GroupDir& dir, dev_t disk, const IoRate& rate) const override {
    IoRate now;
    CAISSON_ASSIGN(now.read_bps, Throttle(dir, "read_bps", disk, rate.read_bps));
    CAISSON_ASSIGN(now.write_bps, Throttle(dir, "write_bps", disk, rate.write_bps));
    CAISSON_ASSIGN(now.read_iops, Throttle(dir, "read_iops", disk, rate.read_iops));
    CAISSON_ASSIGN(now.write_iops, Throttle(dir, "write_iops", disk, rate.write_iops));
    return now;
  }

  std::string_view memory_current_file() const override { return kUsage; }

  std::optional<uint64_t> SwapCurrent(const GroupDir& dir) const override {
    const auto both = dir.TryNumber("memory.memsw.usage_in_bytes"), memory = dir.TryNumber(kUsage);
    if (!both || !memory) return std::nullopt;
    return *both > *memory ? *both - *memory : 0;
  }

  std::optional<uint64_t> OomKills(const GroupDir& dir) const override {
    char buffer[256];
    const auto text = dir.TryRead("memory.oom_control", buffer);
    return text ? NumberOf(*text, "oom_kill") : std::nullopt;
  }

  void ReadCpu(const Hierarchy& hierarchy, const GroupDir& dir, Counters& counters) const override {
    if (hierarchy.Serves(Controller::kCpuAcct)) {
      const auto user = dir.TryNumber("cpuacct.usage_user");
      const auto system = dir.TryNumber("cpuacct.usage_sys");
      if (user && system) {
        counters.cpu_user_us = *user / 1000;
        counters.cpu_system_us = *system / 1000;
        counters.cpu_usage_us = (*user + *system) / 1000;
      }
    }
    if (!hierarchy.Serves(Controller::kCpu)) return;
    char buffer[512];
    const auto text = dir.TryRead("cpu.stat", buffer);
    const auto throttled = text ? NumberOf(*text, "throttled_time") : std::nullopt;
    if (throttled) counters.throttled_us = *throttled / 1000;
  }

  void ReadIo(const GroupDir& dir, Counters& counters) const override {
    char buffer[8192];
    const auto text = dir.TryRead("blkio.throttle.io_service_bytes_recursive", buffer);
    if (!text) return;
    uint64_t read = 0, written = 0;
    std::string_view rest = *text;
    while (!rest.empty()) {  // "254:0 Read 4096"
      std::string_view line = NextPiece(rest, '\n');
      NextPiece(line, ' ');
      const std::string_view kind = NextPiece(line, ' ');
      const auto bytes = ParseNumber(line);
      if (bytes && kind == "Read") read += *bytes;
      if (bytes && kind == "Write") written += *bytes;
    }
    counters.io_read_bytes = read;
    counters.io_write_bytes = written;
  }

  void Reclaim(const GroupDir& dir) const override { dir.TryWrite("memory.force_empty", "0\n"); }

 private:
  static Status WritePeriod(const GroupDir& dir, uint32_t period) {
    const ShortText text = ShortText().Add(uint64_t{period}).Add("\n");
    const int error = dir.TryWrite("cpu.cfs_period_us", text.view());
    if (error != 0) return WriteError(dir, "cpu.cfs_period_us", text.view(), error);
    return {};
  }

  static Result<std::optional<uint64_t>> Throttle(const GroupDir& dir, std::string_view what,
                                                  dev_t disk, std::optional<uint64_t> rate) {
    if (!rate) return std::optional<uint64_t>();
    const ShortText device =
        ShortText().Add(uint64_t{major(disk)}).Add(":").Add(uint64_t{minor(disk)});
    const ShortText file = ShortText("blkio.throttle.").Add(what).Add("_device");
    const ShortText text =
        ShortText(device.view()).Add(" ").Add(*rate == kNoLimit ? 0 : *rate).Add("\n");
    char buffer[4096];
    const auto now =
        TryExchangeText(dir.parent, dir.Path(file.view()).c_str(), text.view(), buffer);
    if (!now) return WriteError(dir, file.view(), text.view(), errno);
    return std::optional<uint64_t>(NumberOf(*now, device.view()).value_or(kNoLimit));
  }
};

}  // namespace

const Dialect& DialectV1() {
  static const V1 dialect;
  return dialect;
}

}  // namespace caisson::sys::internal
