// What a domain forbids, and above all what it leaves alone, tried in children.
#include "sys/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "sys/unique_fd.h"

namespace caisson::sys {
namespace {

constexpr int kSkip = 77;

// Fails the child with the line number, counted from kFirstLine, as exit code.
#define CHECK_THAT(condition) \
  if (!(condition)) return static_cast<int>(__LINE__ - kFirstLine)

template <typename Body>
int ExitOfChild(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int Confine(int abi) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return ApplyLandlock(abi);
}

// The ABIs to try: all that this kernel can act as.
std::vector<int> UsableAbis() {
  std::vector<int> abis;
  for (int abi = 2; abi <= LandlockAbi(); ++abi) abis.push_back(abi);
  return abis;
}

// A directory that removes itself, with sub-directories a and b and a file a/f.
class Tree {
 public:
  Tree() {
    path_ = testing::TempDir() + "landlock_test.XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
    ::mkdir((path_ + "/a").c_str(), 0700);
    ::mkdir((path_ + "/b").c_str(), 0700);
    const UniqueFd file(::open((path_ + "/a/f").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
  ~Tree() {
    for (const char* name : {"/a/f", "/b/f", "/b/g", "/a/d", "/b/d", "/a", "/b", "/device", ""})
      ::remove((path_ + name).c_str());
  }
  std::string At(const char* name) const { return path_ + name; }

 private:
  std::string path_;
};

class Landlock : public testing::Test {
 protected:
  void SetUp() override {
    if (LandlockAbi() < 2) GTEST_SKIP() << "Landlock ABI " << LandlockAbi();
  }
};

TEST(LandlockWithoutAbi, DoesNothingAndSaysSo) {
  EXPECT_EQ(ExitOfChild([] {
              // Without no_new_privs and capabilities a real attempt would fail.
              return ApplyLandlock(0) == 0 && ApplyLandlock(1) == 0 ? 0 : 1;
            }),
            0);
  EXPECT_NE(LandlockSummary(0).find("absent"), std::string::npos);
  EXPECT_NE(LandlockSummary(1).find("not used"), std::string::npos);
}

TEST(LandlockSummary, NamesWhatEachAbiAdds) {
  EXPECT_EQ(LandlockSummary(4).find("ioctl"), std::string::npos);
  EXPECT_NE(LandlockSummary(5).find("ioctl"), std::string::npos);
  EXPECT_EQ(LandlockSummary(5).find("signals"), std::string::npos);
  EXPECT_NE(LandlockSummary(6).find("signals"), std::string::npos);
}

TEST_F(Landlock, FilesAreUsedAsBefore) {
  for (const int abi : UsableAbis()) {
    const Tree tree;
    EXPECT_EQ(
        ExitOfChild([&] {
          constexpr int kFirstLine = __LINE__;
          const auto at = [&](const char* name) { return tree.At(name); };
          CHECK_THAT(Confine(abi) == 0);
          CHECK_THAT(::rename(at("/a/f").c_str(), at("/b/f").c_str()) == 0);
          CHECK_THAT(::rename(at("/b/f").c_str(), at("/a/f").c_str()) == 0);
          CHECK_THAT(::link(at("/a/f").c_str(), at("/b/g").c_str()) == 0);
          CHECK_THAT(::renameat2(AT_FDCWD, at("/a/f").c_str(), AT_FDCWD, at("/b/g").c_str(),
                                 RENAME_EXCHANGE) == 0);
          CHECK_THAT(::mkdir(at("/a/d").c_str(), 0700) == 0);
          CHECK_THAT(::rename(at("/a/d").c_str(), at("/b/d").c_str()) == 0);
          const UniqueFd file(::open(at("/a/f").c_str(), O_RDWR | O_TRUNC));
          CHECK_THAT(file && ::write(file.get(), "x", 1) == 1 && ::ftruncate(file.get(), 0) == 0);
          int bytes = -1;
          CHECK_THAT(::ioctl(file.get(), FIONREAD, &bytes) == 0);  // an ioctl, but not of a device
          CHECK_THAT(::symlink("x", at("/b/f").c_str()) == 0);
          CHECK_THAT(::unlink(at("/b/f").c_str()) == 0);
          CHECK_THAT(::access("/etc/passwd", R_OK) == 0);
          return 0;
        }),
        0)
        << "ABI " << abi;
  }
}

TEST_F(Landlock, MovesWorkWithinAMountBelowTheRoot) {
  const Tree tree;
  const int code = ExitOfChild([&] {
    constexpr int kFirstLine = __LINE__;
    if (::unshare(CLONE_NEWNS) != 0) return kSkip;
    CHECK_THAT(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
    CHECK_THAT(::mount("none", tree.At("/b").c_str(), "tmpfs", 0, nullptr) == 0);
    CHECK_THAT(::mkdir(tree.At("/b/x").c_str(), 0700) == 0);
    CHECK_THAT(::mkdir(tree.At("/b/y").c_str(), 0700) == 0);
    CHECK_THAT(::mkdir(tree.At("/b/x/z").c_str(), 0700) == 0);
    CHECK_THAT(Confine(LandlockAbi()) == 0);
    CHECK_THAT(::rename(tree.At("/b/x/z").c_str(), tree.At("/b/y/z").c_str()) == 0);
    CHECK_THAT(::mount("none", tree.At("/b").c_str(), "tmpfs", 0, nullptr) == -1 && errno == EPERM);
    CHECK_THAT(::umount2(tree.At("/b").c_str(), MNT_DETACH) == -1 && errno == EPERM);
    return 0;
  });
  if (code == kSkip) GTEST_SKIP() << "needs a mount namespace";
  EXPECT_EQ(code, 0);
}

TEST_F(Landlock, TerminalsBeneathDevKeepTheirIoctls) {
  EXPECT_EQ(ExitOfChild([] {
              constexpr int kFirstLine = __LINE__;
              CHECK_THAT(Confine(LandlockAbi()) == 0);
              const int master = ::open("/dev/ptmx", O_RDWR | O_NOCTTY);
              CHECK_THAT(master >= 0);
              int unlock = 0;
              CHECK_THAT(::ioctl(master, TIOCSPTLCK, &unlock) == 0);
              int number = -1;
              CHECK_THAT(::ioctl(master, TIOCGPTN, &number) == 0);
              const int terminal =
                  ::open(("/dev/pts/" + std::to_string(number)).c_str(), O_RDWR | O_NOCTTY);
              CHECK_THAT(terminal >= 0);
              termios settings;
              CHECK_THAT(::tcgetattr(terminal, &settings) == 0);
              CHECK_THAT(::setsid() > 0 && ::ioctl(terminal, TIOCSCTTY, 0) == 0);
              const winsize size{24, 80, 0, 0};
              CHECK_THAT(::ioctl(master, TIOCSWINSZ, &size) == 0);
              const int own = ::open("/dev/tty", O_RDWR);
              CHECK_THAT(own >= 0 && ::tcgetattr(own, &settings) == 0);
              const int peer = ::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
              CHECK_THAT(peer >= 0 && ::tcgetattr(peer, &settings) == 0);
              return 0;
            }),
            0);
}

TEST_F(Landlock, DevicesElsewhereLoseTheirIoctls) {
  if (LandlockAbi() < 5) GTEST_SKIP() << "needs ABI 5";
  const Tree tree;
  const std::string device = tree.At("/device");
  if (::mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 9)) != 0)  // urandom
    GTEST_SKIP() << "cannot make a device node";
  const UniqueFd probe(::open(device.c_str(), O_RDONLY | O_CLOEXEC));
  if (!probe) GTEST_SKIP() << "nodev here";
  constexpr unsigned long kGetEntropyCount = 0x80045200;
  const auto entropy_count = [&](int fd) {
    int bits;
    return ::ioctl(fd, kGetEntropyCount, &bits) == 0 ? 0 : errno;
  };
  ASSERT_EQ(entropy_count(probe.get()), 0);
  EXPECT_EQ(ExitOfChild([&] {
              constexpr int kFirstLine = __LINE__;
              CHECK_THAT(Confine(LandlockAbi()) == 0);
              const int here = ::open(device.c_str(), O_RDONLY);
              CHECK_THAT(here >= 0);
              CHECK_THAT(entropy_count(here) == EACCES);
              char byte;
              CHECK_THAT(::read(here, &byte, 1) == 1);
              const int regular = ::open("/dev/urandom", O_RDONLY);
              CHECK_THAT(regular >= 0 && entropy_count(regular) == 0);
              return 0;
            }),
            0);
}

// A listening abstract socket with a name of the kernel's choice.
UniqueFd ListenAbstract(sockaddr_un& address, socklen_t& size) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  address = {};
  address.sun_family = AF_UNIX;
  size = sizeof address;
  ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t));
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  ::listen(listener.get(), 4);
  return listener;
}

int ErrnoOfConnect(const sockaddr_un& address, socklen_t size) {
  const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 ? 0
                                                                                         : errno;
}

TEST_F(Landlock, AbstractSocketsOutsideAreOutOfReachAndOwnOnesWork) {
  if (LandlockAbi() < 6) GTEST_SKIP() << "needs ABI 6";
  sockaddr_un outside;
  socklen_t outside_size;
  const UniqueFd listener = ListenAbstract(outside, outside_size);
  ASSERT_EQ(ErrnoOfConnect(outside, outside_size), 0);
  EXPECT_EQ(ExitOfChild([&] {
              constexpr int kFirstLine = __LINE__;
              CHECK_THAT(Confine(LandlockAbi()) == 0);
              CHECK_THAT(ErrnoOfConnect(outside, outside_size) == EPERM);
              sockaddr_un inside;
              socklen_t inside_size;
              const UniqueFd own = ListenAbstract(inside, inside_size);
              CHECK_THAT(ErrnoOfConnect(inside, inside_size) == 0);
              CHECK_THAT(ExitOfChild([&] { return ErrnoOfConnect(inside, inside_size); }) == 0);
              return 0;
            }),
            0);
}

TEST_F(Landlock, ProcessesOutsideCannotBeSignalledOrTracedAndOwnOnesCan) {
  const pid_t outside = ::fork();
  if (outside == 0) {
    for (;;) ::pause();
  }
  EXPECT_EQ(ExitOfChild([&] {
              constexpr int kFirstLine = __LINE__;
              CHECK_THAT(Confine(LandlockAbi()) == 0);
              if (LandlockAbi() >= 6) CHECK_THAT(::kill(outside, SIGUSR1) == -1 && errno == EPERM);
              CHECK_THAT(::ptrace(PTRACE_SEIZE, outside, nullptr, nullptr) == -1 && errno == EPERM);
              const pid_t inside = ::fork();
              if (inside == 0) {
                for (;;) ::pause();
              }
              CHECK_THAT(::ptrace(PTRACE_SEIZE, inside, nullptr, nullptr) == 0);
              CHECK_THAT(::kill(inside, SIGKILL) == 0);
              int status = 0;
              CHECK_THAT(::waitpid(inside, &status, 0) == inside && WIFSIGNALED(status));
              return 0;
            }),
            0);
  EXPECT_EQ(::kill(outside, 0), 0);  // still there
  ::kill(outside, SIGKILL);          // from outside, the way in is open
  ::waitpid(outside, nullptr, 0);
}

TEST_F(Landlock, OutsideSignalsIntoTheDomain) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t confined = ::fork();
  if (confined == 0) {
    const char result = static_cast<char>(Confine(LandlockAbi()));
    (void)!::write(ready[1], &result, 1);
    for (;;) ::pause();
  }
  char result = 1;
  EXPECT_EQ(::read(ready[0], &result, 1), 1);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(::kill(confined, SIGTERM), 0);
  int status = 0;
  ::waitpid(confined, &status, 0);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(Landlock, FailsClosedWithoutNoNewPrivs) {
  const int code = ExitOfChild([] {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return kSkip;
    return ApplyLandlock(LandlockAbi());
  });
  EXPECT_EQ(code, EPERM);
}

}  // namespace
}  // namespace caisson::sys
