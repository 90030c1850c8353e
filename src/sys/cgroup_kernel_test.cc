// Cgroup against the real kernel: limits that bite, freezing, killing, recycling. Runs as root on
// whatever layout the host has, and once more on its v1 part alone where it is hybrid; skips
// otherwise. Each test ends with a look for directories left behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "sys/cgroup.h"
#include "sys/cgroup_internal.h"

namespace caisson::sys {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// A child that waits to be attached, then runs `work`; killed and reaped at the end.
class Worker {
 public:
  explicit Worker(const std::function<int()>& work) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) ::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[1]);
      char go;
      ::_exit(::read(ends[0], &go, 1) == 1 ? work() : 99);
    }
    ::close(ends[0]);
    go_.Reset(ends[1]);
  }
  ~Worker() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    // A child that stays frozen is a failure to report, not one to wait for without end.
    for (int i = 0; i < 1000 && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++i) ::usleep(5000);
  }
  pid_t pid() const { return pid_; }
  void Go() { EXPECT_EQ(::write(go_.get(), "g", 1), 1); }
  int Wait() {
    int status = -1;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
  UniqueFd go_;
};

int Touch(size_t bytes) {
  char* memory = static_cast<char*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 1;
  for (size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
  return 0;
}

int Spin() {
  for (volatile uint64_t i = 0;; i = i + 1) {
  }
}

enum class Part { kAll, kV1Only };

class CgroupKernelTest : public ::testing::TestWithParam<Part> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    if (GetParam() == Part::kV1Only) {
      char path[] = "/tmp/cgroup_kernel_test.XXXXXX";
      proc_ = ::mkdtemp(path);
      fs::create_directory(proc_ / "self");
      std::ifstream mounts("/proc/self/mountinfo");
      std::ofstream v1_mounts(proc_ / "self/mountinfo");
      for (std::string line; std::getline(mounts, line);)
        if (line.find(" - cgroup2 ") == std::string::npos) v1_mounts << line << "\n";
      for (const char* file : {"self/cgroup", "cgroups", "swaps"})
        std::ofstream(proc_ / file) << std::ifstream(fs::path("/proc") / file).rdbuf();
      host_.proc = proc_;
    }
    instance_ = "test" + std::to_string(::getpid());
    auto tree = CgroupTree::Open(host_, {.instance = instance_});
    ASSERT_TRUE(tree);
    tree_ = *std::move(tree);
    if (!tree_->tracks_processes())
      GTEST_SKIP() << "no usable cgroups: " << tree_->report(Controller::kMemory).reason;
    if (GetParam() == Part::kAll && tree_->layout() == CgroupLayout::kV1)
      GTEST_SKIP() << "the host has v1 only, which the other run of this test covers";
    auto group = tree_->Create("g");
    ASSERT_TRUE(group) << group.error().message();
    group_.emplace(*std::move(group));
  }
  void TearDown() override {
    group_.reset();
    tree_.reset();
    const auto left = CgroupTree::ListInstances(CgroupHost{});
    EXPECT_EQ(std::count(left.begin(), left.end(), instance_), 0) << "directories left behind";
    if (!proc_.empty()) fs::remove_all(proc_);
  }
  bool Works(Controller controller) const { return tree_->report(controller).works; }
  void Apply(const CgroupLimits& limits) {
    const auto applied = group_->ApplyLimits(limits);
    ASSERT_TRUE(applied) << applied.error().message();
  }
  void Run(Worker& worker) {
    const auto attached = group_->Attach(worker.pid());
    ASSERT_TRUE(attached) << attached.error().message();
    worker.Go();
  }

  fs::path proc_;
  CgroupHost host_;
  std::string instance_;
  std::unique_ptr<CgroupTree> tree_;
  std::optional<Cgroup> group_;
};

#define NEEDS(controller) \
  if (!Works(controller)) GTEST_SKIP() << tree_->report(controller).reason

TEST_P(CgroupKernelTest, MemoryAboveTheLimitIsAnOomKillAndBelowItIsNot) {
  NEEDS(Controller::kMemory);
  Apply({.memory_bytes = 32 << 20, .swap_bytes = 0});
  Worker modest([] { return Touch(8 << 20); });
  Run(modest);
  EXPECT_EQ(modest.Wait(), 0);
  EXPECT_EQ(group_->Stats().oom_kills, 0u);
  EXPECT_GE(group_->Stats().memory_peak, 8u << 20);
  Worker greedy([] { return Touch(64 << 20); });
  Run(greedy);
  const int status = greedy.Wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_EQ(group_->Stats().oom_kills, 1u);
  EXPECT_LE(group_->Stats().memory_peak, 32u << 20);
  // The same work passes when the limit is lifted: it was the limit that killed.
  ASSERT_TRUE(group_->Update({.memory_bytes = 128 << 20}));
  Worker again([] { return Touch(64 << 20); });
  Run(again);
  EXPECT_EQ(again.Wait(), 0);
}

