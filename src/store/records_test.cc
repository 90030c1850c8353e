// The record files share one shape, so one test file asks of each what its header promises.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/artifact_records.h"
#include "store/cursor.h"
#include "store/event_records.h"
#include "store/exec_records.h"
#include "store/key_records.h"
#include "store/session_records.h"
#include "store/test_directory.h"
#include "store/usage_records.h"
#include "store/webhook_records.h"

namespace caisson::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RecordsTest : public testing::Test {
 protected:
  TestDirectory directory_;
  Database database_ = NewDatabase(directory_.PathOf("test.db"));
};

SessionRecord Session(std::string id, int64_t created_ms = 1) {
  SessionRecord record;
  record.id = std::move(id);
  record.tenant = "acme";
  record.owner_key = "k1";
  record.provider = "native";
  record.environment = "host";
  record.created_ms = record.updated_ms = created_ms;
  return record;
}

std::vector<std::string> Ids(const std::vector<SessionRecord>& sessions) {
  std::vector<std::string> ids;
  for (const auto& session : sessions) ids.push_back(session.id);
  return ids;
}

TEST_F(RecordsTest, ASessionComesBackAsItWasWritten) {
  SessionRecord record = Session("s1");
  record.name = "first";
  record.labels = {{"app", "x"}, {"team", "y"}};
  record.expires_ms = 99;
  record.generation = 3;
  ASSERT_TRUE(InsertSession(database_, record));
  record.state = SessionState::kRunning;
  record.labels = {{"app", "z"}};
  record.sandbox_id = "box";
  ASSERT_TRUE(UpdateSession(database_, record));
  const auto found = *FindSession(database_, "s1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "first");
  EXPECT_EQ(found->state, SessionState::kRunning);
  EXPECT_EQ(found->labels, record.labels);
  EXPECT_EQ(found->sandbox_id, "box");
  EXPECT_EQ(found->expires_ms, 99);
  EXPECT_EQ(found->generation, 3);
  EXPECT_EQ(*FindSession(database_, "s2"), std::nullopt);
}

TEST_F(RecordsTest, ANameIsTakenOnlyWhileItsSessionLives) {
  SessionRecord first = Session("s1");
  first.name = "n";
  SessionRecord second = Session("s2");
  second.name = "n";
  ASSERT_TRUE(InsertSession(database_, first));
  EXPECT_EQ(InsertSession(database_, second).error().code(), ErrorCode::kConflict);
  SessionRecord foreign = Session("s3");
  foreign.name = "n";
  foreign.tenant = "other";
  EXPECT_TRUE(InsertSession(database_, foreign));
  ASSERT_TRUE(SetSessionState(database_, "s1", SessionState::kDestroyed, "asked", 5));
  EXPECT_TRUE(InsertSession(database_, second));
  EXPECT_EQ((*FindSessionByName(database_, "acme", "n"))->id, "s2");
}

TEST_F(RecordsTest, EveryStateHasANameThatLeadsBack) {
  for (int i = 0; i < 8; ++i) {
    const auto state = static_cast<SessionState>(i);
    EXPECT_EQ(SessionStateFrom(NameOf(state)), state);
  }
  EXPECT_EQ(SessionStateFrom("nonsense"), std::nullopt);
}

TEST_F(RecordsTest, LiveSessionsAreThoseThatHaveNotEnded) {
  for (const char* id : {"a", "b", "c", "d"}) ASSERT_TRUE(InsertSession(database_, Session(id)));
  ASSERT_TRUE(SetSessionState(database_, "b", SessionState::kFailed, "broke", 5));
  ASSERT_TRUE(SetSessionState(database_, "c", SessionState::kStopping, "", 5));
  EXPECT_THAT(Ids(*LiveSessions(database_)), ElementsAre("a", "c", "d"));
  EXPECT_EQ(SetSessionState(database_, "x", SessionState::kLost, "", 5).error().code(),
            ErrorCode::kNotFound);
}

TEST_F(RecordsTest, PagesCoverEverySessionOnceNewestFirst) {
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(InsertSession(database_, Session("s" + std::to_string(i), i / 2)));
  }
  SessionFilter filter{.tenant = "acme", .limit = 3};
  std::vector<std::string> seen;
  int pages = 0;
  do {
    const auto page = ListSessions(database_, filter);
    ASSERT_TRUE(page) << page.error().message();
    for (const std::string& id : Ids(page->sessions)) seen.push_back(id);
    filter.cursor = page->next_cursor;
    ++pages;
  } while (!filter.cursor.empty());
  EXPECT_EQ(pages, 3);
  EXPECT_THAT(seen, ElementsAre("s6", "s5", "s4", "s3", "s2", "s1", "s0"));
}

