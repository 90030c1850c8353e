#include "providers/native/host_root.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "providers/native/accounts.h"
#include "providers/native/host_etc.h"

namespace caisson::native {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCanary = "CANARY-5d1f";

std::string Slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class HostRootTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/caisson-hostroot-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    base_ = path;
    host_ = base_ / "host";
    cache_ = base_ / "cache";
    fs::create_directories(host_ / "usr/bin");
    fs::create_directories(host_ / "usr/lib");
    fs::create_directories(host_ / "var/lib/dpkg");
    fs::create_directory_symlink("usr/bin", host_ / "bin");
    fs::create_directory_symlink("usr/lib", host_ / "lib");
    Put("etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:The Daemon:/usr/sbin:/usr/sbin/nologin\n"
        "alice:x:1000:1000:Alice Liddell:/home/alice:/bin/bash\n");
    Put("etc/group", "root:x:0:\ndaemon:x:1:alice,daemon\nshadow:x:42:\nalice:x:1000:\n");
    Put("etc/services", "ssh 22/tcp\n");
    Put("etc/os-release", "ID=debian\n");
    Put("usr/bin/true", "program");
  }
  void TearDown() override { fs::remove_all(base_); }

  void Put(const std::string& path, const std::string& content, mode_t mode = 0644) {
    fs::create_directories((host_ / path).parent_path());
    std::ofstream(host_ / path, std::ios::binary) << content;
    ASSERT_EQ(::chmod((host_ / path).c_str(), mode), 0);
  }
  RootPlan Prepare() {
    auto plan = PrepareHostRootFrom(host_, cache_);
    if (!plan) ADD_FAILURE() << plan.error().message();
    return plan ? *std::move(plan) : RootPlan{};
  }
  // Every file of the skeleton that holds the canary, in its content, its name or its target.
  std::vector<std::string> Leaks(const RootPlan& plan) {
    std::vector<std::string> leaks;
    for (const auto& entry : fs::recursive_directory_iterator(plan.overlays.at(0).outside)) {
      const bool link = entry.is_symlink();
      const std::string text = link                      ? fs::read_symlink(entry.path()).string()
                               : entry.is_regular_file() ? Slurp(entry.path())
                                                         : std::string();
      if (text.contains(kCanary) || entry.path().filename().string().contains(kCanary))
        leaks.push_back(entry.path());
    }
    return leaks;
  }

  fs::path base_;
  fs::path host_;
  fs::path cache_;
};

