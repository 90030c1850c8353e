#include "store/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>

#include "json/json.h"
#include "store/audit_anchor.h"
#include "store/test_directory.h"

namespace caisson::store {
namespace {

using testing::HasSubstr;

AuditRecord Record(int64_t time_ms) {
  return {.time_ms = time_ms,
          .tenant = "acme",
          .actor = time_ms % 2 == 0 ? "even" : "odd",
          .key_id = "k1",
          .source = "127.0.0.1",
          .verb = "create",
          .object = "session/s" + std::to_string(time_ms),
          .decision = "allow",
          .request_id = "r"};
}

class AuditTest : public testing::Test {
 protected:
  void Fill(int count) {
    for (int i = 1; i <= count; ++i) ASSERT_TRUE(AppendAudit(database_, Record(i)));
  }
  // The seq that Verify names; 0 when it finds nothing.
  int64_t Finding(const std::optional<AuditHead>& anchor = std::nullopt) {
    const auto finding = VerifyAudit(database_, anchor);
    EXPECT_TRUE(finding) << finding.error().message();
    if (!finding || !*finding) return 0;
    EXPECT_FALSE((*finding)->what.empty());
    return (*finding)->seq;
  }
  void Tamper(const char* sql) { ASSERT_TRUE(database_.Script(sql)); }

