// Group A: namespaces and privilege.
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>

#include "probe.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace caisson::probe {
namespace {

// CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETFCAP: what package managers need.
constexpr uint64_t kPackageCaps =
    0x1ull << CAP_CHOWN | 0x1ull << CAP_DAC_OVERRIDE | 0x1ull << CAP_FOWNER | 0x1ull << CAP_FSETID |
    0x1ull << CAP_KILL | 0x1ull << CAP_SETGID | 0x1ull << CAP_SETUID | 0x1ull << CAP_SETFCAP;

struct CloneArgs {
  uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
      set_tid_size, cgroup;
};

template <unsigned long Flags>
Verdict Unshare() {
  return Judge(unshare(Flags));
}

template <unsigned long Flags>
Verdict Clone() {
  const long child = syscall(SYS_clone, Flags | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  if (child > 0) waitpid(static_cast<pid_t>(child), nullptr, 0);
  return Judge(child);
}

Verdict Clone3(CloneArgs args) {
  args.exit_signal = SIGCHLD;
  const long child = syscall(SYS_clone3, &args, sizeof(args));
  if (child == 0) _exit(0);
  if (child > 0) waitpid(static_cast<pid_t>(child), nullptr, 0);
  return Judge(child);
}

Verdict Clone3Userns() { return Clone3({.flags = CLONE_NEWUSER}); }

Verdict Clone3SetTid() {
  pid_t wanted = 4242;
  return Clone3({.set_tid = reinterpret_cast<uint64_t>(&wanted), .set_tid_size = 1});
}

Verdict EnterNamespaceOf(const char* path, int type) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Refused(errno, std::string("open ") + path);
  return Judge(setns(fd, type), path);
}

Verdict SetnsInit() { return EnterNamespaceOf("/proc/1/ns/mnt", CLONE_NEWNS); }

Verdict SetnsOwn() {
  std::string opened;
  int last = 0;
  for (const char* name : {"mnt", "net", "ipc", "uts", "pid", "cgroup", "user"}) {
    const std::string path = std::string("/proc/self/ns/") + name;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Failed(path);
    if (setns(fd, 0) == 0) {
      opened += std::string(name) + " ";
    } else if (errno != EINVAL) {  // the user namespace one is in
      last = errno;
    }
    close(fd);
  }
  return opened.empty() ? Refused(last) : Open(opened);
}

template <unsigned long Request>
Verdict ClimbNamespaces() {
  std::string opened;
  int last = 0;
  for (const char* name : {"pid", "user", "mnt", "net"}) {
    const std::string path = std::string("/proc/self/ns/") + name;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Refused(errno, path);
    const int up = ioctl(fd, Request);
    if (up >= 0) {
      opened += std::string(name) + " ";
      close(up);
    } else if (errno != EINVAL) {  // NS_GET_PARENT of a kind that has no parents
      last = errno;
    }
    close(fd);
  }
  return opened.empty() ? Refused(last) : Open(opened);
}

Verdict StealInitSocket() {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, 1, 0));
  if (fd < 0) return Refused(errno, "pidfd_open");
  std::string opened;
  int last = 0;
  for (int number = 0; number < 16; ++number) {
    if (syscall(SYS_pidfd_getfd, fd, number, 0) >= 0)
      opened += std::to_string(number) + " ";
    else
      last = errno;
  }
  return opened.empty() ? Refused(last, "pidfd_getfd") : Open(opened);
}

uint64_t CapabilityMask(const char* field) {
  return std::strtoull(StatusField(field).c_str(), nullptr, 16);
}

Verdict HoldsAnyCapability() {
  const uint64_t held = CapabilityMask("CapEff") | CapabilityMask("CapPrm");
  return held == 0 ? Ok("none") : Open("effective or permitted " + StatusField("CapPrm"));
}

Verdict HoldsMoreThanPackageSet() {
  std::string found;
  for (const char* field : {"CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd"})
    if ((CapabilityMask(field) & ~kPackageCaps) != 0)
      found += std::string(field) + " " + StatusField(field) + " ";
  return Unless(found);
}

Verdict PassesCapabilitiesOn() {
  return Unless((CapabilityMask("CapInh") | CapabilityMask("CapAmb")) == 0
                    ? ""
                    : "inheritable " + StatusField("CapInh") + " ambient " + StatusField("CapAmb"));
}

