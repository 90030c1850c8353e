#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "async/race.h"
#include "async/signals.h"
#include "async/task_set.h"
#include "async/thread_pool.h"
#include "async/watch.h"

namespace caisson::async {
namespace {

using namespace std::chrono_literals;

Task<int> Give(int value) { co_return value; }
Task<int> GiveLater(Loop* loop, int value) {
  co_await loop->Sleep(1ms);
  co_return value;
}
Task<int> Sum(Loop* loop, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += co_await Give(1);
  co_return sum + co_await GiveLater(loop, 1);
}
Task<int> Never(Loop* loop) {
  Event event(*loop);
  co_await event.Wait();
  co_return 0;
}

// Says when its frame goes.
struct Mark {
  explicit Mark(std::vector<std::string>* log, std::string name)
      : log(log), name(std::move(name)) {}
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() { log->push_back(name); }
  std::vector<std::string>* log;
  std::string name;
};
Task<void> WaitMarked(Event* event, std::vector<std::string>* log, std::string name) {
  Mark mark(log, name);
  co_await event->Wait();
  log->push_back(name + " woke");
}
Task<void> WaitOuter(Event* event, std::vector<std::string>* log) {
  Mark mark(log, "outer");
  co_await WaitMarked(event, log, "inner");
}

TEST(Task, GivesValuesThroughManyAwaitsWithoutGrowingTheStack) {
  Loop loop;
  EXPECT_EQ(loop.RunUntilDone(Sum(&loop, 100000)), 100001);
}

Task<int> Throw(Loop* loop) {
  co_await loop->Yield();
  throw std::string("thrown");
}
Task<std::string> Catch(Loop* loop) {
  try {
    co_await Throw(loop);
  } catch (const std::string& text) {
    co_return text;
  }
  co_return "nothing";
}
TEST(Task, ExceptionsReachWhoAwaits) {
  Loop loop;
  EXPECT_EQ(loop.RunUntilDone(Catch(&loop)), "thrown");
}

TEST(Task, DestructionEndsItWhereItWaitsInnermostFirst) {
  Loop loop;
  Event event(loop);
  std::vector<std::string> log;
  {
    TaskSet tasks(loop);
    tasks.Spawn(WaitOuter(&event, &log));
    EXPECT_EQ(tasks.size(), 1u);
  }
  EXPECT_EQ(log, (std::vector<std::string>{"inner", "outer"}));
  event.Set();
  loop.RunUntilDone(GiveLater(&loop, 0));
  EXPECT_EQ(log.size(), 2u);
}

TEST(Event, WakesInOrderFromTheLoop) {
  Loop loop;
  Event event(loop);
  std::vector<std::string> log;
  TaskSet tasks(loop);
  tasks.Spawn(WaitMarked(&event, &log, "a"));
  tasks.Spawn(WaitMarked(&event, &log, "b"));
  event.Set();
  EXPECT_TRUE(log.empty());
  loop.RunUntilDone(tasks.Join());
  EXPECT_EQ(log, (std::vector<std::string>{"a woke", "a", "b woke", "b"}));
}

TEST(Event, OneThatWasWokenAndThenDestroyedIsNotResumed) {
  Loop loop;
  Event event(loop);
  std::vector<std::string> log;
  {
    TaskSet tasks(loop);
    tasks.Spawn(WaitMarked(&event, &log, "a"));
    event.Set();
  }
  loop.RunUntilDone(GiveLater(&loop, 0));
  EXPECT_EQ(log, (std::vector<std::string>{"a"}));
}

Task<void> SleepLog(Loop* loop, std::vector<int>* log, std::chrono::milliseconds time) {
  co_await loop->Sleep(time);
  log->push_back(static_cast<int>(time.count()));
}
TEST(Loop, SleepersWakeInOrderOfTheirTime) {
  Loop loop;
  std::vector<int> log;
  TaskSet tasks(loop);
  for (const int ms : {9, 1, 5}) tasks.Spawn(SleepLog(&loop, &log, std::chrono::milliseconds(ms)));
  {
    TaskSet cancelled(loop);
    cancelled.Spawn(SleepLog(&loop, &log, 0ms));
  }
  loop.RunUntilDone(tasks.Join());
  EXPECT_EQ(log, (std::vector<int>{1, 5, 9}));
}

TEST(Race, TheFirstToEndWinsAndTheOtherEnds) {
  Loop loop;
  auto first = loop.RunUntilDone(FirstOf(&loop, Never(&loop), GiveLater(&loop, 7)));
  ASSERT_EQ(first.index(), 1u);
  EXPECT_EQ(std::get<1>(first), 7);
}

TEST(Race, ATimeoutGivesNothing) {
  Loop loop;
  EXPECT_EQ(loop.RunUntilDone(WithTimeout(&loop, 1ms, Never(&loop))), std::nullopt);
  EXPECT_EQ(loop.RunUntilDone(WithTimeout(&loop, 1h, GiveLater(&loop, 3))), 3);
}

Task<std::string> ReadAll(Loop* loop, int fd) {
  Watch watch(*loop, fd);
  std::string all;
  char buffer[4];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got > 0)
      all.append(buffer, static_cast<size_t>(got));
    else if (got == 0)
      co_return all;
    else
      co_await watch.Readable();
  }
}
Task<void> WriteSlowly(Loop* loop, int fd, std::string text) {
  for (const char c : text) {
    co_await loop->Sleep(100us);
    (void)!write(fd, &c, 1);
  }
  close(fd);
}
TEST(Watch, WakesWhenThereIsSomethingToRead) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
  Loop loop;
  TaskSet tasks(loop);
  tasks.Spawn(WriteSlowly(&loop, fds[1], "hello caisson"));
  EXPECT_EQ(loop.RunUntilDone(ReadAll(&loop, fds[0])), "hello caisson");
  close(fds[0]);
}

