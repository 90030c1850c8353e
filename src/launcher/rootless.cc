#include "launcher/rootless.h"

#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>

#include "sys/process.h"
#include "sys/text_file.h"

namespace caisson::launcher {
namespace {

struct SubRange {
  unsigned long first, count;
};

// The first range of at least 65 536 ids of `name` or `uid` in a subuid(5) file.
std::optional<SubRange> FindSubRange(const char* file, const std::string& name, uid_t uid) {
  auto text = sys::ReadText(AT_FDCWD, file);
  if (!text) return std::nullopt;
  for (size_t at = 0; at < text->size();) {
    size_t end = text->find('\n', at);
    if (end == std::string::npos) end = text->size();
    const std::string line = text->substr(at, end - at);
    at = end + 1;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string owner = line.substr(0, colon);
    SubRange range{};
    if ((owner == name || owner == std::to_string(uid)) &&
        sscanf(line.c_str() + colon + 1, "%lu:%lu", &range.first, &range.count) == 2 &&
        range.count >= kIdsPerSlot)
      return range;
  }
  return std::nullopt;
}

// The name of `uid` in /etc/passwd, read as text: the static launcher loads no name service
// modules.
std::string UserName(uid_t uid) {
  auto text = sys::ReadText(AT_FDCWD, "/etc/passwd");
  if (!text) return "";
  const std::string wanted = ":" + std::to_string(uid) + ":";
  for (size_t at = 0; at < text->size();) {
    size_t end = text->find('\n', at);
    if (end == std::string::npos) end = text->size();
    const std::string line = text->substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second != std::string::npos && line.compare(second, wanted.size(), wanted) == 0)
      return line.substr(0, first);
  }
  return "";
}

// Runs newuidmap or newgidmap on `target`. True when it worked.
bool RunMapper(const char* program, pid_t target, unsigned long own, SubRange range) {
  const pid_t pid = fork();
  if (pid == 0) {
    const std::string t = std::to_string(target), o = std::to_string(own),
                      f = std::to_string(range.first), c = std::to_string(kIdsPerSlot);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 1);
    dup2(null, 2);
    execlp(program, program, t.c_str(), "0", o.c_str(), "1", "1", f.c_str(), c.c_str(), nullptr);
    _exit(127);
  }
  int status = -1;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The launcher is not dumpable, which gives its files in /proc to the host's root: neither
// newuidmap nor we ourselves could write our maps (proc(5)). For as long as this lives they are
// ours.
class OpenedProc {
 public:
  OpenedProc() { prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }
  ~OpenedProc() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
  OpenedProc(const OpenedProc&) = delete;
  OpenedProc& operator=(const OpenedProc&) = delete;
};

Error Forbidden(const char* what, int error) {
  std::string remedy =
      "run as root, or allow user namespaces: sysctl user.max_user_namespaces=10000";
  if (access("/proc/sys/kernel/unprivileged_userns_clone", F_OK) == 0)
    remedy += " kernel.unprivileged_userns_clone=1";
  if (access("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", F_OK) == 0)
    remedy += " kernel.apparmor_restrict_unprivileged_userns=0";
  return Error::FromErrno(what, error).WithCode(ErrorCode::kUnsupported).WithRemedy(remedy);
}

}  // namespace

Result<IdPlan> EnterRootless() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  const std::string name = UserName(uid);
  const auto users = FindSubRange("/etc/subuid", name, uid),
             groups = FindSubRange("/etc/subgid", name, uid);
  int to_mapper[2], from_mapper[2];
  if (pipe2(to_mapper, O_CLOEXEC) != 0 || pipe2(from_mapper, O_CLOEXEC) != 0)
    return Error::FromErrno("make pipes");
  const pid_t launcher = getpid(), mapper = fork();
  if (mapper < 0) return Error::FromErrno("fork the mapper of ids");
  if (mapper == 0) {  // stays in the old namespace, where newuidmap has its power
    char byte = 0;
    close(to_mapper[1]);
    if (read(to_mapper[0], &byte, 1) != 1) _exit(1);
    byte = users && groups && RunMapper("newuidmap", launcher, uid, *users) &&
           RunMapper("newgidmap", launcher, gid, *groups);
    (void)!write(from_mapper[1], &byte, 1);
    _exit(0);
  }
  if (unshare(CLONE_NEWUSER) != 0)
    return Forbidden("make a user namespace as an ordinary user", errno);
  const OpenedProc opened;
  char mapped = 0;
  (void)!write(to_mapper[1], "m", 1);
  (void)!read(from_mapper[0], &mapped, 1);
  int status;
  while (waitpid(mapper, &status, 0) < 0 && errno == EINTR) {
  }
  for (const int fd : {to_mapper[0], to_mapper[1], from_mapper[0], from_mapper[1]}) close(fd);
  IdPlan plan{IdPlan::Kind::kSubordinate, 1, kIdsPerSlot};
  if (mapped == 0) {
    plan = {IdPlan::Kind::kSingle, 0, 1};
    CAISSON_TRY(sys::WriteText(AT_FDCWD, "/proc/self/setgroups", "deny"));
    CAISSON_TRY(
        sys::WriteText(AT_FDCWD, "/proc/self/uid_map", "0 " + std::to_string(uid) + " 1\n"));
    CAISSON_TRY(
        sys::WriteText(AT_FDCWD, "/proc/self/gid_map", "0 " + std::to_string(gid) + " 1\n"));
  }
  if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
    return Error::FromErrno("become root in the user namespace");
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return Forbidden("make a mount namespace in the user namespace", errno);
  return plan;
}

}  // namespace caisson::launcher