Verdict RaiseSysAdmin() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return Failed("capget");
  for (auto& half : {&data[0]}) {
    half->effective |= 1u << CAP_SYS_ADMIN;
    half->permitted |= 1u << CAP_SYS_ADMIN;
  }
  return Judge(syscall(SYS_capset, &header, data));
}

Verdict RaiseAmbient() {
  return Judge(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
}

Verdict RootIsNosuid() {
  struct statvfs info{};
  std::string problems;
  for (const char* path : {"/", "/tmp", "/workspace", "/usr", "/dev/shm"}) {
    if (statvfs(path, &info) != 0) continue;
    if ((info.f_flag & ST_NOSUID) == 0) problems += std::string(path) + " lacks nosuid ";
    if ((info.f_flag & ST_NODEV) == 0) problems += std::string(path) + " lacks nodev ";
  }
  return Unless(problems);
}

// Runs a setuid program of the image and looks at the effective id it got.
Verdict RunImageSetuid() {
  if (geteuid() == 0) return Ok("already uid 0");
  for (const char* program : {"/usr/bin/su", "/bin/su", "/usr/bin/passwd", "/usr/bin/newgrp"}) {
    struct stat info{};
    if (stat(program, &info) != 0 || (info.st_mode & S_ISUID) == 0) continue;
    int hold[2];
    if (pipe(hold) != 0) return Failed("pipe");
    const pid_t child = fork();
    if (child == 0) {
      dup2(hold[0], 0);  // never ends, so the program waits for its password
      const int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
      dup2(quiet, 1);
      dup2(quiet, 2);
      execl(program, program, nullptr);
      _exit(127);
    }
    std::string seen;
    for (int i = 0; i < 30; ++i) {
      usleep(10000);
      const std::string path = "/proc/" + std::to_string(child) + "/status";
      const std::string ids = StatusField(ReadFile(path.c_str()), "Uid");
      if (!ids.empty()) seen = ids;
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::string own = StatusField("Uid");
    return seen == own ? Ok(std::string(program) + " ran as " + own)
                       : Open(std::string(program) + " got Uid " + seen);
  }
  return Ok("the image has no setuid program");
}

// Makes a file of its own with privilege attached and runs it as another user.
Verdict RunAsOther(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgroups(0, nullptr) != 0 || setresgid(1000, 1000, 1000) != 0 ||
        setresuid(1000, 1000, 1000) != 0)
      _exit(126);
    execl(path.c_str(), path.c_str(), "privileged", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  unlink(path.c_str());
  if (!WIFEXITED(status)) return {Kind::kError, "", "the copy was killed"};
  switch (WEXITSTATUS(status)) {
    case 0:
      return Ok("ran without privilege");
    case 126:
      return Refused(EPERM, "cannot become another user");
    case 127:
      return Refused(EACCES, "cannot run the copy");
    default:
      return Open("the copy gained privilege");
  }
}

Verdict RunOwnSetuid() {
  const std::string path = ScratchPath("setuid");
  const int error = CopySelf(path, 04755);
  if (error != 0) return Refused(error, "copy");
  return RunAsOther(path);
}

Verdict RunFileCapability() {
  const std::string path = ScratchPath("filecap");
  const int error = CopySelf(path, 0755);
  if (error != 0) return Refused(error, "copy");
  const uint32_t value[5] = {VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE, ~0u, 0, ~0u, 0};
  if (setxattr(path.c_str(), "security.capability", value, sizeof(value), 0) != 0) {
    const int saved = errno;
    unlink(path.c_str());
    return Refused(saved, "setxattr");
  }
  return RunAsOther(path);
}

Verdict BecomeRootAgain() {
  if (getuid() == 0 && setresuid(1000, 1000, 1000) != 0) return Refused(errno, "cannot drop");
  return Judge(setresuid(0, 0, 0));
}

Verdict SetSupplementaryGroups() {
  const gid_t groups[] = {0, 42};
  return Judge(setgroups(2, groups));
}

Verdict ClearNoNewPrivs() { return Judge(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)); }

Verdict EveryProcessIsBound() {
  std::string problems;
  int seen = 0;
  for (const std::string& name : ListDirectory("/proc")) {
    if (name[0] < '0' || name[0] > '9') continue;
    for (const std::string& thread : ListDirectory(("/proc/" + name + "/task").c_str())) {
      const std::string path = "/proc/" + name + "/task/" + thread + "/status";
      const std::string status = ReadFile(path.c_str());
      if (status.empty()) continue;
      ++seen;
      if (StatusField(status, "NoNewPrivs") != "1") problems += name + " lacks no_new_privs ";
      if (StatusField(status, "Seccomp") != "2") problems += name + " lacks a filter ";
    }
  }
  return Unless(problems, std::to_string(seen) + " threads");
}

Verdict NoNewPrivsIsSet() {
  return Unless(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? "" : "no_new_privs is off");
}
Verdict FilterIsOn() {
  return Unless(StatusField("Seccomp") == "2" ? "" : "Seccomp: " + StatusField("Seccomp"));
}

Verdict SetSecurebits() { return Judge(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0)); }
Verdict SetKeepcaps() { return Judge(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)); }
Verdict SetDumpable2() { return Judge(prctl(PR_SET_DUMPABLE, 2, 0, 0, 0)); }

