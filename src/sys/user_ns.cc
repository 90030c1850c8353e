#include "sys/user_ns.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "sys/process.h"

namespace caisson::sys {
namespace {

constexpr const char* kCeilings[] = {"user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "time"};

int RaiseEffective() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (syscall(SYS_capget, &header, data) != 0) return errno;
  data[0].effective = data[0].permitted;
  data[1].effective = data[1].permitted;
  return syscall(SYS_capset, &header, data) == 0 ? 0 : errno;
}

// In the child: become the creator, make the namespace, wait for the maps, shut the door. An errno.
int ChildMakes(uint32_t user, uint32_t group, Nesting nesting, int channel) {
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return errno;
  if (syscall(SYS_setresgid, group, group, group) != 0) return errno;
  if (syscall(SYS_setresuid, user, user, user) != 0) return errno;
  if (const int error = RaiseEffective(); error != 0) return error;
  if (unshare(CLONE_NEWUSER) != 0) return errno;
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // so that the parent may write our maps
  char byte = 'm';
  if (write(channel, &byte, 1) != 1 || read(channel, &byte, 1) != 1) return EPIPE;
  if (nesting == Nesting::kAllowed) return 0;
  for (const char* kind : kCeilings) {
    char path[64];
    snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kind);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && strcmp(kind, "time") == 0) continue;  // Linux < 5.6
    if (fd < 0 || write(fd, "0", 1) != 1) return errno;
    close(fd);
  }
  return 0;
}

Status WriteFile(const std::string& path, const std::string& text) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Error::FromErrno("write " + path);
  return {};
}

std::string Line(IdMap map) {
  return std::to_string(map.inside) + " " + std::to_string(map.outside) + " " +
         std::to_string(map.count) + "\n";
}

}  // namespace

Result<UniqueFd> MakeUserNamespace(IdMaps maps, Nesting nesting) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return Error::FromErrno("make a socket pair");
  UniqueFd ours(pair[0]), theirs(pair[1]);
  const CloneResult clone = Clone(0, -1);
  if (clone.pid < 0) return Error::FromErrno("fork the maker of a user namespace");
  if (clone.pid == 0) {
    close(ours.get());
    int error = ChildMakes(maps.users.outside, maps.groups.outside, nesting, theirs.get());
    char report[1 + sizeof error];
    report[0] = 'd';
    std::memcpy(report + 1, &error, sizeof error);
    (void)!write(theirs.get(), report, sizeof report);
    char byte;
    (void)!read(theirs.get(), &byte, 1);  // stay until the parent holds the namespace
    _exit(0);
  }
  Child child(clone.pid, UniqueFd(clone.pidfd));
  theirs.Reset();
  const std::string proc = "/proc/" + std::to_string(child.pid());
  char report[1 + sizeof(int)];
  ssize_t got = read(ours.get(), report, sizeof report);
  if (got == 1 && report[0] == 'm') {
    CAISSON_TRY(WriteFile(proc + "/uid_map", Line(maps.users)));
    auto groups = WriteFile(proc + "/gid_map", Line(maps.groups));
    if (!groups) {  // an unprivileged single-id map wants setgroups off first (user_namespaces(7))
      CAISSON_TRY(WriteFile(proc + "/setgroups", "deny"));
      CAISSON_TRY(WriteFile(proc + "/gid_map", Line(maps.groups)));
    }
    if (write(ours.get(), "g", 1) != 1)
      return Error::FromErrno("release the maker of a user namespace");
    got = read(ours.get(), report, sizeof report);
  }
  int error = EPROTO;
  if (got == sizeof report && report[0] == 'd') std::memcpy(&error, report + 1, sizeof error);
  if (error != 0) return Error::FromErrno("make a user namespace", error);
  UniqueFd ns(open((proc + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!ns) return Error::FromErrno("open the new user namespace");
  return ns;
}

}  // namespace caisson::sys
