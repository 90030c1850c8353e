// The compiled filter against the policy, without the kernel: an interpreter of the few BPF
// instructions the compiler uses runs the program on made-up calls. Unlike a real run it tells
// the filter's EPERM from the kernel's, and sees which fields the program reads.
#include "sys/seccomp_policy.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cstring>
#include <initializer_list>
#include <set>

#include "sys/seccomp.h"

namespace caisson::sys {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kNative = AUDIT_ARCH_X86_64;
constexpr uint32_t kForeign = AUDIT_ARCH_I386;
#else
constexpr uint32_t kNative = AUDIT_ARCH_AARCH64;
constexpr uint32_t kForeign = AUDIT_ARCH_ARM;
#endif

struct Trace {
  uint32_t result;
  bool read_arguments;
  size_t steps;
};

Trace Interpret(const sock_fprog& program, const seccomp_data& data) {
  uint32_t a = 0;
  bool read_arguments = false;
  size_t steps = 0;
  for (size_t pc = 0; pc < program.len; ++pc, ++steps) {
    const sock_filter& in = program.filter[pc];
    switch (in.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&a, reinterpret_cast<const char*>(&data) + in.k, sizeof a);
        read_arguments |= in.k >= offsetof(seccomp_data, args);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= in.k;
        break;
      case BPF_JMP | BPF_JA:
        pc += in.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        pc += a == in.k ? in.jt : in.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        pc += a >= in.k ? in.jt : in.jf;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        pc += (a & in.k) != 0 ? in.jt : in.jf;
        break;
      case BPF_RET | BPF_K:
        return {in.k, read_arguments, steps};
      default:
        ADD_FAILURE() << "unexpected instruction " << in.code;
        return {0, false, 0};
    }
  }
  ADD_FAILURE() << "ran off the end";
  return {0, false, 0};
}

constexpr uint32_t kAllowed = SECCOMP_RET_ALLOW;
constexpr uint32_t Refused(int error) { return SECCOMP_RET_ERRNO | error; }

class SeccompPolicy : public testing::TestWithParam<SeccompProfile> {
 protected:
  Trace Call(int nr, std::initializer_list<uint64_t> args = {}, uint32_t arch = kNative) {
    seccomp_data data{};
    data.nr = nr;
    data.arch = arch;
    std::copy(args.begin(), args.end(), data.args);
    return Interpret(filter_.program(), data);
  }
  uint32_t ResultOf(int nr, std::initializer_list<uint64_t> args) { return Call(nr, args).result; }