Verdict PtraceInit() {
  const long result = syscall(SYS_ptrace, PTRACE_SEIZE, 1, 0, 0);
  if (result == 0) syscall(SYS_ptrace, PTRACE_DETACH, 1, 0, 0);
  return Judge(result);
}
Verdict ReadInitMemory() {
  char byte = 0;
  iovec here{&byte, 1};
  iovec there{reinterpret_cast<void*>(0x400000), 1};
  const ssize_t n = process_vm_readv(1, &here, 1, &there, 1, 0);
  // EFAULT: the access check passed, only the address is not there.
  return n >= 0 || errno == EFAULT ? Open("access check passed") : Refused(errno);
}

Verdict RootIsHostRoot() {
  const std::string map = ReadFile("/proc/self/uid_map");
  unsigned long inside = 1, outside = 0, count = 0;
  if (sscanf(map.c_str(), "%lu %lu %lu", &inside, &outside, &count) != 3) return Failed("uid_map");
  if (inside != 0 || outside == 0 || count > 65536) return Open("uid_map " + map);
  return Ok("uid_map " + map);
}

Verdict KeyringSessionIsOwn() {
  const std::string keys = ReadFile("/proc/keys");
  return keys.empty() ? (errno != 0 ? Refused(errno, "/proc/keys") : Empty("/proc/keys"))
                      : Open(keys.substr(0, 80));
}

constexpr const char* kHidden = "EMPTY|ENOENT|EACCES|EPERM";

