// Group B: mounts and the root.
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "probe.h"

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

namespace caisson::probe {
namespace {

struct MountCase {
  const char* type;
  const char* source;
  unsigned long flags;
  const char* data;
};

// Mounts on a fresh directory and takes it away again.
template <MountCase const& Case>
Verdict Mount() {
  const std::string target = ScratchPath("mount");
  if (mkdir(target.c_str(), 0700) != 0) return Failed("mkdir " + target);
  const int result = mount(Case.source, target.c_str(), Case.type, Case.flags, Case.data);
  const int saved = errno;
  if (result == 0) umount2(target.c_str(), MNT_DETACH);
  rmdir(target.c_str());
  errno = saved;
  return Judge(result);
}

constexpr MountCase kTmpfs{"tmpfs", "none", 0, nullptr};
constexpr MountCase kProc{"proc", "proc", 0, nullptr};
constexpr MountCase kSysfs{"sysfs", "sysfs", 0, nullptr};
constexpr MountCase kOverlay{"overlay", "overlay", 0, "lowerdir=/usr:/etc"};
constexpr MountCase kBind{nullptr, "/", MS_BIND | MS_REC, nullptr};
constexpr MountCase kCgroup1{"cgroup", "cgroup", 0, "memory"};
constexpr MountCase kCgroup2{"cgroup2", "cgroup2", 0, nullptr};
constexpr MountCase kDevtmpfs{"devtmpfs", "dev", 0, nullptr};
constexpr MountCase kDebugfs{"debugfs", "debug", 0, nullptr};
constexpr MountCase kTracefs{"tracefs", "trace", 0, nullptr};
constexpr MountCase kDevpts{"devpts", "devpts", 0, "newinstance"};
constexpr MountCase kMqueue{"mqueue", "mqueue", 0, nullptr};
constexpr MountCase kFuse{"fuse", "fuse", 0, "fd=0,rootmode=40000,user_id=0,group_id=0"};

Verdict RemountRoot() { return Judge(mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND, nullptr)); }
Verdict MakeShared() { return Judge(mount(nullptr, "/", nullptr, MS_SHARED, nullptr)); }
Verdict RemountProcSys() {
  return Judge(mount(nullptr, "/proc/sys", nullptr, MS_REMOUNT | MS_BIND, nullptr));
}
Verdict UnmountKallsyms() { return Judge(umount2("/proc/kallsyms", MNT_DETACH)); }
Verdict UnmountProcSys() { return Judge(umount2("/proc/sys", MNT_DETACH)); }
Verdict UnmountProc() { return Judge(umount2("/proc", MNT_DETACH)); }
Verdict UnmountDevNull() { return Judge(umount2("/dev/null", MNT_DETACH)); }
Verdict UnmountRoot() { return Judge(umount2("/", MNT_DETACH)); }

Verdict FsopenChain() {
  const long context = syscall(SYS_fsopen, "tmpfs", 0);
  if (context < 0) return Refused(errno, "fsopen");
  syscall(SYS_fsconfig, context, 6 /* FSCONFIG_CMD_CREATE */, nullptr, nullptr, 0);
  const long mounted = syscall(SYS_fsmount, context, 0, 0);
  return Judge(mounted, "fsmount");
}
Verdict Fsopen() { return Judge(syscall(SYS_fsopen, "tmpfs", 0)); }
Verdict Fspick() { return Judge(syscall(SYS_fspick, AT_FDCWD, "/", 0)); }
Verdict OpenTree() { return Judge(syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* CLONE */)); }
Verdict MoveMount() {
  const std::string target = ScratchPath("move");
  mkdir(target.c_str(), 0700);
  const long result = syscall(SYS_move_mount, AT_FDCWD, "/proc", AT_FDCWD, target.c_str(), 0);
  const int saved = errno;
  rmdir(target.c_str());
  errno = saved;
  return Judge(result);
}
Verdict MountSetattr() {
  struct {
    uint64_t set, clear, propagation, userns;
  } attributes{0, 1 /* RDONLY */, 0, 0};
  return Judge(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attributes, sizeof(attributes)));
}

Verdict PivotRoot() { return Judge(syscall(SYS_pivot_root, "/", "/tmp")); }

Verdict ChrootWalk() {
  const std::string target = ScratchPath("chroot");
  const int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  mkdir(target.c_str(), 0700);
  const int result = chroot(target.c_str());
  const int saved = errno;
  unlinkat(root, target.c_str() + 1, AT_REMOVEDIR);
  errno = saved;
  return Judge(result);
}