TEST_P(CgroupKernelTest, MemoryIsNotLoweredBelowWhatIsInUse) {
  NEEDS(Controller::kMemory);
  Apply({.memory_bytes = 128 << 20, .swap_bytes = 0});
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  Worker holder([&] {
    Touch(64 << 20);
    (void)!::write(ready[1], "r", 1);
    return ::pause();
  });
  Run(holder);
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto lowered = group_->Update({.memory_bytes = 32 << 20});
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().code(), ErrorCode::kConflict) << lowered.error().message();
  EXPECT_EQ(group_->limits().memory_bytes, 128u << 20);
  EXPECT_EQ(group_->Stats().oom_kills, 0u);
  EXPECT_EQ(::kill(holder.pid(), 0), 0);
  ASSERT_TRUE(group_->Update({.memory_bytes = 100 << 20}));  // there is room for this
  ASSERT_TRUE(group_->Update({.memory_bytes = 200 << 20}));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_P(CgroupKernelTest, ForksBeyondThePidsLimitFail) {
  NEEDS(Controller::kPids);
  Apply({.pids = 4});
  Worker forker([] {
    int made = 0;
    for (int i = 0; i < 10; ++i) {
      const pid_t pid = ::fork();
      if (pid == 0) ::pause();
      made += pid > 0;
    }
    return made;
  });
  Run(forker);
  const int status = forker.Wait();
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(group_->Stats().pids_current, 3u);
  EXPECT_GE(group_->Stats().pids_limit_hits, 1u);
  ASSERT_TRUE(group_->KillAll(2s));
}

