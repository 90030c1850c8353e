#include "launcher/gangway.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/close_range.h>
#include <poll.h>
#include <unistd.h>

#include <string>

namespace caisson::launcher {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read.Reset(ends[0]);
    write.Reset(ends[1]);
  }
  sys::UniqueFd read, write;
};

std::string ReadAll(int fd) {
  char bytes[16];
  const ssize_t got = read(fd, bytes, sizeof bytes);
  return got < 0 ? "error" : std::string(bytes, static_cast<size_t>(got));
}

// What a jailed child does first; afterwards it says on its report pipe what it was told to.
[[noreturn]] void Leave(const JailPlan& plan) {
  if (close_range(static_cast<unsigned>(plan.block_end), ~0U, CLOSE_RANGE_UNSHARE) != 0) _exit(1);
  if (write(plan.left, "x", 1) != 1) _exit(2);
  char byte;
  if (read(plan.go, &byte, 1) != 1 || write(plan.report, &byte, 1) != 1) _exit(3);
  _exit(0);
}

TEST(Gangway, ChildrenKeepWhatTheyWereGivenWhenTheBlockIsUsedAgain) {
  auto gangway = Gangway::Reserve();
  ASSERT_TRUE(gangway);
  Pipe go[2], report[2];
  sys::Child children[2];
  for (int i = 0; i < 2; ++i) {
    JailPlan plan;
    plan.go = go[i].read.get();
    plan.report = report[i].write.get();
    ASSERT_TRUE(gangway->Load(plan));
    EXPECT_NE(plan.go, go[i].read.get());
    const auto clone = gangway->Clone(0, -1);
    if (clone.pid == 0) Leave(plan);
    ASSERT_GT(clone.pid, 0);
    children[i] = sys::Child(clone.pid, sys::UniqueFd(clone.pidfd));
    report[i].write.Reset();
  }
  EXPECT_EQ(write(go[1].write.get(), "b", 1), 1);
  EXPECT_EQ(write(go[0].write.get(), "a", 1), 1);
  EXPECT_EQ(ReadAll(report[0].read.get()), "a");
  EXPECT_EQ(ReadAll(report[1].read.get()), "b");
}

TEST(Gangway, AChildThatDiesBeforeItLeavesDoesNotHoldTheBlock) {
  auto gangway = Gangway::Reserve();
  ASSERT_TRUE(gangway);
  Pipe report;
  JailPlan plan;
  plan.report = report.write.get();
  ASSERT_TRUE(gangway->Load(plan));
  const auto clone = gangway->Clone(0, -1);
  if (clone.pid == 0) _exit(0);
  sys::Child child(clone.pid, sys::UniqueFd(clone.pidfd));
  report.write.Reset();
  pollfd ended{child.pidfd(), POLLIN, 0};
  ASSERT_EQ(poll(&ended, 1, 10'000), 1);
  gangway->Collect();
  EXPECT_EQ(ReadAll(report.read.get()), "") << "the block still holds the pipe";
}

TEST(Gangway, NewDescriptorsLieOutsideTheBlock) {
  auto gangway = Gangway::Reserve();
  ASSERT_TRUE(gangway);
  JailPlan plan;
  plan.go = 0;
  ASSERT_TRUE(gangway->Load(plan));
  const sys::UniqueFd next(fcntl(0, F_DUPFD_CLOEXEC, plan.go));
  EXPECT_GE(next.get(), plan.block_end);
}

}  // namespace
}  // namespace caisson::launcher
