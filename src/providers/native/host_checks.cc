#include "providers/native/host_checks.h"

#include <dirent.h>
#include <linux/capability.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "base/units.h"
#include "sandbox/limits.h"
#include "sys/capabilities.h"
#include "sys/landlock.h"
#include "sys/resctrl.h"
#include "sys/text_file.h"

namespace caisson::native {
namespace {

constexpr KernelVersion kOldest = {5, 15, 0};
constexpr uint64_t kDescriptorsPerSandbox = 6;
constexpr uint64_t kPtysPerSandbox = 16;
constexpr uint64_t kComfortable = 1000;  // sandboxes at once that a host should have room for

CheckResult Ok(std::string detail) { return {CheckStatus::kOk, std::move(detail), ""}; }
CheckResult Off(std::string detail, std::string remedy = "") {
  return {CheckStatus::kOff, std::move(detail), std::move(remedy)};
}
CheckResult Weaker(std::string detail, std::string remedy = "") {
  return {CheckStatus::kWeaker, std::move(detail), std::move(remedy)};
}
CheckResult Failed(std::string detail, std::string remedy = "") {
  return {CheckStatus::kFailed, std::move(detail), std::move(remedy)};
}

// --- kernel -------------------------------------------------------------------------------------
CheckResult Version(const HostView& host) {
  const auto version = ParseKernelVersion(host.kernel_release);
  if (!version)
    return Weaker("the version " + Quoted(host.kernel_release) +
                  " is not understood; Linux 5.15 is the oldest that is supported");
  if (*version < kOldest)
    return Failed(host.kernel_release + " is too old; Linux 5.15 is the oldest that is supported",
                  "upgrade the kernel");
  const auto bugs = KnownBugs(*version);
  if (bugs.empty()) return Ok(host.kernel_release + " (5.15 or newer is needed)");
  std::string names;
  for (const auto bug : bugs) names += (names.empty() ? "" : ", ") + std::string(bug);
  return Weaker(host.kernel_release + " by its number has " + names +
                    ", unless the distribution has fixed it",
                "upgrade the kernel, or compare with the distribution's changelog");
}

CheckResult Seccomp(const HostView& host) {
  const auto actions = host.Text("/proc/sys/kernel/seccomp/actions_avail");
  if (!actions)
    return Failed("the kernel has no seccomp filters", "use a kernel with CONFIG_SECCOMP_FILTER");
  for (const char* needed : {"kill_process", "errno", "allow"})
    if (!sys::HasWord(*actions, needed))
      return Failed(Concat({"the kernel's seccomp lacks ", needed}), "upgrade the kernel");
  return Ok("filters with kill_process and errno");
}

CheckResult Landlock(const HostView&) {
  const int abi = sys::LandlockAbi();
  const std::string enable = "boot with lsm=landlock,… on a kernel with CONFIG_SECURITY_LANDLOCK";
  if (abi == 0)
    return Weaker("absent: one layer less around mounts, ioctls, signals and abstract sockets",
                  enable);
  const std::string detail = sys::LandlockSummary(abi);
  return abi >= 6 ? Ok(detail) : Weaker(detail, "upgrade to Linux 6.12 for all of it");
}

CheckResult FromTrial(int error, std::string_view good, CheckStatus otherwise,
                      std::string_view since) {
  if (error == 0) return Ok(std::string(good));
  return {
      otherwise, Concat({"does not work: ", std::strerror(error)}),
      Concat({"use Linux ", since, " or newer; in a container, a seccomp profile that allows it"})};
}
CheckResult Openat2(const HostView&) {
  return FromTrial(TryOpenat2(), "paths cannot leave a sandbox's root", CheckStatus::kFailed,
                   "5.6");
}
CheckResult Pidfd(const HostView&) {
  return FromTrial(TryPidfd(), "processes are named without pid reuse", CheckStatus::kFailed,
                   "5.4");
}
CheckResult PidfdInfo(const HostView&) {
  return FromTrial(TryPidfdExitInfo(), "pidfds tell about their process", CheckStatus::kOff,
                   "6.13");
}
CheckResult CloseRange(const HostView&) {
  return FromTrial(TryCloseRange(), "descriptors are closed at once", CheckStatus::kFailed, "5.9");
}
CheckResult MountApi(const HostView&) {
  return FromTrial(TryMountApi(), "fsopen, open_tree, mount_setattr", CheckStatus::kFailed, "5.12");
}

// --- who we are ---------------------------------------------------------------------------------
struct Need {
  int capability;
  std::string_view consequence;
};
constexpr Need kPower[] = {{CAP_SYS_ADMIN, ""}, {CAP_SETUID, ""},    {CAP_SETGID, ""},
                           {CAP_CHOWN, ""},     {CAP_MKNOD, ""},     {CAP_DAC_OVERRIDE, ""},
                           {CAP_KILL, ""},      {CAP_SYS_PTRACE, ""}};
constexpr Need kExtras[] = {
    {CAP_SYS_RESOURCE,
     "hard limits (open files) cannot be raised and the launcher cannot be spared by the OOM "
     "killer"},
    {CAP_NET_ADMIN, "network beyond loopback cannot be set up"},
    {CAP_BPF, "no device filter on cgroup v2"},
};

CheckResult Capabilities(const HostView& host) {
  if (host.uid != 0)
    return Off("an ordinary user: sandboxes are made in a user namespace of their own",
               "run as root for what is weaker below");
  if (!host.has_all_ids())
    return Weaker("root of a user namespace, not of the host",
                  "start the container without user namespace remapping, or run on the host");
  uint64_t missing = 0;
  for (const auto& need : kPower) missing |= sys::CapBit(need.capability) & ~host.capabilities;
  if (missing != 0)
    return Weaker("root without " + sys::CapabilityNames(missing) + ": treated as an ordinary user",
                  "in a container, start it with --privileged or add these capabilities");
  std::string lacks;
  for (const auto& need : kExtras)
    if ((host.capabilities & sys::CapBit(need.capability)) == 0)
      lacks += Concat({lacks.empty() ? "" : "; ",
                       sys::CapabilityNames(sys::CapBit(need.capability)), ": ", need.consequence});
  if (lacks.empty()) return Ok("root with all that is needed");
  return Weaker("root without " + lacks,
                "in a container, add the capability (--cap-add); on a host, look at the service's "
                "CapabilityBoundingSet");
}

CheckResult UserNamespaceLimit(const HostView& host) {
  const auto most = host.Number("/proc/sys/user/max_user_namespaces");
  if (!most) return Failed("the kernel has no user namespaces", "use a kernel with CONFIG_USER_NS");
  const std::string text = std::to_string(*most) + " user namespaces";
  if (*most == 0) return Failed(text + " allowed", "sysctl -w user.max_user_namespaces=10000");
  if (static_cast<uint64_t>(*most) < kComfortable)
    return Weaker(text + ": that many sandboxes at most",
                  "sysctl -w user.max_user_namespaces=10000");
  return Ok(text);
}

CheckResult OrdinaryUsers(const HostView& host) {
  const auto status = host.uid == 0 ? CheckStatus::kOff : CheckStatus::kFailed;
  if (host.Number("/proc/sys/kernel/unprivileged_userns_clone").value_or(1) == 0)
    return {status, "ordinary users may not make user namespaces, so only root can have sandboxes",
            "sysctl -w kernel.unprivileged_userns_clone=1"};
  if (host.Number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").value_or(0) != 0)
    return {status,
            "AppArmor takes the power out of ordinary users' user namespaces, so only root can "
            "have sandboxes",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for "
            "caisson with `userns,`"};
  return Ok("may make user namespaces");
}

CheckResult SubordinateIds(const HostView& host) {
  if (!host.rootless()) return Ok("not needed by root");
  const std::string name = UserNameIn(host.Text("/etc/passwd").value_or(""), host.uid);
  const bool programs = host.HasProgram("newuidmap") && host.HasProgram("newgidmap");
  const bool ranges = HasIdRange(host.Text("/etc/subuid").value_or(""), name, host.uid) &&
                      HasIdRange(host.Text("/etc/subgid").value_or(""), name, host.uid);
  if (programs && ranges) return Ok("65536 ids for this user's sandboxes");
  const std::string who = name.empty() ? std::to_string(host.uid) : name;
  std::string remedy = programs ? "" : "install newuidmap (apt install uidmap)";
  if (!ranges)
    remedy += Concat({remedy.empty() ? "" : ", then: ",
                      "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ", who});
  return Weaker(Concat({programs ? "" : "no newuidmap; ",
                        ranges ? "" : "no 65536 ids in /etc/subuid and /etc/subgid; ",
                        "a sandbox has root as its only user"}),
                remedy);
}

// --- pools that all sandboxes share -------------------------------------------------------------
// Room for `total / each` sandboxes.
CheckResult Room(std::optional<int64_t> total, uint64_t each, std::string_view unit,
                 std::string_view remedy) {
  if (!total || *total < 0) return Off("cannot be read");
  const uint64_t room = static_cast<uint64_t>(*total) / each;
  std::string detail =
      Concat({std::to_string(*total), " ", unit, ": room for ", std::to_string(room),
              " sandboxes with ", std::to_string(each), " each"});
  if (room >= kComfortable) return Ok(std::move(detail));
  return Weaker(std::move(detail), std::string(remedy));
}
CheckResult Pids(const HostView& host) {
  auto most = host.Number("/proc/sys/kernel/pid_max");
  if (most) *most = *most / 10 * 8;  // the rest is the host's
  return Room(most, sandbox::kDefaultLimits.pids, "pids to share",
              "sysctl -w kernel.pid_max=4194304");
}
CheckResult Ptys(const HostView& host) {
  return Room(host.Number("/proc/sys/kernel/pty/max"), kPtysPerSandbox, "terminals",
              "sysctl -w kernel.pty.max=65536");
}
CheckResult OpenFiles(const HostView& host) {
  return Room(static_cast<int64_t>(std::min<uint64_t>(host.open_files, INT64_MAX)),
              kDescriptorsPerSandbox, "descriptors for the launcher",
              "ulimit -Hn 65536, or LimitNOFILE=65536 in the service");
}
CheckResult FileMax(const HostView& host) {
  return Room(host.Number("/proc/sys/fs/file-max"), sandbox::kDefaultLimits.open_files,
              "open files", "sysctl -w fs.file-max=9223372036854775807");
}
CheckResult Inotify(const HostView& host) {
  const auto most = host.Number("/proc/sys/fs/inotify/max_user_instances");
  if (!most) return Off("cannot be read");
  if (!host.rootless()) return Ok(std::to_string(*most) + " instances for each sandbox");
  if (*most >= 1024) return Ok(std::to_string(*most) + " instances");
  return Weaker(
      std::to_string(*most) + " instances, shared by all sandboxes and programs of this user",
      "sysctl -w fs.inotify.max_user_instances=8192");
}

// --- the machine --------------------------------------------------------------------------------
CheckResult Swap(const HostView& host) {
  const auto swaps = host.Text("/proc/swaps");
  const uint64_t bytes = swaps ? SwapBytes(*swaps) : 0;
  if (bytes == 0) return Ok("none");
  const auto memory = host.Fact("cgroup_memory");
  if (memory && !memory->starts_with("absent"))
    return Ok(FormatSize(bytes) + ", of which sandboxes get none unless asked");
  return Weaker(FormatSize(bytes) + " of swap, open to sandboxes because there is no memory limit");
}

CheckResult CpuBugs(const HostView& host) {
  const std::string path = "/sys/devices/system/cpu/vulnerabilities";
  DIR* dir = opendir((host.root + path).c_str());
  if (dir == nullptr) return Off("the kernel does not tell");
  std::vector<std::string> open;
  while (const dirent* entry = readdir(dir)) {
    const auto text =
        entry->d_name[0] == '.' ? std::nullopt : host.Text(path + "/" + entry->d_name);
    if (text && text->starts_with("Vulnerable")) open.emplace_back(entry->d_name);
  }
  closedir(dir);
  if (open.empty()) return Ok("every CPU bug that the kernel knows is mitigated or not there");
  std::ranges::sort(open);
  std::string names;
  for (const auto& name : open) names += (names.empty() ? "" : ", ") + name;
  return Weaker("not mitigated: " + names + "; a sandbox may read memory of others through the CPU",
                "update microcode and kernel; boot without mitigations=off");
}

CheckResult Smt(const HostView& host) {
  if (host.Number("/sys/devices/system/cpu/smt/active").value_or(0) == 0)
    return Ok("no core is shared by two threads");
  return Off("sandboxes share cores as hyper-threads",
             "echo off > /sys/devices/system/cpu/smt/control");
}

CheckResult ClockSource(const HostView& host) {
  const auto source = host.Text("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (!source) return Off("the kernel does not tell");
  for (const char* slow : {"hpet", "acpi_pm", "jiffies", "refined-jiffies"})
    if (*source == slow) return Off(*source + ": every reading of the time is a system call");
  return Ok(*source);
}

CheckResult Resctrl(const HostView& host) {
  auto probed = sys::ResctrlGroup::Probe(
      {.proc = host.root + "/proc", .root = host.root + "/sys/fs/resctrl"});
  if (probed) return Ok("memory bandwidth can be limited");
  return Off(probed.error().message(), probed.error().remedy());
}

CheckResult Mkfs(const HostView& host) {
  if (host.HasProgram("mkfs.ext4")) return Ok("there");
  return Off("no mkfs.ext4: no disks by loop image", "apt install e2fsprogs");
}

CheckResult Space(const HostView& host) {
  struct statvfs info{};
  std::string path = host.root + host.state_dir;
  // The directory may not be there yet; its file system is that of the nearest one that is.
  while (statvfs(path.c_str(), &info) != 0) {
    const size_t slash = path.rfind('/');
    if (errno != ENOENT || slash == std::string::npos || slash == 0)
      return Weaker(host.state_dir + " cannot be looked at",
                    "set CAISSON_HOME to a directory that you may write to");
    path.resize(slash);
  }
  const uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  const std::string detail = FormatSize(free_bytes) + " free for " + host.state_dir;
  if ((info.f_flag & ST_RDONLY) != 0)
    return Failed(host.state_dir + " is on a read-only file system",
                  "set CAISSON_HOME to a directory that you may write to");
  if (free_bytes >= (uint64_t{1} << 30)) return Ok(detail);
  return Weaker(detail, "free some space, or set CAISSON_HOME to a directory on a larger disk");
}

// The blocks of the report, in order.
constexpr std::string_view kGroups[] = {"kernel",       "privilege", "launcher", "namespaces",
                                        "file systems", "limits",    "disks",    "room",
                                        "machine",      "sysctls"};

constexpr Check kChecks[] = {
    {"kernel", "version", Version},
    {"kernel", "seccomp", Seccomp},
    {"kernel", "landlock", Landlock},
    {"kernel", "openat2", Openat2},
    {"kernel", "mount API", MountApi},
    {"kernel", "close_range", CloseRange},
    {"kernel", "pidfd", Pidfd},
    {"kernel", "pidfd info", PidfdInfo},
    {"privilege", "capabilities", Capabilities},
    {"privilege", "user namespaces", UserNamespaceLimit},
    {"privilege", "ordinary users", OrdinaryUsers},
    {"privilege", "subordinate ids", SubordinateIds},
    {"disks", "mkfs.ext4", Mkfs},
    {"disks", "space", Space},
    {"room", "pids", Pids},
    {"room", "terminals", Ptys},
    {"room", "descriptors", OpenFiles},
    {"room", "file-max", FileMax},
    {"room", "inotify", Inotify},
    {"machine", "swap", Swap},
    {"machine", "memory bandwidth", Resctrl},
    {"machine", "CPU bugs", CpuBugs},
    {"machine", "hyper-threads", Smt},
    {"machine", "clock", ClockSource},
};

}  // namespace

std::string_view NameOf(CheckStatus status) {
  switch (status) {
    case CheckStatus::kOk:
      return "ok";
    case CheckStatus::kOff:
      return "off";
    case CheckStatus::kWeaker:
      return "weaker";
    case CheckStatus::kFailed:
      return "failed";
  }
  return "failed";
}

std::span<const Check> HostChecks() { return kChecks; }

std::vector<CheckLine> CheckHost(const HostView& host) {
  const Power power = host.power();
  std::vector<CheckLine> all;
  for (const auto& check : kChecks) all.push_back({check.group, check.name, check.run(host)});
  for (auto part : {NamespaceLines(host), FileSystemLines(TryFileSystems(power), power),
                    LauncherLines(host), SysctlLines(host)})
    for (auto& line : part) all.push_back(std::move(line));
  std::vector<CheckLine> lines;
  for (const std::string_view group : kGroups)
    for (auto& line : all)
      if (line.group == group) lines.push_back(std::move(line));
  return lines;
}

}  // namespace caisson::native
