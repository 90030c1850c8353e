#include "store/data_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/test_directory.h"

namespace caisson::store {
namespace {

using testing::HasSubstr;

TEST(DataDir, IsMadePrivateWithItsParts) {
  const TestDirectory parent;
  const std::string path = parent.PathOf("a/b");
  const auto dir = DataDir::Open(path);
  ASSERT_TRUE(dir) << dir.error().message();
  for (const char* name : {"/", "/storage", "/storage/sessions", "/storage/artifacts"}) {
    struct stat info{};
    ASSERT_EQ(stat((path + name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0700U) << name;
  }
}

TEST(DataDir, AnOpenOneIsTightened) {
  const TestDirectory parent;
  ASSERT_EQ(chmod(parent.path().c_str(), 0755), 0);
  ASSERT_TRUE(DataDir::Open(parent.path()));
  struct stat info{};
  ASSERT_EQ(stat(parent.path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST(DataDir, ASecondOpenerIsRefusedWithTheFirstOnesPid) {
  const TestDirectory parent;
  {
    const auto first = DataDir::Open(parent.path());
    ASSERT_TRUE(first);
    const auto second = DataDir::Open(parent.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::kConflict);
    EXPECT_THAT(second.error().message(), HasSubstr("pid " + std::to_string(getpid())));
    EXPECT_FALSE(second.error().remedy().empty());
  }
  EXPECT_TRUE(DataDir::Open(parent.path()));
}

TEST(DataDir, TheReserveTakesRoomAndGivesItBackOnce) {
  const TestDirectory parent;
  auto dir = DataDir::Open(parent.path());
  ASSERT_TRUE(dir);
  ASSERT_TRUE(dir->MakeReserve());
  ASSERT_TRUE(dir->MakeReserve());
  struct stat info{};
  ASSERT_EQ(stat(dir->PathOf("reserve").c_str(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, DataDir::kReserveBytes);
  EXPECT_TRUE(dir->GiveUpReserve());
  EXPECT_FALSE(dir->GiveUpReserve());
}

TEST(DataDir, SmallFilesAreReplacedWhole) {
  const TestDirectory parent;
  auto dir = DataDir::Open(parent.path());
  ASSERT_TRUE(WriteFileAtomically(dir->fd(), "f", "one"));
  ASSERT_TRUE(WriteFileAtomically(dir->fd(), "f", "two"));
  EXPECT_EQ(*ReadSmallFile(dir->fd(), "f", 3), "two");
  EXPECT_EQ(ReadSmallFile(dir->fd(), "f", 2).error().code(), ErrorCode::kIo);
  EXPECT_EQ(ReadSmallFile(dir->fd(), "none", 3).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace caisson::store
