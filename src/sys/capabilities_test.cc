#include "sys/capabilities.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace caisson::sys {
namespace {

constexpr char kStatus[] =
    "Name:\tCapEff: evil\\nCapEff:\tffff\n"
    "Umask:\t0022\n"
    "State:\tS (sleeping)\n"
    "NoNewPrivs:\t1\n"
    "Uid:\t100000\t100001\t100002\t100003\n"
    "Gid:\t100000\t100000\t100000\t4294967295\n"
    "CapInh:\t0000000000000000\n"
    "CapPrm:\t00000000800000fb\n"
    "CapEff:\t0000000000000001\n"
    "CapBnd:\t000001ffffffffff\n"
    "CapAmb:\t0000000000000000\n"
    "Seccomp:\t2\n"
    "Seccomp_filters:\t1\n";

std::string Without(std::string_view line_start) {
  std::string text = kStatus;
  const size_t begin = text.find("\n" + std::string(line_start)) + 1;
  return text.erase(begin, text.find('\n', begin) + 1 - begin);
}

std::string With(std::string_view from, std::string_view to) {
  std::string text = kStatus;
  return text.replace(text.find(from), from.size(), to);
}

TEST(ParseCapabilities, ReadsEveryField) {
  const auto state = ParseCapabilities(kStatus);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->effective, 1u);
  EXPECT_EQ(state->permitted, 0x800000fbu);
  EXPECT_EQ(state->inheritable, 0u);
  EXPECT_EQ(state->bounding, 0x1ffffffffffu);
  EXPECT_EQ(state->ambient, 0u);
  EXPECT_TRUE(state->no_new_privs);
  EXPECT_EQ(state->seccomp_mode, 2);
  EXPECT_EQ(state->uid, (std::array<uint32_t, 4>{100000, 100001, 100002, 100003}));
  EXPECT_EQ(state->gid[3], 4294967295u);
}

TEST(ParseCapabilities, RefusesAMissingLine) {
  for (const char* key :
       {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp:", "Uid", "Gid"}) {
    const auto state = ParseCapabilities(Without(key));
    ASSERT_FALSE(state) << key;
    EXPECT_EQ(state.error().code(), ErrorCode::kProtocol);
  }
  EXPECT_FALSE(ParseCapabilities(""));
}

TEST(ParseCapabilities, RefusesAMalformedLine) {
  EXPECT_FALSE(ParseCapabilities(With("0000000000000001", "0000000000000001x")));
  EXPECT_FALSE(ParseCapabilities(With("0000000000000001", "")));
  EXPECT_FALSE(ParseCapabilities(With("0000000000000001", "10000000000000001")));
  EXPECT_FALSE(ParseCapabilities(With("0000000000000001", "-1")));
  EXPECT_FALSE(ParseCapabilities(With("\t100003\n", "\n")));
  EXPECT_FALSE(ParseCapabilities(With("\t100003\n", "\t100003\t7\n")));
  EXPECT_FALSE(ParseCapabilities(With("4294967295", "4294967296")));
}

TEST(ReadCapabilities, KnowsThisProcessAndReportsAMissingOne) {
  const auto own = ReadCapabilities(::getpid());
  ASSERT_TRUE(own) << own.error().message();
  EXPECT_EQ(own->uid[1], ::geteuid());
  const auto none = ReadCapabilities(0x3fffffff);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kNotFound);
}

TEST(CapabilityNames, NamesBits) {
  EXPECT_EQ(CapabilityNames(0), "none");
  EXPECT_EQ(CapabilityNames(CapBit(CAP_CHOWN) | CapBit(CAP_KILL)), "CAP_CHOWN,CAP_KILL");
  EXPECT_EQ(CapabilityNames(CapBit(CAP_CHECKPOINT_RESTORE) | CapBit(63)),
            "CAP_CHECKPOINT_RESTORE,CAP_63");
  EXPECT_EQ(CapabilityNames(kPackageManagerCaps),
            "CAP_CHOWN,CAP_DAC_OVERRIDE,CAP_FOWNER,CAP_FSETID,CAP_KILL,CAP_SETGID,CAP_SETUID,"
            "CAP_SETFCAP");
}

// --- our own sets, in children ------------------------------------------------------------------

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

CapabilityState Own() {
  auto state = ReadCapabilities(::getpid());
  if (!state) ::_exit(98);
  return *state;
}

class OwnCapabilities : public testing::Test {
 protected:
  void SetUp() override {
    if ((Own().effective & CapBit(CAP_SETPCAP)) == 0) GTEST_SKIP() << "needs CAP_SETPCAP";
  }
};