// `..` from the root leads to the root.
Verdict WalkUp() {
  struct stat root{}, up{};
  if (stat("/", &root) != 0) return Failed("stat");
  std::string path = "/";
  for (int i = 0; i < 50; ++i) path += "../";
  for (const std::string& tried : {path, std::string("/proc/self/cwd/../../../../.."),
                                   std::string("/proc/self/root/.."), std::string("/..")}) {
    if (stat(tried.c_str(), &up) != 0) return Failed("stat " + tried);
    if (tried.starts_with("/proc/self/cwd")) continue;  // depends on how deep cwd is
    if (up.st_dev != root.st_dev || up.st_ino != root.st_ino) return Open(tried + " is not /");
  }
  if (chdir("/") != 0) return Failed("chdir");
  for (int i = 0; i < 50; ++i)
    if (chdir("..") != 0) return Failed("chdir ..");
  if (stat(".", &up) != 0) return Failed("stat .");
  return Unless(up.st_dev == root.st_dev && up.st_ino == root.st_ino ? "" : "walked above /");
}

struct Handle {
  unsigned int bytes;
  int type;
  unsigned char data[128];
};
// An overlay gives no handles; the file systems mounted on it may.
Verdict NameToHandle() {
  int error = 0;
  for (const char* path : {"/", "/tmp", "/dev/shm", "/mnt/probe"}) {
    Handle handle{128, 0, {}};
    int mount_id = 0;
    if (syscall(SYS_name_to_handle_at, AT_FDCWD, path, &handle, &mount_id, 0) == 0)
      return Open(path);
    if (errno != EOPNOTSUPP && errno != ENOENT) error = errno;
  }
  return Refused(error != 0 ? error : EOPNOTSUPP);
}
Verdict OpenByHandle() {
  Handle handle{8, 1, {2}};
  const int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return Judge(syscall(SYS_open_by_handle_at, directory, &handle, O_RDONLY));
}
Verdict Statmount() {
  struct {
    uint32_t size, spare;
    uint64_t id, param, namespace_id;
  } request{24, 0, ~0ull, 0, 0};
  uint64_t ids[64];
  return Judge(syscall(458, &request, ids, 64, 0), "listmount");
}

std::vector<std::vector<std::string>> Mountinfo() {
  std::vector<std::vector<std::string>> lines;
  std::istringstream text(ReadFile("/proc/self/mountinfo", 1 << 20));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() > 6) lines.push_back(std::move(fields));
  }
  return lines;
}

Verdict OneRoot() {
  std::string problems;
  int roots = 0;
  for (const auto& fields : Mountinfo()) {
    if (fields[4] == "/") ++roots;
    for (const char* word : {"pivot", "oldroot", "put_old"})
      if (fields[4].find(word) != std::string::npos) problems += fields[4] + " ";
  }
  if (roots != 1) problems += std::to_string(roots) + " mounts on / ";
  for (const char* path : {"/.pivot", "/.pivot_root", "/oldroot", "/.old", "/put_old", "/.oldroot"})
    if (access(path, F_OK) == 0) problems += std::string(path) + " exists ";
  return Unless(problems);
}

// shared: what we mount would show outside; master: what the host mounts would show here.
Verdict NoPropagation() {
  std::string problems;
  for (const auto& fields : Mountinfo())
    for (size_t i = 6; i < fields.size() && fields[i] != "-"; ++i)
      problems += fields[4] + ":" + fields[i] + " ";
  return Unless(problems);
}

Verdict MakeWhiteout() {
  const char* base = access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/";
  const std::string path = std::string(base) + "/probe-whiteout-" + std::to_string(getpid());
  const int result = mknod(path.c_str(), S_IFCHR | 0600, makedev(0, 0));
  const int saved = errno;
  if (result == 0) unlink(path.c_str());
  errno = saved;
  return Judge(result, path);
}

Verdict SetOverlayAttribute() {
  const std::string path = ScratchPath("xattr");
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return Failed("create " + path);
  const int result = fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0);
  const int saved = errno;
  unlink(path.c_str());
  errno = saved;
  return Judge(result);
}

