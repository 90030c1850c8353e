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

#include "launcher/disk_layout.h"
#include "launcher/dock.h"
#include "launcher/hooks.h"
#include "sys/capabilities.h"
#include "sys/landlock.h"
#include "sys/mounts.h"
#include "sys/seccomp.h"

namespace caisson::launcher {
namespace {

using wire::launcher::Profile;

constexpr uint64_t kPlain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr uint64_t kPlainNoExec = kPlain | MOUNT_ATTR_NOEXEC;

// Paths below /proc that say more about the host than a guest may know, or act on it. What is
// only root's on the host is closed already: the guest's root is not that root.
constexpr const char* kMaskedFiles[] = {
    "cmdline",     "config.gz", "iomem",     "ioports",       "interrupts",   "kallsyms",
    "kcore",       "key-users", "keys",      "kmsg",          "kpagecount",   "kpageflags",
    "kpagecgroup", "locks",     "modules",   "mtrr",          "pagetypeinfo", "partitions",
    "sched_debug", "slabinfo",  "softirqs",  "sysrq-trigger", "timer_list",   "timer_stats",
    "vmallocinfo", "zoneinfo",  "diskstats", "latency_stats",
};
constexpr const char* kMaskedDirectories[] = {
    "acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "irq", "pressure", "scsi", "tty",
};

// A few of a child's own facts, set by stages for later ones. The child is single-threaded.
struct Scratch {
  int root = -1;  // of the new tree
  int disk = -1;  // the attached disk's root
  Departure departure;
};
Scratch g;

int Errno(int negative) { return negative < 0 ? -negative : 0; }

char* Append(char* out, const char* text) {
  while (*text != '\0') *out++ = *text++;
  *out = '\0';
  return out;
}
char* AppendNumber(char* out, uint64_t number) {
  char digits[24];
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
  } while ((number /= 10) != 0);
  while (count > 0) *out++ = digits[--count];
  *out = '\0';
  return out;
}

// Puts a detached mount at `path` inside the new root, without following links.
int AttachInside(int mount, const char* path, int flags) {
  const int target = sys::OpenBeneath(g.root, path, O_PATH | flags);
  if (target < 0) return -target;
  const int error = Errno(sys::AttachMount(mount, target, ""));
  close(target);
  return error;
}

// A bind of a directory of the disk at `path` inside.
int BindFromDisk(const char* name, const char* path, uint64_t attributes) {
  const int mount = sys::CloneTree(g.disk, name);
  if (mount < 0) return -mount;
  // The disk's own mount may carry nodev; only /dev gets devices.
  int error = Errno(sys::SetMountAttributes(mount, attributes, MOUNT_ATTR_NODEV & ~attributes, -1));
  if (error == 0) error = AttachInside(mount, path, O_DIRECTORY);
  close(mount);
  return error;
}

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
  if (sethostname(g.departure.hostname, strlen(g.departure.hostname)) != 0) return errno;
  return setdomainname("", 0) == 0 ? 0 : errno;
}

int Private(const JailPlan&) {
  return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? 0 : errno;
}

