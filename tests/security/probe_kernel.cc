// Group E: kernel interfaces, mostly one system call each.
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

namespace caisson::probe {
namespace {

alignas(8) unsigned char zeros[256] = {};

template <long Number, long A = 0, long B = 0, long C = 0, long D = 0, long E = 0>
Verdict Call() {
  return Judge(syscall(Number, A, B, C, D, E));
}

Verdict BpfMap() {
  uint32_t attributes[32] = {2 /* ARRAY */, 4, 4, 1};
  return Judge(syscall(SYS_bpf, 0, attributes, sizeof(attributes)));
}
Verdict BpfProgram() {
  const uint64_t code[] = {0xb7, 0x95};  // r0 = 0; exit
  struct {
    uint32_t type, count;
    uint64_t instructions, license;
    uint32_t rest[24];
  } attributes{1 /* SOCKET_FILTER */,
               2,
               reinterpret_cast<uint64_t>(code),
               reinterpret_cast<uint64_t>("GPL"),
               {}};
  return Judge(syscall(SYS_bpf, 5, &attributes, sizeof(attributes)));
}
Verdict PerfEvent() {
  uint64_t attributes[16] = {};
  attributes[0] = 1 | (112ull << 32);  // PERF_TYPE_SOFTWARE, size
  attributes[1] = 0;                   // CPU_CLOCK
  attributes[5] = 1 << 5 | 1 << 6;     // exclude_kernel, exclude_hv
  return Judge(syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0));
}
Verdict IoUring() { return Judge(syscall(SYS_io_uring_setup, 4, memset(zeros, 0, sizeof(zeros)))); }
Verdict AddKey() {
  const long key = syscall(SYS_add_key, "user", "caisson-probe", "x", 1, -2 /* process keyring */);
  return Judge(key);
}
Verdict RequestKey() {
  const long key = syscall(SYS_request_key, "user", "caisson-probe-absent", nullptr, 0);
  return key >= 0 || errno == ENOKEY ? Open("the keyring was searched") : Refused(errno);
}
Verdict Keyctl() { return Judge(syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -4, 1)); }

Verdict SetClock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return Judge(clock_settime(CLOCK_REALTIME, &now));
}
Verdict SetTimeOfDay() {
  timeval now{};
  gettimeofday(&now, nullptr);
  return Judge(settimeofday(&now, nullptr));
}
Verdict AdjustTime() {
  timex change{};
  change.modes = ADJ_SETOFFSET;
  return Judge(syscall(SYS_adjtimex, &change));
}
Verdict AdjustClock() {
  timex change{};
  change.modes = ADJ_SETOFFSET;
  return Judge(syscall(SYS_clock_adjtime, CLOCK_REALTIME, &change));
}
Verdict ReadKernelLog() {
  char buffer[64];
  return Judge(syscall(SYS_syslog, 3, buffer, sizeof(buffer)));
}
Verdict ModifyLdt() {
  char buffer[64];
  return Judge(syscall(SYS_modify_ldt, 0, buffer, sizeof(buffer)));
}
Verdict AioSetup() {
  unsigned long context = 0;
  const long result = syscall(SYS_io_setup, 1, &context);
  if (result == 0) syscall(SYS_io_destroy, context);
  return Judge(result);
}
Verdict Sethostname() {
  char name[65] = "";
  gethostname(name, sizeof(name) - 1);
  return Judge(sethostname(name, strlen(name)));
}
Verdict Setdomainname() {
  char name[65] = "";
  if (getdomainname(name, sizeof(name) - 1) != 0) return Failed("getdomainname");
  return Judge(setdomainname(name, strlen(name)));
}
Verdict Kexec() { return Judge(syscall(SYS_kexec_load, 0, 0, nullptr, 0x003e0000)); }
Verdict Reboot() { return Judge(syscall(SYS_reboot, 0xfee1dead, 672274793, 0 /* CAD_OFF */, 0)); }

#if defined(__x86_64__)
long Int80(long number, long b = 0, long c = 0, long d = 0) {
  long result;
  asm volatile("int $0x80"
               : "=a"(result)
               : "a"(number), "b"(b), "c"(c), "d"(d)
               : "memory", "r8", "r9", "r10", "r11");
  return result;
}
Verdict JudgeInt80(long result) {
  const int value = static_cast<int>(result);
  if (value < 0) {
    errno = -value;
    return Refused(errno, "the i386 entry answered");
  }
  return Open("the i386 entry worked: " + std::to_string(value));
}
Verdict Int80Getpid() { return JudgeInt80(Int80(20)); }
Verdict Int80Socketcall() {
  void* low =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (low == MAP_FAILED) return Failed("mmap");
  const int arguments[] = {40 /* AF_VSOCK */, 1, 0};
  memcpy(low, arguments, sizeof(arguments));
  return JudgeInt80(Int80(102, 1 /* SYS_SOCKET */, reinterpret_cast<long>(low)));
}
Verdict Int80Mount() { return JudgeInt80(Int80(21)); }
Verdict X32Getpid() { return Judge(syscall(0x40000000L | SYS_getpid)); }

