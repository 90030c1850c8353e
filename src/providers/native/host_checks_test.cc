#include "providers/native/host_checks.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "sys/capabilities.h"
#include "sys/remove_tree.h"
#include "sys/unique_fd.h"

namespace caisson::native {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kAllCapabilities = 0x1ffffffffff;

// A host of text files in a directory of its own.
class FakeHost : public testing::Test {
 protected:
  FakeHost() {
    std::string path = testing::TempDir() + "doctor-XXXXXX";
    view_.root = mkdtemp(path.data());
    view_.kernel_release = "6.8.0";
    view_.capabilities = kAllCapabilities;
    view_.open_files = 1 << 20;
    view_.state_dir = "/var/lib/caisson";
  }
  ~FakeHost() override {
    const size_t slash = view_.root.rfind('/');
    sys::UniqueFd parent(
        open(view_.root.substr(0, slash).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    (void)sys::RemoveTree(parent.get(), view_.root.substr(slash + 1).c_str());
  }
  void Put(const std::string& path, const std::string& text) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1))
      mkdir((view_.root + path.substr(0, slash)).c_str(), 0755);
    std::ofstream(view_.root + path) << text;
  }
  void PutProgram(const std::string& path) {
    Put(path, "#!/bin/sh\n");
    chmod((view_.root + path).c_str(), 0755);
  }
  CheckResult Run(std::string_view group, std::string_view name) {
    for (const auto& check : HostChecks())
      if (check.group == group && check.name == name) return check.run(view_);
    ADD_FAILURE() << "no check " << name;
    return {};
  }
  CheckResult Sysctl(std::string_view key) {
    for (auto& line : SysctlLines(view_))
      if (line.name == key) return line.result;
    ADD_FAILURE() << "no sysctl " << key;
    return {};
  }
  HostView view_;
};

TEST(KernelVersion, ReadsWhatDistributionsWrite) {
  EXPECT_EQ(ParseKernelVersion("6.18.44-fc-v445"), (KernelVersion{6, 18, 44}));
  EXPECT_EQ(ParseKernelVersion("5.15.0-91-generic"), (KernelVersion{5, 15, 0}));
  EXPECT_EQ(ParseKernelVersion("6.9-rc3"), (KernelVersion{6, 9, 0}));
  EXPECT_EQ(ParseKernelVersion("6.1.0+"), (KernelVersion{6, 1, 0}));
  for (const char* bad : {"", "linux", "6", "6.", ".1", "6.x", "-6.1"})
    EXPECT_EQ(ParseKernelVersion(bad), std::nullopt) << bad;
}

TEST(KnownBugs, EndWhereEachBranchWasFixed) {
  EXPECT_THAT(KnownBugs({5, 15, 24}), ElementsAre(HasSubstr("CVE-2022-0847")));
  EXPECT_THAT(KnownBugs({5, 15, 25}), IsEmpty());
  EXPECT_THAT(KnownBugs({5, 16, 10}), ElementsAre(HasSubstr("CVE-2022-0847")));
  EXPECT_THAT(KnownBugs({5, 17, 0}), IsEmpty());
  EXPECT_THAT(KnownBugs({6, 1, 36}), ElementsAre(HasSubstr("CVE-2023-3269")));
  EXPECT_THAT(KnownBugs({6, 1, 37}), IsEmpty());
  EXPECT_THAT(KnownBugs({6, 2, 16}),
              ElementsAre(HasSubstr("CVE-2023-3269")));  // a branch that ended before the fix
  EXPECT_THAT(KnownBugs({6, 5, 0}), IsEmpty());
}

TEST(IdRanges, CountOnlyWhenLargeEnoughAndTheUsers) {
  EXPECT_TRUE(HasIdRange("ann:100000:65536\nbob:165536:65536\n", "bob", 1001));
  EXPECT_TRUE(HasIdRange("1001:100000:65536", "bob", 1001));
  EXPECT_FALSE(HasIdRange("bob:100000:65535\n", "bob", 1001));
  EXPECT_FALSE(HasIdRange("ann:100000:65536\n", "bob", 1001));
  EXPECT_FALSE(HasIdRange(":100000:65536\n", "", 1001));
  EXPECT_FALSE(HasIdRange("bob:x:65536\nbob\nbob:1\n", "bob", 1001));
}

