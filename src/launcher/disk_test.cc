#include "launcher/disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "sys/mounts.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {
namespace {

using sys::UniqueFd;

constexpr uint64_t kMiB = 1 << 20;

// The backing files of loop devices that lie below `prefix`.
std::vector<std::string> LoopsBelow(const std::string& prefix) {
  std::vector<std::string> found;
  for (int i = 0; i < 256; ++i) {
    const std::string path = "/sys/block/loop" + std::to_string(i) + "/loop/backing_file";
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char text[512];
    const ssize_t size = fd ? ::read(fd.get(), text, sizeof text) : 0;
    if (size > 0 && std::string_view(text, static_cast<size_t>(size)).starts_with(prefix))
      found.emplace_back(text, static_cast<size_t>(size));
  }
  return found;
}

class DiskTest : public testing::TestWithParam<DiskBackend> {
 protected:
  void SetUp() override {
    char path[] = "/tmp/caisson-disk-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    state_dir_ = path;
    for (const DiskProbe& probe : ProbeDisks(state_dir_)) {
      if (probe.backend == GetParam() && !probe.works)
        GTEST_SKIP() << NameOf(GetParam()) << " does not work here: " << probe.detail;
    }
  }
  void TearDown() override {
    // The kernel may detach a loop device a moment after its last user is gone.
    for (int i = 0; i < 200 && !LoopsBelow(state_dir_).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(LoopsBelow(state_dir_).empty()) << "a loop device was left";
    EXPECT_TRUE(SweepDisks(state_dir_));
    UniqueFd tmp(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_TRUE(sys::RemoveTree(tmp.get(), state_dir_.c_str() + 5));
  }

  std::unique_ptr<Disk> Make(uint64_t bytes, uint64_t inodes) {
    auto disk = Disk::Create(GetParam(), {bytes, inodes, 70000, 70001}, state_dir_);
    if (!disk) ADD_FAILURE() << disk.error().message();
    return disk ? *std::move(disk) : nullptr;
  }

  std::string state_dir_;
};

// Writes up to `max` bytes to a file on the disk; returns how many fitted.
uint64_t Fill(const Disk& disk, const char* name, uint64_t max) {
  UniqueFd file(::openat(disk.mount_fd(), name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  if (!file) return 0;
  const std::vector<char> chunk(64 * 1024, 'x');
  uint64_t done = 0;
  while (done < max) {
    const ssize_t rc = ::write(file.get(), chunk.data(), chunk.size());
    if (rc <= 0) break;
    done += static_cast<uint64_t>(rc);
  }
  return done;
}

uint64_t MakeFiles(const Disk& disk, uint64_t max) {
  for (uint64_t i = 0; i < max; ++i) {
    UniqueFd file(
        ::openat(disk.mount_fd(), std::to_string(i).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    if (!file) return i;
  }
  return max;
}

TEST_P(DiskTest, StartsEmptyAndOwnedByTheSandbox) {
  auto disk = Make(16 * kMiB, 1024);
  ASSERT_TRUE(disk);
  struct stat info;
  ASSERT_EQ(::fstatat(disk->mount_fd(), "", &info, AT_EMPTY_PATH), 0);
  EXPECT_EQ(info.st_uid, 70000u);
  EXPECT_EQ(info.st_gid, 70001u);
  EXPECT_EQ(info.st_mode, static_cast<mode_t>(S_IFDIR | 0755));
  EXPECT_NE(::faccessat(disk->mount_fd(), "lost+found", F_OK, 0), 0);
  auto stats = disk->Stats();
  ASSERT_TRUE(stats);
  EXPECT_LE(stats->bytes_limit, 16 * kMiB);
  EXPECT_GT(stats->bytes_limit, 14 * kMiB);
  EXPECT_GE(stats->inodes_limit, 1024u);
  EXPECT_LT(stats->inodes_limit, 1024u + 128);
  EXPECT_LT(stats->bytes_used, kMiB);
}

TEST_P(DiskTest, StopsWritingAtTheLimitInBytes) {
  auto disk = Make(16 * kMiB, 1024);
  ASSERT_TRUE(disk);
  const uint64_t fitted = Fill(*disk, "big", 64 * kMiB);
  EXPECT_LE(fitted, 16 * kMiB);
  EXPECT_GT(fitted, 13 * kMiB);
}

TEST_P(DiskTest, StopsMakingFilesAtTheLimitInInodes) {
  auto disk = Make(16 * kMiB, 1024);
  ASSERT_TRUE(disk);
  const uint64_t made = MakeFiles(*disk, 5000);
  EXPECT_LT(made, 1024u + 128);
  EXPECT_GT(made, 1000u);
}

TEST_P(DiskTest, GrowsWhileInUse) {
  auto disk = Make(16 * kMiB, 1024);
  ASSERT_TRUE(disk);
  EXPECT_LE(Fill(*disk, "first", 64 * kMiB), 16 * kMiB);
  auto grown = disk->Resize(32 * kMiB, 1024);
  if (!grown && GetParam() == DiskBackend::kLoop && grown.error().sys_errno() == EPERM) {
    EXPECT_EQ(grown.error().code(), ErrorCode::kLimitRefused);
    EXPECT_NE(grown.error().remedy().find("CAP_SYS_RESOURCE"), std::string::npos);
    EXPECT_LT(disk->Stats()->bytes_limit, 17 * kMiB);
    EXPECT_LT(Fill(*disk, "second", 64 * kMiB), kMiB);  // the wall stands where it was
    GTEST_SKIP() << "ext4 grows only with CAP_SYS_RESOURCE, which this process lacks";
  }
  ASSERT_TRUE(grown) << grown.error().message();
  EXPECT_GT(grown->bytes_limit, 28 * kMiB);
  const uint64_t second = Fill(*disk, "second", 64 * kMiB);
  EXPECT_GT(second, 12 * kMiB);
  EXPECT_LE(second, 18 * kMiB);
}

TEST_P(DiskTest, RefusesToShrinkBelowWhatIsInUse) {
  auto disk = Make(16 * kMiB, 1024);
  ASSERT_TRUE(disk);
  ASSERT_EQ(Fill(*disk, "big", 8 * kMiB), 8 * kMiB);
  auto shrunk = disk->Resize(4 * kMiB, 1024);
  ASSERT_FALSE(shrunk);
  EXPECT_EQ(shrunk.error().code(), ErrorCode::kLimitRefused);
  EXPECT_FALSE(shrunk.error().remedy().empty());
  EXPECT_GT(disk->Stats()->bytes_limit, 13 * kMiB);
}

TEST_P(DiskTest, RefusesSizesThatMeanUnlimitedOrNonsense) {
  for (auto [bytes, inodes] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 1024},
                                                                         {16 * kMiB, 0},
                                                                         {4096, 1024},
                                                                         {16 * kMiB, 1},
                                                                         {UINT64_MAX, 1024},
                                                                         {16 * kMiB, UINT64_MAX}}) {
    auto disk = Disk::Create(GetParam(), {bytes, inodes, 0, 0}, state_dir_);
    ASSERT_FALSE(disk) << bytes << " bytes, " << inodes << " inodes";
    EXPECT_EQ(disk.error().code(), ErrorCode::kLimitRefused);
  }
  auto disk = Make(16 * kMiB, 1024);
  ASSERT_TRUE(disk);
  EXPECT_FALSE(disk->Resize(0, 1024));
  EXPECT_FALSE(disk->Resize(16 * kMiB, 0));
}

TEST_P(DiskTest, TwoDisksShareNothing) {
  auto one = Make(16 * kMiB, 1024);
  auto two = Make(16 * kMiB, 1024);
  ASSERT_TRUE(one && two);
  Fill(*one, "secret", 64 * kMiB);
  EXPECT_NE(::faccessat(two->mount_fd(), "secret", F_OK, 0), 0);
  EXPECT_EQ(Fill(*two, "mine", 8 * kMiB), 8 * kMiB);
}

TEST_P(DiskTest, CannotBeUsedForDevicesOrSetuidPrograms) {
  auto disk = Make(16 * kMiB, 1024);
  ASSERT_TRUE(disk);
  if (::mknodat(disk->mount_fd(), "null", S_IFCHR | 0666, makedev(1, 3)) == 0) {
    EXPECT_LT(::openat(disk->mount_fd(), "null", O_RDWR | O_CLOEXEC), 0);
    EXPECT_EQ(errno, EACCES);
  }
}

// In a child with a mount namespace of its own: attach, write below the path, and let the child's
// end take the mount away while the Disk goes on counting.
TEST_P(DiskTest, AttachesInAnotherMountNamespace) {
  auto disk = Make(16 * kMiB, 1024);
  ASSERT_TRUE(disk);
  const std::string target = state_dir_ + "/attached";
  ASSERT_EQ(::mkdir(target.c_str(), 0700), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      _exit(2);
    if (sys::AttachMount(disk->mount_fd(), AT_FDCWD, target.c_str()) != 0) _exit(3);
    UniqueFd file(::open((target + "/inside").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    _exit(file && ::write(file.get(), "x", 1) == 1 ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  EXPECT_NE(::access((target + "/inside").c_str(), F_OK), 0);
  EXPECT_TRUE(disk->Stats());
  EXPECT_TRUE(disk->Stats()->inodes_used > 0);
}

TEST_P(DiskTest, LeavesNothingInTheStateDirectoryButTemplates) {
  for (int i = 0; i < 3; ++i) {
    auto disk = Make(16 * kMiB, 1024);
    ASSERT_TRUE(disk);
    MakeFiles(*disk, 50);
  }
  for (const char* dir : {"/quota", "/trash"}) {
    if (::access((state_dir_ + dir).c_str(), F_OK) == 0)
      EXPECT_EQ(::rmdir((state_dir_ + dir).c_str()), 0) << dir;
  }
  for (const char* name : {"/loops/draft-", "/loops/image-"})
    EXPECT_NE(::access((state_dir_ + name + std::to_string(::getpid())).c_str(), F_OK), 0);
}

TEST_P(DiskTest, IsQuickToMakeAndToDestroy) {
  using Clock = std::chrono::steady_clock;
  ASSERT_TRUE(Make(256 * kMiB, 65536));  // pays for the template
  std::vector<int64_t> made;
  std::vector<int64_t> gone;
  for (int i = 0; i < 50; ++i) {
    const auto start = Clock::now();
    auto disk = Make(256 * kMiB, 65536);
    ASSERT_TRUE(disk);
    const auto between = Clock::now();
    disk.reset();
    made.push_back(std::chrono::duration_cast<std::chrono::microseconds>(between - start).count());
    gone.push_back(
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - between).count());
  }
  std::ranges::sort(made);
  std::ranges::sort(gone);
  RecordProperty("create_us", static_cast<int>(made[25]));
  RecordProperty("destroy_us", static_cast<int>(gone[25]));
  EXPECT_LT(made[25], 250'000);
  EXPECT_LT(gone[25], 250'000);
  if (std::getenv("CAISSON_TEST_TIMES"))
    std::printf("%s: create %ld us, destroy %ld us (p50 of 50)\n", NameOf(GetParam()).data(),
                made[25], gone[25]);
}

INSTANTIATE_TEST_SUITE_P(Backends, DiskTest,
                         testing::Values(DiskBackend::kTmpfs, DiskBackend::kLoop,
                                         DiskBackend::kQuota),
                         [](const auto& param) { return std::string(NameOf(param.param)); });

TEST(LoopDisk, KeepsTheNumberOfTemplatesBounded) {
  char path[] = "/tmp/caisson-disk-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  UniqueFd tmp(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (auto first = PrepareLoopTemplate({kMiB, 64, 0, 0}, path); !first) {
    ASSERT_TRUE(sys::RemoveTree(tmp.get(), path + 5));
    GTEST_SKIP() << first.error().message();
  }
  for (uint64_t i = 1; i <= 40; ++i)
    ASSERT_TRUE(PrepareLoopTemplate({kMiB + i * 4096, 64, 0, 0}, path));
  int left = 0;
  for (uint64_t i = 0; i <= 40; ++i) {
    const std::string name =
        std::string(path) + "/loops/template-1-" + std::to_string(kMiB + i * 4096) + "-64";
    left += ::access(name.c_str(), F_OK) == 0;
  }
  EXPECT_EQ(left, 32);
  ASSERT_TRUE(sys::RemoveTree(tmp.get(), path + 5));
}

TEST(LoopDisk, SaysSoWhenTheInodesDoNotFit) {
  char path[] = "/tmp/caisson-disk-XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  UniqueFd tmp(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto made = PrepareLoopTemplate({kMiB, 1'000'000, 0, 0}, path);
  ASSERT_TRUE(sys::RemoveTree(tmp.get(), path + 5));
  ASSERT_FALSE(made);
  if (made.error().code() == ErrorCode::kUnsupported) GTEST_SKIP() << made.error().message();
  EXPECT_EQ(made.error().code(), ErrorCode::kLimitRefused);
  EXPECT_FALSE(made.error().remedy().empty());
}

TEST(ProbeDisks, NamesEachBackendAndWhatIsWrongWithIt) {
  const auto probes = ProbeDisks("/nonexistent");
  ASSERT_EQ(probes.size(), 3u);
  for (const DiskProbe& probe : probes) EXPECT_FALSE(probe.detail.empty()) << NameOf(probe.backend);
  EXPECT_FALSE(probes[2].works);
}

}  // namespace
}  // namespace caisson::launcher