const Attempt kAttempts[] = {
    {"B01.tmpfs", "Escape", "mount tmpfs", "EPERM", "EPERM", kSafe, Mount<kTmpfs>},
    {"B01.proc", "Escape", "mount proc", "EPERM", "EPERM", kSafe, Mount<kProc>},
    {"B01.sysfs", "Escape", "mount sysfs", "EPERM", "EPERM", kSafe, Mount<kSysfs>},
    {"B01.overlay", "Escape", "mount overlay", "EPERM", "EPERM", kSafe, Mount<kOverlay>},
    {"B01.bind", "Escape", "bind mount", "EPERM", "EPERM", kSafe, Mount<kBind>},
    {"B01.remount", "Escape", "remount the root writable", "EPERM", "EPERM", kRisky, RemountRoot},
    {"B01.shared", "Escape", "make the root shared", "EPERM", "EPERM", kRisky, MakeShared},
    {"B02.v1", "Escape", "mount a cgroup v1 hierarchy", "EPERM", "EPERM", kSafe, Mount<kCgroup1>},
    {"B02.v2", "Escape", "mount cgroup v2", "EPERM", "EPERM", kSafe, Mount<kCgroup2>},
    {"B03.devtmpfs", "Escape", "mount devtmpfs", "EPERM", "EPERM", kSafe, Mount<kDevtmpfs>},
    {"B03.debugfs", "Escape", "mount debugfs", "EPERM", "EPERM", kSafe, Mount<kDebugfs>},
    {"B03.tracefs", "Escape", "mount tracefs", "EPERM", "EPERM", kSafe, Mount<kTracefs>},
    {"B03.devpts", "Escape", "mount devpts", "EPERM", "EPERM", kSafe, Mount<kDevpts>},
    {"B03.mqueue", "Escape", "mount mqueue", "EPERM", "EPERM", kSafe, Mount<kMqueue>},
    {"B03.fuse", "Escape", "mount fuse", "EPERM", "EPERM", kSafe, Mount<kFuse>},
    {"B04.kallsyms", "HostLeak", "unmask /proc/kallsyms", "EPERM", "EPERM", kRisky,
     UnmountKallsyms},
    {"B04.sys", "HostLeak", "unmount /proc/sys", "EPERM", "EPERM", kRisky, UnmountProcSys},
    {"B04.proc", "HostLeak", "unmount /proc", "EPERM", "EPERM", kRisky, UnmountProc},
    {"B04.null", "HostDoS", "unmount /dev/null", "EPERM", "EPERM", kRisky, UnmountDevNull},
    {"B04.root", "Escape", "unmount /", "EPERM", "EPERM", kRisky, UnmountRoot},
    {"B04.rw", "Escape", "remount /proc/sys writable", "EPERM", "EPERM", kRisky, RemountProcSys},
    {"B05.fsopen", "Escape", "fsopen", "EPERM", "EPERM", kSafe, Fsopen},
    {"B05.chain", "Escape", "fsopen, fsconfig, fsmount", "EPERM", "EPERM", kSafe, FsopenChain},
    {"B05.fspick", "Escape", "fspick", "EPERM", "EPERM", kSafe, Fspick},
    {"B05.open_tree", "Escape", "open_tree CLONE", "EPERM", "EPERM", kSafe, OpenTree},
    {"B05.move_mount", "Escape", "move_mount", "EPERM", "EPERM", kRisky, MoveMount},
    {"B06", "Escape", "mount_setattr", "EPERM", "EPERM", kRisky, MountSetattr},
    {"B07.pivot", "Escape", "pivot_root", "EPERM", "EPERM", kRisky, PivotRoot},
    {"B07.chroot", "Escape", "chroot, the first step of the walk", "EPERM", "EPERM", kSafe,
     ChrootWalk},
    {"B08", "Escape", ".. fifty times", "ok", "ok", kSafe, WalkUp},
    {"B09", "Escape", "open_by_handle_at", "EPERM", "EPERM", kSafe, OpenByHandle},
    {"B10", "HostLeak", "name_to_handle_at", "EPERM|ENOSYS", "EPERM|ENOSYS", kSafe, NameToHandle},
    {"B12", "HostLeak", "listmount", "ENOSYS", "ENOSYS", kSafe, Statmount},
    {"B13", "Escape", "an old root is still there", "ok", "ok", kSafe, OneRoot},
    {"B14", "Escape", "mknod a whiteout on the overlay", "EPERM", "EPERM|EROFS|EACCES", kSafe,
     MakeWhiteout},
    {"B15", "Escape", "set trusted.overlay.*", "EPERM", "EPERM", kSafe, SetOverlayAttribute},
    {"B18", "Escape", "mount propagation to or from the host", "ok", "ok", kSafe, NoPropagation},
};

}  // namespace

std::span<const Attempt> MountAttempts() { return kAttempts; }

}  // namespace caisson::probe
