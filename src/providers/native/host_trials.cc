#include "providers/native/host_trials.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>
#include <optional>

#include "sys/mounts.h"
#include "sys/process.h"
#include "sys/unique_fd.h"
#include "sys/user_ns.h"

namespace caisson::native {
namespace {

constexpr int kNotTried = ENODATA;

// Runs `trial` in a child cloned with `flags` and gives what it wrote; nothing when it could not be
// cloned (errno) or died. The child uses system calls only: the parent may have threads.
template <typename Report, typename Trial>
std::optional<Report> InChild(uint64_t flags, const Trial& trial) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  sys::UniqueFd from(ends[0]), to(ends[1]);
  const sys::CloneResult clone = sys::Clone(flags, -1);
  if (clone.pid < 0) return std::nullopt;
  if (clone.pid == 0) {
    const Report report = trial();
    (void)!write(to.get(), &report, sizeof report);
    _exit(0);
  }
  sys::Child child(clone.pid, sys::UniqueFd(clone.pidfd));
  to.Reset();
  Report report{};
  ssize_t got;
  do {
    got = read(from.get(), &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof report)) {
    errno = EPIPE;
    return std::nullopt;
  }
  return report;
}

int WriteTo(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const auto size = static_cast<ssize_t>(strlen(text));
  const int error = write(fd, text, static_cast<size_t>(size)) == size ? 0 : errno;
  close(fd);
  return error;
}

// In a fresh user namespace: become its root.
int MapOwnId(uid_t uid, gid_t gid) {
  char users[32], groups[32];
  snprintf(users, sizeof users, "0 %u 1\n", uid);
  snprintf(groups, sizeof groups, "0 %u 1\n", gid);
  if (const int error = WriteTo("/proc/self/setgroups", "deny"); error != 0) return error;
  if (const int error = WriteTo("/proc/self/uid_map", users); error != 0) return error;
  return WriteTo("/proc/self/gid_map", groups);
}

int Settle(int fd_or_negative_errno) {
  if (fd_or_negative_errno < 0) return -fd_or_negative_errno;
  close(fd_or_negative_errno);
  return 0;
}

// Mounts an overlay with its own upper and work directory, `flag` among its options (or null).
int TryOverlay(const char* lower, const char* upper, const char* work, const char* flag) {
  if ((mkdir(upper, 0755) != 0 || mkdir(work, 0755) != 0)) return errno;
  const sys::FsOption options[] = {{"source", "trial"},
                                   {"lowerdir", lower},
                                   {"upperdir", upper},
                                   {"workdir", work},
                                   {flag, nullptr}};
  return Settle(sys::NewFs("overlay", options, flag == nullptr ? 4 : 5, MOUNT_ATTR_NOSUID));
}

int MountIdMapped(int usr, int user_ns) {
  if (usr < 0) return -usr;
  if (user_ns < 0) return EPERM;
  if (const int error = sys::SetMountAttributes(usr, MOUNT_ATTR_RDONLY, 0, user_ns); error < 0)
    return -error;
  const int error = sys::AttachMount(usr, AT_FDCWD, "m");
  return error < 0 ? -error : 0;
}

FileSystemTrial NothingTried(int error) {
  return {error, kNotTried, kNotTried, kNotTried, kNotTried, kNotTried, kNotTried};
}

// In the child, which has new pid and mount namespaces.
FileSystemTrial TryInNamespaces(Power power, uid_t uid, gid_t gid, int user_ns) {
  int error = power == Power::kUserNamespace ? MapOwnId(uid, gid) : 0;
  if (error == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) error = errno;
  if (error != 0) return NothingTried(error);
  FileSystemTrial trial = NothingTried(0);
  const sys::FsOption proc[] = {{"source", "proc"}};
  trial.proc = Settle(sys::NewFs("proc", proc, 1, MOUNT_ATTR_NOSUID));
  const int usr = sys::CloneTree(AT_FDCWD, "/usr");
  const sys::FsOption small[] = {{"source", "trial"}, {"size", "1m"}, {"mode", "0755"}};
  const int scratch = sys::NewFs("tmpfs", small, std::size(small), MOUNT_ATTR_NOSUID);
  trial.tmpfs = scratch < 0 ? -scratch : 0;
  // Any directory serves to attach it; /proc is one that exists on every host.
  if (scratch < 0 || sys::AttachMount(scratch, AT_FDCWD, "/proc") < 0 || fchdir(scratch) != 0)
    return trial;
  if (mkdir("l", 0755) != 0 || mkdir("m", 0755) != 0) return trial;
  trial.overlay =
      TryOverlay("l", "u0", "w0", power == Power::kUserNamespace ? "userxattr" : nullptr);
  trial.overlay_volatile = TryOverlay("l", "u1", "w1", "volatile");
  trial.overlay_userxattr = TryOverlay("l", "u2", "w2", "userxattr");
  trial.overlay_id_mapped = MountIdMapped(usr, user_ns);
  if (trial.overlay_id_mapped == 0) trial.overlay_id_mapped = TryOverlay("m", "u3", "w3", nullptr);
  return trial;
}

}  // namespace

int TryNamespace(int clone_flag, Power power) {
  const int flags = clone_flag | (power == Power::kUserNamespace ? CLONE_NEWUSER : 0);
  const auto error = InChild<int>(0, [flags] { return unshare(flags) == 0 ? 0 : errno; });
  return error ? *error : errno;
}

FileSystemTrial TryFileSystems(Power power) {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  sys::UniqueFd user_ns;
  if (power == Power::kOwn) {
    const sys::IdMap map{0, 2'000'000'000, 65536};
    if (auto made = sys::MakeUserNamespace({map, map}, sys::Nesting::kForbidden))
      user_ns = *std::move(made);
  }
  const uint64_t flags =
      CLONE_NEWNS | CLONE_NEWPID | (power == Power::kUserNamespace ? CLONE_NEWUSER : 0);
  const int map_fd = user_ns.get();
  const auto trial =
      InChild<FileSystemTrial>(flags, [=] { return TryInNamespaces(power, uid, gid, map_fd); });
  return trial ? *trial : NothingTried(errno);
}

int TryOpenat2() {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const long fd = syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how);
  if (fd < 0) return errno;
  close(static_cast<int>(fd));
  return 0;
}

int TryPidfd() {
  const sys::UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (!pidfd) return errno;
  return sys::PidfdSendSignal(pidfd.get(), 0) == 0 ? 0 : errno;
}

int TryPidfdExitInfo() {
  struct Info {  // struct pidfd_info, first version, of linux/pidfd.h
    uint64_t mask, cgroup_id;
    uint32_t ids[11];
    int32_t exit_code;
  } info{};
  static_assert(sizeof info == 64);
  const sys::UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (!pidfd) return errno;
  return ioctl(pidfd.get(), _IOWR(0xFF, 11, Info), &info) == 0 ? 0 : errno;
}

int TryCloseRange() {
  // An empty range at the very end: nothing is closed.
  return syscall(SYS_close_range, ~0U, ~0U, 0) == 0 ? 0 : errno;
}

int TryMountApi() {
  // Where a call exists, these arguments are refused.
  if (syscall(SYS_fsopen, nullptr, ~0U) < 0 && errno == ENOSYS) return ENOSYS;
  if (syscall(SYS_open_tree, -1, "x", ~0U) < 0 && errno == ENOSYS) return ENOSYS;
  if (syscall(SYS_mount_setattr, -1, "", ~0U, nullptr, 0) < 0 && errno == ENOSYS) return ENOSYS;
  return 0;
}

}  // namespace caisson::native