TEST_F(RecordsTest, FiltersNarrowTogether) {
  SessionRecord a = Session("a");
  a.labels = {{"app", "x"}, {"team", "y"}};
  SessionRecord b = Session("b");
  b.labels = {{"app", "x"}};
  b.state = SessionState::kRunning;
  SessionRecord c = Session("c");
  c.tenant = "other";
  c.labels = {{"app", "x"}};
  for (const auto& record : {a, b, c}) ASSERT_TRUE(InsertSession(database_, record));
  const auto list = [&](const SessionFilter& filter) {
    return Ids(ListSessions(database_, filter)->sessions);
  };
  EXPECT_THAT(list({.labels = {{"app", "x"}}}), ElementsAre("c", "b", "a"));
  EXPECT_THAT(list({.tenant = "acme", .labels = {{"app", "x"}}}), ElementsAre("b", "a"));
  EXPECT_THAT(list({.labels = {{"app", "x"}, {"team", "y"}}}), ElementsAre("a"));
  EXPECT_THAT(list({.labels = {{"app", "y"}}}), IsEmpty());
  EXPECT_THAT(list({.states = {SessionState::kRunning, SessionState::kPaused}}), ElementsAre("b"));
  EXPECT_THAT(list({.owner_key = "k2"}), IsEmpty());
}

TEST_F(RecordsTest, BadPagesAreRefused) {
  for (const char* cursor : {"!", "abc", "eA", "MTIz"}) {
    EXPECT_EQ(ListSessions(database_, {.cursor = cursor}).error().code(),
              ErrorCode::kInvalidArgument)
        << cursor;
  }
  EXPECT_FALSE(ListSessions(database_, {.limit = 0}));
  EXPECT_FALSE(ListSessions(database_, {.limit = 1001}));
  const auto cursor = DecodeCursor(EncodeCursor({-5, "a:b"}));
  EXPECT_EQ(cursor->time_ms, -5);
  EXPECT_EQ(cursor->id, "a:b");
}

TEST_F(RecordsTest, AnIdempotencyKeyLeadsToItsSessionForTheSameBodyOnly) {
  const IdempotencyKey key{"acme", "once", "digest"};
  EXPECT_EQ(*FindIdempotent(database_, key), std::nullopt);
  ASSERT_TRUE(InsertIdempotent(database_, key, "s1", 5));
  EXPECT_EQ(*FindIdempotent(database_, key), "s1");
  EXPECT_EQ(FindIdempotent(database_, {"acme", "once", "other"}).error().code(),
            ErrorCode::kConflict);
  EXPECT_EQ(*FindIdempotent(database_, {"other", "once", "other"}), std::nullopt);
  EXPECT_EQ(InsertIdempotent(database_, key, "s2", 5).error().code(), ErrorCode::kConflict);
  ASSERT_TRUE(ForgetIdempotent(database_, "s1"));
  EXPECT_EQ(*FindIdempotent(database_, key), std::nullopt);
  EXPECT_TRUE(InsertIdempotent(database_, key, "s2", 5));
}