TEST(UserNames, AreFoundByUid) {
  const char* passwd = "root:x:0:0:root:/root:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\n";
  EXPECT_EQ(UserNameIn(passwd, 1001), "bob");
  EXPECT_EQ(UserNameIn(passwd, 1), "");
}

TEST(Swap, IsSummedUp) {
  const char* heading = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
  EXPECT_EQ(SwapBytes(heading), 0u);
  EXPECT_EQ(SwapBytes(std::string(heading) +
                      "/dev/sda2   partition\t1024\t0\t-2\n/swap file 2048 0 -3\n"),
            3072u * 1024);
}

TEST_F(FakeHost, AnOldKernelFails) {
  view_.kernel_release = "5.10.0-28-amd64";
  EXPECT_EQ(Run("kernel", "version").status, CheckStatus::kFailed);
  view_.kernel_release = "5.15.0";
  EXPECT_EQ(Run("kernel", "version").status, CheckStatus::kWeaker);  // Dirty Pipe by number
  view_.kernel_release = "6.8.0";
  EXPECT_EQ(Run("kernel", "version").status, CheckStatus::kOk);
}

TEST_F(FakeHost, SeccompNeedsItsActions) {
  EXPECT_EQ(Run("kernel", "seccomp").status, CheckStatus::kFailed);
  Put("/proc/sys/kernel/seccomp/actions_avail", "kill_thread trap errno trace log allow\n");
  EXPECT_THAT(Run("kernel", "seccomp").detail, HasSubstr("kill_process"));
  Put("/proc/sys/kernel/seccomp/actions_avail",
      "kill_process kill_thread trap errno user_notif trace log allow\n");
  EXPECT_EQ(Run("kernel", "seccomp").status, CheckStatus::kOk);
}

TEST_F(FakeHost, UserNamespacesSwitchedOffFailWithTheSwitch) {
  Put("/proc/sys/user/max_user_namespaces", "0\n");
  const auto limit = Run("privilege", "user namespaces");
  EXPECT_EQ(limit.status, CheckStatus::kFailed);
  EXPECT_THAT(limit.remedy, HasSubstr("user.max_user_namespaces"));
  Put("/proc/sys/user/max_user_namespaces", "63000\n");
  EXPECT_EQ(Run("privilege", "user namespaces").status, CheckStatus::kOk);
}