  TestDirectory directory_;
  Database database_ = NewDatabase(directory_.PathOf("test.db"));
};

TEST_F(AuditTest, AnUntouchedLogIsSound) {
  EXPECT_EQ(Finding(), 0);
  Fill(1200);
  const auto head = *HeadOfAudit(database_);
  EXPECT_EQ(head.count, 1200);
  EXPECT_EQ(Finding(head), 0);
}

TEST_F(AuditTest, ALogThatWentOnAfterItsAnchorIsSound) {
  Fill(5);
  const auto anchor = *HeadOfAudit(database_);
  Fill(3);
  EXPECT_EQ(Finding(anchor), 0);
}

struct Tampering {
  const char* name;
  const char* sql;
  int64_t found_at;
};

class AuditTamperingTest : public AuditTest, public testing::WithParamInterface<Tampering> {};

TEST_P(AuditTamperingTest, IsFound) {
  Fill(9);
  const auto anchor = *HeadOfAudit(database_);
  ASSERT_EQ(Finding(anchor), 0);
  Tamper(GetParam().sql);
  EXPECT_EQ(Finding(anchor), GetParam().found_at);
}

INSTANTIATE_TEST_SUITE_P(
    Each, AuditTamperingTest,
    testing::Values(
        Tampering{"EditedField", "UPDATE audit SET actor = 'nobody' WHERE seq = 4", 4},
        Tampering{"EditedTime", "UPDATE audit SET time_ms = time_ms + 1 WHERE seq = 5", 5},
        Tampering{"EditedHash", "UPDATE audit SET hash = replace(hash, 'a', 'b') WHERE seq = 6", 6},
        Tampering{"BytesMovedBetweenFields",
                  "UPDATE audit SET verb = 'creat', object = 'e' || object WHERE seq = 3", 3},
        Tampering{"RemovedInTheMiddle", "DELETE FROM audit WHERE seq = 4", 4},
        Tampering{"RemovedAndRenumbered",
                  "DELETE FROM audit WHERE seq = 4; UPDATE audit SET seq = seq - 1 WHERE seq > 4",
                  4},
        Tampering{"RemovedFirst", "DELETE FROM audit WHERE seq = 1", 1},
        Tampering{
            "Reordered",
            "UPDATE audit SET seq = 100 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 5;"
            "UPDATE audit SET seq = 5 WHERE seq = 100",
            4},
        Tampering{"Inserted",
                  "INSERT INTO audit SELECT 10, time_ms, tenant, actor, key_id, source, verb, "
                  "object, decision, reason, request_id, hash FROM audit WHERE seq = 9",
                  10},
        Tampering{"CutOffAtTheEnd", "DELETE FROM audit WHERE seq > 7", 8},
        Tampering{"Emptied", "DELETE FROM audit", 1}),
    [](const auto& info) { return info.param.name; });

TEST_F(AuditTest, ARewrittenEndIsFoundByTheAnchor) {
  Fill(5);
  const auto anchor = *HeadOfAudit(database_);
  Tamper("DELETE FROM audit WHERE seq > 3");
  ASSERT_TRUE(AppendAudit(database_, Record(77)));
  ASSERT_TRUE(AppendAudit(database_, Record(78)));
  ASSERT_TRUE(AppendAudit(database_, Record(79)));
  EXPECT_EQ(Finding(), 0);  // a sound chain by itself
  EXPECT_EQ(Finding(anchor), 5);
}

TEST_F(AuditTest, QueriesNarrowAndPage) {
  Fill(10);
  const auto seqs = [&](const AuditFilter& filter) {
    std::vector<int64_t> list;
    for (const auto& record : *QueryAudit(database_, filter)) list.push_back(record.seq);
    return list;
  };
  EXPECT_THAT(seqs({.limit = 3}), testing::ElementsAre(10, 9, 8));
  EXPECT_THAT(seqs({.before_seq = 8, .limit = 2}), testing::ElementsAre(7, 6));
  EXPECT_THAT(seqs({.from_ms = 3, .to_ms = 5}), testing::ElementsAre(4, 3));
  EXPECT_THAT(seqs({.actor = "odd", .limit = 2}), testing::ElementsAre(9, 7));
  EXPECT_THAT(seqs({.object = "session/s2"}), testing::ElementsAre(2));
  EXPECT_THAT(seqs({.decision = "deny"}), testing::IsEmpty());
  EXPECT_THAT(seqs({.tenant = "other"}), testing::IsEmpty());
  EXPECT_FALSE(QueryAudit(database_, {.limit = 0}));
}

TEST_F(AuditTest, HostileFieldsBecomePlainText) {
  AuditRecord record = Record(1);
  record.actor = "a\nb\x1b[31m\xff";
  record.reason = std::string(100'000, 'x');
  ASSERT_TRUE(AppendAudit(database_, record));
  EXPECT_EQ(Finding(), 0);
  const AuditRecord kept = QueryAudit(database_, {})->front();
  EXPECT_EQ(kept.actor, "a?b?[31m\uFFFD");
  EXPECT_LT(kept.reason.size(), 600U);
}

TEST_F(AuditTest, TheExportIsOneJsonObjectPerRecord) {
  Fill(3);
  std::vector<std::string> lines;
  ASSERT_TRUE(ExportAudit(database_, 1, [&](std::string_view line) -> Status {
    lines.emplace_back(line);
    return {};
  }));
  ASSERT_EQ(lines.size(), 2U);
  const auto value = json::Parse(lines[0]);
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->at("seq").as_int64(), 2);
  EXPECT_EQ(value->at("object").as_string(), "session/s2");
  EXPECT_EQ(value->at("hash").as_string().size(), 64U);
}

Status AppendThrough(Writer& writer, int64_t time_ms) {
  std::promise<Status> promise;
  auto future = promise.get_future();
  writer.Submit(
      Durability::kDurable, Purpose::kShrink,
      [time_ms](Database& database) { return AppendAudit(database, Record(time_ms)); },
      [&promise](Status status) { promise.set_value(std::move(status)); });
  return future.get();
}

TEST(AuditAnchor, KnowsEveryAcknowledgedRecord) {
  const TestDirectory directory;
  auto dir = DataDir::Open(directory.path());
  auto anchor = AuditAnchor::Open(*dir);
  ASSERT_TRUE(anchor) << anchor.error().message();
  EXPECT_EQ(*(*anchor)->Read(), std::nullopt);
  auto writer = Writer::Open(*dir, {.observer = anchor->get()});
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(AppendThrough(**writer, i));
    EXPECT_EQ((*(*anchor)->Read())->count, i);
  }
}

TEST(AuditAnchor, IsNotOverwrittenByALogThatWasCutOff) {
  const TestDirectory directory;
  auto dir = DataDir::Open(directory.path());
  const auto append = [&](int count) {
    auto anchor = AuditAnchor::Open(*dir);
    auto writer = Writer::Open(*dir, {.observer = anchor->get()});
    for (int i = 0; i < count; ++i) ASSERT_TRUE(AppendThrough(**writer, i));
  };
  append(5);
  {
    auto database = Database::Open(dir->PathOf("caisson.db"));
    ASSERT_TRUE(database->Run("DELETE FROM audit WHERE seq > 3"));
  }
  append(9);
  auto anchor = AuditAnchor::Open(*dir);
  auto database = Database::Open(dir->PathOf("caisson.db"));
  EXPECT_EQ((*(*anchor)->Read())->count, 5);
  const auto finding = VerifyAudit(*database, *(*anchor)->Read());
  ASSERT_TRUE(finding && *finding);
  EXPECT_EQ((*finding)->seq, 5);
}

TEST(AuditAnchor, ADamagedOneIsRefused) {
  const TestDirectory directory;
  auto dir = DataDir::Open(directory.path());
  std::ofstream(dir->PathOf("audit.anchor")) << "nonsense";
  const auto anchor = AuditAnchor::Open(*dir);
  ASSERT_FALSE(anchor);
  EXPECT_THAT(anchor.error().message(), HasSubstr("audit.anchor"));
}

}  // namespace
}  // namespace caisson::store
