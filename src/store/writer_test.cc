#include "store/writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <set>

#include "store/event_records.h"
#include "store/fake_vfs.h"
#include "store/test_directory.h"

namespace caisson::store {
namespace {

using testing::HasSubstr;

Writer::Work Insert(std::string type) {
  return [type = std::move(type)](Database& database) -> Status {
    CAISSON_ASSIGN(const int64_t newest, NewestEvent(database));
    return InsertEvent(database, {.seq = newest + 1, .tenant = "t", .type = type});
  };
}
Writer::Work InsertBytes(size_t size) { return Insert(std::string(size, 'x')); }

// Submits and waits for the answer.
Status Do(Writer& writer, Durability durability, Writer::Work work,
          Purpose purpose = Purpose::kGrow) {
  std::promise<Status> promise;
  auto future = promise.get_future();
  writer.Submit(durability, purpose, std::move(work),
                [&promise](Status status) { promise.set_value(std::move(status)); });
  return future.get();
}

class WriterTest : public testing::Test {
 protected:
  WriterTest() {
    auto dir = DataDir::Open(directory_.path());
    EXPECT_TRUE(dir) << dir.error().message();
    dir_ = std::make_unique<DataDir>(*std::move(dir));
  }
  std::unique_ptr<Writer> Open(Writer::Options options = {}) {
    auto writer = Writer::Open(*dir_, std::move(options));
    EXPECT_TRUE(writer) << writer.error().message();
    return *std::move(writer);
  }
  int64_t CountEvents() {
    auto database = Database::Open(dir_->PathOf("caisson.db"), {.mode = Database::Mode::kReader});
    return *database->Number("SELECT count(*) FROM events");
  }

  TestDirectory directory_;
  std::unique_ptr<DataDir> dir_;
};

TEST_F(WriterTest, WhatIsAcknowledgedIsSeenByReaders) {
  auto writer = Open();
  ASSERT_TRUE(Do(*writer, Durability::kSoon, Insert("a")));
  EXPECT_EQ(CountEvents(), 1);
  ASSERT_TRUE(Do(*writer, Durability::kDurable, Insert("b")));
  EXPECT_EQ(CountEvents(), 2);
}

TEST_F(WriterTest, OneThatFailsTakesNobodyAlong) {
  auto writer = Open();
  std::promise<void> gate;
  writer->Submit(
      Durability::kSoon, Purpose::kGrow,
      [opened = gate.get_future().share()](Database&) -> Status { return opened.wait(), Status(); },
      [](const Status&) {});
  std::vector<std::future<Status>> answers;  // these form one group behind the gate
  for (int i = 0; i < 9; ++i) {
    auto promise = std::make_shared<std::promise<Status>>();
    answers.push_back(promise->get_future());
    Writer::Work work = Insert("ok");
    if (i == 4) {
      work = [](Database& database) -> Status {
        CAISSON_TRY(InsertEvent(database, {.tenant = "t", .type = "undone"}));
        return Error(ErrorCode::kCancelled, "no");
      };
    }
    writer->Submit(Durability::kSoon, Purpose::kGrow, work,
                   [promise](Status status) { promise->set_value(std::move(status)); });
  }
  gate.set_value();
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].get().has_value(), i != 4) << i;
  EXPECT_EQ(CountEvents(), 8);
}

TEST_F(WriterTest, SoonWaitsForNoFlushAndDurableSharesThem) {
  FakeVfs vfs("writer-groups");
  auto writer = Open({.vfs = vfs.name(), .flush_every = std::chrono::hours(1)});
  const int64_t before = vfs.syncs;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Do(*writer, Durability::kSoon, Insert("soon")));
  EXPECT_EQ(vfs.syncs, before);
  ASSERT_TRUE(Do(*writer, Durability::kDurable, Insert("durable")));
  EXPECT_EQ(vfs.syncs, before + 1);
  // All of these wait behind a gate, so that they form two groups at the most.
  std::promise<void> gate;
  writer->Submit(
      Durability::kSoon, Purpose::kGrow,
      [opened = gate.get_future().share()](Database&) -> Status { return opened.wait(), Status(); },
      [](const Status&) {});
  constexpr int kMany = 400;
  std::atomic<int> left = kMany;
  std::promise<void> all;
  for (int i = 0; i < kMany; ++i) {
    writer->Submit(Durability::kDurable, Purpose::kGrow, Insert("d"), [&](const Status& status) {
      EXPECT_TRUE(status);
      if (--left == 0) all.set_value();
    });
  }
  gate.set_value();
  all.get_future().wait();
  EXPECT_LE(vfs.syncs, before + 4);
}

