#include "sandbox/session.h"

#include "sandbox/test_manager.h"

namespace caisson::sandbox {
namespace {

using SessionTest = ManagerTest;

// Starts a foreground exec and gives the command when it is there.
struct Running {
  std::optional<Result<ExecReport>> report;
  std::unique_ptr<async::TaskSet> caller;
};
Task<void> ExecTask(std::shared_ptr<Session> session, ExecRequest request, Running* out) {
  out->report = co_await session->Exec(std::move(request));
}

TEST_F(SessionTest, AForegroundCommandIsCollectedAndReleased) {
  auto session = Create({.user = "worker", .env = {{"A", "session"}, {"B", "session"}}});
  Running running{{}, std::make_unique<async::TaskSet>(loop)};
  running.caller->Spawn(ExecTask(
      session, {.spec = {.argv = {"cat"}, .env = {{"A", "own"}}}, .input = "hello"}, &running));
  auto& box = provider.Box(session->id());
  ASSERT_TRUE(Until([&] { return box.commands.size() == 1; }));
  auto command = box.commands.at(1);
  ASSERT_TRUE(Until([&] { return command->stdin_closed; }));
  EXPECT_EQ(command->input, "hello");
  EXPECT_EQ(command->spec.env.at("A"), "own");
  EXPECT_EQ(command->spec.env.at("B"), "session");
  EXPECT_EQ(command->spec.user, "worker");
  EXPECT_EQ(command->spec.timeout, kDefaultLimits.wall_time);
  command->Out("hel");
  command->Err("oops");
  command->Out("lo");
  command->Exit(4);
  ASSERT_TRUE(Until([&] { return running.report.has_value(); }));
  ASSERT_TRUE(*running.report);
  EXPECT_EQ((*running.report)->out, "hello");
  EXPECT_EQ((*running.report)->err, "oops");
  EXPECT_EQ((*running.report)->outcome.exit_code, 4);
  ASSERT_TRUE(Until([&] { return command->released; }));
  EXPECT_TRUE(session->Processes().empty());
  const auto heard = Heard();
  EXPECT_EQ(std::ranges::count(heard, "exec.started"), 1);
  EXPECT_EQ(std::ranges::count(heard, "exec.ended"), 1);
}

TEST_F(SessionTest, OutputBeyondTheCapIsCountedAndLeftOut) {
  auto session = Create();
  Running running{{}, std::make_unique<async::TaskSet>(loop)};
  running.caller->Spawn(
      ExecTask(session, {.spec = {.argv = {"yes"}}, .input = "", .output_cap = 5}, &running));
  auto& box = provider.Box(session->id());
  ASSERT_TRUE(Until([&] { return box.commands.size() == 1; }));
  auto command = box.commands.at(1);
  for (int i = 0; i < 4; ++i) command->Out("abc");
  command->Exit(0);
  ASSERT_TRUE(Until([&] { return running.report.has_value(); }));
  EXPECT_EQ((*running.report)->out, "abcab");
  EXPECT_EQ((*running.report)->out_omitted, 7u);
}

TEST_F(SessionTest, WhenTheCallerGoesTheWholeTreeIsKilled) {
  auto session = Create();
  Running running{{}, std::make_unique<async::TaskSet>(loop)};
  running.caller->Spawn(ExecTask(session, {.spec = {.argv = {"sleep"}}}, &running));
  auto& box = provider.Box(session->id());
  ASSERT_TRUE(Until([&] { return box.commands.size() == 1; }));
  auto command = box.commands.at(1);
  Settle();
  running.caller.reset();
  ASSERT_TRUE(Until([&] { return command->released; }));
  EXPECT_EQ(command->signals, std::vector<int>{9});
}

TEST_F(SessionTest, ACommandWhoseCallerGoesWhileItStartsIsKilledToo) {
  auto session = Create();
  Running running{{}, std::make_unique<async::TaskSet>(loop)};
  running.caller->Spawn(ExecTask(session, {.spec = {.argv = {"sleep"}}}, &running));
  running.caller.reset();
  auto& box = provider.Box(session->id());
  ASSERT_TRUE(Until([&] { return box.next_handle == 2 && box.commands.empty(); }));
  EXPECT_TRUE(session->Processes().empty());
}

TEST_F(SessionTest, ADetachedCommandLivesOnAndCanBeFoundUntilManyHaveEndedAfterIt) {
  auto session = Create();
  auto& box = provider.Box(session->id());
  for (size_t i = 0; i < Session::kEndedKept + 3; ++i) {
    auto started = Run(session->Start({.argv = {"job"}}));
    ASSERT_TRUE(started);
    EXPECT_EQ(provider.Command(session->id(), (*started)->handle()).spec.on_overflow,
              OnOverflow::kDropOldest);
  }
  EXPECT_EQ(session->Processes().size(), Session::kEndedKept + 3);
  for (auto& [handle, command] : std::map(box.commands)) command->Exit(0);
  ASSERT_TRUE(Until([&] { return session->Processes().size() == Session::kEndedKept; }));
  EXPECT_EQ(session->FindProcess(1).error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(session->FindProcess(4));
  ASSERT_TRUE(Until([&] { return box.commands.size() == Session::kEndedKept; }));
  ASSERT_TRUE(Run(session->Release(4)));
  EXPECT_EQ(session->FindProcess(4).error().code(), ErrorCode::kNotFound);
}

TEST_F(SessionTest, ACommandThatCannotStartIsAnErrorOfTheCall) {
  auto session = Create();
  provider.script.start_error = Error(ErrorCode::kNotFound, "no such command");
  auto report = Run(session->Exec({.spec = {.argv = {"nope"}}}));
  EXPECT_EQ(report.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(session->state(), SessionState::kRunning);
}

TEST_F(SessionTest, TheTransitionTableHoldsItsPromises) {
  using enum SessionState;
  const std::vector<SessionState> all = {kCreating,  kRunning, kPaused, kStopping,
                                         kDestroyed, kFailed,  kLost};
  for (const auto from : all) {
    EXPECT_EQ(SessionStateFrom(NameOf(from)), from);
    for (const auto to : all)
      if (HasEnded(from)) EXPECT_FALSE(MayBecome(from, to));
    EXPECT_FALSE(MayBecome(from, kCreating));
  }
  EXPECT_TRUE(MayBecome(kRunning, kPaused));
  EXPECT_TRUE(MayBecome(kPaused, kRunning));
  EXPECT_FALSE(MayBecome(kCreating, kPaused));
  EXPECT_FALSE(MayBecome(kStopping, kLost));
}

}  // namespace
}  // namespace caisson::sandbox
