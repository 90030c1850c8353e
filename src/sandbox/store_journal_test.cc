#include "sandbox/store_journal.h"

#include <gtest/gtest.h>

#include "sandbox/session_spec_json.h"
#include "store/test_directory.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;

SessionRecord Record(std::string id) {
  SessionRecord record;
  record.id = record.sandbox_id = std::move(id);
  record.owner = {"acme", "key1"};
  record.provider = "native";
  record.boot_id = "boot";
  record.spec = {.environment = "Python3",
                 .profile = Profile::kStrict,
                 .user = "me",
                 .limits = {.memory_bytes = uint64_t{1} << 40, .cpu_millis = 250, .wall_time = 5s},
                 .env = {{"A", "1"}},
                 .metadata = {{"m", "\"quoted\""}},
                 .labels = {{"team", "x"}},
                 .name = "box",
                 .timeout = 90s,
                 .artifacts = {"*.csv"},
                 .scaling = {1, 2, 3, 4},
                 .warm = WarmUse::kNever};
  record.created = record.updated = WallTime(1000ms);
  record.expires = WallTime(91000ms);
  return record;
}

class StoreJournalTest : public testing::Test {
 protected:
  StoreJournalTest() {
    auto opened = store::Store::Open(loop, directory.path() + "/data");
    EXPECT_TRUE(opened) << opened.error().message();
    store = *std::move(opened);
  }
  template <typename T>
  T Run(Task<T> task) {
    return loop.RunUntilDone(std::move(task));
  }
  store::TestDirectory directory;
  async::Loop loop;
  std::unique_ptr<store::Store> store;
};

TEST_F(StoreJournalTest, ARecordComesBackAsItWas) {
  StoreJournal journal(*store);
  SessionRecord record = Record("session1");
  ASSERT_TRUE(Run(journal.Insert(record, std::nullopt)));
  record.state = SessionState::kDestroyed;
  record.reason = "asked for";
  record.ended = WallTime(5000ms);
  record.stats.emplace().cpu = 123us;
  ASSERT_TRUE(Run(journal.Save(record)));
  auto found = Run(journal.Find("session1"));
  ASSERT_TRUE(found && *found);
  const SessionRecord& back = **found;
  EXPECT_EQ(back.state, SessionState::kDestroyed);
  EXPECT_EQ(back.reason, "asked for");
  EXPECT_EQ(back.owner.tenant, "acme");
  EXPECT_EQ(back.owner.key_id, "key1");
  EXPECT_EQ(back.expires, record.expires);
  EXPECT_EQ(back.ended, record.ended);
  EXPECT_EQ(back.stats->cpu, 123us);
  EXPECT_EQ(DigestOf(back.spec), DigestOf(record.spec));
  EXPECT_EQ(back.spec.name, "box");
  EXPECT_FALSE(*Run(journal.Find("session2")));
}

TEST_F(StoreJournalTest, LiveOnesAreListedAndKeysRemembered) {
  StoreJournal journal(*store);
  const IdempotentCreate key{"acme", "k", "digest"};
  ASSERT_TRUE(Run(journal.Insert(Record("session1"), key)));
  SessionRecord ended = Record("session2");
  ended.state = SessionState::kFailed;
  ended.spec.name = "";
  ended.ended = WallTime(2000ms);
  ASSERT_TRUE(Run(journal.Insert(ended, std::nullopt)));
  EXPECT_EQ(Run(journal.Live())->size(), 1u);
  EXPECT_EQ(Run(journal.FindIdempotent(key))->value(), "session1");
  EXPECT_EQ(Run(journal.FindIdempotent({"acme", "k", "other"})).error().code(),
            ErrorCode::kConflict);
  EXPECT_FALSE(*Run(journal.FindIdempotent({"other", "k", "digest"})));
  SessionQuery query{.access = {"acme"},
                     .labels = {{"team", "x"}},
                     .states = {SessionState::kCreating, SessionState::kFailed}};
  EXPECT_EQ(Run(journal.List(query))->sessions.size(), 2u);
  query.labels = {{"team", "y"}};
  EXPECT_TRUE(Run(journal.List(query))->sessions.empty());
  query.labels = {};
  query.access = {"other"};
  EXPECT_TRUE(Run(journal.List(query))->sessions.empty());
  EXPECT_EQ(Run(journal.Insert(Record("session3"), std::nullopt)).error().code(),
            ErrorCode::kConflict);  // its name is taken
}

TEST_F(StoreJournalTest, ADamagedRecordGoesOnWithDefaultsAndSaysSo) {
  StoreJournal journal(*store);
  ASSERT_TRUE(Run(journal.Insert(Record("session1"), std::nullopt)));
  ASSERT_TRUE(Run(store->Write(store::Durability::kSoon, [](store::Database& database) {
    return database.Run("UPDATE sessions SET spec = '{\"envi' WHERE id = 'session1'");
  })));
  auto live = Run(journal.Live());
  ASSERT_TRUE(live);
  ASSERT_EQ(live->size(), 1u);
  EXPECT_EQ(live->at(0).sandbox_id, "session1");
  EXPECT_EQ(live->at(0).spec.environment, "Python3");
  EXPECT_NE(live->at(0).reason.find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace caisson::sandbox