TEST_F(WriterTest, TheFirstWriteAfterARestartWaitsForNoFlushEither) {
  FakeVfs vfs("writer-restart");
  Open({.vfs = vfs.name()}).reset();
  auto writer = Open({.vfs = vfs.name(), .flush_every = std::chrono::hours(1)});
  const int64_t before = vfs.syncs;
  ASSERT_TRUE(Do(*writer, Durability::kSoon, Insert("first")));
  EXPECT_EQ(vfs.syncs, before);
}

TEST_F(WriterTest, WhatIsSoonIsFlushedInTheBackground) {
  FakeVfs vfs("writer-background");
  auto writer = Open({.vfs = vfs.name(), .flush_every = std::chrono::milliseconds(1)});
  const int64_t before = vfs.syncs;
  ASSERT_TRUE(Do(*writer, Durability::kSoon, Insert("soon")));
  while (vfs.syncs == before) usleep(1000);
}

TEST_F(WriterTest, AfterAFailedFlushNothingIsAcknowledged) {
  FakeVfs vfs("writer-fsync");
  auto writer = Open({.vfs = vfs.name(), .flush_every = std::chrono::hours(1)});
  ASSERT_TRUE(Do(*writer, Durability::kDurable, Insert("a")));
  vfs.syncs_fail = true;
  const Status failed = Do(*writer, Durability::kDurable, Insert("b"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kUnavailable);
  EXPECT_FALSE(failed.error().remedy().empty());
  vfs.syncs_fail = false;  // the disk says yes again; what it lost is lost all the same
  EXPECT_FALSE(Do(*writer, Durability::kDurable, Insert("c")));
  EXPECT_FALSE(Do(*writer, Durability::kSoon, Insert("d")));
  EXPECT_EQ(writer->health().error().code(), ErrorCode::kUnavailable);
  EXPECT_GE(CountEvents(), 1);  // reading goes on
}

TEST_F(WriterTest, OnAFullDiskShrinkingWorkGoesOnAndGrowingWorkIsRefused) {
  FakeVfs vfs("writer-full");
  auto writer = Open({.vfs = vfs.name(), .reserve_retry = std::chrono::hours(1)});
  ASSERT_TRUE(Do(*writer, Durability::kSoon, Insert("a")));
  vfs.room = 0;
  const Status refused = Do(*writer, Durability::kSoon, InsertBytes(5000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_FALSE(writer->out_of_space());  // the reserve is for others
  // The fake disk gets the reserve's room at the moment the work is tried again.
  int attempts = 0;
  const Status shrunk = Do(
      *writer, Durability::kSoon,
      [&](Database& database) -> Status {
        if (++attempts == 3) vfs.room = 100'000;  // together, alone, after giving up the reserve
        return InsertBytes(5000)(database);
      },
      Purpose::kShrink);
  EXPECT_TRUE(shrunk) << shrunk.error().message();
  EXPECT_TRUE(writer->out_of_space());
  EXPECT_NE(access(dir_->PathOf("reserve").c_str(), F_OK), 0);
  const Status growing = Do(*writer, Durability::kSoon, Insert("b"));
  ASSERT_FALSE(growing);
  EXPECT_EQ(growing.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_FALSE(growing.error().remedy().empty());
  EXPECT_TRUE(Do(*writer, Durability::kSoon, Insert("c"), Purpose::kShrink));
  vfs.room = INT64_MAX;
}

TEST_F(WriterTest, WhenThereIsRoomAgainTheReserveIsMadeAnewAndGrowingGoesOn) {
  FakeVfs vfs("writer-room");
  auto writer = Open({.vfs = vfs.name(), .reserve_retry = std::chrono::milliseconds(1)});
  vfs.room = 0;
  int attempts = 0;
  ASSERT_TRUE(Do(
      *writer, Durability::kSoon,
      [&](Database& database) -> Status {
        if (++attempts == 3) vfs.room = INT64_MAX;
        return InsertBytes(5000)(database);
      },
      Purpose::kShrink));
  while (!Do(*writer, Durability::kSoon, Insert("d"))) usleep(1000);
  EXPECT_FALSE(writer->out_of_space());
  EXPECT_EQ(access(dir_->PathOf("reserve").c_str(), F_OK), 0);
}

TEST_F(WriterTest, TheLogIsCopiedBackAndBegunAnew) {
  auto writer = Open({.flush_every = std::chrono::milliseconds(1), .checkpoint_after = 5});
  const auto restarts = [&] {
    auto database = Database::Open(dir_->PathOf("caisson.db"), {.mode = Database::Mode::kReader});
    return *database->Number("SELECT count FROM log_restarts");
  };
  while (restarts() < 3) ASSERT_TRUE(Do(*writer, Durability::kSoon, Insert("a")));
}

TEST_F(WriterTest, EndingFinishesEverything) {
  std::atomic<int> acknowledged = 0;
  {
    auto writer = Open();
    for (int i = 0; i < 600; ++i) {
      const auto durability = i % 2 == 0 ? Durability::kSoon : Durability::kDurable;
      writer->Submit(durability, Purpose::kGrow, Insert("a"),
                     [&](const Status& status) { acknowledged += status ? 1 : 0; });
    }
  }
  EXPECT_EQ(acknowledged, 600);
  EXPECT_EQ(CountEvents(), 600);
}

TEST_F(WriterTest, TooManyWaitingAreRefused) {
  auto writer = Open({.max_waiting = 2});
  std::promise<void> gate;
  std::promise<void> entered;
  writer->Submit(
      Durability::kSoon, Purpose::kGrow,
      [&, opened = gate.get_future().share()](Database&) -> Status {
        return entered.set_value(), opened.wait(), Status();
      },
      [](const Status&) {});
  entered.get_future().wait();
  for (int i = 0; i < 2; ++i) {
    writer->Submit(Durability::kSoon, Purpose::kGrow, Insert("a"), [](const Status&) {});
  }
  EXPECT_EQ(Do(*writer, Durability::kSoon, Insert("b")).error().code(),
            ErrorCode::kResourceExhausted);
  gate.set_value();
}

// The child says over a pipe what was acknowledged to it; the parent kills it in the middle.
TEST_F(WriterTest, KillingTheProcessLosesNothingAcknowledged) {
  dir_.reset();
  for (const auto durability : {Durability::kSoon, Durability::kDurable}) {
    int pipe_fds[2];
    ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto dir = DataDir::Open(directory_.path());
      auto writer = Writer::Open(*dir, {.checkpoint_after = 10});
      for (int i = 0;; ++i) {
        if (!Do(**writer, durability, Insert("n" + std::to_string(i)))) _exit(1);
        if (write(pipe_fds[1], &i, sizeof i) != sizeof i) _exit(1);
      }
    }
    close(pipe_fds[1]);
    int last = -1;
    while (last < 30) ASSERT_EQ(read(pipe_fds[0], &last, sizeof last), ssize_t{sizeof last});
    kill(child, SIGKILL);
    while (read(pipe_fds[0], &last, sizeof last) == ssize_t{sizeof last}) continue;
    close(pipe_fds[0]);
    waitpid(child, nullptr, 0);

    auto database = Database::Open(directory_.PathOf("caisson.db"));
    ASSERT_TRUE(database) << database.error().message();
    EXPECT_TRUE(database->CheckIntegrity());
    std::set<std::string> kept;
    ASSERT_TRUE(database->Each("SELECT type FROM events", {},
                               [&](const Row& row) { kept.insert(row.Text(0)); }));
    for (int i = 0; i <= last; ++i) EXPECT_TRUE(kept.contains("n" + std::to_string(i))) << i;
    ASSERT_TRUE(database->Run("DELETE FROM events"));
  }
}

}  // namespace
}  // namespace caisson::store