// A 32-bit program of three instructions: exit(42).
Verdict RunI386() {
  static const unsigned char kElf[] = {
      0x7f, 'E',  'L',  'F',  1,    1, 1, 0, 0,    0,    0,    0,    0,    0,    0,    0,
      2,    0,    3,    0,    1,    0, 0, 0, 0x54, 0x80, 0x04, 0x08, 0x34, 0,    0,    0,
      0,    0,    0,    0,    0,    0, 0, 0, 0x34, 0,    0x20, 0,    1,    0,    0,    0,
      0,    0,    0,    0,    1,    0, 0, 0, 0,    0,    0,    0,    0x00, 0x80, 0x04, 0x08,
      0x00, 0x80, 0x04, 0x08, 0x60, 0, 0, 0, 0x60, 0,    0,    0,    5,    0,    0,    0,
      0,    0x10, 0,    0,    0xb8, 1, 0, 0, 0,    0xbb, 42,   0,    0,    0,    0xcd, 0x80};
  const std::string path = ScratchPath("i386");
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);
  if (fd < 0) return Failed("create " + path);
  if (write(fd, kElf, sizeof(kElf)) != static_cast<ssize_t>(sizeof(kElf))) return Failed("write");
  close(fd);
  const int status = RunProgram({path});
  unlink(path.c_str());
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
    return {Kind::kRefused, "SIGSYS", "killed on its first system call"};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 42) return Open("a 32-bit program ran");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return Refused(ENOEXEC, "exec refused");
  return {Kind::kError, "", "wait status " + std::to_string(status)};
}
#endif

template <unsigned long Persona>
Verdict Personality() {
  return Judge(personality(Persona));
}

Verdict UnknownNumbers() {
  std::string problems;
  for (const long number : {-1L, 0x7fffffffL, 600L, 1023L, 511L}) {
    errno = 0;
    if (syscall(number, 0, 0, 0, 0, 0, 0) != -1 || errno != ENOSYS)
      problems += std::to_string(number) + ":" + ErrnoName(errno) + " ";
  }
  return Unless(problems);
}

Verdict TraceMe() { return Judge(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }
Verdict Splice() {
  int a[2], b[2];
  if (pipe(a) != 0 || pipe(b) != 0 || write(a[1], "x", 1) != 1) return Failed("pipe");
  return Judge(splice(a[0], nullptr, b[1], nullptr, 1, SPLICE_F_NONBLOCK));
}
Verdict Vmsplice() {
  int ends[2];
  if (pipe(ends) != 0) return Failed("pipe");
  iovec part{zeros, 1};
  return Judge(vmsplice(ends[1], &part, 1, SPLICE_F_NONBLOCK));
}
Verdict Memfd() { return Judge(memfd_create("probe", 0)); }
Verdict Mincore() {
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char resident = 0;
  return Judge(mincore(page, 4096, &resident));
}
Verdict ReadSibling() {
  char byte = 0;
  iovec here{&byte, 1}, there{zeros, 1};
  return Judge(syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0));
}

Verdict FileIoctl(unsigned long request, void* argument) {
  const std::string path = ScratchPath("ioctl");
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return Failed("create " + path);
  unlink(path.c_str());
  return Judge(ioctl(fd, request, argument));
}
Verdict SetFlags() {
  long flags = 0;
  return FileIoctl(FS_IOC_SETFLAGS, &flags);
}
Verdict SetProject() {
  fsxattr attributes{};
  attributes.fsx_projid = 7;
  return FileIoctl(FS_IOC_FSSETXATTR, &attributes);
}

Verdict MoveInitPages() {
  return Judge(syscall(SYS_move_pages, 1, 0, nullptr, nullptr, nullptr, 0));
}
Verdict MigrateInitPages() {
  unsigned long nodes = 1;
  return Judge(syscall(SYS_migrate_pages, 1, 2, &nodes, &nodes));
}
Verdict Mbind() {
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return Judge(syscall(SYS_mbind, page, 4096, 0, nullptr, 0, 0));
}
Verdict Kcmp() { return Judge(syscall(SYS_kcmp, getpid(), getpid(), 1, 0, 0)); }
Verdict ProcessMadvise() {
  const long fd = syscall(SYS_pidfd_open, 1, 0);
  iovec range{zeros, sizeof(zeros)};
  return Judge(syscall(SYS_process_madvise, fd, &range, 1, 20 /* COLD */, 0));
}

