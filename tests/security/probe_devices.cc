// Group G: devices and terminals.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>

#include "probe.h"

namespace caisson::probe {
namespace {

template <mode_t Type, unsigned Major, unsigned Minor>
Verdict MakeNode() {
  const std::string path = ScratchPath("node");
  const int result = mknod(path.c_str(), Type | 0600, makedev(Major, Minor));
  const int saved = errno;
  if (result == 0) unlink(path.c_str());
  errno = saved;
  return Judge(result);
}

Verdict UnexpectedNodes() {
  static const char* const kKnown[] = {"null", "zero",  "full",   "random", "urandom",
                                       "tty",  "ptmx",  "pts",    "shm",    "mqueue",
                                       "fd",   "stdin", "stdout", "stderr", "core"};
  std::string problems;
  for (const std::string& name : ListDirectory("/dev")) {
    bool known = false;
    for (const char* allowed : kKnown) known = known || name == allowed;
    if (!known) problems += name + " ";
  }
  return Unless(problems);
}

Verdict AnyHostDevice() {
  std::string problems;
  int last = ENOENT;
  for (const char* name : {"vda",
                           "sda",
                           "nvme0n1",
                           "mem",
                           "port",
                           "kmsg",
                           "fuse",
                           "kvm",
                           "net/tun",
                           "console",
                           "vcs",
                           "vcsa",
                           "tty0",
                           "tty1",
                           "loop-control",
                           "loop0",
                           "mapper/control",
                           "vhost-vsock",
                           "vsock",
                           "userfaultfd",
                           "uinput",
                           "cpu_dma_latency",
                           "hpet",
                           "rtc0",
                           "snapshot",
                           "autofs",
                           "btrfs-control",
                           "cpu/0/msr",
                           "dri/card0",
                           "ttyS0",
                           "mcelog",
                           "watchdog",
                           "sg0"}) {
    struct stat info{};
    if (stat((std::string("/dev/") + name).c_str(), &info) == 0)
      problems += std::string(name) + " ";
    else if (errno != ENOENT)
      last = errno;
  }
  return problems.empty() ? Refused(last) : Open(problems);
}

constexpr const char* kNull = "/dev/null";
Verdict ChangeMode() { return Judge(chmod(kNull, 0666)); }
Verdict ChangeOwner() { return Judge(chown(kNull, 0, 0)); }
Verdict Unlink() { return Judge(unlink("/dev/full")); }
Verdict Rename() { return Judge(rename("/dev/full", "/dev/full2")); }
Verdict SetAttribute() { return Judge(setxattr(kNull, "user.probe", "x", 1, 0)); }
// Needs write permission only, which everybody has on /dev/null.
Verdict Touch() { return Judge(utimensat(AT_FDCWD, kNull, nullptr, 0)); }
Verdict Create() {
  const int result = mkdir("/dev/probe", 0700);
  const int saved = errno;
  if (result == 0) rmdir("/dev/probe");
  errno = saved;
  return Judge(result);
}
Verdict NullIsNull() {
  struct stat info{};
  if (stat(kNull, &info) != 0) return Failed(kNull);
  const int fd = open(kNull, O_RDWR | O_CLOEXEC);
  char byte;
  const bool works = fd >= 0 && write(fd, "x", 1) == 1 && read(fd, &byte, 1) == 0;
  return Unless(S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3) && works
                    ? ""
                    : "/dev/null is something else");
}

// A controlling terminal of our own: without one the kernel refuses before any filter counts.
int OwnTerminal() {
  setsid();
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[64];
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
      ptsname_r(master, name, sizeof(name)) != 0)
    return -1;
  const int slave = open(name, O_RDWR | O_CLOEXEC);
  if (slave >= 0) ioctl(slave, TIOCSCTTY, 0);
  return slave;
}

Verdict TerminalCall(unsigned long request, void* argument) {
  const int terminal = OwnTerminal();
  if (terminal < 0) return Failed("no terminal to be had");
  return Judge(syscall(SYS_ioctl, terminal, request, argument));
}
Verdict Inject() {
  char byte = 'x';
  return TerminalCall(TIOCSTI, &byte);
}
Verdict InjectHighBits() {
  char byte = 'x';
  return TerminalCall(0xdead00005412ul, &byte);
}
Verdict InjectHighBit32() {
  char byte = 'x';
  return TerminalCall(0x100005412ul, &byte);
}
Verdict ConsoleSelection() {
  char request = 2;
  return TerminalCall(TIOCLINUX, &request);
}
Verdict LineDiscipline() {
  int discipline = 0;
  return TerminalCall(TIOCSETD, &discipline);
}
Verdict StealConsole() { return TerminalCall(TIOCCONS, nullptr); }