TEST_P(CgroupKernelTest, ASpinnerGetsItsShareOfACore) {
  NEEDS(Controller::kCpu);
  Apply({.cpu_millis = 200});
  Worker spinner(Spin);
  Run(spinner);
  const auto before = group_->Stats();
  ::usleep(600'000);
  const auto after = group_->Stats();
  const uint64_t used = *after.cpu_usage_us - *before.cpu_usage_us;
  EXPECT_LT(used, 250'000u);  // 120 ms by the limit, 600 ms without
  EXPECT_GT(*after.throttled_us, *before.throttled_us);
}

TEST_P(CgroupKernelTest, AFrozenGroupStandsStillAndGoesOnWhenThawed) {
  NEEDS(Controller::kFreezer);
  Worker spinner(Spin);
  Run(spinner);
  ::usleep(20'000);
  const auto frozen = group_->Freeze(5s);
  ASSERT_TRUE(frozen) << frozen.error().message();
  const auto before = group_->Stats().cpu_usage_us;
  ::usleep(100'000);
  EXPECT_LE(*group_->Stats().cpu_usage_us - *before, 1000u);
  ASSERT_TRUE(group_->Thaw());
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (*group_->Stats().cpu_usage_us - *before < 5000u &&
         std::chrono::steady_clock::now() < until)
    ::usleep(5000);
  EXPECT_GE(*group_->Stats().cpu_usage_us - *before, 5000u);
}

TEST_P(CgroupKernelTest, AFrozenGroupCanBeKilledAndRecycled) {
  NEEDS(Controller::kFreezer);
  Worker spinner(Spin);
  Run(spinner);
  ASSERT_TRUE(group_->Freeze(5s));
  const auto killed = group_->KillAll(5s);
  ASSERT_TRUE(killed) << killed.error().message();
  EXPECT_TRUE(WIFSIGNALED(spinner.Wait()));
  const auto recycled = group_->Recycle();
  ASSERT_TRUE(recycled) << recycled.error().message();
  Worker next([] { return 7; });  // a group that stayed frozen would never let it end
  Run(next);
  EXPECT_EQ(WEXITSTATUS(next.Wait()), 7);
}

TEST_P(CgroupKernelTest, AForkBombIsKilledToTheLastProcess) {
  NEEDS(Controller::kPids);
  Apply({.cpu_millis = 1000, .pids = 64});
  Worker bomb([] {
    ::signal(SIGTERM, SIG_IGN);
    while (true) {
      if (::fork() < 0) ::usleep(100);
      ::setsid();
    }
    return 0;
  });
  Run(bomb);
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (group_->Stats().pids_current < 40u && std::chrono::steady_clock::now() < until)
    ::usleep(1000);
  const auto killed = group_->KillAll(10s);
  ASSERT_TRUE(killed) << killed.error().message();
  EXPECT_TRUE(*group_->Empty());
  EXPECT_EQ(group_->limits().pids, 64u);
  // Zombies count until the host's init has reaped them.
  while (group_->Stats().pids_current > 32u && std::chrono::steady_clock::now() < until)
    ::usleep(1000);
  Worker next([] { return ::fork() < 0 ? 1 : 0; });  // the limit is back at 64
  Run(next);
  EXPECT_EQ(next.Wait(), 0);
}

TEST_P(CgroupKernelTest, RemoveKillsWhatIsInsideAndAPopulatedGroupIsNotRecycled) {
  Worker sleeper([] { return ::pause(); });
  Run(sleeper);
  EXPECT_EQ(group_->Recycle().error().code(), ErrorCode::kConflict);
  const auto removed = group_->Remove(5s);
  ASSERT_TRUE(removed) << removed.error().message();
  EXPECT_TRUE(WIFSIGNALED(sleeper.Wait()));
}

TEST_P(CgroupKernelTest, TwoHundredLivesOfOneGroupLeaveNoGroupsBehind) {
  NEEDS(Controller::kMemory);
  const auto before = CgroupTree::CountGroups(CgroupHost{}, Controller::kMemory);
  for (int life = 0; life < 200; ++life) {
    Apply({.memory_bytes = 64 << 20, .swap_bytes = 0, .cpu_millis = 500, .pids = 16});
    Worker worker([] { return Touch(1 << 20); });
    Run(worker);
    EXPECT_EQ(worker.Wait(), 0);
    const auto recycled = group_->Recycle();
    ASSERT_TRUE(recycled) << life << ": " << recycled.error().message();
    ASSERT_EQ(group_->Stats().cpu_usage_us.value_or(0), 0u);
  }
  const auto after = CgroupTree::CountGroups(CgroupHost{}, Controller::kMemory);
  EXPECT_LE(*after, *before + 100);  // others may come and go on this host
}

TEST_P(CgroupKernelTest, RemovedGroupsThatHeldPageCacheAreNotKeptDying) {
  NEEDS(Controller::kMemory);
  const auto before = CgroupTree::CountGroups(CgroupHost{}, Controller::kMemory);
  struct statfs where;
  ASSERT_EQ(::statfs("/var/tmp", &where), 0);
  if (where.f_type == TMPFS_MAGIC) GTEST_SKIP() << "files on tmpfs are not page cache";
  const auto path = [&](int i) { return "/var/tmp/cgroup_" + instance_ + "." + std::to_string(i); };
  for (int i = 0; i < 60; ++i) {
    auto group = tree_->Create("c" + std::to_string(i));
    ASSERT_TRUE(group);
    Worker writer([&] {
      const int fd = ::open(path(i).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
      char page[4096] = {};
      for (int n = 0; n < 64; ++n) (void)!::write(fd, page, sizeof(page));
      return ::fsync(fd);
    });
    ASSERT_TRUE(group->Attach(writer.pid()));
    writer.Go();
    EXPECT_EQ(writer.Wait(), 0);
    ASSERT_TRUE(group->Remove(5s));
  }
  const auto unlink_all = [&] {
    for (int i = 0; i < 60; ++i) ::unlink(path(i).c_str());
  };
  // v2 accounts writeback per group, and a cached inode keeps the group that wrote it.
  if (tree_->report(Controller::kMemory).by.starts_with("cgroup v2")) unlink_all();
  // The kernel frees a group some time after rmdir; one that is pinned stays for good.
  const auto many = [&] {
    return *CgroupTree::CountGroups(CgroupHost{}, Controller::kMemory) > *before + 30;
  };
  for (int i = 0; i < 500 && many(); ++i) ::usleep(10'000);
  EXPECT_FALSE(many());
  unlink_all();
}

TEST_P(CgroupKernelTest, OnlyTheListedDevicesOpen) {
  NEEDS(Controller::kDevices);
  const auto open_all = [] {
    // null and urandom must open; the kernel log and a node made here must not. Exit: a bit each.
    int opened = 0;
    opened |= (::open("/dev/null", O_RDWR) >= 0) << 0;
    opened |= (::open("/dev/urandom", O_RDONLY) >= 0) << 1;
    opened |= (::open("/dev/kmsg", O_RDONLY | O_NONBLOCK) >= 0) << 2;
    const std::string node = "/dev/shm/cgroup_kernel_test." + std::to_string(::getpid());
    opened |= (::mknod(node.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) << 3;
    ::unlink(node.c_str());
    return opened;
  };
  Worker outside(open_all);
  outside.Go();
  const int free = WEXITSTATUS(outside.Wait());
  if ((free & 12) != 12) GTEST_SKIP() << "this host keeps kmsg or mknod from the test itself";
  Worker inside(open_all);
  Run(inside);
  EXPECT_EQ(WEXITSTATUS(inside.Wait()), 3);
}

TEST_P(CgroupKernelTest, AClonedChildStartsInsideTheV2Directory) {
  if (group_->dir_fd() < 0) GTEST_SKIP() << "no cgroup v2 here";
  clone_args arguments = {};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<__u64>(group_->dir_fd());
  const pid_t pid = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof(arguments)));
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_GT(pid, 0);
  ASSERT_TRUE(group_->AttachCloned(pid));
  std::ifstream file("/proc/" + std::to_string(pid) + "/cgroup");
  int inside = 0;
  for (std::string line; std::getline(file, line);)
    inside += line.find("caisson-" + instance_ + "/g") != std::string::npos;
  // v2 alone has one line; a hybrid host has memory, cpu and pids (some may share a line) besides.
  EXPECT_GE(inside, tree_->layout() == CgroupLayout::kHybrid ? 2 : 1);
  EXPECT_TRUE(group_->KillAll(5s));
  ::waitpid(pid, nullptr, 0);
}

TEST_P(CgroupKernelTest, AnIoRateReachesProcessesThatWereThereBefore) {
  NEEDS(Controller::kIo);
  struct stat status;
  ASSERT_EQ(::stat("/var/tmp", &status), 0);
  const CgroupLimits limits = {.io = IoRate{.read_bps = 8 << 20}, .io_device = status.st_dev};
  if (!tree_->Check(limits).front().enforced) GTEST_SKIP() << tree_->Check(limits).front().reason;
  Worker sleeper([] { return ::pause(); });
  Run(sleeper);
  const auto applied = group_->ApplyLimits(limits);
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_EQ(applied->front().value, 8u << 20);
  std::ifstream file("/proc/" + std::to_string(sleeper.pid()) + "/cgroup");
  bool found = false;
  for (std::string line; std::getline(file, line);)
    found |= (line.find(":blkio:") != std::string::npos || line.starts_with("0::")) &&
             line.ends_with("/caisson-" + instance_ + "/g");
  EXPECT_TRUE(found);
  EXPECT_TRUE(group_->Stats().io_read_bytes);
  EXPECT_TRUE(group_->KillAll(5s));
}

TEST_P(CgroupKernelTest, ASweepKillsAndRemovesWhatADeadInstanceLeft) {
  const std::string dead = instance_ + "dead";
  const pid_t launcher = ::fork();
  if (launcher == 0) {  // an instance that dies with a frozen and a running sandbox
    auto tree = CgroupTree::Open(host_, {.instance = dead});
    auto first = (*tree)->Create("s1"), second = (*tree)->Create("s2");
    for (auto* group : {&first, &second}) {
      const pid_t pid = ::fork();
      if (pid == 0) Spin();
      if (!(*group)->Attach(pid)) ::_exit(1);
    }
    if ((*tree)->report(Controller::kFreezer).works) (void)first->Freeze(5s);
    ::raise(SIGKILL);
  }
  int status;
  ::waitpid(launcher, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto found = CgroupTree::ListInstances(host_);
  EXPECT_EQ(std::count(found.begin(), found.end(), dead), 1);
  const auto swept = CgroupTree::SweepInstance(host_, dead, 10s);
  EXPECT_TRUE(swept) << swept.error().message();
  const auto left = CgroupTree::ListInstances(host_);
  EXPECT_EQ(std::count(left.begin(), left.end(), dead), 0);
  EXPECT_EQ(std::count(left.begin(), left.end(), instance_), 1);
}

INSTANTIATE_TEST_SUITE_P(Layouts, CgroupKernelTest, ::testing::Values(Part::kAll, Part::kV1Only),
                         [](const auto& info) {
                           return info.param == Part::kAll ? "AsMounted" : "V1Only";
                         });

}  // namespace
}  // namespace caisson::sys
