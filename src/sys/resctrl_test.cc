#include "sys/resctrl.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace caisson::sys {
namespace {

namespace fs = std::filesystem;

std::string Slurp(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}
void Spill(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A fake of the file system as the kernel shows it.
class ResctrlTest : public ::testing::Test {
 protected:
  ResctrlTest() {
    char path[] = "/tmp/resctrl_test.XXXXXX";
    dir_ = ::mkdtemp(path);
    paths_ = {.proc = dir_ / "proc", .root = dir_ / "resctrl"};
    Spill(dir_ / "proc/self/mountinfo", "50 23 0:40 / /sys/fs/resctrl rw - resctrl resctrl rw\n");
  }
  ~ResctrlTest() override { fs::remove_all(dir_); }
  void MakeRoot(std::string_view least, std::string_view step) {
    Spill(fs::path(paths_.root) / "schemata", "    L3:0=fffff;1=fffff\n    MB:0=100;1=100\n");
    Spill(fs::path(paths_.root) / "info/MB/min_bandwidth", least);
    Spill(fs::path(paths_.root) / "info/MB/bandwidth_gran", step);
  }
  // New groups come with the kernel's files.
  void FillGroups() {
    paths_.make_dir = +[](int root, const char* name) {
      if (::mkdirat(root, name, 0755) != 0) return errno;
      const fs::path group = fs::read_symlink("/proc/self/fd/" + std::to_string(root)) / name;
      Spill(group / "schemata", "MB:0=100;1=100\n");
      Spill(group / "tasks", "");
      return 0;
    };
    paths_.remove_dir = +[](int root, const char* name) {
      const fs::path group = fs::read_symlink("/proc/self/fd/" + std::to_string(root)) / name;
      return fs::remove_all(group) > 0 ? 0 : ENOENT;
    };
  }
  fs::path dir_;
  ResctrlPaths paths_;
};

TEST_F(ResctrlTest, AnUnmountedResctrlIsRefusedWithReasonAndRemedy) {
  const auto probe = ResctrlGroup::Probe(paths_);
  ASSERT_FALSE(probe);
  EXPECT_EQ(probe.error().code(), ErrorCode::kLimitRefused);
  EXPECT_NE(probe.error().message().find("resctrl is not mounted"), std::string::npos);
  EXPECT_NE(probe.error().remedy().find("mount -t resctrl"), std::string::npos);
}

TEST_F(ResctrlTest, ACpuWithoutMbaIsRefused) {
  Spill(fs::path(paths_.root) / "schemata", "    L3:0=fffff\n");
  EXPECT_NE(
      ResctrlGroup::Probe(paths_).error().message().find("no memory bandwidth allocation (MB)"),
      std::string::npos);
}

TEST_F(ResctrlTest, MegabytesPerSecondAreNotPercent) {
  MakeRoot("10\n", "10\n");
  EXPECT_TRUE(ResctrlGroup::Probe(paths_));
  Spill(dir_ / "proc/self/mountinfo",
        "50 23 0:40 / /sys/fs/resctrl rw - resctrl resctrl rw,mba_MBps\n");
  EXPECT_FALSE(ResctrlGroup::Probe(paths_));
}

TEST_F(ResctrlTest, ImpossiblePercentagesAndNamesAreRefusedBeforeAnythingIsMade) {
  MakeRoot("10\n", "10\n");
  for (const uint32_t percent : {0u, 101u, UINT32_MAX})
    EXPECT_EQ(ResctrlGroup::Create(paths_, "i", "s", percent).error().code(),
              ErrorCode::kLimitRefused);
  for (const char* name : {"", "..", "a/b", "a.b", "a\nb"})
    EXPECT_EQ(ResctrlGroup::Create(paths_, "i", name, 50).error().code(),
              ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(fs::path(paths_.root) / "caisson-i.s"));
}

TEST_F(ResctrlTest, AGroupWhoseLimitCannotBeSetIsNotLeftBehind) {
  MakeRoot("10\n", "10\n");
  EXPECT_FALSE(ResctrlGroup::Create(paths_, "i", "s", 50));  // no schemata appears in it
  EXPECT_FALSE(fs::exists(fs::path(paths_.root) / "caisson-i.s"));
}

TEST_F(ResctrlTest, EveryDomainGetsTheShareRoundedUpToWhatTheHardwareCan) {
  MakeRoot("10\n", "10\n");
  FillGroups();
  auto group = ResctrlGroup::Create(paths_, "i", "s", 41);
  ASSERT_TRUE(group) << group.error().message();
  EXPECT_EQ(group->percent(), 50u);
  const fs::path schemata = fs::path(paths_.root) / "caisson-i.s/schemata";
  EXPECT_TRUE(Slurp(schemata).starts_with("MB:0=50;1=50\n"));
  ASSERT_TRUE(group->Update(3));
  EXPECT_EQ(group->percent(), 10u);  // min_bandwidth
  EXPECT_TRUE(Slurp(schemata).starts_with("MB:0=10;1=10\n"));
  EXPECT_FALSE(group->Update(0));
}

TEST_F(ResctrlTest, AttachWritesTheThreadsOfTheProcess) {
  MakeRoot("10\n", "10\n");
  FillGroups();
  fs::create_directories(dir_ / "proc/4711/task/4711");
  auto group = ResctrlGroup::Create(paths_, "i", "s", 50);
  ASSERT_TRUE(group);
  ASSERT_TRUE(group->Attach(4711));
  EXPECT_EQ(Slurp(fs::path(paths_.root) / "caisson-i.s/tasks"), "4711");
  EXPECT_FALSE(group->Attach(4712));
}

TEST_F(ResctrlTest, TheGroupGoesWithItsOwnerAndASweepFindsTheRest) {
  MakeRoot("10\n", "10\n");
  FillGroups();
  const fs::path group = fs::path(paths_.root) / "caisson-i.s";
  {
    auto made = ResctrlGroup::Create(paths_, "i", "s", 50);
    ASSERT_TRUE(made);
    EXPECT_EQ(ResctrlGroup::Create(paths_, "i", "s", 50).error().code(), ErrorCode::kConflict);
    ResctrlGroup moved = *std::move(made);
    EXPECT_TRUE(fs::exists(group));
  }
  EXPECT_FALSE(fs::exists(group));
  fs::create_directory(group);
  fs::create_directory(fs::path(paths_.root) / "caisson-other.s");
  EXPECT_EQ(ResctrlGroup::Sweep(paths_, "i"), 1u);
  EXPECT_FALSE(fs::exists(group));
  EXPECT_TRUE(fs::exists(fs::path(paths_.root) / "caisson-other.s"));
}

TEST_F(ResctrlTest, RunningOutOfHardwareGroupsIsSaid) {
  MakeRoot("10\n", "10\n");
  paths_.make_dir = +[](int, const char*) { return ENOSPC; };
  const auto group = ResctrlGroup::Create(paths_, "i", "s", 50);
  EXPECT_EQ(group.error().code(), ErrorCode::kLimitRefused);
  EXPECT_NE(group.error().message().find("num_closids"), std::string::npos);
}

}  // namespace
}  // namespace caisson::sys
