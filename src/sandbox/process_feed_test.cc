#include "sandbox/process_feed.h"

#include <gtest/gtest.h>

#include "sandbox/fake_provider.h"

namespace caisson::sandbox {
namespace {

struct Heard {
  std::string out, err;
  std::vector<OutputGap> gaps;
  std::vector<ExecOutcome> outcomes;
};

class ProcessFeedTest : public testing::Test {
 protected:
  std::shared_ptr<ProcessFeed> Feed(size_t ring = 1000) {
    command = std::make_shared<FakeCommand>(loop);
    return std::make_shared<ProcessFeed>(loop, std::make_unique<FakeProcess>(command),
                                         ProcessFacts{}, ring);
  }
  void Turn() {
    loop.RunUntilDone([](async::Loop* l) -> Task<void> {
      for (int i = 0; i < 50; ++i) co_await l->Yield();
    }(&loop));
  }
  static void Take(ProcessFeed::Subscription& from, Heard& heard) {
    while (auto item = from.Poll()) {
      if (auto* chunk = std::get_if<OutputChunk>(&*item))
        (chunk->stream == Stream::kStdout ? heard.out : heard.err) += chunk->data;
      else if (auto* gap = std::get_if<OutputGap>(&*item))
        heard.gaps.push_back(*gap);
      else
        heard.outcomes.push_back(std::get<ExecOutcome>(*item));
    }
  }
  async::Loop loop;
  std::shared_ptr<FakeCommand> command;
};

TEST_F(ProcessFeedTest, GivesBothStreamsThenTheOutcomeOnceToEverySubscriber) {
  auto feed = Feed();
  auto first = feed->Subscribe(Pace::kHolds, {});
  auto second = feed->Subscribe(Pace::kFollows, {});
  feed->Start();
  command->Out("a");
  command->Err("x");
  command->Out("b");
  command->Exit(3);
  Turn();
  for (auto* subscription : {first.get(), second.get()}) {
    Heard heard;
    Take(*subscription, heard);
    EXPECT_EQ(heard.out, "ab");
    EXPECT_EQ(heard.err, "x");
    EXPECT_TRUE(heard.gaps.empty());
    ASSERT_EQ(heard.outcomes.size(), 1u);
    EXPECT_EQ(heard.outcomes[0].exit_code, 3);
    EXPECT_EQ(loop.RunUntilDone(subscription->Next()), std::nullopt);
  }
}

TEST_F(ProcessFeedTest, WhoComesLateReplaysFromAnOffset) {
  auto feed = Feed();
  feed->Start();
  command->Out("hello ");
  command->Out("world");
  Turn();
  auto late = feed->Subscribe(Pace::kFollows, {.out = 4});
  Heard heard;
  Take(*late, heard);
  EXPECT_EQ(heard.out, "o world");
  command->Out("!");
  command->Exit(0);
  Turn();
  Take(*late, heard);
  EXPECT_EQ(heard.out, "o world!");
  EXPECT_TRUE(heard.gaps.empty());
}

TEST_F(ProcessFeedTest, WithoutAHolderTheOldestBytesGoAndTheGapIsTold) {
  auto feed = Feed(1000);
  auto slow = feed->Subscribe(Pace::kFollows, {});
  feed->Start();
  for (int i = 0; i < 20; ++i) command->Out(std::string(100, static_cast<char>('a' + i)));
  command->Exit(0);
  Turn();
  EXPECT_TRUE(command->output.empty());
  Heard heard;
  Take(*slow, heard);
  ASSERT_EQ(heard.gaps.size(), 1u);
  EXPECT_EQ(heard.gaps[0].from, 0u);
  EXPECT_EQ(heard.gaps[0].to + heard.out.size(), 2000u);
  EXPECT_LE(heard.out.size(), 1100u);
  EXPECT_EQ(heard.out.back(), 'a' + 19);
  EXPECT_EQ(feed->begin().out, heard.gaps[0].to);
}

TEST_F(ProcessFeedTest, AHolderMakesTheCommandWaitAndMissesNothing) {
  auto feed = Feed(1000);
  auto holder = feed->Subscribe(Pace::kHolds, {});
  feed->Start();
  std::string wrote;
  for (int i = 0; i < 50; ++i) {
    wrote += std::string(100, static_cast<char>('0' + i));
    command->Out(wrote.substr(wrote.size() - 100));
  }
  command->Exit(0);
  Turn();
  EXPECT_GE(command->output.size(), 40u);  // not fetched: the command would wait
  Heard heard;
  for (int i = 0; i < 50 && heard.outcomes.empty(); ++i) {
    Take(*holder, heard);
    Turn();
  }
  EXPECT_EQ(heard.out, wrote);
  EXPECT_TRUE(heard.gaps.empty());
  ASSERT_EQ(heard.outcomes.size(), 1u);
}

TEST_F(ProcessFeedTest, AHolderThatGoesLetsTheCommandGoOn) {
  auto feed = Feed(1000);
  auto holder = feed->Subscribe(Pace::kHolds, {});
  feed->Start();
  for (int i = 0; i < 50; ++i) command->Out(std::string(100, 'x'));
  Turn();
  EXPECT_FALSE(command->output.empty());
  holder.reset();
  Turn();
  EXPECT_TRUE(command->output.empty());
}

TEST_F(ProcessFeedTest, ABrokenConnectionIsALostOutcomeNeverAMadeUpOne) {
  auto feed = Feed();
  feed->Start();
  command->Out("half");
  Turn();
  command->broken = true;
  command->changed.Wake();
  const ExecOutcome outcome = loop.RunUntilDone(feed->Wait());
  EXPECT_EQ(outcome.status, OutcomeStatus::kLost);
  EXPECT_EQ(outcome.exit_code, -1);
  EXPECT_NE(outcome.reason.find("connection broke"), std::string::npos);
}

TEST_F(ProcessFeedTest, InputSignalsAndSizeReachTheCommandUntilItHasEnded) {
  auto feed = Feed();
  feed->Start();
  EXPECT_TRUE(loop.RunUntilDone(feed->Write("in")));
  EXPECT_TRUE(loop.RunUntilDone(feed->Resize(30, 100)));
  EXPECT_TRUE(loop.RunUntilDone(feed->CloseStdin()));
  EXPECT_TRUE(loop.RunUntilDone(feed->Signal(15, SignalScope::kGroup)));
  EXPECT_EQ(command->input, "in");
  EXPECT_EQ(command->cols, 100);
  EXPECT_TRUE(command->stdin_closed);
  EXPECT_EQ(command->signals, std::vector<int>{15});
  command->Exit(0);
  Turn();
  EXPECT_EQ(loop.RunUntilDone(feed->Write("late")).error().code(), ErrorCode::kGone);
}

}  // namespace
}  // namespace caisson::sandbox
