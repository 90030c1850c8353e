// The child's half of FloorJail: what runs between clone3 and exec. Raw calls only.

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "floor_jail.h"

namespace caisson::bench {
namespace {

constexpr unsigned long kInert = MS_NOSUID | MS_NODEV | MS_NOEXEC;

Failure Errno(const char* stage) { return {stage, errno}; }

}  // namespace

Failure FloorJail::EnterRoot() {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return Errno("private root");
  if (sethostname("floor", 5) < 0) return Errno("sethostname");
  if (mount("overlay", merged_.c_str(), "overlay", 0, overlay_options_.c_str()) < 0) {
    return Errno("mount of the overlay");
  }
  if (chdir(merged_.c_str()) < 0) return Errno("chdir to the new root");
  if (mount("proc", "proc", "proc", kInert, nullptr) < 0) return Errno("mount of /proc");
  if (Failure failure = MakeDev()) return failure;
  if (Failure failure = ApplyMasks()) return failure;
  // The old root ends up stacked on the new one and is detached from there: pivot_root(2).
  if (syscall(SYS_pivot_root, ".", ".") < 0) return Errno("pivot_root");
  if (umount2(".", MNT_DETACH) < 0) return Errno("umount of the old root");
  if (chdir("/") < 0) return Errno("chdir to /");
  return {};
}

Failure FloorJail::MakeDev() {
  static constexpr struct {
    const char* source;
    const char* target;
  } kNodes[] = {{"/dev/null", "dev/null"},       {"/dev/zero", "dev/zero"},
                {"/dev/full", "dev/full"},       {"/dev/random", "dev/random"},
                {"/dev/urandom", "dev/urandom"}, {"/dev/tty", "dev/tty"}};
  if (mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") < 0) {
    return Errno("mount of /dev");
  }
  for (const auto& node : kNodes) {
    const int fd = open(node.target, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0) return Errno("file for a device");
    close(fd);
    if (mount(node.source, node.target, nullptr, MS_BIND, nullptr) < 0) {
      return Errno("bind of a device");
    }
  }
  if (mkdir("dev/pts", 0755) < 0 || mkdir("dev/shm", 01777) < 0) return Errno("mkdir in /dev");
  if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
            "newinstance,ptmxmode=0666,mode=620") < 0) {
    return Errno("mount of devpts");
  }
  if (mount("shm", "dev/shm", "tmpfs", kInert, "mode=1777,size=64m") < 0)
    return Errno("mount of shm");
  for (const auto& [target, link] : {std::pair{"pts/ptmx", "dev/ptmx"},
                                     {"/proc/self/fd", "dev/fd"},
                                     {"/proc/self/fd/0", "dev/stdin"},
                                     {"/proc/self/fd/1", "dev/stdout"},
                                     {"/proc/self/fd/2", "dev/stderr"}}) {
    if (symlink(target, link) < 0) return Errno("symlink in /dev");
  }
  return {};
}

Failure FloorJail::ApplyMasks() {
  for (const Mask& mask : masks_) {
    const char* path = mask.path.c_str();
    int result = 0;
    switch (mask.kind) {
      case MaskKind::kFile:
        result = mount("/dev/null", path, nullptr, MS_BIND, nullptr);
        break;
      case MaskKind::kDirectory:
        result = mount("tmpfs", path, "tmpfs", kInert | MS_RDONLY, "size=0,nr_inodes=1");
        break;
      case MaskKind::kReadOnly:
        result = mount(path, path, nullptr, MS_BIND, nullptr);
        if (result == 0) {
          result =
              mount(nullptr, path, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY | kInert, nullptr);
        }
        break;
    }
    if (result < 0) return Errno("mask of a path under /proc");
  }
  return {};
}

Failure FloorJail::RaiseLoopback() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Errno("socket for loopback");
  ifreq request = {};
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const int result = ioctl(fd, SIOCSIFFLAGS, &request);
  const Failure failure = result < 0 ? Errno("loopback up") : Failure{};
  close(fd);
  return failure;
}

Failure FloorJail::DropPrivileges() {
  static constexpr struct {
    int resource;
    rlim_t value;
  } kRlimits[] = {{RLIMIT_CORE, 0},
                  {RLIMIT_NOFILE, 1024},
                  {RLIMIT_MEMLOCK, 64 << 10},
                  {RLIMIT_STACK, 8 << 20},
                  {RLIMIT_MSGQUEUE, 800 << 10}};
  for (const auto& wanted : kRlimits) {
    rlimit current;
    if (getrlimit(static_cast<__rlimit_resource_t>(wanted.resource), &current) < 0)
      return Errno("getrlimit");
    const rlim_t value = std::min(current.rlim_max, wanted.value);
    const rlimit limit = {value, value};
    if (setrlimit(static_cast<__rlimit_resource_t>(wanted.resource), &limit) < 0)
      return Errno("setrlimit");
  }
  for (unsigned long capability = 0;; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) {
      if (errno == EINVAL && capability > CAP_AUDIT_READ) break;  // past the kernel's last one
      return Errno("cut of the bounding set");
    }
  }
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &header, none) < 0) return Errno("capset");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return Errno("no_new_privs");
  const sock_fprog program = {static_cast<unsigned short>(filter_.size()), filter_.data()};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) return Errno("seccomp");
  return {};
}

}  // namespace caisson::bench
