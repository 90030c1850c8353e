#include "sys/mounts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::sys {

int NewFs(const char* type, const FsOption* options, size_t count, unsigned attributes) {
  const int context = fsopen(type, FSOPEN_CLOEXEC);
  if (context < 0) return -errno;
  for (size_t i = 0; i < count; ++i) {
    const auto command = options[i].value == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;
    if (fsconfig(context, command, options[i].key, options[i].value, 0) != 0) {
      const int saved = errno;
      close(context);
      return -saved;
    }
  }
  int result = fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0);
  if (result == 0) result = fsmount(context, FSMOUNT_CLOEXEC, attributes);
  if (result < 0) result = -errno;
  close(context);
  return result;
}

int CloneTree(int dir, const char* path) {
  const int fd = open_tree(
      dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
  return fd < 0 ? -errno : fd;
}

int SetMountAttributes(int mount, uint64_t set, uint64_t clear, int userns) {
  mount_attr attributes{};
  attributes.attr_set = set;
  attributes.attr_clr = clear;
  if (userns >= 0) {
    attributes.attr_set |= MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<uint64_t>(userns);
  }
  return mount_setattr(mount, "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0 ? 0 : -errno;
}

int AttachMount(int mount, int dir, const char* path) {
  const unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*path == '\0' ? MOVE_MOUNT_T_EMPTY_PATH : 0);
  return move_mount(mount, "", dir, path, flags) == 0 ? 0 : -errno;
}

int OpenBeneath(int root, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  while (*path == '/') ++path;
  for (int attempt = 0; attempt < 128; ++attempt) {
    const long fd = syscall(SYS_openat2, root, *path == '\0' ? "." : path, &how, sizeof how);
    if (fd >= 0) return static_cast<int>(fd);
    if (errno != EAGAIN) return -errno;  // EAGAIN: somebody renamed on the way; try again
  }
  return -EAGAIN;
}

}  // namespace caisson::sys