TEST_F(OwnCapabilities, SetIsExactAndCannotBeUndone) {
  EXPECT_EQ(ExitOfChild([] {
              constexpr int kFirstLine = __LINE__;
              constexpr uint64_t kSome = CapBit(CAP_CHOWN) | CapBit(CAP_BPF);  // one in each word
              CHECK_THAT(SetCapabilities(CapBit(CAP_CHOWN), kSome, 0) == 0);
              const CapabilityState state = Own();
              CHECK_THAT(state.effective == CapBit(CAP_CHOWN));
              CHECK_THAT(state.permitted == kSome);
              CHECK_THAT(state.inheritable == 0);
              CHECK_THAT(SetCapabilities(kSome, kSome, 0) == 0);
              CHECK_THAT(SetCapabilities(kSome, kSome | CapBit(CAP_SYS_ADMIN), 0) == EPERM);
              CHECK_THAT(SetCapabilities(kSome, 0, 0) == EPERM);  // effective beyond permitted
              CHECK_THAT(SetCapabilities(0, 0, 0) == 0);
              CHECK_THAT(SetCapabilities(0, CapBit(CAP_CHOWN), 0) == EPERM);
              return 0;
            }),
            0);
}

TEST_F(OwnCapabilities, BoundingSetIsCutToWhatIsKept) {
  EXPECT_EQ(ExitOfChild([] {
              constexpr int kFirstLine = __LINE__;
              const uint64_t before = Own().bounding;
              CHECK_THAT(DropBoundingExcept(kPackageManagerCaps) == 0);
              CHECK_THAT(Own().bounding == (before & kPackageManagerCaps));
              CHECK_THAT(DropBoundingExcept(kPackageManagerCaps) == 0);
              CHECK_THAT(DropBoundingExcept(0) == 0);
              CHECK_THAT(Own().bounding == 0);
              return 0;
            }),
            0);
}

TEST_F(OwnCapabilities, BoundingSetNeedsSetpcapToBeCut) {
  EXPECT_EQ(ExitOfChild([] {
              SetCapabilities(0, 0, 0);
              return DropBoundingExcept(0) == EPERM && LockSecurebits() == EPERM ? 0 : 1;
            }),
            0);
}

// The reason why the header orders things as it does.
TEST_F(OwnCapabilities, EnteringAUserNamespaceFillsTheBoundingSetAgain) {
  EXPECT_EQ(ExitOfChild([] {
              constexpr int kFirstLine = __LINE__;
              CHECK_THAT(DropBoundingExcept(kPackageManagerCaps) == 0);
              if (::unshare(CLONE_NEWUSER) != 0) return 0;  // not possible here, so nothing to show
              CHECK_THAT((Own().bounding & CapBit(CAP_SYS_ADMIN)) != 0);
              CHECK_THAT(DropBoundingExcept(0) == 0);
              CHECK_THAT(Own().bounding == 0);
              return 0;
            }),
            0);
}

TEST_F(OwnCapabilities, AmbientSetIsCleared) {
  EXPECT_EQ(ExitOfChild([] {
              constexpr int kFirstLine = __LINE__;
              const uint64_t all = Own().permitted;
              CHECK_THAT(SetCapabilities(all, all, CapBit(CAP_CHOWN)) == 0);
              CHECK_THAT(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) == 0);
              CHECK_THAT(Own().ambient == CapBit(CAP_CHOWN));
              CHECK_THAT(ClearAmbient() == 0);
              CHECK_THAT(Own().ambient == 0);
              return 0;
            }),
            0);
}

TEST_F(OwnCapabilities, LockedSecurebitsTakeRootItsPower) {
  EXPECT_EQ(
      ExitOfChild([] {
        constexpr int kFirstLine = __LINE__;
        CHECK_THAT(LockSecurebits() == 0);
        CHECK_THAT(::prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) == static_cast<int>(kLockedSecurebits));
        CHECK_THAT(::prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) == -1 && errno == EPERM);
        CHECK_THAT(::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == -1 && errno == EPERM);
        // As uid 0 with the bounding set still full: exec gives nothing.
        CHECK_THAT(SetCapabilities(0, 0, 0) == 0);
        ::execlp("sh", "sh", "-c", "grep -q '^CapEff:.*0000000000000000$' /proc/self/status",
                 nullptr);
        return 97;
      }),
      0);
}

TEST_F(OwnCapabilities, LeavingUidZeroDropsEverythingDespiteTheLock) {
  EXPECT_EQ(ExitOfChild([] {
              constexpr int kFirstLine = __LINE__;
              if (::geteuid() != 0) return 0;
              CHECK_THAT(LockSecurebits() == 0);
              CHECK_THAT(::setresuid(65534, 65534, 65534) == 0);
              CHECK_THAT(Own().permitted == 0 && Own().effective == 0);
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace caisson::sys
