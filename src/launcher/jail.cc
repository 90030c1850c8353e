#include "launcher/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>

#include "launcher/hooks.h"
#include "launcher/jail_tree.h"
#include "sys/capabilities.h"
#include "sys/landlock.h"
#include "sys/seccomp.h"

namespace caisson::launcher {
namespace {

// Set by one stage for later ones. The child is single-threaded.
Departure departure;

// Overlayfs writes with the credentials of whoever mounted it, and ext4 does not hold
// CAP_SYS_RESOURCE to a project quota. So the child gives it up before it mounts anything.
int DropResourceCapability() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return errno;
  data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
  data[0].permitted &= ~(1U << CAP_SYS_RESOURCE);
  return syscall(SYS_capset, &header, data) == 0 ? 0 : errno;
}

// Takes a descriptor table of its own with nothing in it but the plan's: what else the child held
// of the launcher's (sockets of owners, disks of other sandboxes, the instance's lock) would live
// as long as it does.
int OwnDescriptors(const JailPlan& plan) {
  int kept[kMaxOverlays + kMaxMounts + 16];
  size_t count = 0;
  auto keep = [&](int fd) {
    if (fd < 0) return;
    size_t at = count++;
    for (; at > 0 && kept[at - 1] > fd; --at) kept[at] = kept[at - 1];
    kept[at] = fd;
  };
  for (const int fd :
       {plan.disk, plan.net_ns, plan.user_ns, plan.control, plan.init, plan.go, plan.report})
    keep(fd);
  for (const int fd : plan.nodes) keep(fd);
  for (size_t i = 0; i < plan.overlay_count; ++i) keep(plan.overlays[i].lower);
  for (size_t i = 0; i < plan.mount_count; ++i) keep(plan.mounts[i].source);
  // Until here the table is the launcher's: nothing may be closed in it.
  if (close_range(static_cast<unsigned>(plan.block_end), ~0U, CLOSE_RANGE_UNSHARE) != 0)
    return errno;
  if (write(plan.left, "x", 1) != 1) return errno;
  unsigned next = 3;
  for (size_t i = 0; i < count; ++i) {
    const auto fd = static_cast<unsigned>(kept[i]);
    if (fd > next && close_range(next, fd - 1, 0) != 0) return errno;
    if (fd >= next) next = fd + 1;
  }
  return close_range(next, ~0U, 0) == 0 ? 0 : errno;
}

int Session(const JailPlan& plan) {
  // A launcher that dies takes us along. A change of credentials clears the signal, so it is set
  // again later; until then the pipe tells.
  if (const int error = OwnDescriptors(plan); error != 0) return error;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return errno;
  if (const int error = DropResourceCapability(); error != 0) return error;
  if (setsid() < 0) return errno;
  // An anonymous session keyring of its own; kernels without keyrings have none to share.
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0 && errno != ENOSYS &&
      errno != EDQUOT)
    return errno;
  return 0;
}

int Hostname(const JailPlan&) {
  if (sethostname(departure.hostname, strlen(departure.hostname)) != 0) return errno;
  return setdomainname("", 0) == 0 ? 0 : errno;
}

// The cgroup namespace comes after the launcher attached us, so that /proc/self/cgroup shows "/".
int Cgroup(const JailPlan& plan) {
  // Short: the launcher gave up.
  if (read(plan.go, &departure, sizeof departure) != sizeof departure) return EPIPE;
  return unshare(CLONE_NEWCGROUP) == 0 ? 0 : errno;
}

int Network(const JailPlan& plan) { return setns(plan.net_ns, CLONE_NEWNET) == 0 ? 0 : errno; }

int UserNs(const JailPlan& plan) {
  if (Ablated(Layer::kUserNs)) return 0;
  return setns(plan.user_ns, CLONE_NEWUSER) == 0 ? 0 : errno;
}

int Ids(const JailPlan& plan) {
  if (setgroups(0, nullptr) != 0 && !(plan.rootless != 0 && errno == EPERM)) return errno;
  // The bounding set and the securebits go while we still may change them.
  if (const int error = sys::DropBoundingExcept(plan.capabilities); error != 0) return error;
  if (plan.capabilities == 0)
    if (const int error = sys::LockSecurebits(); error != 0) return error;
  if (syscall(SYS_setresgid, plan.uid, plan.uid, plan.uid) != 0) return errno;
  return syscall(SYS_setresuid, plan.uid, plan.uid, plan.uid) == 0 ? 0 : errno;
}

struct FixedLimit {
  __rlimit_resource_t resource;
  rlim_t value;
};
// A core limit of 1, not 0: 0 does not keep the kernel from starting the host's program in a piped
// core_pattern, 1 does, and is too small for a file (do_coredump in fs/coredump.c).
int Rlimits(const JailPlan& plan) {
  const FixedLimit limits[] = {
      {RLIMIT_CORE, 1},
      {RLIMIT_MEMLOCK, 64 * 1024},
      {RLIMIT_MSGQUEUE, 64 * 1024},
      {RLIMIT_SIGPENDING, 1024},
      {RLIMIT_RTPRIO, 0},
      {RLIMIT_NICE, 0},
      {RLIMIT_NPROC, plan.processes},
  };
  for (const auto& [resource, value] : limits) {
    struct rlimit current;
    if (getrlimit(resource, &current) != 0) return errno;
    const rlim_t lowered = current.rlim_max < value ? current.rlim_max : value;
    const struct rlimit limit = {lowered, lowered};
    if (setrlimit(resource, &limit) != 0) return errno;
  }
  umask(022);
  return 0;
}

