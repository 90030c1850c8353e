#include "launcher/jail_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>

#include "launcher/disk_layout.h"
#include "launcher/dock.h"
#include "launcher/hooks.h"
#include "sys/mounts.h"

namespace caisson::launcher::tree {
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

// Set by one stage for later ones. The child is single-threaded.
struct Scratch {
  int root = -1;  // of the new tree
  int disk = -1;  // the attached disk's root
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

// Where we may not make device nodes, the host's are bound over empty files.
int BindHostNodes(const JailPlan& plan) {
  for (size_t i = 0; i < std::size(kDeviceNodes); ++i) {
    char path[32];
    Append(Append(path, "dev/"), kDeviceNodes[i].name);
    if (const int error = AttachInside(plan.nodes[i], path, 0); error != 0) return error;
  }
  return 0;
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

}  // namespace

int Private(const JailPlan&) {
  return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? 0 : errno;
}

int Disk(const JailPlan& plan) {
  if (const int error = Errno(sys::AttachMount(plan.disk, AT_FDCWD, Dock::kDisk)); error != 0)
    return error;
  g.disk = open(Dock::kDisk, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return g.disk < 0 ? errno : 0;
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

}  // namespace caisson::launcher::tree
