#include "sandbox/session_recovery.h"

#include "sandbox/test_manager.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;

TEST_F(ManagerTest, ARestartTakesOverRunningSessionsWithTheirProcessesAndOutput) {
  auto session = Create({.env = {{"A", "1"}}, .name = "box"});
  const std::string id = session->id();
  ASSERT_TRUE(Run(session->Start({.argv = {"job"}, .label = "the job"})));
  provider.Command(id).Out("before ");
  Settle();
  session.reset();
  Restart();
  provider.Command(id).Out("after");
  provider.Command(id).Exit(7);
  auto again = *Run(manager->Get(mine, "box"));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id(), id);
  auto process = again->FindProcess(1);
  ASSERT_TRUE(process);
  EXPECT_EQ((*process)->facts().label, "the job");
  EXPECT_EQ(Run((*process)->Wait()).exit_code, 7);
  auto output = (*process)->Subscribe(Pace::kFollows, {});
  std::string text;
  while (auto item = output->Poll())
    if (auto* chunk = std::get_if<OutputChunk>(&*item)) text += chunk->data;
  EXPECT_EQ(text, "before after");
  ASSERT_TRUE(Run(again->Start({.argv = {"x"}})));
  EXPECT_EQ(provider.Command(id, 2).spec.env.at("A"), "1");
  EXPECT_EQ(admission->admitted(), 1u);
}

TEST_F(ManagerTest, ARestartKeepsPausedSessionsPausedAndThawsWhatTheRecordCallsRunning) {
  auto paused = Create();
  ASSERT_TRUE(Run(manager->Pause(mine, paused->id())));
  auto running = Create();
  provider.Box(running->id()).paused = true;  // the crash came before the record
  const std::string paused_id = paused->id(), running_id = running->id();
  paused.reset();
  running.reset();
  Restart();
  EXPECT_TRUE(provider.Box(paused_id).paused);
  EXPECT_EQ((*Run(manager->Get(mine, paused_id)))->state(), SessionState::kPaused);
  EXPECT_FALSE(provider.Box(running_id).paused);
  EXPECT_EQ((*Run(manager->Get(mine, running_id)))->state(), SessionState::kRunning);
}

TEST_F(ManagerTest, ARestartUndoesHalfMadeSessions) {
  auto session = Create();
  const std::string id = session->id();
  session.reset();
  journal.records[id].state = SessionState::kCreating;
  Restart();
  EXPECT_EQ(Recorded(id), SessionState::kFailed);
  EXPECT_TRUE(Until([&] { return provider.boxes.empty(); }));
}

TEST_F(ManagerTest, ARestartFinishesEndsThatWereAcknowledged) {
  auto held = Create(), gone = Create();
  const std::string held_id = held->id(), gone_id = gone->id();
  held.reset();
  gone.reset();
  journal.records[held_id].state = SessionState::kStopping;
  journal.records[gone_id].state = SessionState::kStopping;
  provider.boxes.erase(gone_id);
  Restart();
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
  EXPECT_EQ(Recorded(held_id), SessionState::kDestroyed);
  EXPECT_EQ(Recorded(gone_id), SessionState::kDestroyed);
  EXPECT_TRUE(provider.boxes.empty());
}

TEST_F(ManagerTest, ARestartSaysWhyASandboxIsLost) {
  auto session = Create();
  const std::string id = session->id();
  session.reset();
  provider.boxes.clear();
  Restart();
  EXPECT_EQ(Recorded(id), SessionState::kLost);
  EXPECT_EQ(journal.records[id].reason, "its sandbox ended while no server ran");
  session = Create();
  const std::string second = session->id();
  session.reset();
  provider.boxes.clear();
  boot_id = "boot-2";
  Restart();
  EXPECT_EQ(journal.records[second].reason, "the host was restarted");
  session = Create();
  const std::string third = session->id();
  session.reset();
  provider.script.adopt_error = Error(ErrorCode::kProtocol, "strange answer");
  Restart();
  EXPECT_EQ(Recorded(third), SessionState::kLost);
  EXPECT_NE(journal.records[third].reason.find("strange answer"), std::string::npos);
}

TEST_F(ManagerTest, ARestartRemovesSandboxesWithoutARecord) {
  auto stray = std::make_shared<FakeBox>();
  stray->id = "strayboxid";
  provider.boxes["strayboxid"] = stray;
  Restart();
  EXPECT_TRUE(Until([&] { return provider.boxes.empty(); }));
}

TEST_F(ManagerTest, ARestartReapsWhatExpiredMeanwhileAndKeepsTheRestOfATimeout) {
  auto expired = Create(), fresh = Create();
  const std::string expired_id = expired->id(), fresh_id = fresh->id();
  expired.reset();
  fresh.reset();
  journal.records[expired_id].expires = SystemTime() - 1min;
  journal.records[fresh_id].expires = SystemTime() + 10min;
  Restart();
  ASSERT_TRUE(Until([&] { return !provider.boxes.contains(expired_id); }));
  const auto left = (*Run(manager->Get(mine, fresh_id)))->deadline() - Session::Clock::now();
  EXPECT_LE(left, 10min);
  EXPECT_GE(left, 9min);
}

TEST_F(ManagerTest, AClockThatWentBackGivesNoSessionMoreThanItsTimeout) {
  auto session = Create();
  const std::string id = session->id();
  session.reset();
  journal.records[id].expires = SystemTime() + std::chrono::hours(24 * 365);
  Restart();
  const auto left = (*Run(manager->Get(mine, id)))->deadline() - Session::Clock::now();
  EXPECT_LE(left, std::chrono::hours(1));
}

TEST_F(ManagerTest, RecoveryCanBeRepeated) {
  auto session = Create();
  const std::string id = session->id();
  session.reset();
  for (int i = 0; i < 3; ++i) Restart();
  EXPECT_EQ((*Run(manager->Get(mine, id)))->state(), SessionState::kRunning);
  EXPECT_EQ(Recorded(id), SessionState::kRunning);
}

}  // namespace
}  // namespace caisson::sandbox
