// Group C: /proc and /sys.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "probe.h"

namespace caisson::probe {
namespace {

template <size_t N>
struct Path {
  char text[N];
  constexpr Path(const char (&value)[N]) {  // NOLINT: a literal is what it stands for
    for (size_t i = 0; i < N; ++i) text[i] = value[i];
  }
};

template <Path P>
Verdict Writes() {
  return OpenForWriting(P.text);
}
template <Path P>
Verdict Reads() {
  return ReadSome(P.text);
}
template <Path P>
Verdict Lists() {
  DIR* directory = opendir(P.text);
  if (directory == nullptr) return Refused(errno, P.text);
  closedir(directory);
  const auto names = ListDirectory(P.text);
  return names.empty() ? Empty(P.text)
                       : Open(std::to_string(names.size()) + " entries: " + names[0]);
}
template <Path P>
Verdict Links() {
  char target[512];
  const ssize_t n = readlink(P.text, target, sizeof(target));
  if (n < 0) return Refused(errno, P.text);
  return Open(std::string(target, static_cast<size_t>(n)));
}

Verdict LowerOomScore() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return Refused(errno, "open");
  return Judge(write(fd, "-1000", 5));
}
// Below what create set, which init still has: the kernel holds that line for a creator with
// CAP_SYS_RESOURCE.
Verdict LowerOomScoreByOne() {
  const int current = atoi(ReadFile("/proc/1/oom_score_adj").c_str());
  const std::string lower = std::to_string(current - 1);
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return Refused(errno, "open");
  return Judge(write(fd, lower.data(), lower.size()), "from " + std::to_string(current));
}
// Below what an ordinary process of the host has.
Verdict LowerOomScoreBelowZero() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return Refused(errno, "open");
  return Judge(write(fd, "-1", 2));
}
Verdict StartsAboveTheHost() {
  const std::string score = ReadFile("/proc/self/oom_score_adj");
  return Unless(atoi(score.c_str()) > 0 ? "" : "oom_score_adj " + score);
}

Verdict OnlyOwnProcesses() {
  char self[32] = "";
  const ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);
  if (n <= 0) return Refused(errno, "/proc/self");
  std::string problems;
  if (std::string(self) != std::to_string(getpid()))
    problems += "/proc is of another pid namespace ";
  for (const std::string& name : ListDirectory("/proc")) {
    if (name[0] < '0' || name[0] > '9') continue;
    const std::string status = ReadFile(("/proc/" + name + "/status").c_str());
    if (status.empty()) continue;
    const bool kernel_thread =
        StatusField(status, "Kthread") == "1" || status.starts_with("Name:\tkthreadd\n");
    if (kernel_thread) problems += "kernel thread " + name + " ";
    if (name != "1" && StatusField(status, "NSpid").find('\t') != std::string::npos)
      problems += name + " lives in a nested pid namespace ";
  }
  return Unless(problems);
}

Verdict CgroupPathHidden() {
  std::istringstream text(ReadFile("/proc/self/cgroup"));
  std::string problems;
  int lines = 0;
  for (std::string line; std::getline(text, line); ++lines) {
    const size_t colon = line.find(':', line.find(':') + 1);
    if (line.substr(colon + 1) != "/") problems += line + " ";
  }
  return Unless(problems, std::to_string(lines) + " hierarchies");
}

Verdict OnlyLoopbackInProcNet() {
  std::istringstream text(ReadFile("/proc/self/net/dev"));
  std::string problems;
  int number = 0;
  for (std::string line; std::getline(text, line); ++number) {
    if (number < 2) continue;
    const size_t begin = line.find_first_not_of(' ');
    const std::string name = line.substr(begin, line.find(':') - begin);
    if (name != "lo") problems += name + " ";
  }
  return Unless(problems);
}