Verdict ControllingTerminal() {
  bool on_terminal = false;
  for (const Descriptor& descriptor : AtStart().descriptors)
    on_terminal = on_terminal || descriptor.target.starts_with("/dev/pts/");
  const int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (fd < 0) return Refused(errno);
  return on_terminal ? Refused(ENXIO, "the session's own terminal") : Open("somebody's terminal");
}

Verdict ManyTerminals() {
  constexpr int kMany = 300;
  int count = 0;
  while (count < kMany && posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0) ++count;
  const std::string detail = std::to_string(count) + " terminals";
  return count == kMany ? Open(detail) : Refused(errno, detail);
}

const Attempt kAttempts[] = {
    {"G01.disk", "Escape", "mknod block 254:0", "EPERM", "EPERM", kSafe, MakeNode<S_IFBLK, 254, 0>},
    {"G01.mem", "Escape", "mknod char 1:1", "EPERM", "EPERM", kSafe, MakeNode<S_IFCHR, 1, 1>},
    {"G01.kmem", "Escape", "mknod char 1:2", "EPERM", "EPERM", kSafe, MakeNode<S_IFCHR, 1, 2>},
    {"G01.tun", "Escape", "mknod char 10:200", "EPERM", "EPERM", kSafe, MakeNode<S_IFCHR, 10, 200>},
    {"G01.console", "Escape", "mknod char 5:1", "EPERM", "EPERM", kSafe, MakeNode<S_IFCHR, 5, 1>},
    {"G03", "HostLeak", "unexpected names in /dev", "ok", "ok", kSafe, UnexpectedNodes},
    {"G04", "HostLeak", "devices of the host", "ENOENT", "ENOENT", kSafe, AnyHostDevice},
    {"G05.chmod", "HostDoS", "chmod /dev/null", "EROFS", "EROFS", kSafe, ChangeMode},
    {"G05.chown", "HostDoS", "chown /dev/null", "EROFS", "EROFS", kSafe, ChangeOwner},
    {"G05.unlink", "HostDoS", "unlink /dev/full", "EROFS|EBUSY|EACCES", "EROFS|EBUSY|EACCES",
     kRisky, Unlink},
    {"G05.rename", "HostDoS", "rename /dev/full", "EROFS|EBUSY|EACCES", "EROFS|EBUSY|EACCES",
     kRisky, Rename},
    {"G05.xattr", "HostDoS", "setxattr on /dev/null", "EROFS", "EROFS", kSafe, SetAttribute},
    {"G05.touch", "HostDoS", "set the times of /dev/null", "EROFS", "EROFS", kSafe, Touch},
    {"G05.create", "HostDoS", "make a directory in /dev", "EROFS", "EROFS", kSafe, Create},
    {"G06", "SelfDoS", "/dev/null is not the null device", "ok", "ok", kSafe, NullIsNull},
    {"G07", "Escape", "TIOCSTI", "EPERM", "EPERM", kSafe, Inject},
    {"G08.high", "Escape", "TIOCSTI with high bits", "EPERM", "EPERM", kSafe, InjectHighBits},
    {"G08.bit32", "Escape", "TIOCSTI with bit 32", "EPERM", "EPERM", kSafe, InjectHighBit32},
    {"G09.linux", "Escape", "TIOCLINUX", "EPERM", "EPERM", kSafe, ConsoleSelection},
    {"G09.ldisc", "Escape", "TIOCSETD", "EPERM", "EPERM", kSafe, LineDiscipline},
    {"G09.console", "HostDoS", "TIOCCONS", "EPERM", "EPERM", kRisky, StealConsole},
    {"G10", "HostLeak", "somebody's controlling terminal", "ENXIO", "ENXIO", kSafe,
     ControllingTerminal},
    {"G11", "HostDoS", "take all terminals", "ENOSPC", "ENOSPC", kSafe, ManyTerminals},
};

}  // namespace

std::span<const Attempt> DeviceAttempts() { return kAttempts; }

}  // namespace caisson::probe
