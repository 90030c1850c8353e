// Limits and counters as cgroup v2 spells them (Documentation/admin-guide/cgroup-v2.rst), and what
// both versions share.
#include <sys/sysmacros.h>

#include <cerrno>

#include "sys/cgroup_internal.h"

namespace caisson::sys::internal {
namespace {

constexpr LimitFiles kFiles = {
    .memory = "cgroup v2 memory.max",
    .swap = "cgroup v2 memory.swap.max",
    .cpu = "cgroup v2 cpu.max",
    .cpu_weight = "cgroup v2 cpu.weight",
    .pids = "cgroup v2 pids.max",
    .io = "cgroup v2 io.max",
};

// v1 says "no limit" as the largest page count times the page size.
constexpr uint64_t kV1Unlimited = 0x7ffffffffffff000 & ~uint64_t{0xffff};

// The value of "key=" in a line of io.max or io.stat.
std::optional<uint64_t> ValueOf(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    const std::string_view word = NextPiece(line, ' ');
    if (!word.starts_with(key) || word.size() <= key.size() || word[key.size()] != '=') continue;
    const std::string_view value = word.substr(key.size() + 1);
    return value == "max" ? kNoLimit : ParseNumber(value);
  }
  return std::nullopt;
}

class V2 final : public Dialect {
 public:
  const LimitFiles& files() const override { return kFiles; }

  Result<MemoryCaps> SetMemory(const Hierarchy& hierarchy, const GroupDir& dir, MemoryCaps from,
                               MemoryCaps to) const override {
    if (to.memory < from.memory) CAISSON_TRY(MakeRoom(dir, to.memory));
    CAISSON_ASSIGN(const uint64_t memory,
                   ExchangeNumber(dir, "memory.max", ValueOr(to.memory, "max").view()));
    if (!hierarchy.has_swap_file) return MemoryCaps{memory, kNoLimit};
    auto swap = ExchangeNumber(dir, "memory.swap.max", ValueOr(to.swap, "max").view());
    if (!swap) {
      dir.TryWrite("memory.max", ValueOr(from.memory, "max").Add("\n").view());
      return std::move(swap).error();
    }
    return MemoryCaps{memory, *swap};
  }

  Result<uint32_t> SetCpu(const GroupDir& dir, uint32_t, uint32_t to) const override {
    const uint32_t period = PeriodFor(to);
    const ShortText text =
        ShortText(ValueOr(to == kNoLimit32 ? kNoLimit : QuotaFor(to), "max").view())
            .Add(" ")
            .Add(uint64_t{period});
    CAISSON_ASSIGN(const uint64_t quota, ExchangeNumber(dir, "cpu.max", text.view()));
    if (quota == kNoLimit) return kNoLimit32;
    return static_cast<uint32_t>(quota * 1000 / period);
  }

  Result<uint32_t> SetWeight(const GroupDir& dir, uint32_t weight) const override {
    const uint64_t wanted = weight == kNoLimit32 ? 100 : weight;
    CAISSON_ASSIGN(const uint64_t now,
                   ExchangeNumber(dir, "cpu.weight", ShortText().Add(wanted).view()));
    return static_cast<uint32_t>(now);
  }

  Result<IoRate> SetIo(const GroupDir& dir, dev_t disk, const IoRate& rate) const override {
    const ShortText device =
        ShortText().Add(uint64_t{major(disk)}).Add(":").Add(uint64_t{minor(disk)});
    ShortText text(device.view());
    const auto add = [&](std::string_view key, std::optional<uint64_t> value) {
      if (value) text.Add(" ").Add(key).Add("=").Add(ValueOr(*value, "max").view());
    };
    add("rbps", rate.read_bps);
    add("wbps", rate.write_bps);
    add("riops", rate.read_iops);
    add("wiops", rate.write_iops);
    char buffer[8192];
    const auto now = TryExchangeText(dir.parent, dir.Path("io.max").c_str(), text.view(), buffer);
    if (!now) return WriteError(dir, "io.max", text.view(), errno);
    std::string_view rest = *now, line;
    do {
      line = NextPiece(rest, '\n');
    } while (!rest.empty() &&
             !(line.starts_with(device.view()) && line[device.view().size()] == ' '));
    if (!line.starts_with(device.view())) line = {};  // no line: no limit on this disk
    const auto read_back = [&](std::string_view key, std::optional<uint64_t> asked) {
      return asked ? std::optional(ValueOf(line, key).value_or(kNoLimit)) : std::nullopt;
    };
    return IoRate{read_back("rbps", rate.read_bps), read_back("wbps", rate.write_bps),
                  read_back("riops", rate.read_iops), read_back("wiops", rate.write_iops)};
  }

  std::string_view memory_current_file() const override { return "memory.current"; }

  std::optional<uint64_t> SwapCurrent(const GroupDir& dir) const override {
    return dir.TryNumber("memory.swap.current");
  }

  std::optional<uint64_t> OomKills(const GroupDir& dir) const override {
    char buffer[512];
    const auto text = dir.TryRead("memory.events", buffer);
    return text ? NumberOf(*text, "oom_kill") : std::nullopt;
  }

