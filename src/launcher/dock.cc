#include "launcher/dock.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <string>

#include "sys/mounts.h"
#include "wire/launcher_protocol.h"

namespace caisson::launcher {
namespace {

Status Furnish(Dock::Proc proc) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return Error::FromErrno("make the dock's mounts private");
  const sys::FsOption options[] = {{"size", "64k"}, {"nr_inodes", "64"}, {"mode", "0755"}};
  const int raw =
      sys::NewFs("tmpfs", options, std::size(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (raw < 0) return Error::FromErrno("make the dock's file system", -raw);
  sys::UniqueFd fs(raw);
  bool made =
      mkdirat(fs.get(), Dock::kDisk, 0755) == 0 && mkdirat(fs.get(), Dock::kRoot, 0755) == 0;
  for (size_t i = 0; made && i < wire::launcher::kMaxOverlays; ++i)
    made = mkdirat(fs.get(), (Dock::kLowerPrefix + std::to_string(i)).c_str(), 0755) == 0;
  if (!made) return Error::FromErrno("furnish the dock");
  sys::UniqueFd visible;
  if (proc == Dock::Proc::kVisible) {
    if (mkdirat(fs.get(), "p", 0555) != 0) return Error::FromErrno("furnish the dock");
    visible.Reset(open_tree(AT_FDCWD, "/proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
    if (!visible) return Error::FromErrno("copy the mount of /proc");
  }
  // Any directory serves to attach it; /proc is one that exists on every host.
  if (const int error = sys::AttachMount(fs.get(), AT_FDCWD, "/proc"); error < 0)
    return Error::FromErrno("attach the dock's file system", -error);
  if (visible)
    if (const int error = sys::AttachMount(visible.get(), fs.get(), "p"); error < 0)
      return Error::FromErrno("attach /proc in the dock", -error);
  if (fchdir(fs.get()) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
      umount2(".", MNT_DETACH) != 0)
    return Error::FromErrno("enter the dock's file system");
  return {};
}

}  // namespace

Result<Dock> Dock::Build(Proc visible) {
  sys::UniqueFd host(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  sys::UniqueFd proc(open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!host || !proc) return Error::FromErrno("open the host's mount namespace");
  if (unshare(CLONE_NEWNS) != 0) return Error::FromErrno("make the dock's mount namespace");
  auto furnished = Furnish(visible);
  sys::UniqueFd dock(openat(proc.get(), "mnt", O_RDONLY | O_CLOEXEC));
  if (setns(host.get(), CLONE_NEWNS) != 0)
    return Error::FromErrno("return to the host's mount namespace");
  if (!furnished) return std::move(furnished).error();
  if (!dock) return Error::FromErrno("open the dock's mount namespace");
  return Dock(std::move(host), std::move(dock));
}

Status Dock::Enter() const {
  if (setns(dock_.get(), CLONE_NEWNS) != 0) return Error::FromErrno("enter the dock");
  return {};
}

Status Dock::Leave() const {
  if (setns(host_.get(), CLONE_NEWNS) != 0) return Error::FromErrno("leave the dock");
  return {};
}

}  // namespace caisson::launcher