TEST_F(RecordsTest, PurgingTakesEndedSessionsWithAllThatHangsOnThem) {
  SessionRecord record = Session("old");
  record.labels = {{"a", "b"}};
  ASSERT_TRUE(InsertSession(database_, record));
  ASSERT_TRUE(InsertSession(database_, Session("live")));
  ASSERT_TRUE(InsertExec(database_, {.session_id = "old", .id = "e", .command = "[]"}));
  ASSERT_TRUE(SetSessionState(database_, "old", SessionState::kDestroyed, "", 10));
  EXPECT_THAT(*PurgeSessions(database_, 10, 100), IsEmpty());
  EXPECT_THAT(*PurgeSessions(database_, 11, 100), ElementsAre("old"));
  EXPECT_EQ(*database_.Number("SELECT count(*) FROM session_labels"), 0);
  EXPECT_EQ(*database_.Number("SELECT count(*) FROM execs"), 0);
  EXPECT_THAT(Ids(*LiveSessions(database_)), ElementsAre("live"));
}

TEST_F(RecordsTest, AnExecEndsOnce) {
  ASSERT_TRUE(InsertSession(database_, Session("s")));
  ExecRecord exec{.session_id = "s", .id = "e1", .command = "[\"true\"]", .started_ms = 5};
  ASSERT_TRUE(InsertExec(database_, exec));
  EXPECT_EQ(OpenExecs(database_)->size(), 1U);
  exec.status = "exited";
  exec.exit_code = 3;
  exec.stdout_end = 42;
  exec.ended_ms = 9;
  ASSERT_TRUE(FinishExec(database_, exec));
  EXPECT_EQ(FinishExec(database_, exec).error().code(), ErrorCode::kConflict);
  EXPECT_THAT(*OpenExecs(database_), IsEmpty());
  const auto found = *FindExec(database_, "s", "e1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->exit_code, 3);
  EXPECT_EQ(found->stdout_end, 42);
  exec.id = "e2";
  EXPECT_EQ(FinishExec(database_, exec).error().code(), ErrorCode::kNotFound);
  exec.session_id = "none";
  EXPECT_FALSE(InsertExec(database_, exec));  // of a session that is not there
}

TEST_F(RecordsTest, ExecsAreListedInPages) {
  ASSERT_TRUE(InsertSession(database_, Session("s")));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(InsertExec(database_, {.session_id = "s",
                                       .id = "e" + std::to_string(i),
                                       .command = "[]",
                                       .started_ms = i,
                                       .ended_ms = 9}));
  }
  ASSERT_TRUE(InsertExec(database_, {.session_id = "s", .id = "e9", .command = "[]"}));
  const auto first = *ListEndedExecs(database_, "s", "", 2);
  ASSERT_EQ(first.execs.size(), 2U);
  EXPECT_EQ(first.execs[0].id, "e2");
  const auto second = *ListEndedExecs(database_, "s", first.next_cursor, 2);
  ASSERT_EQ(second.execs.size(), 1U);
  EXPECT_EQ(second.execs[0].id, "e0");
  EXPECT_EQ(second.next_cursor, "");
}

TEST_F(RecordsTest, KeysKeepTheirFieldsAndTheirLatestUse) {
  KeyRecord key{.id = "k", .name = "ci", .tenant = "acme", .role = "developer", .hash = "h"};
  ASSERT_TRUE(InsertKey(database_, key));
  EXPECT_EQ(InsertKey(database_, key).error().code(), ErrorCode::kConflict);
  ASSERT_TRUE(TouchKey(database_, "k", 50));
  ASSERT_TRUE(TouchKey(database_, "k", 40));
  ASSERT_TRUE(TouchKey(database_, "none", 40));
  auto keys = *AllKeys(database_);
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].last_used_ms, 50);
  EXPECT_EQ(keys[0].next_hash, std::nullopt);
  keys[0].revoked_ms = 60;
  keys[0].next_hash = "n";
  ASSERT_TRUE(UpdateKey(database_, keys[0]));
  EXPECT_EQ(AllKeys(database_)->front().next_hash, "n");
  ASSERT_TRUE(PurgeKeys(database_, 61));
  EXPECT_THAT(*AllKeys(database_), IsEmpty());
  EXPECT_EQ(UpdateKey(database_, key).error().code(), ErrorCode::kNotFound);
}