const Attempt kAttempts[] = {
    {"A01", "Escape", "unshare a user namespace", "EPERM", "EPERM", kSafe, Unshare<CLONE_NEWUSER>},
    {"A02", "Escape", "clone into a user namespace", "EPERM", "EPERM", kSafe, Clone<CLONE_NEWUSER>},
    {"A03", "Escape", "clone3 into a user namespace", "ENOSYS", "ENOSYS", kSafe, Clone3Userns},
    {"A05.mnt", "Escape", "unshare mnt", "EPERM", "EPERM", kSafe, Unshare<CLONE_NEWNS>},
    {"A05.net", "Escape", "unshare net", "EPERM", "EPERM", kSafe, Unshare<CLONE_NEWNET>},
    {"A05.pid", "Escape", "unshare pid", "EPERM", "EPERM", kSafe, Unshare<CLONE_NEWPID>},
    {"A05.ipc", "Escape", "unshare ipc", "EPERM", "EPERM", kSafe, Unshare<CLONE_NEWIPC>},
    {"A05.uts", "Escape", "unshare uts", "EPERM", "EPERM", kSafe, Unshare<CLONE_NEWUTS>},
    {"A05.cgroup", "Escape", "unshare cgroup", "EPERM", "EPERM", kSafe, Unshare<CLONE_NEWCGROUP>},
    {"A05.time", "Escape", "unshare time", "EPERM", "EPERM", kSafe, Unshare<CLONE_NEWTIME>},
    {"A05.user_mnt", "Escape", "unshare user and mnt at once", "EPERM", "EPERM", kSafe,
     Unshare<CLONE_NEWUSER | CLONE_NEWNS>},
    {"A05.user_net", "Escape", "unshare user and net at once", "EPERM", "EPERM", kSafe,
     Unshare<CLONE_NEWUSER | CLONE_NEWNET>},
    {"A06.mnt", "Escape", "clone into mnt", "EPERM", "EPERM", kSafe, Clone<CLONE_NEWNS>},
    {"A06.net", "Escape", "clone into net", "EPERM", "EPERM", kSafe, Clone<CLONE_NEWNET>},
    {"A06.pid", "Escape", "clone into pid", "EPERM", "EPERM", kSafe, Clone<CLONE_NEWPID>},
    {"A06.all", "Escape", "clone into all at once", "EPERM", "EPERM", kSafe,
     Clone<CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID>},
    {"A07", "Escape", "clone3 with a forged pid", "ENOSYS", "ENOSYS", kSafe, Clone3SetTid},
    {"A08", "Escape", "setns into init's mount namespace", "EACCES|EPERM", "EACCES|EPERM", kRisky,
     SetnsInit},
    {"A09", "Escape", "setns into own namespaces again", "EPERM", "EPERM", kSafe, SetnsOwn},
    {"A10.parent", "HostLeak", "NS_GET_PARENT of own namespaces", "EPERM", "EPERM", kSafe,
     ClimbNamespaces<NS_GET_PARENT>},
    {"A10.userns", "HostLeak", "NS_GET_USERNS of own namespaces", "EPERM", "EPERM", kSafe,
     ClimbNamespaces<NS_GET_USERNS>},
    {"A11", "Escape", "steal init's descriptors by pidfd_getfd", "EPERM", "EPERM", kSafe,
     StealInitSocket},
    {"A12.any", "Escape", "hold any capability", "ok;root=open", "ok", kSafe, HoldsAnyCapability},
    {"A12.more", "Escape", "hold a capability beyond the package manager's set", "ok", "ok", kSafe,
     HoldsMoreThanPackageSet},
    {"A12.inherit", "Escape", "inheritable or ambient capabilities", "ok", "ok", kSafe,
     PassesCapabilitiesOn},
    {"A13.capset", "Escape", "raise CAP_SYS_ADMIN by capset", "EPERM", "EPERM", kSafe,
     RaiseSysAdmin},
    {"A13.ambient", "Escape", "raise ambient CAP_SYS_ADMIN", "EPERM", "EPERM", kSafe, RaiseAmbient},
    {"A14.nosuid", "Escape", "mounts that honour setuid or devices", "ok", "ok", kSafe,
     RootIsNosuid},
    {"A14.image", "Escape", "run a setuid program of the image", "ok", "ok", kSafe, RunImageSetuid},
    {"A14.own", "Escape", "run an own setuid file as another user", "ok;user=EPERM", "EPERM", kSafe,
     RunOwnSetuid},
    {"A15", "Escape", "run a file with file capabilities", "ok;user=EPERM", "EPERM", kSafe,
     RunFileCapability},
    {"A17", "Escape", "setresuid(0) after becoming 1000", "EPERM", "EPERM", kSafe, BecomeRootAgain},
    {"A18", "InternalEsc", "setgroups", "EPERM;root=open", "EPERM", kSafe, SetSupplementaryGroups},
    {"A19.clear", "Escape", "clear no_new_privs", "EINVAL", "EINVAL", kSafe, ClearNoNewPrivs},
    {"A19.own", "Escape", "no_new_privs is off", "ok", "ok", kSafe, NoNewPrivsIsSet},
    {"A19.all", "Escape", "a thread without no_new_privs or filter", "ok", "ok", kSafe,
     EveryProcessIsBound},
    {"A19.filter", "Escape", "no seccomp filter on this process", "ok", "ok", kSafe, FilterIsOn},
    {"A20.securebits", "Escape", "change securebits", "EPERM", "EPERM", kSafe, SetSecurebits},
    {"A20.keepcaps", "InternalEsc", "PR_SET_KEEPCAPS", "any", "any", kSafe, SetKeepcaps},
    {"A20.dumpable", "Escape", "PR_SET_DUMPABLE 2", "EINVAL", "EINVAL", kSafe, SetDumpable2},
    {"A21.ptrace", "Escape", "ptrace init", "EPERM", "EPERM", kRisky, PtraceInit},
    {"A21.memory", "HostLeak", "process_vm_readv of init", "EPERM", "EPERM", kSafe, ReadInitMemory},
    {"A23", "Escape", "uid 0 inside is uid 0 outside", "ok", "ok", kSafe, RootIsHostRoot},
    {"A24", "HostLeak", "keys visible in /proc/keys", kHidden, kHidden, kSafe, KeyringSessionIsOwn},
};

}  // namespace

std::span<const Attempt> NamespaceAttempts() { return kAttempts; }

}  // namespace caisson::probe