  SeccompFilter filter_ = SeccompFilter::Build(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Profiles, SeccompPolicy,
                         testing::Values(SeccompProfile::kDefault, SeccompProfile::kStrict),
                         [](const auto& info) {
                           return info.param == SeccompProfile::kDefault ? "Default" : "Strict";
                         });

TEST_P(SeccompPolicy, EveryNumberGetsItsVerdict) {
  for (int nr = 0; nr < 4096; ++nr) {
    const Trace run = Call(nr);
    switch (VerdictOf(GetParam(), nr)) {
      case SyscallVerdict::kAllow:
        EXPECT_EQ(run.result, kAllowed) << nr;
        break;
      case SyscallVerdict::kEperm:
        EXPECT_EQ(run.result, Refused(EPERM)) << nr;
        break;
      case SyscallVerdict::kEnosys:
        EXPECT_EQ(run.result, Refused(ENOSYS)) << nr;
        break;
      case SyscallVerdict::kEinval:
        EXPECT_EQ(run.result, Refused(EINVAL)) << nr;
        break;
      case SyscallVerdict::kConditional:
        EXPECT_TRUE(run.read_arguments) << nr;
        continue;
    }
    EXPECT_FALSE(run.read_arguments) << nr << ": the kernel could not cache this verdict";
    EXPECT_LE(run.steps, 16u) << nr << ": the search is not balanced";
  }
}

TEST_P(SeccompPolicy, NumbersOutsideTheTableAreUnknown) {
  for (const int64_t nr : {-1l, -2l, 600l, 0x3fffffffl, 0x40000000l, 0x40000000l + SYS_getpid,
                           0x7fffffffl, -0x80000000l})
    EXPECT_EQ(Call(static_cast<int>(nr)).result, Refused(ENOSYS)) << nr;
}

TEST_P(SeccompPolicy, ForeignArchitectureIsKilledWhateverItCalls) {
  for (int nr = -1; nr < 1024; ++nr) {
    EXPECT_EQ(Call(nr, {}, kForeign).result, SECCOMP_RET_KILL_PROCESS) << nr;
    EXPECT_EQ(Call(nr, {}, 0).result, SECCOMP_RET_KILL_PROCESS) << nr;
  }
}

TEST_P(SeccompPolicy, CloneAndUnshareMakeNoNamespace) {
  // The seven kinds that clone knows, and CLONE_NEWTIME, which only unshare does.
  for (const uint64_t bit : {0x00020000u, 0x02000000u, 0x04000000u, 0x08000000u, 0x10000000u,
                             0x20000000u, 0x40000000u}) {
    EXPECT_EQ(ResultOf(SYS_clone, {bit | 17}), Refused(EPERM)) << bit;
    EXPECT_EQ(ResultOf(SYS_clone, {bit | 0xdead00000000}), Refused(EPERM)) << bit;
    EXPECT_EQ(ResultOf(SYS_unshare, {bit}), Refused(EPERM)) << bit;
    EXPECT_EQ(ResultOf(SYS_unshare, {bit | 0x400}), Refused(EPERM)) << bit;
  }
  EXPECT_EQ(ResultOf(SYS_unshare, {0x80}), Refused(EPERM));
  EXPECT_EQ(ResultOf(SYS_clone, {17}), kAllowed);               // fork
  EXPECT_EQ(ResultOf(SYS_clone, {0x4111}), kAllowed);           // posix_spawn
  EXPECT_EQ(ResultOf(SYS_clone, {0x3d0f00}), kAllowed);         // pthread_create
  EXPECT_EQ(ResultOf(SYS_clone, {0x80000000 | 17}), kAllowed);  // CLONE_IO
  EXPECT_EQ(ResultOf(SYS_unshare, {0x200 | 0x400}), kAllowed);  // FS, FILES
  EXPECT_EQ(VerdictOf(GetParam(), SYS_clone3), SyscallVerdict::kEnosys);
}

TEST_P(SeccompPolicy, SocketsAreAnAllowList) {
  constexpr int kProtocols[] = {0, 1, 2, 6, 17, 33, 58, 132, 136, 255, 256, 262};
  for (uint64_t family = 0; family < 64; ++family) {
    for (uint64_t type = 0; type < 16; ++type) {
      for (const uint64_t protocol : kProtocols) {
        uint32_t expected = Refused(EAFNOSUPPORT);
        if (family == 1) expected = kAllowed;
        if (family == 16 && protocol == 0) expected = kAllowed;
        if ((family == 2 || family == 10) && type == 1)
          expected = protocol == 0 || protocol == 6 ? kAllowed : Refused(EPROTONOSUPPORT);
        if ((family == 2 || family == 10) && type == 2) {
          const bool ok = protocol == 0 || protocol == 17 || protocol == 1 || protocol == 58;
          expected = ok ? kAllowed : Refused(EPROTONOSUPPORT);
        }
        for (const uint64_t flags : {0x0u, 0x80000u, 0x800u, 0x80800u})
          EXPECT_EQ(ResultOf(SYS_socket, {family, type | flags, protocol}), expected)
              << family << ' ' << type << ' ' << protocol;
        // The kernel takes ints, so the upper halves must not matter.
        constexpr uint64_t kHigh = 0xdead00000000;
        EXPECT_EQ(ResultOf(SYS_socket, {family | kHigh, type | kHigh, protocol | kHigh}), expected);
      }
    }
    const uint32_t pair = family == 1 ? kAllowed : Refused(EAFNOSUPPORT);
    EXPECT_EQ(ResultOf(SYS_socketpair, {family, 1, 0}), pair) << family;
  }
}

TEST_P(SeccompPolicy, DangerousIoctlsAreRefusedInTheLow32Bits) {
  for (const uint64_t request : {0x5412u, 0x541cu, 0x5423u, 0x401c5820u, 0x40086602u}) {
    EXPECT_EQ(ResultOf(SYS_ioctl, {0, request}), Refused(EPERM)) << std::hex << request;
    EXPECT_EQ(ResultOf(SYS_ioctl, {7, request | 0xdead00000000, 1}), Refused(EPERM));
    EXPECT_EQ(ResultOf(SYS_ioctl, {0, request + 1}), kAllowed);
  }
  // TCGETS, TIOCSCTTY, TIOCSPGRP, TIOCGWINSZ, TIOCSWINSZ, FIONREAD, TIOCNOTTY, TIOCGPTN,
  // TIOCSPTLCK, TIOCGPTPEER, FS_IOC_GETFLAGS, FICLONE
  for (const uint64_t request : {0x5401u, 0x540eu, 0x5410u, 0x5413u, 0x5414u, 0x541bu, 0x5422u,
                                 0x80045430u, 0x40045431u, 0x5441u, 0x80086601u, 0x40049409u})
    EXPECT_EQ(ResultOf(SYS_ioctl, {0, request}), kAllowed) << std::hex << request;
}

TEST_P(SeccompPolicy, DangerousSocketOptionsAreRefused) {
  const auto set = [this](uint64_t level, uint64_t name) {
    return ResultOf(SYS_setsockopt, {3, level, name});
  };
  EXPECT_EQ(set(6, 31), Refused(ENOPROTOOPT));
  EXPECT_EQ(set(0xdead00000006, 0xbeef0000001f), Refused(ENOPROTOOPT));
  const std::set<std::pair<uint64_t, uint64_t>> refused = {
      {0, 16}, {0, 17}, {0, 19}, {0, 64},  {1, 25},  {1, 36},  {1, 50},
      {1, 52}, {1, 62}, {6, 31}, {41, 34}, {41, 35}, {41, 64}, {41, 75}};
  for (uint64_t level = 0; level < 300; ++level)
    for (uint64_t name = 0; name < 128; ++name)
      EXPECT_EQ(set(level, name) == kAllowed, !refused.contains({level, name}))
          << level << ' ' << name;
}

TEST_P(SeccompPolicy, PersonalityIsAnAllowList) {
  const std::set<uint64_t> allowed = {0, 8, 0x20000, 0x20008, 0x40000, 0xffffffff};
  for (uint64_t value = 0; value < 0x100; ++value)
    EXPECT_EQ(ResultOf(SYS_personality, {value}) == kAllowed, allowed.contains(value)) << value;
  for (int bit = 0; bit < 32; ++bit) {
    const uint64_t value = uint64_t{1} << bit;
    EXPECT_EQ(ResultOf(SYS_personality, {value}) == kAllowed, allowed.contains(value)) << value;
  }
  for (const uint64_t value : allowed) EXPECT_EQ(ResultOf(SYS_personality, {value}), kAllowed);
  EXPECT_EQ(ResultOf(SYS_personality, {0x0400000}), Refused(EPERM));  // READ_IMPLIES_EXEC
}

TEST_P(SeccompPolicy, MovedFilterKeepsItsProgram) {
  const std::string digest = filter_.digest();
  SeccompFilter moved = std::move(filter_);
  filter_ = std::move(moved);
  EXPECT_EQ(filter_.digest(), digest);
  EXPECT_EQ(Call(SYS_getpid).result, kAllowed);
}

TEST(SeccompTable, ProfilesDifferOnlyWhereMeant) {
  std::set<std::string_view> stricter;
  for (const SyscallEntry& entry : SyscallTable()) {
    const auto in_default = RuleOf(SeccompProfile::kDefault, entry.nr);
    const auto in_strict = RuleOf(SeccompProfile::kStrict, entry.nr);
    if (in_default == in_strict) continue;
    stricter.insert(entry.name);
    EXPECT_EQ(in_default, SyscallRule::kAllow) << entry.name;
    const auto verdict = VerdictOf(SeccompProfile::kStrict, entry.nr);
    EXPECT_TRUE(verdict != SyscallVerdict::kAllow && verdict != SyscallVerdict::kConditional);
  }
  EXPECT_EQ(stricter, (std::set<std::string_view>{"ptrace", "process_vm_readv", "process_vm_writev",
                                                  "splice", "tee", "vmsplice", "memfd_create",
                                                  "mincore", "cachestat"}));
}

// Written from the catalogue of attempts, not from the table.
TEST_P(SeccompPolicy, WhatIsKnownToBeDangerousIsNotPermitted) {
  for (const int nr : {
           SYS_mount,
           SYS_umount2,
           SYS_pivot_root,
           SYS_chroot,
           SYS_setns,
           SYS_open_tree,
           SYS_move_mount,
           SYS_fsopen,
           SYS_fsconfig,
           SYS_fsmount,
           SYS_fspick,
           SYS_mount_setattr,
           SYS_bpf,
           SYS_perf_event_open,
           SYS_userfaultfd,
           SYS_io_uring_setup,
           SYS_io_uring_enter,
           SYS_io_uring_register,
           SYS_keyctl,
           SYS_add_key,
           SYS_request_key,
           SYS_init_module,
           SYS_finit_module,
           SYS_delete_module,
           SYS_kexec_load,
           SYS_kexec_file_load,
           SYS_reboot,
           SYS_swapon,
           SYS_swapoff,
           SYS_acct,
           SYS_quotactl,
           SYS_quotactl_fd,
           SYS_syslog,
           SYS_clock_settime,
           SYS_settimeofday,
           SYS_adjtimex,
           SYS_clock_adjtime,
           SYS_pidfd_getfd,
           SYS_kcmp,
           SYS_process_madvise,
           SYS_process_mrelease,
           SYS_move_pages,
           SYS_migrate_pages,
           SYS_mbind,
           SYS_open_by_handle_at,
           SYS_name_to_handle_at,
           SYS_fanotify_init,
           SYS_fanotify_mark,
           SYS_sethostname,
           SYS_setdomainname,
           SYS_memfd_secret,
           467 /* open_tree_attr */,
           469 /* file_setattr */,
#ifdef __x86_64__
           SYS_iopl,
           SYS_ioperm,
           SYS_modify_ldt,
#endif
       })
    EXPECT_EQ(Call(nr).result, Refused(EPERM)) << nr;
  for (const int nr : {SYS_clone3, SYS_io_setup, SYS_io_submit, SYS_remap_file_pages,
                       457 /* statmount */, 458 /* listmount */})
    EXPECT_EQ(Call(nr).result, Refused(ENOSYS)) << nr;
}

TEST_P(SeccompPolicy, WhatInitLivesOnIsAllowed) {
  for (const int nr :
       {SYS_epoll_create1,    SYS_epoll_ctl,       SYS_epoll_pwait,   SYS_signalfd4,
        SYS_timerfd_create,   SYS_timerfd_settime, SYS_inotify_init1, SYS_inotify_add_watch,
        SYS_inotify_rm_watch, SYS_sendmsg,         SYS_recvmsg,       SYS_prctl,
        SYS_capset,           SYS_setresuid,       SYS_setresgid,     SYS_setgroups,
        SYS_setfsuid,         SYS_setfsgid,        SYS_prlimit64,     SYS_close_range,
        SYS_openat2,          SYS_execve,          SYS_execveat,      SYS_pidfd_send_signal,
        SYS_pidfd_open,       SYS_wait4,           SYS_waitid,        SYS_linkat,
        SYS_renameat2,        SYS_unlinkat,        SYS_getdents64,    SYS_statx,
        SYS_fallocate,        SYS_setsid,          SYS_kill,          SYS_rt_sigaction,
        SYS_rt_sigprocmask,   SYS_pipe2,           SYS_dup3})
    EXPECT_EQ(Call(nr).result, kAllowed) << nr;
}

// A change of policy is a decision: whoever makes one changes these lines too, and SPECIFICATION.
#ifdef __x86_64__
TEST(SeccompTable, SnapshotOfThePolicy) {
  const auto standard = SeccompFilter::Build(SeccompProfile::kDefault);
  const auto strict = SeccompFilter::Build(SeccompProfile::kStrict);
  EXPECT_EQ(standard.allowed_count(), 288u);
  EXPECT_EQ(strict.allowed_count(), 279u);
  EXPECT_EQ(standard.digest(), "cfa7c988829f0cc8");
  EXPECT_EQ(strict.digest(), "47aa70d545822f5e");
  EXPECT_LT(standard.program().len, 200);
  EXPECT_LT(strict.program().len, 200);
}
#endif

TEST(SeccompTable, DescribesEveryEntry) {
  for (const SyscallEntry& entry : SyscallTable()) {
    EXPECT_FALSE(Describe(entry.rule).empty()) << entry.name;
    EXPECT_FALSE(entry.purpose.empty()) << entry.name;
  }
}

}  // namespace
}  // namespace caisson::sys