TEST_F(RecordsTest, EventsAreFoundByRangeAndFilter) {
  for (int i = 1; i <= 5; ++i)
    ASSERT_TRUE(InsertEvent(database_, {.seq = i,
                                        .tenant = "t",
                                        .session_id = i % 2 == 0 ? "a" : "b",
                                        .type = i < 3 ? "x" : "y",
                                        .key_id = "k"}));
  ASSERT_TRUE(InsertEvent(database_, {.seq = 9, .type = std::string(kEventsMissed)}));
  EXPECT_EQ(InsertEvent(database_, {.seq = 3}).error().code(), ErrorCode::kConflict);
  const auto found = [this](EventRange range) {
    std::vector<int64_t> numbers;
    const auto events = ListEvents(database_, range);
    EXPECT_TRUE(events);
    for (const EventRecord& event : *events) numbers.push_back(event.seq);
    return numbers;
  };
  EXPECT_THAT(found({.from = 4}), ElementsAre(4, 5, 9));
  EXPECT_THAT(found({.from = 2, .to = 3}), ElementsAre(2, 3));
  EXPECT_THAT(found({.session_id = "a"}), ElementsAre(2, 4, 9));
  EXPECT_THAT(found({.key_id = "k", .types = {"x", "z"}}), ElementsAre(1, 2, 9));
  EXPECT_THAT(found({.tenant = "other"}), ElementsAre(9));
  EXPECT_THAT(found({.limit = 2}), ElementsAre(1, 2));
}

TEST_F(RecordsTest, EventsAreForgottenFromTheOldestOnAndNumbersAreNot) {
  EXPECT_EQ(*NewestEvent(database_), 0);
  EXPECT_EQ(*OldestEvent(database_), std::nullopt);
  for (int i = 1; i <= 6; ++i)
    ASSERT_TRUE(InsertEvent(database_, {.seq = i, .time_ms = i == 3 ? 100 : i, .tenant = "t"}));
  EXPECT_EQ(*PurgeEvents(database_, 50, 1000, 1), 1);
  EXPECT_EQ(*PurgeEvents(database_, 50, 1000, 100), 1);
  EXPECT_EQ(*OldestEvent(database_), 3);  // the clock went back after it: it holds the others
  EXPECT_EQ(*PurgeEvents(database_, 0, 2, 100), 2);
  EXPECT_EQ(*OldestEvent(database_), 5);
  EXPECT_EQ(*PurgeEvents(database_, 1000, 1000, 100), 2);
  EXPECT_EQ(*OldestEvent(database_), std::nullopt);
  EXPECT_EQ(*NewestEvent(database_), 6);
}

TEST_F(RecordsTest, UsageAddsUpPerDayAndKey) {
  UsageRecord usage{.tenant = "t", .key_id = "k", .day = 1, .creates = 1, .cpu_us = 10};
  ASSERT_TRUE(AddUsage(database_, usage));
  ASSERT_TRUE(AddUsage(database_, usage));
  usage.day = 2;
  ASSERT_TRUE(AddUsage(database_, usage));
  const auto all = *ListUsage(database_, {.tenant = "t"});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].creates, 2);
  EXPECT_EQ(all[0].cpu_us, 20);
  EXPECT_EQ(ListUsage(database_, {.first_day = 2})->size(), 1U);
  ASSERT_TRUE(PurgeUsage(database_, 2));
  EXPECT_EQ(ListUsage(database_, {})->size(), 1U);
  EXPECT_EQ(DayOf(86'400'000), 1);
}

