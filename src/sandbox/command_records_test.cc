#include "sandbox/command_records.h"

#include <gmock/gmock.h>

#include "log/fake_sink.h"
#include "sandbox/test_manager.h"
#include "store/session_records.h"
#include "store/test_directory.h"

namespace caisson::sandbox {
namespace {

using testing::ElementsAre;

class CommandRecordsTest : public ManagerTest {
 protected:
  CommandRecordsTest() { Reopen(); }
  ~CommandRecordsTest() override { manager.reset(); }

  // As a new server finds the records.
  void Reopen() {
    records.reset();
    store.reset();
    store = store::Store::Open(loop, directory.path()).value();
    records = std::make_unique<CommandRecords>(loop, *store, log::Logger(sink, log::Level::kDebug));
  }
  // The session's row, which a command's refers to.
  void Note(const std::string& id) {
    ASSERT_TRUE(Run(store->Write(store::Durability::kSoon, [id](store::Database& db) {
      return store::InsertSession(db, {.id = id, .tenant = "acme"});
    })));
  }
  std::vector<CommandRecord> Ended(const std::string& id) {
    auto page = Run(records->ListEnded(id, "", 100));
    EXPECT_TRUE(page);
    return page ? page->commands : std::vector<CommandRecord>();
  }

  store::TestDirectory directory;
  log::FakeSink sink;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<CommandRecords> records;
};

TEST_F(CommandRecordsTest, HoldWhatRanAndHowItEndedAndNoSecrets) {
  auto session = Create();
  Note(session->id());
  auto process = *Run(session->Start({.argv = {"cat", "a b"},
                                      .env = {{"TOKEN", "s3cr3t"}},
                                      .cwd = "/tmp",
                                      .user = "nobody",
                                      .label = "reader"}));
  records->Follow(session->id(), process);
  const auto running = *Run(records->Find(session->id(), process->handle()));
  ASSERT_TRUE(running);
  EXPECT_FALSE(running->ended);
  EXPECT_TRUE(Ended(session->id()).empty());
  provider.Command(session->id()).Out("four");
  provider.Command(session->id()).Exit(3);
  Run(process->Wait());
  Settle();
  Reopen();
  const auto all = Ended(session->id());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0].argv, ElementsAre("cat", "a b"));
  EXPECT_EQ(all[0].command, "cat a b");
  EXPECT_EQ(all[0].cwd, "/tmp");
  EXPECT_EQ(all[0].user, "nobody");
  EXPECT_EQ(all[0].label, "reader");
  EXPECT_EQ(all[0].process, process->handle());
  EXPECT_EQ(all[0].started, process->facts().started);
  ASSERT_TRUE(all[0].outcome);
  EXPECT_EQ(all[0].outcome->status, OutcomeStatus::kExited);
  EXPECT_EQ(all[0].outcome->exit_code, 3);
  EXPECT_EQ(all[0].outcome->usage.stdout_bytes, process->outcome()->usage.stdout_bytes);
  EXPECT_TRUE(sink.lines().empty());
}

TEST_F(CommandRecordsTest, OneWhoseEndNobodySawIsUnknown) {
  auto session = Create();
  Note(session->id());
  auto first = *Run(session->Start({.argv = {"a"}}));
  auto second = *Run(session->Start({.argv = {"b"}}));
  records->Follow(session->id(), first);
  records->Follow(session->id(), second);
  Settle();
  Reopen();
  ASSERT_TRUE(Run(records->CloseForgotten([&](const std::string& id, uint32_t process) {
    return id == session->id() && process == second->handle();
  })));
  const auto ended = Ended(session->id());
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].process, first->handle());
  EXPECT_EQ(ended[0].outcome->status, OutcomeStatus::kUnknown);
  EXPECT_EQ(ended[0].outcome->exit_code, -1);
  EXPECT_FALSE(ended[0].outcome->reason.empty());
}

TEST_F(CommandRecordsTest, ALongCommandLineIsCut) {
  auto session = Create();
  Note(session->id());
  auto process =
      *Run(session->Start({.argv = {"echo", std::string(CommandRecords::kArgvBytes, 'x'), "y"}}));
  records->Follow(session->id(), process);
  const auto found = *Run(records->Find(session->id(), process->handle()));
  ASSERT_EQ(found->argv.size(), 2u);
  EXPECT_EQ(found->argv[1].size(), CommandRecords::kArgvBytes - 4);
}

TEST_F(CommandRecordsTest, AFailureToWriteIsLoggedAndHurtsNobody) {
  auto session = Create();  // without a row of its own
  auto process = *Run(session->Start({.argv = {"a"}}));
  records->Follow(session->id(), process);
  ASSERT_TRUE(Until([&] { return !sink.lines().empty(); }));
  EXPECT_THAT(sink.lines()[0], testing::HasSubstr("the record of a command was not written"));
  provider.Command(session->id()).Exit(0);
  Run(process->Wait());
  Settle();
  EXPECT_TRUE(Ended(session->id()).empty());
}

TEST_F(CommandRecordsTest, AnEndThatIsOnRecordIsNotToldAgainByTheNextServer) {
  commands = records.get();
  Restart();
  auto session = Create();
  const std::string id = session->id();
  Note(id);
  auto process = *Run(session->Start({.argv = {"a"}}));
  provider.Command(id).Exit(0);
  Run(process->Wait());
  Settle();
  process.reset();
  session.reset();
  Restart();
  ASSERT_EQ(Run(manager->Get(mine, id)).value()->Processes().size(), 1u);
  Settle();
  EXPECT_THAT(Heard(), testing::Not(testing::Contains("exec.ended")));
}

}  // namespace
}  // namespace caisson::sandbox
