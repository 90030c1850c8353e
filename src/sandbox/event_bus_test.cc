#include "sandbox/event_bus.h"

#include <gtest/gtest.h>

namespace caisson::sandbox {
namespace {

class EventBusTest : public testing::Test {
 protected:
  void Publish(EventKind kind, std::string session = "s", std::string tenant = "t") {
    bus.Publish({.kind = kind, .session_id = std::move(session), .tenant = std::move(tenant)});
  }
  async::Loop loop;
  EventBus bus{loop, SystemTime, 4, 10};
};

TEST_F(EventBusTest, NumbersGoOnWithoutGapsAndNamesAreStable) {
  auto all = bus.Subscribe({});
  Publish(EventKind::kSessionCreated);
  Publish(EventKind::kExecEnded);
  EXPECT_EQ(std::get<SessionEvent>(*all->Poll()).sequence, 10u);
  const auto second = std::get<SessionEvent>(loop.RunUntilDone(all->Next()));
  EXPECT_EQ(second.sequence, 11u);
  EXPECT_EQ(NameOf(second.kind), "exec.ended");
  EXPECT_EQ(EventKindFrom("exec.ended"), EventKind::kExecEnded);
  EXPECT_EQ(EventKindFrom("exec"), std::nullopt);
  EXPECT_EQ(NameOf(EventKind::kAudit), "audit");
}

TEST_F(EventBusTest, ASlowSubscriberIsToldWhatItMissed) {
  auto slow = bus.Subscribe({});
  for (int i = 0; i < 7; ++i) Publish(EventKind::kAlert);
  const auto missed = std::get<EventsMissed>(*slow->Poll());
  EXPECT_EQ(missed.from, 10u);
  EXPECT_EQ(missed.to, 12u);
  for (uint64_t n = 13; n < 17; ++n) EXPECT_EQ(std::get<SessionEvent>(*slow->Poll()).sequence, n);
  EXPECT_FALSE(slow->Poll());
}

TEST_F(EventBusTest, WhereEventsAreKeptOneIsToldWhenItIs) {
  auto told = bus.Subscribe({}), keeper = bus.Subscribe({}, std::nullopt, Sight::kPublished);
  bus.TellWhenKept();
  for (int i = 0; i < 3; ++i) Publish(EventKind::kAlert);
  EXPECT_TRUE(keeper->Poll());
  EXPECT_FALSE(told->Poll());
  bus.KeptThrough(11);
  EXPECT_EQ(std::get<SessionEvent>(*told->Poll()).sequence, 10u);
  EXPECT_EQ(std::get<SessionEvent>(loop.RunUntilDone(told->Next())).sequence, 11u);
  EXPECT_FALSE(told->Poll());
  // Those that are overwritten before they are kept are missed only when they may be told.
  for (int i = 0; i < 6; ++i) Publish(EventKind::kAlert);
  EXPECT_FALSE(told->Poll());
  bus.KeptThrough(13);
  EXPECT_EQ(std::get<EventsMissed>(*told->Poll()).to, 13u);
  EXPECT_FALSE(told->Poll());
}

TEST_F(EventBusTest, SubscribersReplayAndFilter) {
  Publish(EventKind::kSessionCreated, "a", "t1");
  Publish(EventKind::kSessionCreated, "b", "t2");
  Publish(EventKind::kSessionPaused, "a", "t1");
  auto replay = bus.Subscribe({.tenant = "t1"}, 9);
  EXPECT_EQ(std::get<SessionEvent>(*replay->Poll()).sequence, 10u);
  EXPECT_EQ(std::get<SessionEvent>(*replay->Poll()).sequence, 12u);
  EXPECT_FALSE(replay->Poll());
  auto paused = bus.Subscribe({.session_id = "a", .kinds = {EventKind::kSessionPaused}}, 9);
  EXPECT_EQ(std::get<SessionEvent>(*paused->Poll()).sequence, 12u);
  EXPECT_FALSE(bus.Subscribe({}, 99999)->Poll());
}

}  // namespace
}  // namespace caisson::sandbox
