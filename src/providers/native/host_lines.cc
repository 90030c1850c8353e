// Checks whose rows come from a trial or from the launcher.
#include <linux/sched.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "providers/native/host_checks.h"

namespace caisson::native {
namespace {

struct Kind {
  std::string_view name;
  int flag;
  std::string_view sysctl;
};
constexpr Kind kKinds[] = {
    {"user", CLONE_NEWUSER, "user.max_user_namespaces"},
    {"mnt", CLONE_NEWNS, "user.max_mnt_namespaces"},
    {"pid", CLONE_NEWPID, "user.max_pid_namespaces"},
    {"net", CLONE_NEWNET, "user.max_net_namespaces"},
    {"ipc", CLONE_NEWIPC, "user.max_ipc_namespaces"},
    {"uts", CLONE_NEWUTS, "user.max_uts_namespaces"},
    {"cgroup", CLONE_NEWCGROUP, "user.max_cgroup_namespaces"},
};

std::string Why(int error) { return std::strerror(error); }

// What to do when a namespace could not be made.
std::string NamespaceRemedy(const HostView& host, const Kind& kind, int error) {
  if (error == ENOSPC || error == EUSERS) return Concat({"sysctl -w ", kind.sysctl, "=10000"});
  if (error == EINVAL) return "use a kernel with this namespace (CONFIG_*_NS)";
  if (host.Number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").value_or(0) != 0 &&
      host.uid != 0)
    return "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for "
           "caisson with `userns,`";
  if (host.Number("/proc/sys/kernel/unprivileged_userns_clone").value_or(1) == 0 && host.uid != 0)
    return "sysctl -w kernel.unprivileged_userns_clone=1";
  return "in a container, start it with --privileged or a seccomp profile that allows unshare; "
         "else run as root";
}

CheckResult Tried(int error, std::string_view good, CheckStatus otherwise, std::string_view bad,
                  std::string_view remedy) {
  if (error == 0) return {CheckStatus::kOk, std::string(good), ""};
  if (error == ENODATA) return {otherwise, "could not be tried", ""};
  return {otherwise, Concat({bad, " (", Why(error), ")"}), std::string(remedy)};
}

// "absent: reason; remedy" of the launcher's facts.
CheckResult FromFact(std::string_view value, CheckStatus otherwise, std::string_view consequence) {
  constexpr std::string_view kAbsent = "absent: ";
  if (!value.starts_with(kAbsent)) return {CheckStatus::kOk, std::string(value), ""};
  value.remove_prefix(kAbsent.size());
  const size_t split = value.find("; ");
  const auto remedy =
      split == std::string_view::npos ? std::string_view() : value.substr(split + 2);
  return {otherwise, Concat({consequence, ": ", value.substr(0, split)}), std::string(remedy)};
}

struct FactRow {
  std::string_view fact, group, name;
  CheckStatus otherwise;
  std::string_view consequence;
};
constexpr FactRow kFactRows[] = {
    {"cgroup_memory", "limits", "memory", CheckStatus::kWeaker, "no memory limit"},
    {"cgroup_cpu", "limits", "cpu", CheckStatus::kWeaker, "no CPU limit"},
    {"cgroup_pids", "limits", "pids", CheckStatus::kWeaker, "no process limit"},
    {"cgroup_cpuacct", "limits", "cpuacct", CheckStatus::kOff, "no CPU time of the whole sandbox"},
    {"cgroup_freezer", "limits", "freezer", CheckStatus::kOff, "no pause and resume"},
    {"cgroup_io", "limits", "io", CheckStatus::kOff, "no I/O rate limit"},
    {"cgroup_devices", "limits", "devices", CheckStatus::kOff,
     "no second wall around devices; /dev and mknod are closed without it"},
    {"disk_tmpfs", "disks", "tmpfs", CheckStatus::kFailed, "no disk in memory"},
    {"disk_loop", "disks", "loop image", CheckStatus::kOff,
     "no disk larger than half of the memory limit by loop image"},
    {"disk_quota", "disks", "project quota", CheckStatus::kOff,
     "no disk in the state directory by quota"},
};

CheckResult Layout(std::string_view layout) {
  if (layout != "none") return {CheckStatus::kOk, std::string(layout), ""};
  return {CheckStatus::kWeaker,
          "no usable cgroups: memory, CPU and process limits are not enforced", ""};
}

CheckResult Ids(std::string_view mode, std::string_view ids) {
  if (mode == "root") return {CheckStatus::kOk, Concat({"root; ids: ", ids}), ""};
  return {CheckStatus::kWeaker,
          Concat({"an ordinary user; ids: ", ids,
                  "; sandboxes share them, so ids do not keep sandboxes of this user apart"}),
          "run as root for ids of its own per sandbox"};
}

}  // namespace

std::vector<CheckLine> NamespaceLines(const HostView& host) {
  const Power power = host.power();
  std::vector<CheckLine> lines;
  for (const auto& kind : kKinds) {
    const int error = TryNamespace(kind.flag, power);
    lines.push_back({"namespaces", kind.name,
                     Tried(error, "can be made", CheckStatus::kFailed, "cannot be made",
                           NamespaceRemedy(host, kind, error))});
    if (error != 0 && power == Power::kUserNamespace)
      break;  // the others would fail for the same reason
  }
  return lines;
}

std::vector<CheckLine> FileSystemLines(const FileSystemTrial& trial, Power power) {
  constexpr std::string_view kGroup = "file systems";
  std::vector<CheckLine> lines;
  if (trial.entered != 0) {
    lines.push_back({kGroup, "mounts",
                     Tried(trial.entered, "", CheckStatus::kFailed, "nothing can be mounted",
                           "run as root, or allow user namespaces")});
    return lines;
  }
  lines.push_back({kGroup, "proc",
                   Tried(trial.proc, "a fresh /proc can be mounted", CheckStatus::kFailed,
                         "a fresh /proc cannot be mounted",
                         "in a container, the host's /proc must not be masked: --security-opt "
                         "systempaths=unconfined")});
  lines.push_back(
      {kGroup, "tmpfs",
       Tried(trial.tmpfs, "can be mounted", CheckStatus::kFailed, "cannot be mounted", "")});
  lines.push_back(
      {kGroup, "overlay",
       Tried(trial.overlay, "can be mounted", CheckStatus::kFailed, "cannot be mounted",
             power == Power::kOwn ? "modprobe overlay"
                                  : "needs Linux 5.11 for ordinary users; modprobe overlay")});
  lines.push_back(
      {kGroup, "overlay volatile",
       Tried(trial.overlay_volatile, "ephemeral sandboxes never wait for the disk",
             CheckStatus::kFailed, "sandboxes are made with it", "use Linux 5.10 or newer")});
  lines.push_back({kGroup, "overlay userxattr",
                   Tried(trial.overlay_userxattr, "ordinary users can have overlays",
                         power == Power::kOwn ? CheckStatus::kOff : CheckStatus::kFailed,
                         "ordinary users cannot have overlays", "use Linux 5.11 or newer")});
  if (power == Power::kOwn)
    lines.push_back(
        {kGroup, "id-mapped lower",
         Tried(trial.overlay_id_mapped, "files of the host's root belong to the sandbox's root",
               CheckStatus::kWeaker, "files of the host's root belong to nobody in a sandbox",
               "use Linux 5.19 or newer and a file system with id-mapped mounts for /usr")});
  return lines;
}

std::vector<CheckLine> LauncherLines(const HostView& host) {
  std::vector<CheckLine> lines;
  if (!host.launcher_error.empty()) {
    lines.push_back(
        {"launcher", "start", {CheckStatus::kFailed, host.launcher_error, host.launcher_remedy}});
    return lines;
  }
  lines.push_back({"launcher", "mode",
                   Ids(host.Fact("mode").value_or(""), host.Fact("ids").value_or("unknown"))});
  lines.push_back({"limits", "cgroup layout", Layout(host.Fact("cgroup_layout").value_or("none"))});
  for (const auto& row : kFactRows)
    if (const auto value = host.Fact(row.fact))
      lines.push_back({row.group, row.name, FromFact(*value, row.otherwise, row.consequence)});
  return lines;
}

}  // namespace caisson::native
