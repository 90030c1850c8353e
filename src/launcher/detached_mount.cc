#include "launcher/detached_mount.h"

#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::launcher {
namespace {

using sys::UniqueFd;

// An Error of the last call on a file system context, with the messages that the context holds
// ("e tmpfs: Too small a size for current use").
Error ContextError(int context, std::string attempt) {
  const int saved = errno;
  char line[256];
  for (int i = 0; i < 8; ++i) {
    const ssize_t size = ::read(context, line, sizeof line);
    if (size <= 2) break;
    if (line[0] == 'e') {
      std::string_view text(line + 2, static_cast<size_t>(size - 2));
      while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
      attempt.append(" (").append(text).append(")");
    }
  }
  return Error::FromErrno(std::move(attempt), saved);
}

Status Configure(int context, std::initializer_list<MountOption> options) {
  for (const auto& [key, value] : options) {
    const long rc =
        value.empty()
            ? ::syscall(SYS_fsconfig, context, FSCONFIG_SET_FLAG, key, nullptr, 0)
            : ::syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, key, value.c_str(), 0);
    if (rc != 0) {
      return ContextError(context,
                          std::string("mount option ") + key + (value.empty() ? "" : "=") + value);
    }
  }
  return {};
}

}  // namespace

Result<UniqueFd> MountDetached(const char* kind, std::initializer_list<MountOption> options) {
  UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, kind, FSOPEN_CLOEXEC)));
  if (!context) return Error::FromErrno(std::string("fsopen ") + kind);
  CAISSON_TRY(Configure(context.get(), options));
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return ContextError(context.get(), std::string("create a ") + kind);
  UniqueFd mount(static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC,
                                            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)));
  if (!mount) return Error::FromErrno(std::string("fsmount ") + kind);
  return mount;
}

Status Reconfigure(int mount_fd, std::initializer_list<MountOption> options) {
  UniqueFd context(
      static_cast<int>(::syscall(SYS_fspick, mount_fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH)));
  if (!context) return Error::FromErrno("fspick");
  CAISSON_TRY(Configure(context.get(), options));
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_RECONFIGURE, nullptr, nullptr, 0) != 0)
    return ContextError(context.get(), "change a mounted file system");
  return {};
}

}  // namespace caisson::launcher