TEST_F(FakeHost, AppArmorAndDebianSwitchesStopOrdinaryUsersOnly) {
  EXPECT_EQ(Run("privilege", "ordinary users").status, CheckStatus::kOk);
  Put("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
  EXPECT_EQ(Run("privilege", "ordinary users").status, CheckStatus::kOff);
  view_.uid = 1000;
  EXPECT_EQ(Run("privilege", "ordinary users").status, CheckStatus::kFailed);
  EXPECT_THAT(Run("privilege", "ordinary users").remedy,
              HasSubstr("kernel.apparmor_restrict_unprivileged_userns=0"));
  Put("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n");
  Put("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
  EXPECT_THAT(Run("privilege", "ordinary users").remedy,
              HasSubstr("kernel.unprivileged_userns_clone=1"));
}

TEST_F(FakeHost, SubordinateIdsNeedProgramsAndRanges) {
  EXPECT_EQ(Run("privilege", "subordinate ids").status, CheckStatus::kOk);  // root needs none
  view_.uid = 1001;
  Put("/etc/passwd", "bob:x:1001:1001::/home/bob:/bin/sh\n");
  auto missing = Run("privilege", "subordinate ids");
  EXPECT_EQ(missing.status, CheckStatus::kWeaker);
  EXPECT_THAT(missing.remedy, HasSubstr("uidmap"));
  EXPECT_THAT(missing.remedy,
              HasSubstr("usermod --add-subuids 100000-165535 --add-subgids 100000-165535 bob"));
  PutProgram("/usr/bin/newuidmap");
  PutProgram("/usr/bin/newgidmap");
  Put("/etc/subuid", "bob:100000:65536\n");
  EXPECT_EQ(Run("privilege", "subordinate ids").status, CheckStatus::kWeaker);  // no groups yet
  Put("/etc/subgid", "bob:100000:65536\n");
  EXPECT_EQ(Run("privilege", "subordinate ids").status, CheckStatus::kOk);
}

TEST_F(FakeHost, MissingCapabilitiesAreNamedWithWhatFollows) {
  EXPECT_EQ(Run("privilege", "capabilities").status, CheckStatus::kOk);
  view_.capabilities = kAllCapabilities & ~sys::CapBit(CAP_SYS_RESOURCE);
  const auto lacking = Run("privilege", "capabilities");
  EXPECT_EQ(lacking.status, CheckStatus::kWeaker);
  EXPECT_THAT(lacking.detail, HasSubstr("CAP_SYS_RESOURCE: hard limits"));
  view_.capabilities = kAllCapabilities & ~sys::CapBit(CAP_SYS_ADMIN);
  EXPECT_THAT(Run("privilege", "capabilities").detail, HasSubstr("treated as an ordinary user"));
}

TEST_F(FakeHost, RootOfAUserNamespaceIsNotTheHostsRoot) {
  Put("/proc/self/uid_map", "         0          0 4294967295\n");
  EXPECT_EQ(Run("privilege", "capabilities").status, CheckStatus::kOk);
  Put("/proc/self/uid_map", "         0     100000      65536\n");
  EXPECT_EQ(Run("privilege", "capabilities").status, CheckStatus::kWeaker);
  EXPECT_THAT(Run("privilege", "capabilities").detail, HasSubstr("not of the host"));
}

TEST_F(FakeHost, RoomIsCountedInSandboxes) {
  Put("/proc/sys/kernel/pid_max", "32768\n");
  const auto few = Run("room", "pids");
  EXPECT_EQ(few.status, CheckStatus::kWeaker);
  EXPECT_THAT(few.detail, HasSubstr("room for 102 sandboxes with 256 each"));
  Put("/proc/sys/kernel/pid_max", "4194304\n");
  EXPECT_EQ(Run("room", "pids").status, CheckStatus::kOk);
  view_.open_files = 1024;
  EXPECT_THAT(Run("room", "descriptors").detail, HasSubstr("room for 170 sandboxes"));
}

TEST_F(FakeHost, AWeakSysctlComesWithItsCommand) {
  Put("/proc/sys/kernel/kptr_restrict", "0\n");
  EXPECT_EQ(Sysctl("kernel.kptr_restrict").status, CheckStatus::kWeaker);
  EXPECT_EQ(Sysctl("kernel.kptr_restrict").remedy, "sysctl -w kernel.kptr_restrict=1");
  Put("/proc/sys/kernel/kptr_restrict", "2\n");
  EXPECT_EQ(Sysctl("kernel.kptr_restrict").status, CheckStatus::kOk);
  Put("/proc/sys/dev/tty/legacy_tiocsti", "1\n");
  EXPECT_EQ(Sysctl("dev.tty.legacy_tiocsti").remedy, "sysctl -w dev.tty.legacy_tiocsti=0");
}

TEST_F(FakeHost, AnAbsentSysctlIsGoodOrBadByWhatItGuards) {
  EXPECT_EQ(Sysctl("kernel.unprivileged_bpf_disabled").status,
            CheckStatus::kOk);  // no bpf in this kernel
  EXPECT_EQ(Sysctl("dev.tty.legacy_tiocsti").status,
            CheckStatus::kWeaker);  // an old kernel: always open
}

TEST_F(FakeHost, ACorePatternThatStartsAProgramIsWeaker) {
  Put("/proc/sys/kernel/core_pattern", "core\n");
  EXPECT_EQ(Sysctl("kernel.core_pattern").status, CheckStatus::kOk);
  Put("/proc/sys/kernel/core_pattern", "|/usr/share/apport/apport %p\n");
  EXPECT_EQ(Sysctl("kernel.core_pattern").status, CheckStatus::kWeaker);
  EXPECT_THAT(Sysctl("kernel.core_pattern").detail, HasSubstr("apport"));
}

TEST_F(FakeHost, CpuBugsAreNamed) {
  EXPECT_EQ(Run("machine", "CPU bugs").status, CheckStatus::kOff);
  Put("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n");
  Put("/sys/devices/system/cpu/vulnerabilities/spectre_v1", "Mitigation: usercopy\n");
  EXPECT_EQ(Run("machine", "CPU bugs").status, CheckStatus::kOk);
  Put("/sys/devices/system/cpu/vulnerabilities/mds",
      "Vulnerable: Clear CPU buffers attempted, no microcode\n");
  EXPECT_EQ(Run("machine", "CPU bugs").status, CheckStatus::kWeaker);
  EXPECT_THAT(Run("machine", "CPU bugs").detail, HasSubstr("mds"));
}

TEST_F(FakeHost, SpaceIsThatOfTheNearestDirectory) {
  EXPECT_NE(Run("disks", "space").status, CheckStatus::kFailed);
  EXPECT_THAT(Run("disks", "space").detail, HasSubstr("free for /var/lib/caisson"));
}

TEST_F(FakeHost, FactsOfTheLauncherBecomeLines) {
  view_.facts = {
      {"mode", "rootless"},
      {"ids", "the user's own id only"},
      {"cgroup_layout", "none"},
      {"cgroup_memory", "absent: not delegated; systemd-run --user --scope -p Delegate=yes"},
      {"disk_tmpfs", "tmpfs with size"}};
  const auto lines = LauncherLines(view_);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].result.status, CheckStatus::kWeaker);
  EXPECT_EQ(lines[1].result.status, CheckStatus::kWeaker);
  EXPECT_EQ(lines[2].result.detail, "no memory limit: not delegated");
  EXPECT_EQ(lines[2].result.remedy, "systemd-run --user --scope -p Delegate=yes");
  EXPECT_EQ(lines[3].result.status, CheckStatus::kOk);
}

