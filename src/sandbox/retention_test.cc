#include "sandbox/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/fake_sink.h"
#include "store/artifact_records.h"
#include "store/event_records.h"
#include "store/exec_records.h"
#include "store/session_records.h"
#include "store/test_directory.h"
#include "store/usage_records.h"

namespace caisson::sandbox {
namespace {

using std::chrono::days;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class RetentionTest : public testing::Test {
 protected:
  RetentionTest() { now = SystemTime(); }

  static int64_t Ms(WallTime time) { return time.time_since_epoch().count(); }
  void Write(store::Writer::Work work) {
    const auto written = loop.RunUntilDone(store->Write(store::Durability::kSoon, std::move(work)));
    ASSERT_TRUE(written) << written.error().message();
  }
  // A session with a command and a log; ended unless it lives.
  void MakeSession(const std::string& id, std::optional<WallTime> ended) {
    Write([&](store::Database& db) -> Status {
      store::SessionRecord session{.id = id, .tenant = "t"};
      session.state = ended ? store::SessionState::kDestroyed : store::SessionState::kRunning;
      if (ended) session.ended_ms = Ms(*ended);
      CAISSON_TRY(store::InsertSession(db, session));
      return store::InsertExec(db, {.session_id = id, .id = "1", .command = "{}", .ended_ms = 1});
    });
    ASSERT_TRUE(blobs.AppendLog(store::BlobArea::kSessions, id, "log.jsonl", "line\n", 1 << 20));
  }
  void MakeFile(const std::string& id) {
    auto file = blobs.Create(store::BlobArea::kArtifacts, id, "content", 100);
    ASSERT_TRUE(file && file->Append("x") && file->Commit());
  }
  Forgotten Pass(RetentionOptions options = {}) {
    Retention retention({.loop = loop,
                         .store = *store,
                         .blobs = blobs,
                         .disk = disk,
                         .log = log::Logger(sink, log::Level::kDebug),
                         .clock = [this] { return now; }},
                        options);
    auto done = loop.RunUntilDone(retention.Pass());
    EXPECT_TRUE(done) << done.error().message();
    return done ? *done : Forgotten();
  }
  int64_t Count(const std::string& table) {
    return *loop.RunUntilDone(store->Read<int64_t>(
        [table](store::Database& db) { return db.Number("SELECT count(*) FROM " + table); }));
  }

  async::Loop loop;
  store::TestDirectory directory;
  log::FakeSink sink;
  std::unique_ptr<store::Store> store = store::Store::Open(loop, directory.path()).value();
  store::Blobs blobs{store->data_dir()};
  async::ThreadPool disk{1};
  WallTime now;
};

TEST_F(RetentionTest, SessionsGoWithTheirCommandsAndLogsWhenTheyEndedLongAgo) {
  MakeSession("live", std::nullopt);
  MakeSession("recent", now - days(1));
  MakeSession("quiet", now - days(10));
  MakeSession("old", now - days(31));
  const Forgotten done = Pass();
  EXPECT_EQ(done.sessions, 1);
  EXPECT_EQ(done.logs, 2);
  EXPECT_THAT(*blobs.Ids(store::BlobArea::kSessions), ElementsAre("live", "recent"));
  EXPECT_EQ(Count("sessions"), 3);
  EXPECT_EQ(Count("execs"), 3);
  EXPECT_FALSE(Pass().Any());
}

TEST_F(RetentionTest, ZeroKeepsForEver) {
  MakeSession("old", now - days(3000));
  Write([&](store::Database& db) -> Status {
    CAISSON_TRY(store::InsertArtifact(db, {.id = "a", .session_id = "old", .created_ms = 1}));
    CAISSON_TRY(store::AddUsage(db, {.tenant = "t", .day = 1}));
    return store::InsertEvent(db, {.seq = 1, .time_ms = 1});
  });
  const milliseconds ever(0);
  EXPECT_FALSE(
      Pass({.records = ever, .logs = ever, .artifacts = ever, .events = ever, .usage = ever})
          .Any());
  EXPECT_EQ(Count("usage"), 1);
}

TEST_F(RetentionTest, ArtifactsGoWithTheirFiles) {
  for (const char* id : {"young", "old"}) {
    MakeFile(id);
    const int64_t created = Ms(now - days(std::string_view(id) == "old" ? 8 : 6));
    Write([&](store::Database& db) {
      return store::InsertArtifact(db, {.id = id, .session_id = "s", .created_ms = created});
    });
  }
  EXPECT_EQ(Pass().artifacts, 1);
  EXPECT_THAT(*blobs.Ids(store::BlobArea::kArtifacts), ElementsAre("young"));
  EXPECT_EQ(Count("artifacts"), 1);
}

TEST_F(RetentionTest, FilesOfNobodyGoOnceNobodyCanClaimThem) {
  MakeFile("stray");
  ASSERT_TRUE(blobs.AppendLog(store::BlobArea::kSessions, "nobody", "log.jsonl", "x\n", 100));
  const Forgotten first = Pass();
  EXPECT_EQ(first.unclaimed, 0);
  EXPECT_EQ(first.logs, 1);
  now += std::chrono::hours(2);
  EXPECT_EQ(Pass().unclaimed, 1);
  EXPECT_THAT(*blobs.Ids(store::BlobArea::kArtifacts), IsEmpty());
}

TEST_F(RetentionTest, EventsAndUsageGoByAgeAndEventsByNumberToo) {
  Write([&](store::Database& db) -> Status {
    for (int i = 1; i <= 2500; ++i)
      CAISSON_TRY(store::InsertEvent(
          db, {.seq = i, .time_ms = Ms(i <= 1500 ? now - days(8) : now - days(1))}));
    CAISSON_TRY(store::AddUsage(db, {.tenant = "t", .day = store::DayOf(Ms(now - days(401)))}));
    return store::AddUsage(db, {.tenant = "t", .day = store::DayOf(Ms(now - days(399)))});
  });
  EXPECT_EQ(Pass().events, 1500);
  EXPECT_EQ(Count("usage"), 1);
  EXPECT_EQ(Pass({.max_events = 10}).events, 990);
  EXPECT_EQ(Count("events"), 10);
}

TEST_F(RetentionTest, TheAuditLogStays) {
  Write([&](store::Database& db) {
    return db.Run(
        "INSERT INTO audit VALUES (1, 1, 't', 'a', 'k', 's', 'v', 'o', 'd', 'r', 'q', 'h')");
  });
  Pass();
  EXPECT_EQ(Count("audit"), 1);
}

}  // namespace
}  // namespace caisson::sandbox