int Disk(const JailPlan& plan) {
  if (const int error = Errno(sys::AttachMount(plan.disk, AT_FDCWD, Dock::kDisk)); error != 0)
    return error;
  g.disk = open(Dock::kDisk, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return g.disk < 0 ? errno : 0;
}

int MountOverlay(const JailPlan& plan, size_t index) {
  char lower[16], upper[16], work[16];
  AppendNumber(Append(lower, Dock::kLowerPrefix), index);
  AppendNumber(Append(upper, "disk/u"), index);
  AppendNumber(Append(work, "disk/w"), index);
  if (const int error = Errno(sys::AttachMount(plan.overlays[index].lower, AT_FDCWD, lower));
      error != 0)
    return error;
  // Relative names: these strings are visible in the sandbox's /proc/mounts.
  const sys::FsOption options[] = {
      {"source", "caisson"},
      {"lowerdir", lower},
      {"upperdir", upper},
      {"workdir", work},
      // A directory of the lower layer can be renamed only with redirects.
      plan.rootless != 0 ? sys::FsOption{"userxattr", nullptr}
                         : sys::FsOption{"redirect_dir", "on"},
      {"volatile", nullptr}};
  const size_t count = 5 + (plan.volatile_upper != 0);
  const int mount = sys::NewFs("overlay", options, count, kPlain);
  if (mount < 0) return -mount;
  int error;
  if (index == 0) {
    error = Errno(sys::AttachMount(mount, AT_FDCWD, Dock::kRoot));
    if (error == 0 && (g.root = open(Dock::kRoot, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
      error = errno;
  } else {
    error = AttachInside(mount, plan.overlays[index].inside, O_DIRECTORY);
  }
  close(mount);
  return error;
}

int Root(const JailPlan& plan) {
  for (size_t i = 0; i < plan.overlay_count; ++i)
    if (const int error = MountOverlay(plan, i); error != 0) return error;
  return 0;
}

int Proc(const JailPlan& plan) {
  const sys::FsOption subset[] = {{"source", "proc"}, {"subset", "pid"}};
  const size_t count = plan.profile == Profile::kStrict ? 2 : 1;
  const int mount = sys::NewFs("proc", subset, count, kPlainNoExec);
  if (mount < 0) return -mount;
  const int error = AttachInside(mount, "proc", O_DIRECTORY);
  close(mount);
  return error;
}

// Where we may not make device nodes, the host's are bound over empty files.
int BindHostNodes(const JailPlan& plan) {
  for (size_t i = 0; i < std::size(kDeviceNodes); ++i) {
    char path[32];
    Append(Append(path, "dev/"), kDeviceNodes[i].name);
    if (const int error = AttachInside(plan.nodes[i], path, 0); error != 0) return error;
  }
  return 0;
}

int Dev(const JailPlan& plan) {
  const uint64_t read_only = Ablated(Layer::kReadonlyDev) ? 0 : MOUNT_ATTR_RDONLY;
  if (const int error =
          BindFromDisk("dev", "dev", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | read_only);
      error != 0)
    return error;
  if (plan.rootless != 0)
    if (const int error = BindHostNodes(plan); error != 0) return error;
  char gid[16];
  AppendNumber(gid, plan.rootless != 0 ? 0 : plan.first_id + 5);  // tty
  const sys::FsOption pts_options[] = {
      {"source", "devpts"}, {"ptmxmode", "0666"}, {"mode", "0620"}, {"max", "16"}, {"gid", gid}};
  int mount = sys::NewFs("devpts", pts_options, plan.rootless != 0 ? 4 : 5,
                         MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  if (mount < 0) return -mount;
  int error = AttachInside(mount, "dev/pts", O_DIRECTORY);
  close(mount);
  if (error != 0) return error;
  if ((error = BindFromDisk("shm", "dev/shm", kPlainNoExec)) != 0) return error;
  const sys::FsOption mqueue_options[] = {{"source", "mqueue"}};
  mount = sys::NewFs("mqueue", mqueue_options, 1, kPlainNoExec);
  if (mount < 0) return -mount;
  error = AttachInside(mount, "dev/mqueue", O_DIRECTORY);
  close(mount);
  return error;
}

// The next component of `path`, copied to `name`; advances `path` past it and the slashes behind.
void TakeComponent(const char*& path, char* name) {
  while (*path != '\0' && *path != '/') *name++ = *path++;
  *name = '\0';
  while (*path == '/') ++path;
}

// Makes `name` in `parent` unless it is there, as the sandbox's own. Nothing runs inside yet.
int MakeEntry(const JailPlan& plan, int parent, const char* name, int is_directory) {
  if (is_directory != 0) {
    if (mkdirat(parent, name, 0755) != 0) return errno == EEXIST ? 0 : errno;
  } else {
    const int fd = openat(parent, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) return errno == EEXIST ? 0 : errno;
    close(fd);
  }
  const uint32_t owner = plan.first_id + plan.uid;
  return fchownat(parent, name, owner, owner, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

// Makes a mount's target and the directories on the way, one component at a time, never through a
// link.
int MakeTarget(const JailPlan& plan, const char* target, int is_directory) {
  int parent = sys::OpenBeneath(g.root, "", O_PATH | O_DIRECTORY);
  if (parent < 0) return -parent;
  while (*target == '/') ++target;
  for (int error; *target != '\0';) {
    char name[256];
    if (strcspn(target, "/") >= sizeof name) {
      close(parent);
      return ENAMETOOLONG;
    }
    TakeComponent(target, name);
    const bool last = *target == '\0';
    error = MakeEntry(plan, parent, name, last ? is_directory : 1);
    int next = -1;
    if (error == 0 && !last &&
        (next = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
      error = errno;
    close(parent);
    if (error != 0 || last) return error;
    parent = next;
  }
  close(parent);
  return EINVAL;
}

int Mounts(const JailPlan& plan) {
  for (size_t i = 0; i < plan.mount_count; ++i) {
    const auto& mount = plan.mounts[i];
    int error = MakeTarget(plan, mount.target, mount.is_directory);
    if (error == 0)
      error = AttachInside(mount.source, mount.target, mount.is_directory != 0 ? O_DIRECTORY : 0);
    if (error != 0) return error;
  }
  return 0;
}

int BindMask(const char* source, const char* name) {
  char path[64];
  Append(Append(path, "root/proc/"), name);
  if (mount(source, path, nullptr, MS_BIND, nullptr) != 0 && errno != ENOENT) return errno;
  return 0;
}

// Puts a read-only mount of a cover over the cover itself: what is bound from there is read-only.
int SealCover(const char* cover) {
  const int mount = sys::CloneTree(AT_FDCWD, cover);
  if (mount < 0) return -mount;
  int error = Errno(sys::SetMountAttributes(mount, MOUNT_ATTR_RDONLY | kPlainNoExec, 0, -1));
  if (error == 0) error = Errno(sys::AttachMount(mount, AT_FDCWD, cover));
  close(mount);
  return error;
}

int Masks(const JailPlan& plan) {
  if (plan.profile == Profile::kStrict || Ablated(Layer::kMasks))
    return 0;  // strict: proc has nothing but processes
  for (const char* cover : {"disk/mf", "disk/md"})
    if (const int error = SealCover(cover); error != 0) return error;
  for (const char* name : kMaskedFiles)
    if (const int error = BindMask("disk/mf", name); error != 0) return error;
  for (const char* name : kMaskedDirectories)
    if (const int error = BindMask("disk/md", name); error != 0) return error;
  const int sysctl = sys::CloneTree(AT_FDCWD, "root/proc/sys");
  if (sysctl < 0) return -sysctl;
  int error = Errno(sys::SetMountAttributes(sysctl, MOUNT_ATTR_RDONLY | kPlainNoExec, 0, -1));
  if (error == 0) error = AttachInside(sysctl, "proc/sys", O_DIRECTORY);
  close(sysctl);
  return error;
}

// The two places that stay writable when the root does not.
int Writable(const JailPlan& plan) {
  if (plan.profile != Profile::kStrict) return 0;
  if (const int error = BindFromDisk("tmp", "tmp", kPlain); error != 0) return error;
  return BindFromDisk("ws", "workspace", kPlain);
}

int ReadOnly(const JailPlan& plan) {
  if (plan.profile != Profile::kStrict) return 0;
  for (size_t i = 0; i < plan.overlay_count; ++i) {
    const int mount = sys::OpenBeneath(g.root, plan.overlays[i].inside, O_PATH | O_DIRECTORY);
    if (mount < 0) return -mount;
    const int error = Errno(sys::SetMountAttributes(mount, MOUNT_ATTR_RDONLY, 0, -1));
    close(mount);
    if (error != 0) return error;
  }
  return 0;
}

int Pivot(const JailPlan&) {
  if (fchdir(g.root) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) return errno;
  if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) return errno;
  return 0;
}

// The cgroup namespace comes after the launcher attached us, so that /proc/self/cgroup shows "/".
int Cgroup(const JailPlan& plan) {
  // Short: the launcher gave up.
  if (read(plan.go, &g.departure, sizeof g.departure) != sizeof g.departure) return EPIPE;
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
  const char* argv[] = {"caisson-init", "3", plan.capabilities_hex, g.departure.user, nullptr};
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
    {Stage::kPrivate, "private mounts", Private},
    {Stage::kDisk, "disk", Disk},
    {Stage::kRoot, "root overlay", Root},
    {Stage::kProc, "/proc", Proc},
    {Stage::kDev, "/dev", Dev},
    {Stage::kWritable, "writable places", Writable},
    {Stage::kMounts, "mounts", Mounts},
    {Stage::kMasks, "masks", Masks},
    {Stage::kReadOnly, "read-only root", ReadOnly},
    {Stage::kPivot, "pivot_root", Pivot},
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