TEST(Watch, ClosingWakesWhoWaits) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
  Loop loop;
  Watch watch(loop, fds[0]);
  bool woken = false;
  TaskSet tasks(loop);
  tasks.Spawn([](Watch* w, bool* done) -> Task<void> {
    co_await w->Readable();
    *done = true;
  }(&watch, &woken));
  watch.Close();
  close(fds[0]);
  loop.RunUntilDone(tasks.Join());
  EXPECT_TRUE(woken);
  close(fds[1]);
}

TEST(Watch, ARegularFileIsAlwaysReady) {
  Loop loop;
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  {
    Watch watch(loop, fd);
    loop.RunUntilDone([](Watch* w) -> Task<void> { co_await w->Readable(); }(&watch));
  }
  close(fd);
}

TEST(Offload, RunsOnAnotherThreadAndComesBack) {
  Loop loop;
  ThreadPool pool(2);
  const auto here = std::this_thread::get_id();
  const auto there =
      loop.RunUntilDone(Offload(&loop, &pool, [] { return std::this_thread::get_id(); }));
  EXPECT_NE(here, there);
}

TEST(Offload, MayBeAbandoned) {
  Loop loop;
  std::vector<std::string> log;
  {
    ThreadPool pool(1);
    auto mark = std::make_shared<Mark>(&log, "work's value");
    TaskSet tasks(loop);
    tasks.Spawn([](Loop* l, ThreadPool* p, std::shared_ptr<Mark> m) -> Task<void> {
      (void)co_await Offload(l, p, [m] { return m; });
    }(&loop, &pool, std::move(mark)));
  }
  loop.RunUntilDone(GiveLater(&loop, 0));
  EXPECT_EQ(log, (std::vector<std::string>{"work's value"}));
}

TEST(Signals, AreAwaited) {
  Loop loop;
  Signals signals(loop, {SIGUSR1, SIGUSR2});
  kill(getpid(), SIGUSR2);
  EXPECT_EQ(loop.RunUntilDone(signals.Next()), SIGUSR2);
}

}  // namespace
}  // namespace caisson::async