TEST_F(HostRootTest, ShowsTheSystemDirectoriesAndASkeletonBelowThem) {
  fs::create_directories(host_ / "lib64");  // a real directory on this host
  const RootPlan plan = Prepare();
  const std::vector<OverlaySource> expected = {{"/", plan.overlays.at(0).outside},
                                               {"/lib64", host_ / "lib64"},
                                               {"/usr", host_ / "usr"},
                                               {"/var/lib/dpkg", host_ / "var/lib/dpkg"}};
  EXPECT_EQ(plan.overlays, expected);
  const fs::path root = plan.overlays[0].outside;
  EXPECT_EQ(fs::read_symlink(root / "bin"), "usr/bin");
  EXPECT_TRUE(fs::is_directory(root / "lib64"));
  EXPECT_TRUE(fs::is_empty(root / "usr"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(root / "sbin")));
  EXPECT_EQ(Slurp(root / "etc/services"), "ssh 22/tcp\n");
  EXPECT_EQ(fs::read_symlink(root / "etc/mtab"), "/proc/self/mounts");
  EXPECT_EQ(fs::status(root / "tmp").permissions(), static_cast<fs::perms>(01777));
  EXPECT_EQ(fs::status(root / "root").permissions(), static_cast<fs::perms>(0700));
  for (const char* dir :
       {"proc", "dev", "workspace", "home/user", "var/cache/apt/archives/partial", "run/lock"})
    EXPECT_EQ(fs::symlink_status(root / dir).type(), fs::file_type::directory) << dir;
  for (const char* absent : {"etc/machine-id", "etc/subuid", "etc/environment", "etc/gitconfig"})
    EXPECT_FALSE(fs::exists(fs::symlink_status(root / absent))) << absent;
  if (::geteuid() == 0) {
    struct stat info;
    ASSERT_EQ(::stat((root / "workspace").c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, kUserId);
    ASSERT_EQ(::stat((root / "etc/shadow").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0640u);
    EXPECT_EQ(info.st_gid, 42u);
  }
}

TEST_F(HostRootTest, ShowsNoSecretWhereverItIsPlanted) {
  const std::string canary = kCanary;
  // Outside the allow-list.
  Put("etc/environment", "TOKEN=" + canary);
  Put("etc/gitconfig", canary);
  Put("etc/npmrc", canary);
  Put("etc/ssh/ssh_host_key", canary);
  Put("etc/maven/settings.xml", canary);
  Put("etc/profile.d/corp.sh", "export K=" + canary);
  Put("etc/profile", "export K=" + canary);
  Put("etc/bash.bashrc", "export K=" + canary);
  Put("etc/machine-id", canary);
  Put("etc/hosts", "10.0.0.1 " + canary);
  Put("etc/resolv.conf", "search " + canary);
  Put("etc/shadow", "root:" + canary + ":1::::::\n", 0640);
  Put("root/.ssh/id_rsa", canary, 0600);
  Put("home/alice/notes", canary);
  Put("var/lib/secrets", canary);
  // On the allow-list, yet not for everybody.
  Put("etc/ld.so.conf", canary, 0600);
  Put("etc/java-17/security/hidden", canary, 0640);
  Put("etc/fonts/locked/inner", canary);
  ASSERT_EQ(::chmod((host_ / "etc/fonts/locked").c_str(), 0700), 0);
  // By name.
  Put("etc/ssl/certs/server.key", canary);
  Put("etc/apt/auth.conf", canary);
  Put("etc/apt/auth.conf.d/x.conf", canary);
  Put("etc/apt/apt.conf.d/50auth.conf", canary);
  Put("etc/python3/api-token", canary);
  // By content.
  Put("etc/ssl/certs/both.pem", "-----BEGIN PRIVATE KEY-----\n" + canary);
  Put("etc/apt/apt.conf.d/99proxy",
      "Acquire::http::Proxy \"http://bob:" + canary + "@proxy:3128\";\n");
  Put("etc/apt/sources.list",
      "deb http://ok.example/ a main\ndeb https://u:" + canary + "@repo.example/ a main\n");
  Put("etc/apt/sources.list.d/x.sources",
      "Types: deb\nURIs: https://ok.example/\nSuites: a\n\nTypes: deb\nURIs: https://" + canary +
          "@repo.example/\nSuites: a\n");
  Put("etc/skel/.bashrc", "export AWS_SECRET_ACCESS_KEY=" + canary + "\n");
  // By link, followed or not.
  Put("opt/outside", canary);
  fs::create_directories(host_ / "etc/perl");
  fs::create_symlink("/root/.ssh/id_rsa", host_ / "etc/perl/a");
  fs::create_symlink("../../opt/outside", host_ / "etc/perl/b");
  fs::create_symlink("/opt/" + canary, host_ / "etc/perl/c");
  fs::create_symlink(host_ / "home/alice/notes", host_ / "etc/rpc");
  fs::create_directory_symlink("../home", host_ / "etc/terminfo");
  // A FIFO and a device are neither opened nor shown.
  ASSERT_EQ(::mkfifo((host_ / "etc/protocols").c_str(), 0644), 0);

  const RootPlan plan = Prepare();
  EXPECT_EQ(Leaks(plan), std::vector<std::string>{});
  const fs::path etc = fs::path(plan.overlays.at(0).outside) / "etc";
  EXPECT_EQ(Slurp(etc / "apt/sources.list"), "deb http://ok.example/ a main\n");
  EXPECT_TRUE(Slurp(etc / "apt/sources.list.d/x.sources").contains("ok.example"));
  EXPECT_TRUE(fs::exists(etc / "fonts"));
  for (const char* absent : {"protocols", "rpc", "terminfo", "perl/a", "perl/b", "fonts/locked"})
    EXPECT_FALSE(fs::exists(fs::symlink_status(etc / absent))) << absent;
}

TEST_F(HostRootTest, TheCanaryTestSeesALeak) {
  Put("etc/services", kCanary);
  EXPECT_EQ(Leaks(Prepare()).size(), 1u);
}

TEST_F(HostRootTest, IsBuiltOnceAndAgainWhenTheHostChanges) {
  const RootPlan first = Prepare();
  EXPECT_EQ(Prepare(), first);
  Put("etc/services", "ssh 22/udp\n");  // in place, same size
  const RootPlan second = Prepare();
  EXPECT_NE(second.key, first.key);
  EXPECT_EQ(Slurp(fs::path(second.overlays[0].outside) / "etc/services"), "ssh 22/udp\n");
  EXPECT_TRUE(fs::exists(first.overlays[0].outside)) << "a sandbox may still use it";
  ASSERT_EQ(::chmod((host_ / "etc/services").c_str(), 0600), 0);
  EXPECT_FALSE(fs::exists(fs::path(Prepare().overlays[0].outside) / "etc/services"));
  Put("etc/rpc", "new\n");
  EXPECT_TRUE(fs::exists(fs::path(Prepare().overlays[0].outside) / "etc/rpc"));
  Put("etc/unrelated", "x");
  EXPECT_EQ(Prepare(), Prepare());
}

TEST_F(HostRootTest, AChangeBesideTheAllowListMakesNoNewSkeleton) {
  const RootPlan first = Prepare();
  Put("etc/unrelated", "x");
  EXPECT_EQ(Prepare(), first);
}

TEST_F(HostRootTest, IsRebuiltWhenTheCachedSkeletonOrItsManifestIsGone) {
  const RootPlan first = Prepare();
  fs::remove_all(first.overlays[0].outside);
  EXPECT_EQ(Prepare(), first);
  EXPECT_TRUE(fs::exists(fs::path(first.overlays[0].outside) / "etc/services"));
  std::ofstream(cache_ / "host.manifest") << "nonsense";
  EXPECT_EQ(Prepare(), first);
  fs::remove(cache_ / "host.manifest");
  EXPECT_EQ(Prepare(), first);
}

TEST_F(HostRootTest, RemovesSkeletonsOfEarlierBootsAndDeadDraftsOnly) {
  fs::create_directories(cache_ / "host-000000000000-old/etc");
  fs::create_directories(cache_ / "other");
  ASSERT_EQ(::chmod(cache_.c_str(), 0700), 0);
  Prepare();
  EXPECT_FALSE(fs::exists(cache_ / "host-000000000000-old"));
  EXPECT_TRUE(fs::exists(cache_ / "other"));
  for (const auto& entry : fs::directory_iterator(cache_))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".draft-")) << entry.path();
}

