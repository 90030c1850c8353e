#include "init/watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "init/test_client.h"

namespace caisson::init {
namespace {

using namespace wire::init;  // NOLINT: the requests and replies of this protocol

// Waits until the change was reported.
bool Sees(TestClient& client, Change change, const std::string& path) {
  while (true) {
    if (std::ranges::any_of(client.changes, [&](const WatchEvent& e) {
          return e.change == change && e.path == path;
        })) {
      return true;
    }
    if (!client.Receive(3000)) return false;
  }
}

void Touch(const std::string& path, const char* text = "") {
  FILE* file = fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs(text, file);
  fclose(file);
}

TEST(Watches, ReportsWhatHappensInADirectory) {
  ScratchDir dir;
  TestClient client;
  const auto watching = client.Call<Watching>(Watch{.path = dir.path()});
  ASSERT_TRUE(watching);
  Touch(dir / "f", "text");
  EXPECT_TRUE(Sees(client, Change::kCreated, "f"));
  EXPECT_TRUE(Sees(client, Change::kWritten, "f"));
  chmod((dir / "f").c_str(), 0600);
  EXPECT_TRUE(Sees(client, Change::kAttributes, "f"));
  rename((dir / "f").c_str(), (dir / "g").c_str());
  EXPECT_TRUE(Sees(client, Change::kRenamed, "f"));
  EXPECT_TRUE(Sees(client, Change::kCreated, "g"));
  unlink((dir / "g").c_str());
  EXPECT_TRUE(Sees(client, Change::kRemoved, "g"));
  ASSERT_TRUE(client.Call<Done>(Unwatch{.watch = watching->watch}));
  client.changes.clear();
  Touch(dir / "unseen");
  EXPECT_FALSE(client.Receive(200));
  EXPECT_FALSE(client.Call<Done>(Unwatch{.watch = watching->watch}));
  EXPECT_EQ(client.failure.error_number, EBADF);
}

TEST(Watches, FollowsNewAndMovedDirectories) {
  ScratchDir dir;
  TestClient client;
  mkdir((dir / "old").c_str(), 0755);
  ASSERT_TRUE(client.Call<Watching>(Watch{.path = dir.path(), .recursive = 1}));
  Touch(dir / "old/a");
  EXPECT_TRUE(Sees(client, Change::kCreated, "old/a"));
  // Made at once: the watch comes too late for the inner ones, which are reported all the same.
  mkdir((dir / "new").c_str(), 0755);
  mkdir((dir / "new/inner").c_str(), 0755);
  Touch(dir / "new/inner/b");
  EXPECT_TRUE(Sees(client, Change::kCreated, "new/inner/b"));
  Touch(dir / "new/inner/c");
  EXPECT_TRUE(Sees(client, Change::kCreated, "new/inner/c"));
  rename((dir / "new").c_str(), (dir / "moved").c_str());
  EXPECT_TRUE(Sees(client, Change::kRenamed, "new"));
  EXPECT_TRUE(Sees(client, Change::kCreated, "moved"));
  Touch(dir / "moved/inner/d");
  EXPECT_TRUE(Sees(client, Change::kCreated, "moved/inner/d"));
}

TEST(Watches, EqualConsecutiveEventsComeOnce) {
  ScratchDir dir;
  TestClient client;
  Touch(dir / "f");
  ASSERT_TRUE(client.Call<Watching>(Watch{.path = dir.path()}));
  const int fd = open((dir / "f").c_str(), O_WRONLY | O_CLOEXEC);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(pwrite(fd, &i, sizeof i, i), 4);
  close(fd);
  EXPECT_TRUE(Sees(client, Change::kWritten, "f"));
  while (client.Receive(200)) {
  }
  EXPECT_EQ(client.changes.size(), 1u);
}

TEST(Watches, AStormOverflowsButNothingBreaks) {
  ScratchDir dir;
  TestClient client;
  ASSERT_TRUE(client.Call<Watching>(Watch{.path = dir.path()}));
  // Nobody reads meanwhile: init's queue, then the kernel's, run full.
  for (int i = 0; i < 60'000; ++i) {
    const std::string name = dir / std::to_string(i);
    close(open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    unlink(name.c_str());
  }
  EXPECT_TRUE(Sees(client, Change::kOverflow, ""));
  EXPECT_EQ(client.Shell("exit 4").exited.code, 4);
}

TEST(Watches, AreBoundedAndNeedRights) {
  ScratchDir dir;
  TestClient client;
  EXPECT_FALSE(client.Call<Watching>(Watch{.path = dir / "absent"}));
  EXPECT_EQ(client.failure.error_number, ENOENT);
  for (size_t i = 0; i < kMaxWatches; ++i)
    ASSERT_TRUE(client.Call<Watching>(Watch{.path = dir.path()})) << client.failure.what;
  EXPECT_FALSE(client.Call<Watching>(Watch{.path = dir.path()}));
  EXPECT_EQ(client.failure.error_number, ENOSPC);
  client.Hello(2);
  if (getuid() != 0) return;
  mkdir((dir / "closed").c_str(), 0700);
  EXPECT_FALSE(client.Call<Watching>(Watch{.path = dir / "closed", .user = "4711"}));
  EXPECT_EQ(client.failure.error_number, EACCES);
}

}  // namespace
}  // namespace caisson::init
