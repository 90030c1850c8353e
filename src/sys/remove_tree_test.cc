#include "sys/remove_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "sys/unique_fd.h"

namespace caisson::sys {
namespace {

class RemoveTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/caisson-remove-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    path_ = path;
    fd_.Reset(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(fd_);
  }
  void TearDown() override { EXPECT_EQ(::rmdir(path_.c_str()), 0) << "something was left"; }

  void Touch(const std::string& name) {
    UniqueFd fd(::openat(fd_.get(), name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ASSERT_TRUE(fd) << name;
  }
  void ExpectGone(const char* name) {
    auto progress = RemoveTree(fd_.get(), name);
    ASSERT_TRUE(progress) << progress.error().message();
    EXPECT_EQ(*progress, RemoveProgress::kGone);
    EXPECT_NE(::faccessat(fd_.get(), name, F_OK, AT_SYMLINK_NOFOLLOW), 0);
  }

  std::string path_;
  UniqueFd fd_;
};

TEST_F(RemoveTreeTest, RemovesFilesLinksAndDirectoriesAndIsContentWithNothing) {
  ExpectGone("absent");
  Touch("file");
  ExpectGone("file");
  ASSERT_EQ(::mkdirat(fd_.get(), "d", 0700), 0);
  ASSERT_EQ(::mkdirat(fd_.get(), "d/.removing-0", 0700), 0);  // the name it would pick itself
  ASSERT_EQ(::mkdirat(fd_.get(), "d/e", 0700), 0);
  ASSERT_EQ(::mkdirat(fd_.get(), "d/e/f", 0700), 0);
  Touch("d/.removing-0/x");
  Touch("d/e/f/y");
  ExpectGone("d");
}

TEST_F(RemoveTreeTest, DoesNotFollowLinksOutOfTheTree) {
  ASSERT_EQ(::mkdirat(fd_.get(), "kept", 0700), 0);
  Touch("kept/precious");
  ASSERT_EQ(::mkdirat(fd_.get(), "d", 0700), 0);
  ASSERT_EQ(::symlinkat("../kept", fd_.get(), "d/link"), 0);
  ExpectGone("d");
  EXPECT_EQ(::faccessat(fd_.get(), "kept/precious", F_OK, 0), 0);
  ExpectGone("kept");
}

TEST_F(RemoveTreeTest, RemovesATreeDeeperThanAnyPathCanName) {
  constexpr int kDepth = 150;  // 150 * 201 bytes is seven times PATH_MAX
  const std::string name(200, 'd');
  UniqueFd dir(::dup(fd_.get()));
  ASSERT_EQ(::mkdirat(dir.get(), "deep", 0700), 0);
  dir.Reset(::openat(fd_.get(), "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < kDepth; ++i) {
    ASSERT_EQ(::mkdirat(dir.get(), name.c_str(), 0700), 0);
    dir.Reset(::openat(dir.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(dir);
  }
  dir.Reset();
  ExpectGone("deep");
}

TEST_F(RemoveTreeTest, StopsAtItsBudgetAndGoesOnWhenCalledAgain) {
  ASSERT_EQ(::mkdirat(fd_.get(), "many", 0700), 0);
  for (int i = 0; i < 250; ++i) Touch("many/" + std::to_string(i));
  int calls = 0;
  for (;; ++calls) {
    auto progress = RemoveTree(fd_.get(), "many", 100);
    ASSERT_TRUE(progress) << progress.error().message();
    if (*progress == RemoveProgress::kGone) break;
    ASSERT_LT(calls, 10);
  }
  EXPECT_EQ(calls, 2);
}

TEST_F(RemoveTreeTest, AnOwnerWithoutPrivilegeRemovesLockedDirectories) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ASSERT_EQ(::fchmod(fd_.get(), 0777), 0);
  ASSERT_EQ(::mkdirat(fd_.get(), "d", 0755), 0);
  ASSERT_EQ(::mkdirat(fd_.get(), "d/locked", 0755), 0);
  ASSERT_EQ(::mkdirat(fd_.get(), "d/locked/e", 0755), 0);
  Touch("d/locked/e/file");
  for (const char* name : {"d/locked/e/file", "d/locked/e", "d/locked", "d"})
    ASSERT_EQ(::fchownat(fd_.get(), name, 12345, 12345, 0), 0);
  ASSERT_EQ(::fchmodat(fd_.get(), "d/locked/e", 0, 0), 0);
  ASSERT_EQ(::fchmodat(fd_.get(), "d/locked", 0, 0), 0);
  ASSERT_EQ(::seteuid(12345), 0);
  auto progress = RemoveTree(fd_.get(), "d");
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_TRUE(progress) << progress.error().message();
}

TEST_F(RemoveTreeTest, NeverEntersAMount) {
  ASSERT_EQ(::mkdirat(fd_.get(), "d", 0700), 0);
  ASSERT_EQ(::mkdirat(fd_.get(), "d/m", 0700), 0);
  const std::string target = path_ + "/d/m";
  if (::mount("tmpfs", target.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "cannot mount here";
  Touch("d/m/precious");
  EXPECT_FALSE(RemoveTree(fd_.get(), "d"));
  EXPECT_EQ(::faccessat(fd_.get(), "d/m/precious", F_OK, 0), 0);
  ASSERT_EQ(::umount2(target.c_str(), MNT_DETACH), 0);
  ExpectGone("d");
}

}  // namespace
}  // namespace caisson::sys