TEST_F(FakeHost, ALauncherThatDoesNotStartFails) {
  view_.launcher_error = "make a user namespace: Operation not permitted";
  view_.launcher_remedy = "run as root";
  const auto lines = LauncherLines(view_);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].result.status, CheckStatus::kFailed);
  EXPECT_EQ(lines[0].result.remedy, "run as root");
}

TEST(FileSystemTrials, BecomeLinesByWhatSandboxesNeed) {
  auto lines = FileSystemLines({.overlay_id_mapped = EINVAL}, Power::kOwn);
  EXPECT_EQ(lines.back().name, "id-mapped lower");
  EXPECT_EQ(lines.back().result.status, CheckStatus::kWeaker);
  lines = FileSystemLines({.entered = EPERM}, Power::kUserNamespace);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].result.status, CheckStatus::kFailed);
  lines = FileSystemLines({.overlay = ENODEV}, Power::kOwn);
  EXPECT_THAT(lines[2].result.remedy, HasSubstr("modprobe overlay"));
}

TEST(Trials, WorkForTheCallsOfEverySupportedKernel) {
  EXPECT_EQ(TryOpenat2(), 0);
  EXPECT_EQ(TryCloseRange(), 0);
  EXPECT_EQ(TryPidfd(), 0);
  EXPECT_EQ(TryMountApi(), 0);
}

TEST(Checks, HaveUniqueNamesAndAreAllInTheReport) {
  HostView host = HostView::OfThisHost("/var/lib/caisson");
  const auto lines = CheckHost(host);
  for (const auto& check : HostChecks()) {
    const auto same = std::ranges::count_if(lines, [&](const CheckLine& line) {
      return line.group == check.group && line.name == check.name;
    });
    EXPECT_EQ(same, 1) << check.group << " " << check.name;
  }
  for (const auto& line : lines) EXPECT_FALSE(line.result.detail.empty()) << line.name;
}

}  // namespace
}  // namespace caisson::native