TEST_F(HostRootTest, ManyProcessesAtOnceAgree) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto plan = PrepareHostRootFrom(host_, cache_);
      ::_exit(plan && fs::exists(fs::path(plan->overlays[0].outside) / "etc/gshadow") ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  int skeletons = 0;
  for (const auto& entry : fs::directory_iterator(cache_)) skeletons += entry.is_directory();
  EXPECT_EQ(skeletons, 1);
}

TEST_F(HostRootTest, RefusesACacheThatOthersCanWrite) {
  fs::create_directories(cache_);
  ASSERT_EQ(::chmod(cache_.c_str(), 0777), 0);
  auto plan = PrepareHostRootFrom(host_, cache_);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_FALSE(plan.error().remedy().empty());
}

TEST_F(HostRootTest, SaysSoWhenThereIsNothingToShow) {
  fs::remove_all(host_ / "usr");
  auto plan = PrepareHostRootFrom(host_, cache_);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), ErrorCode::kUnsupported);
}

TEST_F(HostRootTest, WorksForAnOrdinaryUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "runs as one already";
  ASSERT_EQ(::chmod(base_.c_str(), 0777), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setresgid(12345, 12345, 12345) != 0 || ::setresuid(12345, 12345, 12345) != 0) ::_exit(2);
    auto plan = PrepareHostRootFrom(host_, cache_);
    struct stat info;
    ::_exit(plan && ::stat((plan->overlays[0].outside + "/workspace").c_str(), &info) == 0 &&
                    info.st_uid == 12345
                ? 0
                : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST_F(HostRootTest, TheRealHostIsRevalidatedInUnderAMillisecond) {
  using Clock = std::chrono::steady_clock;
  auto first = PrepareHostRoot(cache_);
  if (!first) GTEST_SKIP() << first.error().message();
  int64_t best = INT64_MAX;
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    ASSERT_TRUE(PrepareHostRoot(cache_));
    best = std::min<int64_t>(
        best, std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
  }
  EXPECT_LT(best, 1000);
}

TEST(Accounts, KeepSystemAccountsOnlyAndLockThem) {
  const Accounts accounts = MakeAccounts(
      "root:hash:0:0:Real "
      "Root:/root:/bin/zsh\ntoor:x:0:0::/root:/bin/sh\nwww-data:x:33:33:Web:/var/www:/usr/sbin/"
      "nologin\n"
      "+::::::\nbad "
      "line\nevil:x:5:5:::/bin/sh:extra\nx\ty:x:6:6::/:/bin/sh\nuser:x:999:999::/home/x:/bin/sh\n"
      "bob:x:1001:1001:Bob:/home/bob:/bin/bash\nnobody:x:65534:65534:n:/nonexistent:/usr/sbin/"
      "nologin\n",
      "root:x:0:bob\nsudo:x:27:bob,www-data\nusers:x:100:bob\nbob:x:1001:\n");
  EXPECT_EQ(accounts.passwd,
            "root:x:0:0::/root:/bin/bash\nwww-data:x:33:33::/var/www:/usr/sbin/nologin\n"
            "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\nuser:x:1000:1000::/home/user:/"
            "bin/bash\n");
  EXPECT_EQ(accounts.group, "root:x:0:\nsudo:x:27:www-data\nusers:x:100:\nuser:x:1000:\n");
  EXPECT_FALSE(accounts.shadow.contains("hash"));
  EXPECT_TRUE(accounts.shadow.starts_with("root:!*:"));
}

TEST(HostEtc, KnowsWhereALinkLeads) {
  EXPECT_TRUE(IsSystemLink("etc/localtime", "/usr/share/zoneinfo/UTC"));
  EXPECT_TRUE(IsSystemLink("etc/os-release", "../usr/lib/os-release"));
  EXPECT_TRUE(IsSystemLink("etc/ssl/certs/a.0", "b.pem"));
  EXPECT_TRUE(IsSystemLink("/bin", "usr/bin"));
  EXPECT_FALSE(IsSystemLink("etc/x", "/root/x"));
  EXPECT_FALSE(IsSystemLink("etc/x", "../opt/x"));
  EXPECT_FALSE(IsSystemLink("etc/x", "/usr/../home/x"));
  EXPECT_FALSE(IsSystemLink("etc/x", "../../../../proc/self/root"));
  EXPECT_FALSE(IsSystemLink("/lib64", "/"));
}

}  // namespace
}  // namespace caisson::native