int Capabilities(const JailPlan& plan) {
  if (const int error = sys::ClearAmbient(); error != 0) return error;
  const uint64_t held = plan.uid == 0 ? plan.capabilities : 0;
  return sys::SetCapabilities(held, held, 0);
}

int NoNewPrivs(const JailPlan&) {
  if (Ablated(Layer::kNoNewPrivs)) return 0;
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
}

int Landlock(const JailPlan& plan) {
  if (Ablated(Layer::kLandlock)) return 0;
  return sys::ApplyLandlock(plan.landlock_abi);
}

// 0,1,2 = /dev/null of the sandbox; 3 = control socket; 4 = init's program, the report pipe (both
// CLOEXEC).
int Descriptors(const JailPlan& plan) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (null < 0) return errno;
  const int control = fcntl(plan.control, F_DUPFD_CLOEXEC, 64),
            init = fcntl(plan.init, F_DUPFD_CLOEXEC, 64),
            report = fcntl(plan.report, F_DUPFD_CLOEXEC, 64),
            quiet = fcntl(null, F_DUPFD_CLOEXEC, 64);
  if (control < 0 || init < 0 || report < 0 || quiet < 0) return errno;
  for (int fd = 0; fd < 3; ++fd)
    if (dup3(quiet, fd, O_CLOEXEC) < 0 || fcntl(fd, F_SETFD, 0) != 0) return errno;
  if (dup3(control, 3, O_CLOEXEC) < 0 || fcntl(3, F_SETFD, 0) != 0) return errno;
  if (dup3(init, 4, O_CLOEXEC) < 0 || dup3(report, 5, O_CLOEXEC) < 0) return errno;
  if (close_range(6, ~0U, 0) != 0) return errno;
  char cwd[8];
  if (syscall(SYS_getcwd, cwd, sizeof cwd) < 0 || strcmp(cwd, "/") != 0) return EXDEV;
  // Dies with the launcher; set here because a change of credentials clears it.
  return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 ? 0 : errno;
}

int Seccomp(const JailPlan& plan) {
  if (Ablated(Layer::kSeccomp)) return 0;
  return sys::InstallSeccomp(*plan.seccomp);
}

int Exec(const JailPlan& plan) {
  const char* argv[] = {"caisson-init", "3", plan.capabilities_hex, departure.user, nullptr};
  const char* envp[] = {nullptr};
  syscall(SYS_execveat, 4, "", argv, envp, AT_EMPTY_PATH);
  return errno;
}

struct StageEntry {
  Stage stage;
  const char* name;
  int (*run)(const JailPlan&);
};
constexpr StageEntry kStages[] = {
    {Stage::kSession, "session", Session},
    {Stage::kPrivate, "private mounts", tree::Private},
    {Stage::kDisk, "disk", tree::Disk},
    {Stage::kRoot, "root overlay", tree::Root},
    {Stage::kProc, "/proc", tree::Proc},
    {Stage::kDev, "/dev", tree::Dev},
    {Stage::kWritable, "writable places", tree::Writable},
    {Stage::kMounts, "mounts", tree::Mounts},
    {Stage::kMasks, "masks", tree::Masks},
    {Stage::kReadOnly, "read-only root", tree::ReadOnly},
    {Stage::kPivot, "pivot_root", tree::Pivot},
    // From here on nothing of the host's tree is in reach.
    {Stage::kCgroup, "cgroup namespace", Cgroup},
    {Stage::kHostname, "hostname", Hostname},
    {Stage::kNetwork, "network namespace", Network},
    {Stage::kUserNs, "user namespace", UserNs},
    // From here on we have power over the sandbox's own ids only.
    {Stage::kIds, "ids", Ids},
    {Stage::kRlimits, "rlimits", Rlimits},
    {Stage::kCapabilities, "capabilities", Capabilities},
    {Stage::kNoNewPrivs, "no_new_privs", NoNewPrivs},
    {Stage::kLandlock, "landlock", Landlock},
    {Stage::kDescriptors, "descriptors", Descriptors},
    {Stage::kSeccomp, "seccomp", Seccomp},
    {Stage::kExec, "exec of init", Exec},
};

}  // namespace

const char* StageName(Stage stage) { return kStages[static_cast<size_t>(stage)].name; }

void EnterJail(const JailPlan& plan) {
  for (const auto& entry : kStages) {
    const int error = entry.run(plan);
    if (error == 0) continue;
    const StageFailure failure{entry.stage, error};
    // After `descriptors` the pipe is number 5, before it plan.report; the other one is closed or
    // ours.
    const int report = entry.stage > Stage::kDescriptors ? 5 : plan.report;
    (void)!write(report, &failure, sizeof failure);
    _exit(127);
  }
  _exit(127);
}

}  // namespace caisson::launcher
