#include "sandbox/event_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/fake_sink.h"
#include "store/event_records.h"
#include "store/test_directory.h"

namespace caisson::sandbox {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class EventArchiveTest : public testing::Test {
 protected:
  EventArchiveTest() { Restart(); }

  // A new server on the same data directory; the former one's events are told up to the last.
  void Restart() {
    archive.reset();
    bus.reset();
    store.reset();
    store = store::Store::Open(loop, directory.path()).value();
    const auto next = loop.RunUntilDone(EventArchive::NextNumber(store.get())).value();
    bus = std::make_unique<EventBus>(loop, SystemTime, 4, next);
    archive =
        std::make_unique<EventArchive>(loop, *bus, *store, log::Logger(sink, log::Level::kDebug));
  }
  void Publish(int count, std::string session = "s", std::string key = "k") {
    for (int i = 0; i < count; ++i) {
      bus->Publish({.kind = i % 2 == 0 ? EventKind::kExecStarted : EventKind::kExecEnded,
                    .session_id = session,
                    .tenant = "t",
                    .key_id = key,
                    .details = {{"process", std::to_string(i)}}});
      loop.RunUntilDone(bus->Settled());
    }
  }
  // Numbers of events; a range that is missing as "-FROM, -TO".
  std::vector<int> Read(EventFilter filter, uint64_t after) {
    EventReader reader(*bus, archive.get(), std::move(filter), after);
    std::vector<int> seen;
    for (;;) {
      auto item = loop.RunUntilDone(reader.Poll());
      EXPECT_TRUE(item);
      if (!item || !*item) return seen;
      if (const auto* missed = std::get_if<EventsMissed>(&**item)) {
        seen.push_back(-static_cast<int>(missed->from));
        seen.push_back(-static_cast<int>(missed->to));
      } else {
        seen.push_back(static_cast<int>(std::get<SessionEvent>(**item).sequence));
      }
    }
  }
  Status Write(store::Writer::Work work) {
    return loop.RunUntilDone(store->Write(store::Durability::kSoon, std::move(work)));
  }

  async::Loop loop;
  store::TestDirectory directory;
  log::FakeSink sink;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<EventBus> bus;
  std::unique_ptr<EventArchive> archive;
};

TEST_F(EventArchiveTest, WhatTheBusHasForgottenComesFromTheStore) {
  Publish(10);
  EXPECT_THAT(Read({}, 0), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(Read({}, 4), ElementsAre(5, 6, 7, 8, 9, 10));
  EXPECT_THAT(Read({.kinds = {EventKind::kExecEnded}}, 1), ElementsAre(2, 4, 6, 8, 10));
}

TEST_F(EventArchiveTest, NumbersGoOnAndEventsAreWhatTheyWereAfterARestart) {
  Publish(3);
  Restart();
  EXPECT_EQ(bus->next_sequence(), 4u);
  Publish(2, "other", "k2");
  EXPECT_THAT(Read({}, 1), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(Read({.session_id = "s"}, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(Read({.key_id = "k2"}, 0), ElementsAre(4, 5));
  EventReader reader(*bus, archive.get(), {}, 1);
  const auto item = loop.RunUntilDone(reader.Next()).value();
  const auto& event = std::get<SessionEvent>(item);
  EXPECT_EQ(event.kind, EventKind::kExecEnded);
  EXPECT_EQ(event.tenant, "t");
  EXPECT_THAT(event.details, ElementsAre(std::pair<std::string, std::string>("process", "1")));
  EXPECT_GT(event.time.time_since_epoch().count(), 0);
}

TEST_F(EventArchiveTest, WhatHasBeenPurgedIsToldAsMissed) {
  Publish(9);
  ASSERT_TRUE(Write([](store::Database& db) -> Status {
    CAISSON_TRY(store::PurgeEvents(db, 0, 6, 100));
    return {};
  }));
  EXPECT_THAT(Read({}, 1), ElementsAre(-2, -3, 4, 5, 6, 7, 8, 9));
  ASSERT_TRUE(Write([](store::Database& db) -> Status {
    CAISSON_TRY(store::PurgeEvents(db, INT64_MAX, 0, 100));
    return {};
  }));
  Restart();
  EXPECT_EQ(bus->next_sequence(), 10u);  // nothing is left, and no number comes again
  Publish(1);
  EXPECT_THAT(Read({}, 0), ElementsAre(-1, -9, 10));
}

TEST_F(EventArchiveTest, EventsThatCouldNotBeWrittenAreToldAndKnownToBeMissing) {
  Publish(2);
  // Somebody has taken number 3, so that the group that begins with it cannot be written.
  ASSERT_TRUE(Write([](store::Database& db) { return store::InsertEvent(db, {.seq = 3}); }));
  auto live = bus->Subscribe({});
  for (int i = 0; i < 2; ++i)
    bus->Publish({.kind = EventKind::kAlert, .session_id = "s", .tenant = "t"});
  loop.RunUntilDone(bus->Settled());
  EXPECT_EQ(std::get<SessionEvent>(*live->Poll()).sequence, 3u);
  EXPECT_THAT(sink.lines(), Contains(HasSubstr("events were not kept")));
  Restart();
  EXPECT_EQ(bus->next_sequence(), 5u);
  EXPECT_THAT(Read({.session_id = "s"}, 1), ElementsAre(2, -3, -4));
}

TEST_F(EventArchiveTest, ARangeThatIsMissingIsToldToEverybody) {
  ASSERT_TRUE(Write([](store::Database& db) {
    return store::InsertEvent(
        db, {.seq = 8, .type = std::string(store::kEventsMissed), .body = R"({"from": 5})"});
  }));
  Restart();
  Publish(1);
  EXPECT_THAT(Read({.session_id = "s"}, 6), ElementsAre(-7, -8, 9));
}

TEST_F(EventArchiveTest, NothingIsLostWhenAWaitIsGivenUp) {
  Publish(8);
  EventReader reader(*bus, archive.get(), {}, 0);
  {
    Task<Result<EventItem>> given_up = reader.Next();
    given_up.Start();  // waits for the store
  }
  const auto item = loop.RunUntilDone(reader.Next()).value();
  EXPECT_EQ(std::get<SessionEvent>(item).sequence, 1u);
}

}  // namespace
}  // namespace caisson::sandbox
