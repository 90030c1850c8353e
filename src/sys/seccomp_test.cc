// The filter in the kernel: children make real calls under it.
#include "sys/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <set>
#include <vector>

#include "sys/capabilities.h"

namespace caisson::sys {
namespace {

constexpr int kSetupFailed = 99;

void EnterFilter(const SeccompFilter& filter) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || InstallSeccomp(filter.program()) != 0)
    ::_exit(kSetupFailed);
}

// Runs `body` in a child and gives its wait status. `body` returns the exit code.
template <typename Body>
int StatusOfChild(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

// The first check that does not hold, as the exit code.
#define CHECK_THAT(condition) \
  if (!(condition)) return static_cast<int>(__LINE__ - kFirstLine)

// 0 or the errno of a raw call.
template <typename... Args>
int ErrnoOf(long nr, Args... args) {
  return ::syscall(nr, args...) == -1 ? errno : 0;
}

class Seccomp : public testing::TestWithParam<SeccompProfile> {
 protected:
  template <typename Body>
  int ExitUnderFilter(Body body) {
    const int status = StatusOfChild([&] {
      EnterFilter(filter_);
      return body();
    });
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const SeccompFilter filter_ = SeccompFilter::Build(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Profiles, Seccomp,
                         testing::Values(SeccompProfile::kDefault, SeccompProfile::kStrict),
                         [](const auto& info) {
                           return info.param == SeccompProfile::kDefault ? "Default" : "Strict";
                         });

// --- every number -------------------------------------------------------------------------------

constexpr int kNumbers = 1024;
constexpr int kNotRun = -100000;
constexpr int kDied = -200000;               // minus the signal
using Outcomes = std::array<int, kNumbers>;  // 0 for success, -errno, or one of the above

// With zero arguments these block, end or confuse the caller, whatever a filter says.
bool IsUnsafeToTry(int nr) {
  static const std::set<int> kUnsafe = {
      SYS_exit,  SYS_exit_group, SYS_rt_sigreturn, SYS_pselect6, SYS_ppoll, SYS_seccomp, SYS_sync,
#ifdef __x86_64__
      SYS_vfork, SYS_pause,      SYS_select,       335,          336,  // uretprobe, uprobe: the
                                                                       // kernel lets them by every
                                                                       // filter and answers SIGILL
#endif
  };
  return kUnsafe.contains(nr);
}

int TryNumber(int nr) {
  const long result = ::syscall(nr, 0, 0, 0, 0, 0, 0);
  const int outcome = result == -1 ? -errno : 0;
  if (outcome == 0 && nr == SYS_msgget) ::msgctl(static_cast<int>(result), IPC_RMID, nullptr);
  return outcome;
}

// Makes every call once, each in a process of its own, as nobody and without capabilities, so
// that a filter that lets something by does no harm here.
Outcomes TryAll(const SeccompFilter* filter) {
  void* memory =
      ::mmap(nullptr, sizeof(Outcomes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *static_cast<Outcomes*>(memory);
  shared.fill(kNotRun);
  const int status = StatusOfChild([&] {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    if (::geteuid() == 0 &&
        (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0)) {
      return kSetupFailed;
    }
    if (SetCapabilities(0, 0, 0) != 0) return kSetupFailed;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return kSetupFailed;
    if (filter != nullptr) EnterFilter(*filter);
    for (int nr = 0; nr < kNumbers; ++nr) {
      if (IsUnsafeToTry(nr)) continue;
      const pid_t pid = ::fork();
      if (pid == 0) {
        const pid_t self = ::getpid();
        const int outcome = TryNumber(nr);
        if (::getpid() == self) shared[nr] = outcome;  // not in what fork and clone made
        ::_exit(0);
      }
      int ended = 0;
      ::waitpid(pid, &ended, 0);
      if (WIFSIGNALED(ended)) shared[nr] = kDied - WTERMSIG(ended);
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
  const Outcomes outcomes = shared;
  ::munmap(memory, sizeof(Outcomes));
  return outcomes;
}

TEST_P(Seccomp, EveryNumberBehavesAsThePolicySays) {
  const Outcomes free = TryAll(nullptr);
  const Outcomes confined = TryAll(&filter_);
  const std::set<int> refused_with_zeroes = {SYS_socket, SYS_socketpair};
  for (int nr = 0; nr < kNumbers; ++nr) {
    if (IsUnsafeToTry(nr)) continue;
    switch (VerdictOf(GetParam(), nr)) {
      case SyscallVerdict::kEperm:
        EXPECT_EQ(confined[nr], -EPERM) << nr;
        break;
      case SyscallVerdict::kEnosys:
        EXPECT_EQ(confined[nr], -ENOSYS) << nr;
        break;
      case SyscallVerdict::kEinval:
        EXPECT_EQ(confined[nr], -EINVAL) << nr;
        break;
      case SyscallVerdict::kAllow:
      case SyscallVerdict::kConditional:
        EXPECT_EQ(confined[nr], refused_with_zeroes.contains(nr) ? -EAFNOSUPPORT : free[nr]) << nr;
        break;
    }
  }
}

TEST_P(Seccomp, NumbersBeyondEveryTableAreUnknown) {
  EXPECT_EQ(ExitUnderFilter([] {
              constexpr int kFirstLine = __LINE__;
              CHECK_THAT(ErrnoOf(-1) == ENOSYS);
              CHECK_THAT(ErrnoOf(600) == ENOSYS);
              CHECK_THAT(ErrnoOf(0x7fffffff) == ENOSYS);
              CHECK_THAT(ErrnoOf(0x40000000 + SYS_getpid) == ENOSYS);  // x32
              return 0;
            }),
            0);
}

// --- arguments ----------------------------------------------------------------------------------

TEST_P(Seccomp, NoNewNamespaceByCloneOrUnshare) {
  EXPECT_EQ(
      ExitUnderFilter([] {
        constexpr int kFirstLine = __LINE__;
        for (const unsigned long bit : {0x00020000ul, 0x02000000ul, 0x04000000ul, 0x08000000ul,
                                        0x10000000ul, 0x20000000ul, 0x40000000ul}) {
          CHECK_THAT(ErrnoOf(SYS_unshare, bit) == EPERM);
          CHECK_THAT(ErrnoOf(SYS_clone, bit | SIGCHLD, 0, 0, 0, 0) == EPERM);
        }
        CHECK_THAT(ErrnoOf(SYS_unshare, 0x80) == EPERM);
        CHECK_THAT(ErrnoOf(SYS_unshare, 0x400) == 0);
        CHECK_THAT(ErrnoOf(SYS_clone3, 0, 0) == ENOSYS);
        return 0;
      }),
      0);
}

TEST_P(Seccomp, SocketFamiliesAreAnAllowList) {
  EXPECT_EQ(
      ExitUnderFilter([] {
        constexpr int kFirstLine = __LINE__;
        for (int family = 0; family < 64; ++family) {
          const bool listed =
              family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
          for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET}) {
            if (!listed) CHECK_THAT(ErrnoOf(SYS_socket, family, type, 0) == EAFNOSUPPORT);
          }
        }
        for (const int family : {AF_INET, AF_INET6}) {
          CHECK_THAT(ErrnoOf(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC, 0) != EAFNOSUPPORT);
          CHECK_THAT(ErrnoOf(SYS_socket, family, SOCK_RAW, IPPROTO_ICMP) == EAFNOSUPPORT);
          CHECK_THAT(ErrnoOf(SYS_socket, family, SOCK_STREAM, IPPROTO_SCTP) == EPROTONOSUPPORT);
          CHECK_THAT(ErrnoOf(SYS_socket, family, SOCK_STREAM, 262) == EPROTONOSUPPORT);  // MPTCP
          CHECK_THAT(ErrnoOf(SYS_socket, family, SOCK_DGRAM, 136) == EPROTONOSUPPORT);   // UDP-Lite
        }
        CHECK_THAT(ErrnoOf(SYS_socket, AF_INET, SOCK_STREAM, 0) == 0);
        CHECK_THAT(ErrnoOf(SYS_socket, AF_UNIX, SOCK_SEQPACKET, 0) == 0);
        CHECK_THAT(ErrnoOf(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) == 0);
        for (int protocol = 1; protocol < 32; ++protocol)
          CHECK_THAT(ErrnoOf(SYS_socket, AF_NETLINK, SOCK_RAW, protocol) == EAFNOSUPPORT);
        int pair[2];
        CHECK_THAT(ErrnoOf(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
        CHECK_THAT(ErrnoOf(SYS_socketpair, AF_INET, SOCK_STREAM, 0, pair) == EAFNOSUPPORT);
        return 0;
      }),
      0);
}

TEST_P(Seccomp, NoTypingIntoTerminalsWhateverTheHighBits) {
  EXPECT_EQ(ExitUnderFilter([] {
              constexpr int kFirstLine = __LINE__;
              const int master = ::open("/dev/ptmx", O_RDWR | O_NOCTTY);
              CHECK_THAT(master >= 0);
              int unlock = 0;
              CHECK_THAT(::ioctl(master, TIOCSPTLCK, &unlock) == 0);
              const int terminal = ::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
              CHECK_THAT(terminal >= 0);
              CHECK_THAT(::setsid() > 0);
              CHECK_THAT(::ioctl(terminal, TIOCSCTTY, 0) == 0);  // so that TIOCSTI would succeed
              const char key = 'x';
              CHECK_THAT(ErrnoOf(SYS_ioctl, terminal, 0x5412ul, &key) == EPERM);
              CHECK_THAT(ErrnoOf(SYS_ioctl, terminal, 0xdead00005412ul, &key) == EPERM);
              int waiting = -1;
              CHECK_THAT(::ioctl(terminal, FIONREAD, &waiting) == 0 && waiting == 0);
              const int discipline = 0;
              CHECK_THAT(ErrnoOf(SYS_ioctl, terminal, TIOCSETD, &discipline) == EPERM);
              const winsize size{24, 80, 0, 0};
              CHECK_THAT(::ioctl(terminal, TIOCSWINSZ, &size) == 0);
              return 0;
            }),
            0);
}

TEST_P(Seccomp, NoUpperLayerProtocolOnTcp) {
  EXPECT_EQ(
      ExitUnderFilter([] {
        constexpr int kFirstLine = __LINE__;
        const int tcp = ::socket(AF_INET, SOCK_STREAM, 0);
        CHECK_THAT(tcp >= 0);
        CHECK_THAT(ErrnoOf(SYS_setsockopt, tcp, IPPROTO_TCP, TCP_ULP, "tls", 4) == ENOPROTOOPT);
        CHECK_THAT(ErrnoOf(SYS_setsockopt, tcp, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) == EPERM);
        const int on = 1;
        CHECK_THAT(ErrnoOf(SYS_setsockopt, tcp, SOL_SOCKET, SO_MARK, &on, sizeof on) == EPERM);
        CHECK_THAT(ErrnoOf(SYS_setsockopt, tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
        CHECK_THAT(ErrnoOf(SYS_setsockopt, tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
        return 0;
      }),
      0);
}

TEST_P(Seccomp, PersonalitiesAreAnAllowList) {
  EXPECT_EQ(
      ExitUnderFilter([] {
        constexpr int kFirstLine = __LINE__;
        for (const unsigned long value : {0x20000ul, 0x20008ul, 8ul, 0x40000ul, 0ul, 0xfffffffful})
          CHECK_THAT(ErrnoOf(SYS_personality, value) == 0);
        for (const unsigned long value : {0x0400000ul, 0x8000000ul, 0x0100000ul, 1ul, 0x60000ul})
          CHECK_THAT(ErrnoOf(SYS_personality, value) == EPERM);
        return 0;
      }),
      0);
}

// --- other ways in ------------------------------------------------------------------------------

#ifdef __x86_64__
TEST_P(Seccomp, ThirtyTwoBitEntryKills) {
  const auto get_pid_by_interrupt = [] {
    long result = 20;  // getpid of i386
    asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return result == ::getpid() ? 0 : 1;
  };
  const int free = StatusOfChild(get_pid_by_interrupt);
  if (!WIFEXITED(free) || WEXITSTATUS(free) != 0) GTEST_SKIP() << "no i386 emulation here";
  EXPECT_EQ(ExitUnderFilter(get_pid_by_interrupt), -SIGSYS);
}
#endif

TEST_P(Seccomp, FilterStaysAcrossForkAndCannotBeReplaced) {
  EXPECT_EQ(ExitUnderFilter([] {
              constexpr int kFirstLine = __LINE__;
              sock_filter allow_all = BPF_STMT(BPF_RET | BPF_K, 0x7fff0000);
              CHECK_THAT(InstallSeccomp({1, &allow_all}) == 0);
              CHECK_THAT(ErrnoOf(SYS_keyctl, 0, 0) == EPERM);
              const int status =
                  StatusOfChild([] { return ErrnoOf(SYS_keyctl, 0, 0) == EPERM ? 0 : 1; });
              CHECK_THAT(status == 0);
              return 0;
            }),
            0);
}

TEST(InstallSeccomp, TellsWhyItFailed) {
  sock_filter bad = BPF_STMT(BPF_ALU, 0);
  const int status = StatusOfChild([&] {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return InstallSeccomp({1, &bad});
  });
  EXPECT_EQ(WEXITSTATUS(status), EINVAL);
}

// --- programs -----------------------------------------------------------------------------------

// No value when the program is not on this machine.
std::optional<int> RunProgram(const SeccompFilter& filter, std::vector<const char*> argv) {
  argv.push_back(nullptr);
  constexpr int kNotThere = 127;
  const int status = StatusOfChild([&] {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    EnterFilter(filter);
    ::execvp(argv[0], const_cast<char* const*>(argv.data()));
    return errno == ENOENT ? kNotThere : 126;
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotThere) return std::nullopt;
  return status;
}

TEST_P(Seccomp, CommonProgramsWork) {
  const std::vector<std::vector<const char*>> programs = {
      {"bash", "-c", "x=$(echo hi | cat) && [ \"$x\" = hi ] && (sleep 0 & wait)"},
      {"python3", "-c",
       "import subprocess, threading, socket, tempfile, shutil, os\n"
       "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
       "assert subprocess.run(['true']).returncode == 0\n"
       "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'\n"
       "d = tempfile.mkdtemp(); open(d + '/f', 'w').write('y'); shutil.copy(d + '/f', d + '/g')\n"
       "shutil.rmtree(d); os.sched_getaffinity(0); os.urandom(8)\n"},
      {"git", "--version"},
  };
  for (const auto& argv : programs) {
    const auto status = RunProgram(filter_, argv);
    if (status) EXPECT_EQ(*status, 0) << argv[0];
  }
}

}  // namespace
}  // namespace caisson::sys