  // cpu.stat exists in every v2 group; its throttling lines only with the cpu controller.
  void ReadCpu(const Hierarchy& hierarchy, const GroupDir& dir, Counters& counters) const override {
    char buffer[2048];
    const auto text = dir.TryRead("cpu.stat", buffer);
    if (text) {
      counters.cpu_usage_us = NumberOf(*text, "usage_usec");
      counters.cpu_user_us = NumberOf(*text, "user_usec");
      counters.cpu_system_us = NumberOf(*text, "system_usec");
      if (hierarchy.Serves(Controller::kCpu))
        counters.throttled_us = NumberOf(*text, "throttled_usec");
    }
    if (!hierarchy.has_pressure) return;
    counters.cpu_stalled_us = Stalled(dir, "cpu.pressure");
    counters.memory_stalled_us = Stalled(dir, "memory.pressure");
    counters.io_stalled_us = Stalled(dir, "io.pressure");
  }

  void ReadIo(const GroupDir& dir, Counters& counters) const override {
    char buffer[8192];
    const auto text = dir.TryRead("io.stat", buffer);
    if (!text) return;
    uint64_t read = 0, written = 0;
    std::string_view rest = *text;
    while (!rest.empty()) {
      const std::string_view line = NextPiece(rest, '\n');
      read += ValueOf(line, "rbytes").value_or(0);
      written += ValueOf(line, "wbytes").value_or(0);
    }
    counters.io_read_bytes = read;
    counters.io_write_bytes = written;
  }

  // memory.reclaim is new in Linux 5.19; before, memory.high does the same for an empty group.
  void Reclaim(const GroupDir& dir) const override {
    for (int attempt = 0; attempt < 4; ++attempt) {
      const auto current = dir.TryNumber("memory.current");
      if (!current || *current == 0) return;
      if (dir.TryWrite("memory.reclaim", ShortText().Add(*current).view()) == ENOENT) {
        dir.TryWrite("memory.high", "0\n");
        dir.TryWrite("memory.high", "max\n");
        return;
      }
    }
  }

 private:
  // memory.max below what is in use makes the kernel kill. A passing memory.high reclaims without
  // that, so that a limit which does not fit is an error and not a death.
  static Status MakeRoom(const GroupDir& dir, uint64_t bytes) {
    const auto current = dir.TryNumber("memory.current");
    if (!current || *current <= bytes) return {};
    dir.TryWrite("memory.high", ShortText().Add(bytes).Add("\n").view());
    const auto left = dir.TryNumber("memory.current");
    dir.TryWrite("memory.high", "max\n");
    if (left && *left > bytes) return MemoryInUse(dir, "memory.current", bytes);
    return {};
  }

  static std::optional<uint64_t> Stalled(const GroupDir& dir, std::string_view file) {
    char buffer[256];
    const auto text = dir.TryRead(file, buffer);
    return text ? ValueOf(FirstLine(*text), "total") : std::nullopt;
  }
};

}  // namespace

const Dialect& DialectV2() {
  static const V2 dialect;
  return dialect;
}

const Dialect& DialectOf(Version version) {
  return version == Version::k1 ? DialectV1() : DialectV2();
}

ShortText ValueOr(uint64_t value, std::string_view no_limit_word) {
  ShortText text;
  if (value == kNoLimit) {
    text.Add(no_limit_word);
  } else {
    text.Add(value);
  }
  return text;
}

Result<uint64_t> ExchangeNumber(const GroupDir& dir, std::string_view file, std::string_view text) {
  char buffer[128];
  const auto now =
      TryExchangeText(dir.parent, dir.Path(file).c_str(), ShortText(text).Add("\n").view(), buffer);
  if (!now) return WriteError(dir, file, text, errno);
  const std::string_view line = FirstLine(*now);
  if (line.starts_with("max") || line == "-1") return kNoLimit;
  const auto value = ParseNumber(line);
  if (!value) {
    std::string message(file);
    return Error(ErrorCode::kIo, message.append(" says \"").append(line).append("\""));
  }
  return *value >= kV1Unlimited ? kNoLimit : *value;
}

Error WriteError(const GroupDir& dir, std::string_view file, std::string_view text, int error) {
  std::string message = "cannot write \"";
  message.append(FirstLine(text))
      .append("\" to ")
      .append(file)
      .append(" of group ")
      .append(dir.name);
  return Error::FromErrno(std::move(message), error);
}

Error MemoryInUse(const GroupDir& dir, std::string_view usage_file, uint64_t wanted) {
  const auto usage = dir.TryNumber(usage_file);
  return Error(ErrorCode::kConflict,
               "cannot lower memory to " + std::to_string(wanted) +
                   " bytes: " + (usage ? std::to_string(*usage) : std::string("more")) +
                   " are in use and cannot be reclaimed")
      .WithRemedy(
          "end processes or delete files on tmpfs in the sandbox, or choose a higher limit");
}

Result<uint32_t> SetPids(const GroupDir& dir, uint32_t pids) {
  CAISSON_ASSIGN(
      const uint64_t now,
      ExchangeNumber(dir, "pids.max", ValueOr(pids == kNoLimit32 ? kNoLimit : pids, "max").view()));
  return now == kNoLimit ? kNoLimit32 : static_cast<uint32_t>(now);
}

}  // namespace caisson::sys::internal
