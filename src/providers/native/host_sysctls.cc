// Sysctls that matter to a host of sandboxes, as a table.
#include "base/text.h"
#include "providers/native/host_checks.h"

namespace caisson::native {
namespace {

// What an absent sysctl means.
enum class Absent : uint8_t {
  kFine,    // the kernel has no such door
  kWeaker,  // the kernel is older than the switch, and the door is open
};

struct Sysctl {
  std::string_view key;  // "kernel.kptr_restrict"
  int64_t least, most;   // good values
  Absent absent;
  std::string_view good, bad;  // what it means
};

constexpr int64_t kAny = INT64_MAX;
constexpr Sysctl kSysctls[] = {
    {"kernel.unprivileged_bpf_disabled", 1, kAny, Absent::kFine, "bpf(2) is root's",
     "bpf(2) is open to all; in sandboxes only seccomp closes it"},
    {"kernel.kptr_restrict", 1, kAny, Absent::kWeaker, "kernel addresses are hidden",
     "/proc shows kernel addresses to root; in sandboxes only the masks hide them"},
    {"kernel.dmesg_restrict", 1, kAny, Absent::kWeaker, "the kernel log is root's",
     "the kernel log is open to all; in sandboxes only seccomp closes it"},
    {"kernel.perf_event_paranoid", 2, kAny, Absent::kFine, "perf of the kernel is root's",
     "perf_event_open(2) is open to all; in sandboxes only seccomp closes it"},
    {"kernel.io_uring_disabled", 1, kAny, Absent::kWeaker, "io_uring is restricted",
     "io_uring is open to all; in sandboxes only seccomp closes it"},
    {"vm.unprivileged_userfaultfd", 0, 0, Absent::kFine, "userfaultfd is root's",
     "userfaultfd(2) is open to all; in sandboxes only seccomp closes it"},
    {"dev.tty.legacy_tiocsti", 0, 0, Absent::kWeaker, "TIOCSTI is off",
     "TIOCSTI can type into a terminal; in sandboxes only seccomp and their own terminals prevent "
     "it"},
    {"dev.tty.ldisc_autoload", 0, 0, Absent::kWeaker, "line disciplines load by root's will only",
     "anyone can load line discipline modules; in sandboxes only seccomp prevents it"},
    {"fs.protected_hardlinks", 1, kAny, Absent::kWeaker, "no hard links to other users' files",
     "hard links to other users' files are possible on this host"},
    {"fs.protected_symlinks", 1, kAny, Absent::kWeaker, "no links of others followed in /tmp",
     "links in world-writable directories are followed for anyone on this host"},
    {"fs.protected_fifos", 1, kAny, Absent::kWeaker, "no fifos of others opened in /tmp",
     "fifos in world-writable directories can be planted on this host"},
    {"fs.protected_regular", 1, kAny, Absent::kWeaker, "no files of others opened in /tmp",
     "files in world-writable directories can be planted on this host"},
    {"fs.suid_dumpable", 0, 0, Absent::kFine, "no core dumps of setuid programs",
     "setuid programs dump core on this host"},
};

std::string PathOf(std::string_view key) {
  std::string path = "/proc/sys/" + std::string(key);
  for (size_t i = 10; i < path.size(); ++i)
    if (path[i] == '.') path[i] = '/';
  return path;
}

CheckResult Judge(const HostView& host, const Sysctl& row) {
  const auto value = host.Number(PathOf(row.key));
  if (!value) {
    const bool hidden = host.Exists(PathOf(row.key));
    if (hidden) return {CheckStatus::kOff, "cannot be read by this user", ""};
    if (row.absent == Absent::kFine) return {CheckStatus::kOk, "this kernel has none", ""};
    return {CheckStatus::kWeaker, Concat({"this kernel has no such switch: ", row.bad}), ""};
  }
  const std::string number = std::to_string(*value);
  if (*value >= row.least && *value <= row.most)
    return {CheckStatus::kOk, Concat({row.good, " (", number, ")"}), ""};
  return {CheckStatus::kWeaker, Concat({row.bad, " (", number, ")"}),
          Concat({"sysctl -w ", row.key, "=", std::to_string(row.least)})};
}

// A pipe in core_pattern starts a program on the host, as root, outside of every sandbox, with a
// guest's memory as its input.
CheckResult CorePattern(const HostView& host) {
  const auto pattern = host.Text("/proc/sys/kernel/core_pattern");
  if (!pattern) return {CheckStatus::kOff, "cannot be read by this user", ""};
  if (!pattern->starts_with('|') && !pattern->starts_with('@'))
    return {CheckStatus::kOk, "core dumps are files, and sandboxes have none", ""};
  return {CheckStatus::kWeaker,
          "a crash starts " + Quoted(*pattern) +
              " on the host, as root, with the crashed program's memory as input",
          "sysctl -w kernel.core_pattern=core"};
}

}  // namespace

std::vector<CheckLine> SysctlLines(const HostView& host) {
  std::vector<CheckLine> lines = {{"sysctls", "kernel.core_pattern", CorePattern(host)}};
  for (const auto& row : kSysctls) lines.push_back({"sysctls", row.key, Judge(host, row)});
  return lines;
}

}  // namespace caisson::native
