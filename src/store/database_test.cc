#include "store/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "store/fake_vfs.h"
#include "store/migrations.h"
#include "store/test_directory.h"

namespace caisson::store {
namespace {

using testing::HasSubstr;

std::string Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void Spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class DatabaseTest : public testing::Test {
 protected:
  Database Open() {
    auto database = Database::Open(path_);
    EXPECT_TRUE(database) << database.error().message();
    return *std::move(database);
  }
  TestDirectory directory_;
  std::string path_ = directory_.PathOf("test.db");
};

TEST_F(DatabaseTest, GivesBackEveryKindOfValue) {
  Database database = Open();
  ASSERT_TRUE(database.Script("CREATE TABLE t (a INTEGER, b REAL, c TEXT, d TEXT) STRICT"));
  const std::string zero("a\0b", 3);
  ASSERT_TRUE(database.Run("INSERT INTO t VALUES (?,?,?,?)", {INT64_MIN, 0.5, zero, nullptr}));
  int rows = 0;
  ASSERT_TRUE(database.Each("SELECT a, b, c, d FROM t", {}, [&](const Row& row) {
    ++rows;
    EXPECT_EQ(row.Int(0), INT64_MIN);
    EXPECT_EQ(row.Real(1), 0.5);
    EXPECT_EQ(row.Text(2), zero);
    EXPECT_EQ(row.OptionalText(3), std::nullopt);
  }));
  EXPECT_EQ(rows, 1);
}

TEST_F(DatabaseTest, TextIsNeverTakenForSql) {
  Database database = Open();
  ASSERT_TRUE(database.Script("CREATE TABLE t (c TEXT) STRICT"));
  const std::string hostile = "'); DROP TABLE t; --";
  ASSERT_TRUE(database.Run("INSERT INTO t VALUES (?)", {hostile}));
  EXPECT_EQ(*database.Number("SELECT count(*) FROM t WHERE c = ?", {hostile}), 1);
}

TEST_F(DatabaseTest, RefusesTwoStatementsAndWrongParameterCounts) {
  Database database = Open();
  EXPECT_EQ(database.Run("SELECT 1; SELECT 2").error().code(), ErrorCode::kInternal);
  EXPECT_EQ(database.Run("SELECT ?").error().code(), ErrorCode::kInternal);
  EXPECT_EQ(database.Run("SELECT 1", {2}).error().code(), ErrorCode::kInternal);
}

TEST_F(DatabaseTest, FilesArePrivate) {
  Spill(path_, "");
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  Database database = Open();
  ASSERT_TRUE(database.Script("CREATE TABLE t (a INTEGER) STRICT"));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat info{};
    ASSERT_EQ(stat((path_ + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600U) << suffix;
  }
}

TEST_F(DatabaseTest, TheSameKeyTwiceIsAConflict) {
  Database database = Open();
  ASSERT_TRUE(database.Script("CREATE TABLE t (a TEXT PRIMARY KEY) STRICT"));
  ASSERT_TRUE(database.Run("INSERT INTO t VALUES ('x')"));
  EXPECT_EQ(database.Run("INSERT INTO t VALUES ('x')").error().code(), ErrorCode::kConflict);
}

TEST_F(DatabaseTest, AFailedTransactionLeavesNothing) {
  Database database = Open();
  ASSERT_TRUE(database.Script("CREATE TABLE t (a INTEGER) STRICT"));
  const Status status = database.Transact([&]() -> Status {
    CAISSON_TRY(database.Run("INSERT INTO t VALUES (1)"));
    return Error(ErrorCode::kCancelled, "no");
  });
  EXPECT_EQ(status.error().code(), ErrorCode::kCancelled);
  EXPECT_FALSE(database.in_transaction());
  EXPECT_EQ(*database.Number("SELECT count(*) FROM t"), 0);
}

TEST_F(DatabaseTest, AFailedPartOfATransactionLeavesTheRest) {
  Database database = Open();
  ASSERT_TRUE(database.Script("CREATE TABLE t (a INTEGER) STRICT"));
  ASSERT_TRUE(database.Transact([&]() -> Status {
    CAISSON_TRY(database.Run("INSERT INTO t VALUES (1)"));
    EXPECT_FALSE(database.Nested([&]() -> Status {
      CAISSON_TRY(database.Run("INSERT INTO t VALUES (2)"));
      return Error(ErrorCode::kCancelled, "no");
    }));
    return database.Nested([&] { return database.Run("INSERT INTO t VALUES (3)"); });
  }));
  EXPECT_EQ(*database.Number("SELECT sum(a) FROM t"), 4);
}

TEST_F(DatabaseTest, AReaderSeesCommitsAndCannotWrite) {
  Database writer = Open();
  ASSERT_TRUE(writer.Script("CREATE TABLE t (a INTEGER) STRICT"));
  auto reader = Database::Open(path_, {.mode = Database::Mode::kReader});
  ASSERT_TRUE(reader);
  ASSERT_TRUE(writer.Run("INSERT INTO t VALUES (1)"));
  EXPECT_EQ(*reader->Number("SELECT count(*) FROM t"), 1);
  EXPECT_FALSE(reader->Run("INSERT INTO t VALUES (2)"));
}

TEST_F(DatabaseTest, MoreStatementsThanTheCacheHolds) {
  Database database = Open();
  for (int i = 0; i < 600; ++i) {
    EXPECT_EQ(*database.Number("SELECT " + std::to_string(i)), i);
  }
}

TEST_F(DatabaseTest, AFileThatIsNoDatabaseIsRefusedNamedAndKept) {
  const std::string bytes(8192, 'x');
  Spill(path_, bytes);
  const auto database = Database::Open(path_);
  ASSERT_FALSE(database);
  EXPECT_EQ(database.error().code(), ErrorCode::kIo);
  EXPECT_THAT(database.error().message(), HasSubstr(path_));
  EXPECT_FALSE(database.error().remedy().empty());
  EXPECT_EQ(Slurp(path_), bytes);
}

TEST_F(DatabaseTest, ADamagedPageIsFoundNamedAndKept) {
  {
    Database database = Open();
    ASSERT_TRUE(database.Script("CREATE TABLE t (a TEXT) STRICT"));
    for (int i = 0; i < 500; ++i) {
      ASSERT_TRUE(database.Run("INSERT INTO t VALUES (?)", {std::string(100, 'a')}));
    }
    ASSERT_TRUE(database.CheckIntegrity());
  }
  std::string bytes = Slurp(path_);
  bytes.replace(4096 * 2, 64, std::string(64, '\xee'));
  Spill(path_, bytes);
  Database database = Open();
  const Status status = database.CheckIntegrity();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr(path_));
  EXPECT_EQ(Slurp(path_), bytes);
}

TEST_F(DatabaseTest, ATornLogLosesOnlyItsTornEnd) {
  {
    Database database = Open();
    ASSERT_TRUE(database.Script("CREATE TABLE t (a INTEGER) STRICT"));
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(database.Run("INSERT INTO t VALUES (?)", {i}));
    // As a crash leaves it: copied while open, so that closing does not tidy it up.
    Spill(directory_.PathOf("torn.db"), Slurp(path_));
    const std::string log = Slurp(path_ + "-wal");
    Spill(directory_.PathOf("torn.db-wal"), log.substr(0, log.size() - 1000));
  }
  auto torn = Database::Open(directory_.PathOf("torn.db"));
  ASSERT_TRUE(torn) << torn.error().message();
  EXPECT_EQ(*torn->Number("SELECT count(*) FROM t"), 9);
  EXPECT_TRUE(torn->CheckIntegrity());
}

TEST_F(DatabaseTest, AFullDiskIsResourceExhaustedAndNothingIsDamaged) {
  FakeVfs vfs("full-disk");
  auto database = Database::Open(path_, {.vfs = vfs.name()});
  ASSERT_TRUE(database) << database.error().message();
  ASSERT_TRUE(database->Script("CREATE TABLE t (a TEXT) STRICT"));
  vfs.room = 256 << 10;
  Status status;
  int written = 0;
  while (status && written < 1000) {
    status = database->Run("INSERT INTO t VALUES (?)", {std::string(4000, 'a')});
    if (status) ++written;
  }
  vfs.room = INT64_MAX;
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kResourceExhausted) << status.error().message();
  EXPECT_FALSE(status.error().remedy().empty());
  EXPECT_EQ(*database->Number("SELECT count(*) FROM t"), written);
  EXPECT_TRUE(database->CheckIntegrity());
  EXPECT_TRUE(database->Run("INSERT INTO t VALUES ('room again')"));
}

TEST_F(DatabaseTest, CommitsWaitForNoFlushAndSyncLogIsOne) {
  FakeVfs vfs("counted-flushes");
  auto database = Database::Open(path_, {.vfs = vfs.name()});
  ASSERT_TRUE(database->Script("CREATE TABLE t (a INTEGER) STRICT"));
  const int64_t before = vfs.syncs;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(database->Run("INSERT INTO t VALUES (?)", {i}));
  EXPECT_EQ(vfs.syncs, before);
  ASSERT_TRUE(database->SyncLog());
  EXPECT_EQ(vfs.syncs, before + 1);
  vfs.syncs_fail = true;
  EXPECT_EQ(database->SyncLog().error().code(), ErrorCode::kIo);
  vfs.syncs_fail = false;
}

TEST_F(DatabaseTest, MigrationsRunOnceAndInOrder) {
  const std::vector<const char*> steps = {"CREATE TABLE a (x INTEGER) STRICT",
                                          "ALTER TABLE a ADD COLUMN y INTEGER"};
  Database database = Open();
  ASSERT_TRUE(Migrate(database, std::span(steps).first(1)));
  ASSERT_TRUE(Migrate(database, steps));
  ASSERT_TRUE(Migrate(database, steps));
  EXPECT_TRUE(database.Run("INSERT INTO a (x, y) VALUES (1, 2)"));
  EXPECT_EQ(*database.Number("PRAGMA user_version"), 2);
}

TEST_F(DatabaseTest, AFailedMigrationLeavesTheStepBefore) {
  const std::vector<const char*> steps = {"CREATE TABLE a (x INTEGER) STRICT",
                                          "CREATE TABLE b (x INTEGER) STRICT; SELECT nonsense"};
  Database database = Open();
  const Status status = Migrate(database, steps);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("step 2"));
  EXPECT_EQ(*database.Number("PRAGMA user_version"), 1);
  EXPECT_EQ(*database.Number("SELECT count(*) FROM sqlite_schema WHERE name = 'b'"), 0);
}

TEST_F(DatabaseTest, ANewerSchemaAndAForeignDatabaseAreRefused) {
  {
    Database database = NewDatabase(path_);
    ASSERT_TRUE(database.Script("PRAGMA user_version = 9999"));
    const Status newer = Migrate(database);
    ASSERT_FALSE(newer);
    EXPECT_EQ(newer.error().code(), ErrorCode::kUnsupported);
    EXPECT_THAT(newer.error().message(), HasSubstr("schema 9999"));
  }
  auto foreign = Database::Open(directory_.PathOf("foreign.db"));
  ASSERT_TRUE(foreign->Script("CREATE TABLE theirs (x INTEGER)"));
  EXPECT_EQ(Migrate(*foreign).error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace caisson::store