Verdict WriteAttribute() {
  const int fd = open("/proc/self/attr/current", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return Refused(errno, "open");
  return Judge(write(fd, "unconfined", 10));
}

Verdict ThreadSelfCmdline() { return ReadSome("/proc/thread-self/root/proc/cmdline"); }
Verdict OwnRootCmdline() {
  return ReadSome(("/proc/" + std::to_string(getpid()) + "/root/proc/cmdline").c_str());
}
Verdict OtherProcMounts() {
  std::istringstream text(ReadFile("/proc/self/mountinfo", 1 << 20));
  std::string problems;
  int whole = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.find(" - proc ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    if (root == "/" && ++whole > 1) problems += point + " ";
    if (root == "/" && point != "/proc") problems += point + " ";
  }
  return Unless(problems);
}

constexpr const char* kUnwritable = "EROFS|EACCES|ENOENT";
constexpr const char* kHidden = "EMPTY|ENOENT|EACCES|EPERM";
constexpr const char* kInit = "EACCES|EPERM";

const Attempt kAttempts[] = {
    {"C01", "Escape", "open core_pattern for writing", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sys/kernel/core_pattern">},
    {"C02.modprobe", "Escape", "open modprobe path for writing", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sys/kernel/modprobe">},
    {"C02.binfmt", "Escape", "register a binfmt", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sys/fs/binfmt_misc/register">},
    {"C02.uevent", "Escape", "open uevent_helper for writing", kUnwritable, kUnwritable, kSafe,
     Writes<"/sys/kernel/uevent_helper">},
    {"C03", "HostDoS", "open sysrq-trigger for writing", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sysrq-trigger">},
    {"C04.drop_caches", "HostDoS", "open drop_caches for writing", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sys/vm/drop_caches">},
    {"C04.pid_max", "HostDoS", "open pid_max for writing", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sys/kernel/pid_max">},
    {"C04.hostname", "HostDoS", "open hostname for writing", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sys/kernel/hostname">},
    {"C04.ip_forward", "HostDoS", "open ip_forward for writing", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sys/net/ipv4/ip_forward">},
    {"C04.userns", "Escape", "raise max_user_namespaces", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sys/user/max_user_namespaces">},
    {"C04.mntns", "Escape", "raise max_mnt_namespaces", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sys/user/max_mnt_namespaces">},
    {"C04.overcommit", "HostDoS", "open overcommit_memory for writing", kUnwritable, kUnwritable,
     kSafe, Writes<"/proc/sys/vm/overcommit_memory">},
    {"C04.shmmax", "HostDoS", "open shmmax for writing", kUnwritable, kUnwritable, kSafe,
     Writes<"/proc/sys/kernel/shmmax">},
    {"C05.kcore", "HostLeak", "read kcore", kHidden, kHidden, kSafe, Reads<"/proc/kcore">},
    {"C05.kallsyms", "HostLeak", "read kallsyms", kHidden, kHidden, kSafe, Reads<"/proc/kallsyms">},
    {"C05.kmsg", "HostLeak", "read kmsg", kHidden, kHidden, kRisky, Reads<"/proc/kmsg">},
    {"C05.kpagecount", "HostLeak", "read kpagecount", kHidden, kHidden, kSafe,
     Reads<"/proc/kpagecount">},
    {"C05.kpageflags", "HostLeak", "read kpageflags", kHidden, kHidden, kSafe,
     Reads<"/proc/kpageflags">},
    {"C05.kpagecgroup", "HostLeak", "read kpagecgroup", kHidden, kHidden, kSafe,
     Reads<"/proc/kpagecgroup">},
    {"C05.vmallocinfo", "HostLeak", "read vmallocinfo", kHidden, kHidden, kSafe,
     Reads<"/proc/vmallocinfo">},
    {"C05.slabinfo", "HostLeak", "read slabinfo", kHidden, kHidden, kSafe, Reads<"/proc/slabinfo">},
    {"C05.iomem", "HostLeak", "read iomem", kHidden, kHidden, kSafe, Reads<"/proc/iomem">},
    {"C05.ioports", "HostLeak", "read ioports", kHidden, kHidden, kSafe, Reads<"/proc/ioports">},
    {"C05.modules", "HostLeak", "read modules", kHidden, kHidden, kSafe, Reads<"/proc/modules">},
    {"C05.zoneinfo", "HostLeak", "read zoneinfo", kHidden, kHidden, kSafe, Reads<"/proc/zoneinfo">},
    {"C05.pagetypeinfo", "HostLeak", "read pagetypeinfo", kHidden, kHidden, kSafe,
     Reads<"/proc/pagetypeinfo">},
    {"C05.interrupts", "HostLeak", "read interrupts", kHidden, kHidden, kSafe,
     Reads<"/proc/interrupts">},
    {"C05.softirqs", "HostLeak", "read softirqs", kHidden, kHidden, kSafe, Reads<"/proc/softirqs">},
    {"C05.locks", "Lateral", "read locks", kHidden, kHidden, kSafe, Reads<"/proc/locks">},
    {"C05.key-users", "Lateral", "read key-users", kHidden, kHidden, kSafe,
     Reads<"/proc/key-users">},
    {"C05.keys", "Lateral", "read keys", kHidden, kHidden, kSafe, Reads<"/proc/keys">},
    {"C05.config", "HostLeak", "read config.gz", kHidden, kHidden, kSafe, Reads<"/proc/config.gz">},
    {"C05.mtrr", "HostLeak", "read mtrr", kHidden, kHidden, kSafe, Reads<"/proc/mtrr">},
    {"C05.timer_list", "HostLeak", "read timer_list", kHidden, kHidden, kSafe,
     Reads<"/proc/timer_list">},
    {"C05.sched_debug", "HostLeak", "read sched_debug", kHidden, kHidden, kSafe,
     Reads<"/proc/sched_debug">},
    {"C05.latency_stats", "HostLeak", "read latency_stats", kHidden, kHidden, kSafe,
     Reads<"/proc/latency_stats">},
    {"C06.acpi", "HostLeak", "list /proc/acpi", kHidden, kHidden, kSafe, Lists<"/proc/acpi">},
    {"C06.bus", "HostLeak", "list /proc/bus", kHidden, kHidden, kSafe, Lists<"/proc/bus">},
    {"C06.driver", "HostLeak", "list /proc/driver", kHidden, kHidden, kSafe, Lists<"/proc/driver">},
    {"C06.fs", "HostLeak", "list /proc/fs", kHidden, kHidden, kSafe, Lists<"/proc/fs">},
    {"C06.irq", "HostLeak", "list /proc/irq", kHidden, kHidden, kSafe, Lists<"/proc/irq">},
    {"C06.scsi", "HostLeak", "list /proc/scsi", kHidden, kHidden, kSafe, Lists<"/proc/scsi">},
    {"C06.tty", "HostLeak", "list /proc/tty", kHidden, kHidden, kSafe, Lists<"/proc/tty">},
    {"C06.dynamic_debug", "HostLeak", "list /proc/dynamic_debug", kHidden, kHidden, kSafe,
     Lists<"/proc/dynamic_debug">},
    {"C06.asound", "HostLeak", "list /proc/asound", kHidden, kHidden, kSafe, Lists<"/proc/asound">},
    {"C07", "HostLeak", "read the kernel's command line", kHidden, kHidden, kSafe,
     Reads<"/proc/cmdline">},
    {"C08.environ", "HostLeak", "read init's environment", kInit, kInit, kSafe,
     Reads<"/proc/1/environ">},
    {"C08.mem", "HostLeak", "open init's memory", kInit, kInit, kSafe, Writes<"/proc/1/mem">},
    {"C08.root", "HostLeak", "follow init's root", kInit, kInit, kSafe, Links<"/proc/1/root">},
    {"C08.cwd", "HostLeak", "follow init's cwd", kInit, kInit, kSafe, Links<"/proc/1/cwd">},
    {"C08.fd", "HostLeak", "list init's descriptors", kInit, kInit, kSafe, Lists<"/proc/1/fd">},
    {"C08.maps", "HostLeak", "read init's maps", kInit, kInit, kSafe, Reads<"/proc/1/maps">},
    {"C08.exe", "HostLeak", "read init's program", kInit, kInit, kSafe, Links<"/proc/1/exe">},
    {"C08.ns", "HostLeak", "read init's namespaces", kInit, kInit, kSafe, Links<"/proc/1/ns/mnt">},
    {"C08.auxv", "HostLeak", "read init's auxv", kInit, kInit, kSafe, Reads<"/proc/1/auxv">},
    {"C08.stack", "HostLeak", "read init's kernel stack", "EACCES|EPERM|ENOENT",
     "EACCES|EPERM|ENOENT", kSafe, Reads<"/proc/1/stack">},
    {"C09.sys", "HostLeak", "list /sys", kHidden, kHidden, kSafe, Lists<"/sys">},
    {"C09.firmware", "HostLeak", "list /sys/firmware", kHidden, kHidden, kSafe,
     Lists<"/sys/firmware">},
    {"C10.min", "HostDoS", "oom_score_adj -1000", "EACCES", "EACCES", kSafe, LowerOomScore},
    {"C10.lower", "HostDoS", "oom_score_adj one below what create set", "EACCES", "EACCES", kSafe,
     LowerOomScoreByOne},
    {"C10.zero", "HostDoS", "oom_score_adj below the host's own", "EACCES", "EACCES", kSafe,
     LowerOomScoreBelowZero},
    {"C10.start", "HostDoS", "no better oom_score_adj than the host", "ok", "ok", kSafe,
     StartsAboveTheHost},
    {"C11", "HostLeak", "processes of others in /proc", "ok", "ok", kSafe, OnlyOwnProcesses},
    {"C13.list", "Escape", "list /sys/fs/cgroup", kHidden, kHidden, kSafe, Lists<"/sys/fs/cgroup">},
    {"C13.memory", "Escape", "raise the memory limit", kUnwritable, kUnwritable, kSafe,
     Writes<"/sys/fs/cgroup/memory/memory.limit_in_bytes">},
    {"C13.release", "Escape", "open release_agent for writing", kUnwritable, kUnwritable, kSafe,
     Writes<"/sys/fs/cgroup/memory/release_agent">},
    {"C13.procs", "Escape", "leave the cgroup", kUnwritable, kUnwritable, kSafe,
     Writes<"/sys/fs/cgroup/pids/cgroup.procs">},
    {"C13.v2", "Escape", "leave the v2 cgroup", kUnwritable, kUnwritable, kSafe,
     Writes<"/sys/fs/cgroup/cgroup.procs">},
    {"C14", "HostLeak", "host path in /proc/self/cgroup", "ok", "ok", kSafe, CgroupPathHidden},
    {"C15", "HostLeak", "interfaces in /proc/net/dev", "ok", "ok", kSafe, OnlyLoopbackInProcNet},
    {"C16", "Escape", "write /proc/self/attr/current", "EINVAL|EACCES|EPERM|ENOENT",
     "EINVAL|EACCES|EPERM|ENOENT", kSafe, WriteAttribute},
    {"C19.thread", "HostLeak", "cmdline through /proc/thread-self/root", kHidden, kHidden, kSafe,
     ThreadSelfCmdline},
    {"C19.root", "HostLeak", "cmdline through /proc/PID/root", kHidden, kHidden, kSafe,
     OwnRootCmdline},
    {"C19.mounts", "HostLeak", "a second proc mount", "ok", "ok", kSafe, OtherProcMounts},
};

}  // namespace

std::span<const Attempt> ProcAttempts() { return kAttempts; }

}  // namespace caisson::probe