// The kernel stacks at most 16 Landlock domains: 15 more fit when one is in force.
Verdict LandlockLayers() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const uint64_t handled = 1;  // EXECUTE, so that the ruleset is not empty
  int layers = 0;
  for (; layers < 20; ++layers) {
    const long ruleset = syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
    if (ruleset < 0) return Refused(errno, "landlock_create_ruleset");
    const long result = syscall(SYS_landlock_restrict_self, ruleset, 0);
    close(static_cast<int>(ruleset));
    if (result < 0) break;
  }
  return Unless(layers < 16 ? "" : "no Landlock domain is in force",
                std::to_string(16 - layers) + " in force");
}

Verdict FilterAgain() {  // adding a filter of one's own can only narrow
  struct {
    unsigned short length;
    void* code;
  } program{0, nullptr};
  return Judge(syscall(SYS_seccomp, 1, 8 /* NEW_LISTENER */, &program));
}

constexpr const char* kDenied = "EPERM|ENOSYS";

const Attempt kAttempts[] = {
    {"E01.map", "Escape", "bpf MAP_CREATE", "EPERM", "EPERM", kSafe, BpfMap},
    {"E01.prog", "Escape", "bpf PROG_LOAD", "EPERM", "EPERM", kSafe, BpfProgram},
    {"E02", "Escape", "perf_event_open", "EPERM", "EPERM", kSafe, PerfEvent},
    {"E03", "Escape", "io_uring_setup", "EPERM", "EPERM", kSafe, IoUring},
    {"E04.call", "Escape", "userfaultfd", "EPERM", "EPERM", kSafe, Call<SYS_userfaultfd, 1>},
    {"E04.dev", "Escape", "/dev/userfaultfd", "ENOENT", "ENOENT", kSafe,
     [] { return OpenForWriting("/dev/userfaultfd"); }},
    {"E05.keyctl", "Lateral", "keyctl", "EPERM", "EPERM", kSafe, Keyctl},
    {"E05.add", "Lateral", "add_key", "EPERM", "EPERM", kSafe, AddKey},
    {"E05.request", "Lateral", "request_key", "EPERM", "EPERM", kSafe, RequestKey},
    {"E06.init", "Escape", "init_module", "EPERM", "EPERM", kSafe, Call<SYS_init_module>},
    {"E06.finit", "Escape", "finit_module", "EPERM", "EPERM", kSafe, Call<SYS_finit_module, -1>},
    {"E06.delete", "Escape", "delete_module", "EPERM", "EPERM", kSafe, Call<SYS_delete_module>},
    {"E07.kexec", "HostDoS", "kexec_load", "EPERM", "EPERM", kRisky, Kexec},
    {"E07.reboot", "HostDoS", "reboot", "EPERM", "EPERM", kRisky, Reboot},
    {"E07.swapon", "HostDoS", "swapon", "EPERM", "EPERM", kSafe, Call<SYS_swapon>},
    {"E07.swapoff", "HostDoS", "swapoff", "EPERM", "EPERM", kSafe, Call<SYS_swapoff>},
    {"E08.clock", "HostDoS", "clock_settime", "EPERM", "EPERM", kRisky, SetClock},
    {"E08.day", "HostDoS", "settimeofday", "EPERM", "EPERM", kRisky, SetTimeOfDay},
    {"E08.adjtimex", "HostDoS", "adjtimex", kDenied, kDenied, kRisky, AdjustTime},
    {"E08.adjtime", "HostDoS", "clock_adjtime", kDenied, kDenied, kRisky, AdjustClock},
    {"E09", "HostLeak", "read the kernel log by syslog", "EPERM", "EPERM", kSafe, ReadKernelLog},
#if defined(__x86_64__)
    {"E10.iopl", "Escape", "iopl", kDenied, kDenied, kSafe, Call<SYS_iopl, 3>},
    {"E10.ioperm", "Escape", "ioperm", kDenied, kDenied, kSafe, Call<SYS_ioperm, 0x80, 1, 1>},
    {"E10.ldt", "Escape", "modify_ldt", kDenied, kDenied, kSafe, ModifyLdt},
    {"E11.dcookie", "HostDoS", "lookup_dcookie", kDenied, kDenied, kSafe, Call<SYS_lookup_dcookie>},
    {"E11.nfs", "HostDoS", "nfsservctl", kDenied, kDenied, kSafe, Call<SYS_nfsservctl>},
    {"E14.getpid", "Escape", "int 0x80 getpid", "SIGSYS", "SIGSYS", kSafe, Int80Getpid},
    {"E14.socket", "Escape", "i386 socketcall AF_VSOCK", "SIGSYS", "SIGSYS", kSafe,
     Int80Socketcall},
    {"E14.mount", "Escape", "i386 mount", "SIGSYS", "SIGSYS", kSafe, Int80Mount},
    {"E15", "Escape", "x32 getpid", "ENOSYS", "ENOSYS", kSafe, X32Getpid},
    {"E16", "Escape", "run an i386 program", "SIGSYS", "SIGSYS", kSafe, RunI386},
#endif
    {"E11.acct", "HostDoS", "acct", "EPERM", "EPERM", kRisky, Call<SYS_acct>},
    {"E11.quotactl", "HostDoS", "quotactl", "EPERM", "EPERM", kSafe, Call<SYS_quotactl>},
    {"E11.fanotify", "HostLeak", "fanotify_init", "EPERM", "EPERM", kSafe, Call<SYS_fanotify_init>},
    {"E12", "HostDoS", "io_setup", kDenied, kDenied, kSafe, AioSetup},
    {"E13", "HostDoS", "memfd_secret", kDenied, kDenied, kSafe, Call<SYS_memfd_secret>},
    {"E17.exec", "Escape", "personality READ_IMPLIES_EXEC", "EPERM", "EPERM", kSafe,
     Personality<READ_IMPLIES_EXEC>},
    {"E17.limit", "Escape", "personality ADDR_LIMIT_3GB", "EPERM", "EPERM", kSafe,
     Personality<ADDR_LIMIT_3GB>},
    {"E17.zero", "Escape", "personality MMAP_PAGE_ZERO", "EPERM", "EPERM", kSafe,
     Personality<MMAP_PAGE_ZERO>},
    {"E17.noaslr", "InternalEsc", "personality ADDR_NO_RANDOMIZE (debuggers)", "open", "open",
     kSafe, Personality<ADDR_NO_RANDOMIZE>},
    {"E18", "InternalEsc", "ptrace inside the sandbox", "open", "EPERM", kSafe, TraceMe},
    {"E19", "Escape", "numbers that no kernel has", "ok", "ok", kSafe, UnknownNumbers},
    {"E21", "InternalEsc", "process_vm_readv inside the sandbox", "open", "EPERM", kSafe,
     ReadSibling},
    {"E22.madvise", "HostDoS", "process_madvise of init", "EPERM", "EPERM", kSafe, ProcessMadvise},
    {"E22.move", "HostDoS", "move_pages of init", "EPERM", "EPERM", kSafe, MoveInitPages},
    {"E22.migrate", "HostDoS", "migrate_pages of init", "EPERM", "EPERM", kSafe, MigrateInitPages},
    {"E22.mbind", "HostDoS", "mbind", "EPERM", "EPERM", kSafe, Mbind},
    {"E22.kcmp", "HostLeak", "kcmp", "EPERM", "EPERM", kSafe, Kcmp},
    {"E22.mrelease", "HostDoS", "process_mrelease", kDenied, kDenied, kSafe,
     Call<SYS_process_mrelease, -1>},
    {"E25.splice", "InternalEsc", "splice", "open", "EPERM|ENOSYS|EINVAL", kSafe, Splice},
    {"E25.vmsplice", "InternalEsc", "vmsplice", "open", kDenied, kSafe, Vmsplice},
    {"E25.memfd", "InternalEsc", "memfd_create", "open", kDenied, kSafe, Memfd},
    {"E25.mincore", "HostLeak", "mincore", "open", kDenied, kSafe, Mincore},
    {"E26.flags", "HostDoS", "FS_IOC_SETFLAGS", "EPERM", "EPERM", kSafe, SetFlags},
    {"E26.project", "HostDoS", "FS_IOC_FSSETXATTR (leave the quota)", "EPERM", "EPERM", kSafe,
     SetProject},
    {"E27.host", "HostDoS", "sethostname", "EPERM", "EPERM", kSafe, Sethostname},
    {"E27.domain", "HostDoS", "setdomainname", "EPERM", "EPERM", kSafe, Setdomainname},
    {"E28", "HostDoS", "vhangup", kDenied, kDenied, kRisky, Call<SYS_vhangup>},
    {"E29", "Escape", "no Landlock domain is in force", "ok|ENOSYS|EOPNOTSUPP",
     "ok|ENOSYS|EOPNOTSUPP", kSafe, LandlockLayers},
    {"E30", "Escape", "a seccomp listener of one's own", "EINVAL|EPERM|EFAULT",
     "EINVAL|EPERM|EFAULT", kSafe, FilterAgain},
};

}  // namespace

std::span<const Attempt> KernelAttempts() { return kAttempts; }

}  // namespace caisson::probe