TEST_F(RecordsTest, DeliveriesGoOutInOrderPerSessionAndTarget) {
  ASSERT_TRUE(InsertWebhook(database_, {.id = "w", .tenant = "t", .url = "https://x"}));
  DeliveryRecord delivery{.webhook_id = "w", .ordering_key = "s1", .body = "{}"};
  const int64_t first = *InsertDelivery(database_, delivery);
  const int64_t second = *InsertDelivery(database_, delivery);
  delivery.ordering_key = "s2";
  const int64_t other = *InsertDelivery(database_, delivery);
  const auto due = [&](int64_t now) {
    std::vector<int64_t> ids;
    for (const auto& entry : *DueDeliveries(database_, now, 10)) ids.push_back(entry.id);
    return ids;
  };
  EXPECT_THAT(due(0), ElementsAre(first, other));
  DeliveryRecord retry = DueDeliveries(database_, 0, 10)->front();
  retry.attempts = 1;
  retry.next_ms = 100;
  ASSERT_TRUE(UpdateDelivery(database_, retry));
  EXPECT_THAT(due(50), ElementsAre(other));
  EXPECT_THAT(due(100), ElementsAre(other, first));
  EXPECT_EQ(*NextDeliveryTime(database_), 0);
  retry.state = DeliveryState::kDead;
  retry.ended_ms = 101;
  ASSERT_TRUE(UpdateDelivery(database_, retry));
  EXPECT_THAT(due(100), ElementsAre(second, other));
  EXPECT_EQ(ListDeliveries(database_, "w", DeliveryState::kDead, 10)->size(), 1U);
  EXPECT_EQ(ListDeliveries(database_, "w", std::nullopt, 10)->size(), 3U);
  ASSERT_TRUE(PurgeDeliveries(database_, 102));
  EXPECT_EQ(ListDeliveries(database_, "w", std::nullopt, 10)->size(), 2U);
}

TEST_F(RecordsTest, APausedTargetGetsNothingAndARemovedOneTakesItsDeliveriesAlong) {
  WebhookRecord webhook{.id = "w", .tenant = "t", .url = "https://x"};
  ASSERT_TRUE(InsertWebhook(database_, webhook));
  ASSERT_TRUE(InsertDelivery(database_, {.webhook_id = "w", .body = "{}"}));
  webhook.status = WebhookRecord::Status::kPaused;
  ASSERT_TRUE(UpdateWebhook(database_, webhook));
  EXPECT_THAT(*DueDeliveries(database_, 0, 10), IsEmpty());
  EXPECT_EQ(*NextDeliveryTime(database_), std::nullopt);
  EXPECT_EQ(ListWebhooks(database_, "t")->size(), 1U);
  EXPECT_THAT(*ListWebhooks(database_, "other"), IsEmpty());
  ASSERT_TRUE(RemoveWebhook(database_, "w"));
  EXPECT_EQ(*database_.Number("SELECT count(*) FROM deliveries"), 0);
  EXPECT_EQ(RemoveWebhook(database_, "w").error().code(), ErrorCode::kNotFound);
}

TEST_F(RecordsTest, ArtifactsOutliveTheirSession) {
  ArtifactRecord artifact{
      .id = "a", .session_id = "gone", .tenant = "t", .path = "/out", .size = 7};
  ASSERT_TRUE(InsertArtifact(database_, artifact));
  EXPECT_EQ((*FindArtifact(database_, "a"))->path, "/out");
  EXPECT_EQ(ListArtifacts(database_, "gone")->size(), 1U);
  EXPECT_EQ(*ArtifactBytes(database_, "t"), 7);
  EXPECT_EQ(*ArtifactBytes(database_, "other"), 0);
  EXPECT_THAT(*PurgeArtifacts(database_, 1, 10), ElementsAre("a"));
  EXPECT_EQ(RemoveArtifact(database_, "a").error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace caisson::store
