#include "sys/seccomp_policy.h"

#include <asm/unistd.h>
#include <errno.h>

#include <algorithm>
#include <array>

namespace caisson::sys {
namespace {

using enum SyscallRule;

struct Call {
  int nr;
  std::string_view name;
};

// The number that a stringified __NR_x expands to, or -1 when the architecture has no such call
// and the macro's own name is left standing.
consteval int NumberOf(std::string_view text) {
  int number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    number = number * 10 + (c - '0');
  }
  return number;
}

#define CAISSON_TEXT_(x) #x
#define CAISSON_TEXT(x) CAISSON_TEXT_(x)
#define CALL(name) \
  Call { NumberOf(CAISSON_TEXT(__NR_##name)), #name }
// A call newer than the oldest headers we build with. From 424 on all architectures agree.
#define CALL_AT(name, nr) \
  Call { nr, #name }

// clang-format off
constexpr Call kFiles[] = {
    CALL(read), CALL(write), CALL(open), CALL(close), CALL(stat), CALL(fstat), CALL(lstat),
    CALL(lseek), CALL(pread64), CALL(pwrite64), CALL(readv), CALL(writev), CALL(access),
    CALL(sendfile), CALL(fcntl), CALL(flock), CALL(fsync), CALL(fdatasync), CALL(truncate),
    CALL(ftruncate), CALL(getdents), CALL(getdents64), CALL(getcwd), CALL(chdir), CALL(fchdir),
    CALL(rename), CALL(mkdir), CALL(rmdir), CALL(creat), CALL(link), CALL(unlink), CALL(symlink),
    CALL(readlink), CALL(chmod), CALL(fchmod), CALL(chown), CALL(fchown), CALL(lchown),
    CALL(umask), CALL(utime), CALL(utimes), CALL(futimesat), CALL(utimensat), CALL(mknod),
    CALL(statfs), CALL(fstatfs), CALL(sync), CALL(syncfs), CALL(sync_file_range), CALL(readahead),
    CALL(fadvise64), CALL(fallocate), CALL(openat), CALL(openat2), CALL(mkdirat), CALL(mknodat),
    CALL(fchownat), CALL(newfstatat), CALL(unlinkat), CALL(renameat), CALL(renameat2),
    CALL(linkat), CALL(symlinkat), CALL(readlinkat), CALL(fchmodat), CALL_AT(fchmodat2, 452),
    CALL(faccessat), CALL(faccessat2), CALL(preadv), CALL(pwritev), CALL(preadv2), CALL(pwritev2),
    CALL(copy_file_range), CALL(statx), CALL(close_range), CALL(dup), CALL(dup2), CALL(dup3),
    CALL(pipe), CALL(pipe2),
};
constexpr Call kAttributes[] = {
    CALL(setxattr), CALL(lsetxattr), CALL(fsetxattr), CALL(getxattr), CALL(lgetxattr),
    CALL(fgetxattr), CALL(listxattr), CALL(llistxattr), CALL(flistxattr), CALL(removexattr),
    CALL(lremovexattr), CALL(fremovexattr), CALL_AT(setxattrat, 463), CALL_AT(getxattrat, 464),
    CALL_AT(listxattrat, 465), CALL_AT(removexattrat, 466),
};
constexpr Call kEvents[] = {
    CALL(poll), CALL(ppoll), CALL(select), CALL(pselect6), CALL(epoll_create),
    CALL(epoll_create1), CALL(epoll_ctl), CALL(epoll_wait), CALL(epoll_pwait), CALL(epoll_pwait2),
    CALL(eventfd), CALL(eventfd2), CALL(signalfd), CALL(signalfd4), CALL(inotify_init),
    CALL(inotify_init1), CALL(inotify_add_watch), CALL(inotify_rm_watch), CALL(timerfd_create),
    CALL(timerfd_settime), CALL(timerfd_gettime),
};
constexpr Call kMemory[] = {
    CALL(mmap), CALL(mprotect), CALL(munmap), CALL(brk), CALL(mremap), CALL(msync), CALL(madvise),
    CALL(mlock), CALL(mlock2), CALL(munlock), CALL(mlockall), CALL(munlockall),
    CALL(pkey_mprotect), CALL(pkey_alloc), CALL(pkey_free), CALL(membarrier),
    CALL_AT(map_shadow_stack, 453), CALL_AT(mseal, 462),
};
constexpr Call kProcesses[] = {
    CALL(fork), CALL(vfork), CALL(execve), CALL(execveat), CALL(exit), CALL(exit_group),
    CALL(wait4), CALL(waitid), CALL(getpid), CALL(getppid), CALL(gettid), CALL(getpgid),
    CALL(getpgrp), CALL(setpgid), CALL(getsid), CALL(setsid), CALL(set_tid_address),
    CALL(set_robust_list), CALL(get_robust_list), CALL(rseq), CALL(futex), CALL(futex_waitv),
    CALL_AT(futex_wake, 454), CALL_AT(futex_wait, 455), CALL_AT(futex_requeue, 456), CALL(prctl),
    CALL(pidfd_open), CALL(pidfd_send_signal), CALL(restart_syscall), CALL(getcpu),
#ifdef __x86_64__
    CALL(arch_prctl),
#endif
};
constexpr Call kSignals[] = {
    CALL(kill), CALL(tkill), CALL(tgkill), CALL(pause), CALL(rt_sigaction), CALL(rt_sigprocmask),
    CALL(rt_sigreturn), CALL(rt_sigpending), CALL(rt_sigtimedwait), CALL(rt_sigqueueinfo),
    CALL(rt_tgsigqueueinfo), CALL(rt_sigsuspend), CALL(sigaltstack),
};
constexpr Call kIdentity[] = {
    CALL(getuid), CALL(getgid), CALL(geteuid), CALL(getegid), CALL(setuid), CALL(setgid),
    CALL(setreuid), CALL(setregid), CALL(setresuid), CALL(getresuid), CALL(setresgid),
    CALL(getresgid), CALL(getgroups), CALL(setgroups), CALL(setfsuid), CALL(setfsgid),
    CALL(capget), CALL(capset),
};
constexpr Call kScheduling[] = {
    CALL(sched_yield), CALL(sched_setparam), CALL(sched_getparam), CALL(sched_setscheduler),
    CALL(sched_getscheduler), CALL(sched_get_priority_max), CALL(sched_get_priority_min),
    CALL(sched_rr_get_interval), CALL(sched_setaffinity), CALL(sched_getaffinity),
    CALL(sched_setattr), CALL(sched_getattr), CALL(getpriority), CALL(setpriority),
    CALL(ioprio_set), CALL(ioprio_get), CALL(getrlimit), CALL(setrlimit),
    CALL(getrusage), CALL(times), CALL(sysinfo), CALL(uname), CALL(getrandom),
};
constexpr Call kTime[] = {
    CALL(nanosleep), CALL(clock_nanosleep), CALL(getitimer), CALL(setitimer), CALL(alarm),
    CALL(gettimeofday), CALL(time), CALL(clock_gettime), CALL(clock_getres), CALL(timer_create),
    CALL(timer_settime), CALL(timer_gettime), CALL(timer_getoverrun), CALL(timer_delete),
};
constexpr Call kSockets[] = {
    CALL(connect), CALL(accept), CALL(accept4), CALL(bind), CALL(listen), CALL(shutdown),
    CALL(sendto), CALL(recvfrom), CALL(sendmsg), CALL(recvmsg), CALL(sendmmsg), CALL(recvmmsg),
    CALL(getsockname), CALL(getpeername), CALL(getsockopt),
};
constexpr Call kIpc[] = {
    CALL(shmget), CALL(shmat), CALL(shmctl), CALL(shmdt), CALL(semget), CALL(semop), CALL(semctl),
    CALL(semtimedop), CALL(msgget), CALL(msgsnd), CALL(msgrcv), CALL(msgctl), CALL(mq_open),
    CALL(mq_unlink), CALL(mq_timedsend), CALL(mq_timedreceive), CALL(mq_notify),
    CALL(mq_getsetattr),
};
constexpr Call kSelfConfinement[] = {
    CALL(seccomp), CALL(landlock_create_ruleset), CALL(landlock_add_rule),
    CALL(landlock_restrict_self),
};

constexpr Call kDebugging[] = {CALL(ptrace), CALL(process_vm_readv), CALL(process_vm_writev)};
constexpr Call kPageSharing[] = {
    CALL(tee), CALL(vmsplice), CALL(memfd_create), CALL(mincore),
    CALL_AT(cachestat, 451),
};
constexpr Call kSplice[] = {CALL(splice)};

constexpr Call kMounts[] = {
    CALL(mount), CALL(umount2), CALL(pivot_root), CALL(chroot), CALL(open_tree), CALL(move_mount),
    CALL(fsopen), CALL(fsconfig), CALL(fsmount), CALL(fspick), CALL(mount_setattr),
    CALL_AT(open_tree_attr, 467), CALL(name_to_handle_at), CALL(open_by_handle_at),
    CALL(fanotify_init), CALL(fanotify_mark), CALL(quotactl), CALL(quotactl_fd),
    CALL_AT(file_setattr, 469),
};
constexpr Call kKernel[] = {
    CALL(bpf), CALL(perf_event_open), CALL(userfaultfd), CALL(io_uring_setup),
    CALL(io_uring_enter), CALL(io_uring_register), CALL(keyctl), CALL(add_key), CALL(request_key),
    CALL(init_module), CALL(finit_module), CALL(delete_module), CALL(kexec_load),
    CALL(kexec_file_load), CALL(syslog), CALL(lookup_dcookie), CALL(nfsservctl),
    CALL(memfd_secret), CALL_AT(lsm_set_self_attr, 460),
#ifdef __x86_64__
    CALL(create_module), CALL(get_kernel_syms), CALL(query_module), CALL(iopl), CALL(ioperm),
    CALL(modify_ldt),
#endif
};
constexpr Call kHost[] = {
    CALL(setns), CALL(reboot), CALL(swapon), CALL(swapoff), CALL(acct), CALL(vhangup),
    CALL(sethostname), CALL(setdomainname), CALL(clock_settime), CALL(settimeofday),
    CALL(adjtimex), CALL(clock_adjtime),
};
constexpr Call kOtherProcesses[] = {
    CALL(pidfd_getfd), CALL(kcmp), CALL(process_madvise), CALL(process_mrelease),
    CALL(move_pages), CALL(migrate_pages), CALL(mbind), CALL(set_mempolicy),
    CALL(set_mempolicy_home_node),
};
constexpr Call kWithheld[] = {
    CALL(clone3), CALL(get_mempolicy), CALL(io_setup), CALL(io_destroy), CALL(io_getevents),
    CALL(io_pgetevents), CALL(io_submit), CALL(io_cancel), CALL(remap_file_pages),
    CALL_AT(statmount, 457), CALL_AT(listmount, 458),
};

constexpr Call kCloneCall[] = {CALL(clone)};
constexpr Call kUnshareCall[] = {CALL(unshare)};
constexpr Call kSocketCall[] = {CALL(socket)};
constexpr Call kSocketPairCall[] = {CALL(socketpair)};
constexpr Call kIoctlCall[] = {CALL(ioctl)};
constexpr Call kSetSockOptCall[] = {CALL(setsockopt)};
constexpr Call kPersonalityCall[] = {CALL(personality)};
constexpr Call kLimitsCall[] = {CALL(prlimit64)};
// clang-format on

struct Group {
  std::string_view purpose;
  SyscallRule rule;
  std::span<const Call> calls;
};

constexpr Group kPolicy[] = {
    {"files and directories", kAllow, kFiles},
    {"extended attributes", kAllow, kAttributes},
    {"waiting for events", kAllow, kEvents},
    {"own memory", kAllow, kMemory},
    {"processes and threads", kAllow, kProcesses},
    {"signals", kAllow, kSignals},
    {"identity, within the sandbox's id range", kAllow, kIdentity},
    {"scheduling, limits, usage", kAllow, kScheduling},
    {"clocks and timers", kAllow, kTime},
    {"sockets that exist", kAllow, kSockets},
    {"System V and POSIX IPC, of the own namespace", kAllow, kIpc},
    {"confining oneself further", kAllow, kSelfConfinement},
    {"debuggers", kAllowElseEperm, kDebugging},
    {"page sharing and page-cache inspection", kAllowElseEnosys, kPageSharing},
    {"page sharing and page-cache inspection", kAllowElseEinval, kSplice},
    {"mounts, file handles, quotas", kEperm, kMounts},
    {"kernel interfaces", kEperm, kKernel},
    {"the host's name, clock, swap, namespaces", kEperm, kHost},
    {"other processes' memory, descriptors and placement", kEperm, kOtherProcesses},
    {"withheld, with an ordinary substitute", kEnosys, kWithheld},
    {"processes and threads", kClone, kCloneCall},
    {"processes and threads", kUnshare, kUnshareCall},
    {"new sockets", kSocket, kSocketCall},
    {"new sockets", kSocketPair, kSocketPairCall},
    {"device and file controls", kIoctl, kIoctlCall},
    {"socket options", kSetSockOpt, kSetSockOptCall},
    {"execution domain", kPersonality, kPersonalityCall},
    {"scheduling, limits, usage", kNotInit, kLimitsCall},
};

consteval size_t CountPresent() {
  size_t count = 0;
  for (const Group& group : kPolicy)
    count += std::ranges::count_if(group.calls, [](const Call& call) { return call.nr >= 0; });
  return count;
}

consteval auto Flatten() {
  std::array<SyscallEntry, CountPresent()> table{};
  size_t next = 0;
  for (const Group& group : kPolicy)
    for (const Call& call : group.calls)
      if (call.nr >= 0) table[next++] = {call.nr, call.name, group.rule, group.purpose};
  std::ranges::sort(table, {}, &SyscallEntry::nr);
  return table;
}

constexpr auto kTable = Flatten();

static_assert(std::ranges::adjacent_find(kTable, {}, &SyscallEntry::nr) == kTable.end(),
              "a system call is listed twice");
#ifdef __x86_64__
consteval bool AllPresent() {
  for (const Group& group : kPolicy)
    for (const Call& call : group.calls)
      if (call.nr < 0) return false;
  return true;
}
static_assert(AllPresent(), "a name in the table is misspelt: x86_64 has all of them");
#endif

constexpr uint32_t kSolIp = 0, kSolSocket = 1, kSolTcp = 6, kSolIpv6 = 41;
constexpr SocketOption kSocketOptions[] = {
    {kSolIp, 16, EPERM},         // IP_IPSEC_POLICY
    {kSolIp, 17, EPERM},         // IP_XFRM_POLICY
    {kSolIp, 19, EPERM},         // IP_TRANSPARENT
    {kSolIp, 64, EPERM},         // IPT_SO_SET_REPLACE
    {kSolSocket, 25, EPERM},     // SO_BINDTODEVICE
    {kSolSocket, 36, EPERM},     // SO_MARK
    {kSolSocket, 50, EPERM},     // SO_ATTACH_BPF
    {kSolSocket, 52, EPERM},     // SO_ATTACH_REUSEPORT_EBPF
    {kSolSocket, 62, EPERM},     // SO_BINDTOIFINDEX
    {kSolTcp, 31, ENOPROTOOPT},  // TCP_ULP: kernel TLS, espintcp; libraries go on without it
    {kSolIpv6, 34, EPERM},       // IPV6_IPSEC_POLICY
    {kSolIpv6, 35, EPERM},       // IPV6_XFRM_POLICY
    {kSolIpv6, 64, EPERM},       // IP6T_SO_SET_REPLACE
    {kSolIpv6, 75, EPERM},       // IPV6_TRANSPARENT
};
static_assert(std::ranges::is_sorted(kSocketOptions, {}, &SocketOption::level));

}  // namespace

std::span<const SyscallEntry> SyscallTable() { return kTable; }

std::span<const SocketOption> DeniedSocketOptions() { return kSocketOptions; }

SyscallRule RuleOf(SeccompProfile profile, int nr) {
  const auto entry = std::ranges::lower_bound(kTable, nr, {}, &SyscallEntry::nr);
  if (entry == kTable.end() || entry->nr != nr) return kEnosys;
  const bool strict = profile == SeccompProfile::kStrict;
  switch (entry->rule) {
    case kAllowElseEperm:
      return strict ? kEperm : kAllow;
    case kAllowElseEnosys:
      return strict ? kEnosys : kAllow;
    case kAllowElseEinval:
      return strict ? kEinval : kAllow;
    default:
      return entry->rule;
  }
}

SyscallVerdict VerdictOf(SeccompProfile profile, int nr) {
  switch (RuleOf(profile, nr)) {
    case kAllow:
      return SyscallVerdict::kAllow;
    case kEperm:
      return SyscallVerdict::kEperm;
    case kEnosys:
      return SyscallVerdict::kEnosys;
    case kEinval:
      return SyscallVerdict::kEinval;
    default:
      return SyscallVerdict::kConditional;
  }
}

std::string_view Describe(SyscallRule rule) {
  switch (rule) {
    case kAllow:
      return "allowed";
    case kAllowElseEperm:
      return "allowed in default, EPERM in strict";
    case kAllowElseEnosys:
      return "allowed in default, ENOSYS in strict";
    case kAllowElseEinval:
      return "allowed in default, EINVAL in strict";
    case kEinval:
      return "EINVAL";
    case kEperm:
      return "EPERM";
    case kEnosys:
      return "ENOSYS";
    case kClone:
    case kUnshare:
      return "without new namespaces, else EPERM";
    case kSocket:
      return "AF_UNIX; TCP, UDP and ping over AF_INET and AF_INET6; NETLINK_ROUTE; else "
             "EAFNOSUPPORT or EPROTONOSUPPORT";
    case kSocketPair:
      return "AF_UNIX, else EAFNOSUPPORT";
    case kIoctl:
      return "all but TIOCSTI, TIOCLINUX, TIOCSETD, FS_IOC_FSSETXATTR and FS_IOC_SETFLAGS (EPERM)";
    case kSetSockOpt:
      return "all but TCP_ULP (ENOPROTOOPT) and options on marks, devices, BPF, IPsec, "
             "transparent proxying and packet-filter tables (EPERM)";
    case kPersonality:
      return "0, 8, 0x20000, 0x20008, 0x40000 and the query, else EPERM";
    case kNotInit:
      return "of any process but PID 1 (EPERM)";
  }
  return "";
}

}  // namespace caisson::sys
