#include "sandbox/session_manager.h"

#include "sandbox/test_manager.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;
using Kinds = std::vector<std::string>;

TEST_F(ManagerTest, ACreateIsWrittenDownBeforeItHasAnEffectAndWhenItRuns) {
  auto session = Create({.environment = "Python3", .env = {{"A", "1"}}});
  ASSERT_TRUE(session);
  EXPECT_EQ(session->state(), SessionState::kRunning);
  EXPECT_EQ(journal.log, (Kinds{session->id() + " creating", session->id() + " running"}));
  EXPECT_EQ(Heard(), (Kinds{"session.created", "session.running"}));
  EXPECT_EQ(provider.Box(session->id()).spec.environment, "host");
  EXPECT_EQ(session->spec().environment, "Python3");
  EXPECT_EQ(admission->admitted(), 1u);
}

TEST_F(ManagerTest, AFailedCreateIsRecordedAsFailedAndLeavesNothing) {
  provider.script.create_error = Error(ErrorCode::kLimitRefused, "too little");
  auto made = Run(manager->Create({"acme", "key"}, {}));
  ASSERT_FALSE(made);
  ASSERT_TRUE(Until([&] { return manager->ending() == 0; }));
  EXPECT_EQ(made.error().code(), ErrorCode::kLimitRefused);
  EXPECT_EQ(Heard(), (Kinds{"session.created", "session.failed"}));
  ASSERT_EQ(journal.records.size(), 1u);
  const auto& record = journal.records.begin()->second;
  EXPECT_EQ(record.state, SessionState::kFailed);
  EXPECT_EQ(record.reason, "too little");
  EXPECT_EQ(admission->admitted(), 0u);
  auto get = Run(manager->Get(mine, record.id));
  EXPECT_EQ(get.error().code(), ErrorCode::kGone);
}

TEST_F(ManagerTest, ASandboxThatComesTooLateIsRemoved) {
  create_time = 5ms;
  Restart();
  provider.script.gate.Clear();
  auto made = Run(manager->Create({"acme", "key"}, {}));
  EXPECT_EQ(made.error().code(), ErrorCode::kDeadlineExceeded);
  const std::string id = journal.order.at(0);
  EXPECT_TRUE(Until([&] { return manager->ending() == 0; }));
  EXPECT_EQ(Recorded(id), SessionState::kFailed);
}

TEST_F(ManagerTest, WhenTheRunningRecordCannotBeWrittenTheSandboxGoes) {
  auto creating = manager->Create({"acme", "key"}, {});
  provider.script.gate.Clear();
  async::TaskSet tasks(loop);
  std::optional<Result<std::shared_ptr<Session>>> result;
  tasks.Spawn([](Task<Result<std::shared_ptr<Session>>> t, auto* out) -> Task<void> {
    *out = co_await std::move(t);
  }(std::move(creating), &result));
  ASSERT_TRUE(Until([&] { return provider.script.creates == 1; }));
  journal.failure = Error(ErrorCode::kResourceExhausted, "disk full");
  provider.script.gate.Set();
  ASSERT_TRUE(Until([&] { return provider.boxes.empty() && provider.script.destroys == 1; }));
  ASSERT_TRUE(Until([&] { return result.has_value(); }));
  EXPECT_EQ(result->error().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(manager->sessions().size(), 1u);  // its end is not written down yet
  journal.failure.reset();
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
  EXPECT_EQ(journal.records.begin()->second.state, SessionState::kFailed);
}

TEST_F(ManagerTest, TheSameKeyAndRequestGiveTheSameSession) {
  SessionSpec spec{.idempotency_key = "k1"};
  auto first = Create(spec);
  auto again = Create(spec);
  EXPECT_EQ(first->id(), again->id());
  EXPECT_EQ(provider.script.creates, 1);
  auto other = Run(manager->Create({"acme", "key"}, {.user = "else", .idempotency_key = "k1"}));
  EXPECT_EQ(other.error().code(), ErrorCode::kConflict);
  auto foreign = Create(spec, "other");
  EXPECT_NE(foreign->id(), first->id());
}

TEST_F(ManagerTest, AKeyWhoseCreateFailedMayBeUsedAgain) {
  const SessionSpec spec{.idempotency_key = "k1"};
  provider.script.create_error = Error(ErrorCode::kUnavailable, "not now");
  EXPECT_FALSE(Run(manager->Create({"acme", "key"}, spec)));
  provider.script.create_error.reset();
  auto made = Create(spec);
  ASSERT_TRUE(made);
  EXPECT_EQ(Create(spec)->id(), made->id());
}

TEST_F(ManagerTest, ConcurrentCreatesWithOneKeyShareOneSandbox) {
  provider.script.gate.Clear();
  async::TaskSet tasks(loop);
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i)
    tasks.Spawn([](SessionManager* m, std::vector<std::string>* out) -> Task<void> {
      auto made = co_await m->Create({"acme", "key"}, {.idempotency_key = "k"});
      if (made) out->push_back((*made)->id());
    }(manager.get(), &ids));
  ASSERT_TRUE(Until([&] { return provider.script.creates == 1; }));
  auto conflict = Run(manager->Create({"acme", "key"}, {.user = "u", .idempotency_key = "k"}));
  EXPECT_EQ(conflict.error().code(), ErrorCode::kConflict);
  provider.script.gate.Set();
  ASSERT_TRUE(Until([&] { return ids.size() == 5; }));
  for (const auto& id : ids) EXPECT_EQ(id, ids[0]);
  EXPECT_EQ(provider.script.creates, 1);
}

TEST_F(ManagerTest, ACreateWhoseCallerLeavesIsUndoneUnlessAKeyLetsThemComeBack) {
  for (const std::string key : {"", "k"}) {
    provider.script.gate.Clear();
    const int before = provider.script.creates;
    {
      async::TaskSet caller(loop);
      caller.Spawn([](SessionManager* m, std::string k) -> Task<void> {
        (void)co_await m->Create({"acme", "key"}, {.idempotency_key = std::move(k)});
      }(manager.get(), key));
      ASSERT_TRUE(Until([&] { return provider.script.creates > before; }));
    }
    provider.script.gate.Set();
    ASSERT_TRUE(Until([&] { return manager->creating() == 0 && manager->ending() == 0; }));
    Settle();
    EXPECT_EQ(manager->sessions().size(), key.empty() ? 0u : 1u);
    EXPECT_EQ(provider.boxes.size(), key.empty() ? 0u : 1u);
  }
}

TEST_F(ManagerTest, ForeignSessionsDoNotExistAndEndedOnesAreGone) {
  auto session = Create({.name = "box"});
  EXPECT_TRUE(Run(manager->Get(mine, session->id())));
  EXPECT_TRUE(Run(manager->Get(mine, "box")));
  EXPECT_TRUE(Run(manager->Get({}, session->id())));
  EXPECT_EQ(Run(manager->Get(theirs, session->id())).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(Run(manager->Get(theirs, "box")).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(Run(manager->Destroy(theirs, session->id(), "x")).error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(Run(manager->Destroy(mine, session->id(), "asked for")));
  const auto gone = Run(manager->Get(mine, session->id()));
  ASSERT_EQ(gone.error().code(), ErrorCode::kGone);
  EXPECT_NE(gone.error().message().find("asked for"), std::string::npos);
  EXPECT_EQ(Run(manager->Get(theirs, session->id())).error().code(), ErrorCode::kNotFound);
}

TEST_F(ManagerTest, NamesAreUniqueAmongTheLiveOfATenant) {
  auto first = Create({.name = "box"});
  EXPECT_EQ(Run(manager->Create({"acme", "key"}, {.name = "box"})).error().code(),
            ErrorCode::kConflict);
  EXPECT_TRUE(Create({.name = "box"}, "other"));
  ASSERT_TRUE(Run(manager->Destroy(mine, "box", "")));
  ASSERT_TRUE(Until([&] { return manager->ending() == 0; }));
  EXPECT_TRUE(Create({.name = "box"}));
}

TEST_F(ManagerTest, ADestroyIsAcknowledgedOnceWrittenDownAndEndsInTheBackground) {
  auto session = Create();
  provider.script.destroy_gate.Clear();
  EXPECT_TRUE(Run(manager->Destroy(mine, session->id(), "asked for")));
  EXPECT_EQ(Recorded(session->id()), SessionState::kStopping);
  EXPECT_TRUE(Run(manager->Destroy(mine, session->id(), "again")));
  provider.script.destroy_gate.Set();
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
  EXPECT_EQ(Recorded(session->id()), SessionState::kDestroyed);
  EXPECT_EQ(journal.records[session->id()].reason, "asked for");
  EXPECT_TRUE(provider.boxes.empty());
  EXPECT_TRUE(Run(manager->Destroy(mine, session->id(), "late")));
  EXPECT_EQ(admission->admitted(), 0u);
}

TEST_F(ManagerTest, ADestroyThatFailsIsTriedAgainUntilTheSandboxIsGone) {
  auto session = Create();
  provider.script.destroy_error = Error(ErrorCode::kIo, "busy");
  ASSERT_TRUE(Run(manager->Destroy(mine, session->id(), "")));
  ASSERT_TRUE(Until([&] { return provider.script.destroys >= 3; }));
  provider.script.destroy_error.reset();
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
  EXPECT_TRUE(provider.boxes.empty());
}

TEST_F(ManagerTest, AFullDiskDoesNotKeepASandboxAlive) {
  auto session = Create();
  journal.failure = Error(ErrorCode::kResourceExhausted, "disk full");
  async::TaskSet tasks(loop);
  tasks.Spawn([](SessionManager* m, Access a, std::string id) -> Task<void> {
    (void)co_await m->Destroy(a, id, "");
  }(manager.get(), mine, session->id()));
  EXPECT_TRUE(Until([&] { return provider.boxes.empty() && tasks.size() == 0; }));
  journal.failure.reset();
  EXPECT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
}

TEST_F(ManagerTest, ASessionThatIsDestroyedWhileItIsMadeEnds) {
  provider.script.gate.Clear();
  async::TaskSet tasks(loop);
  std::optional<ErrorCode> code;
  tasks.Spawn([](SessionManager* m, std::optional<ErrorCode>* out) -> Task<void> {
    auto made = co_await m->Create({"acme", "key"}, {});
    if (!made) *out = made.error().code();
  }(manager.get(), &code));
  ASSERT_TRUE(Until([&] { return provider.script.creates == 1; }));
  const std::string id = journal.order.at(0);
  EXPECT_TRUE(Run(manager->Destroy(mine, id, "changed my mind")));
  provider.script.gate.Set();
  ASSERT_TRUE(Until([&] { return code && manager->sessions().size() == 0; }));
  EXPECT_EQ(*code, ErrorCode::kGone);
  EXPECT_EQ(Recorded(id), SessionState::kDestroyed);
  EXPECT_TRUE(provider.boxes.empty());
}

TEST_F(ManagerTest, PauseAndResumeFollowTheFreezerAndAreRecorded) {
  auto session = Create();
  ASSERT_TRUE(Run(manager->Pause(mine, session->id())));
  EXPECT_TRUE(provider.Box(session->id()).paused);
  EXPECT_EQ(Recorded(session->id()), SessionState::kPaused);
  EXPECT_TRUE(Run(manager->Pause(mine, session->id())));
  auto exec = Run(session->Exec({.spec = {.argv = {"true"}}}));
  EXPECT_EQ(exec.error().code(), ErrorCode::kConflict);
  ASSERT_TRUE(Run(manager->Resume(mine, session->id())));
  EXPECT_FALSE(provider.Box(session->id()).paused);
  EXPECT_EQ(Recorded(session->id()), SessionState::kRunning);
  EXPECT_EQ(Heard(),
            (Kinds{"session.created", "session.running", "session.paused", "session.resumed"}));
  provider.script.pause_error = Error(ErrorCode::kIo, "no");
  EXPECT_FALSE(Run(manager->Pause(mine, session->id())));
  EXPECT_EQ(session->state(), SessionState::kRunning);
}

TEST_F(ManagerTest, APatchChangesLimitsLabelsAndTheTimeout) {
  auto session = Create();
  SessionPatch patch;
  patch.timeout = 2h;
  patch.limits.memory_bytes = 64 * kMiB;
  patch.labels = StringMap{{"a", "b"}};
  auto patched = Run(manager->Patch(mine, session->id(), patch));
  ASSERT_TRUE(patched);
  EXPECT_EQ(patched->spec.timeout, 2h);
  EXPECT_EQ(journal.records[session->id()].spec.labels.at("a"), "b");
  EXPECT_EQ(provider.Box(session->id()).updates.at(0).memory_bytes, 64 * kMiB);
  provider.script.update_error = Error(ErrorCode::kLimitRefused, "no");
  patch.labels = StringMap{};
  EXPECT_EQ(Run(manager->Patch(mine, session->id(), patch)).error().code(),
            ErrorCode::kLimitRefused);
  EXPECT_EQ(session->spec().labels.size(), 1u);
  patch.timeout = 0ms;
  EXPECT_EQ(Run(manager->Patch(mine, session->id(), patch)).error().code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(ManagerTest, ASessionWhoseTimeIsOverIsReaped) {
  auto lasting = Create();
  auto session = Create({.timeout = 1s});
  session->SetRemaining(2ms);
  ASSERT_TRUE(Run(manager->Patch(mine, lasting->id(), {})));
  // The reaper sleeps for the second it knew of at the most.
  ASSERT_TRUE(Until([&] { return !provider.boxes.contains(session->id()); }));
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 1; }));
  EXPECT_EQ(Recorded(session->id()), SessionState::kDestroyed);
  EXPECT_EQ(journal.records[session->id()].reason, "its timeout of 1s was over");
  const auto heard = Heard();
  EXPECT_EQ(std::ranges::count(heard, "session.expired"), 1);
}

TEST_F(ManagerTest, ASandboxThatVanishesMakesItsSessionLost) {
  auto session = Create();
  auto process = Run(session->Start({.argv = {"sleep"}}));
  ASSERT_TRUE(process);
  provider.Lose(session->id());
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
  EXPECT_EQ(Recorded(session->id()), SessionState::kLost);
  EXPECT_EQ((*process)->outcome()->status, OutcomeStatus::kLost);
}

TEST_F(ManagerTest, AProviderThatLosesAllMakesSessionsLostWithItsReason) {
  auto running = Create();
  auto paused = Create();
  ASSERT_TRUE(Run(manager->Pause(mine, paused->id())));
  provider.LoseAll("the launcher died");
  EXPECT_EQ(running->state(), SessionState::kLost);
  EXPECT_EQ(paused->state(), SessionState::kLost);
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
  EXPECT_EQ(Recorded(running->id()), SessionState::kLost);
  EXPECT_EQ(journal.records[paused->id()].reason, "the launcher died");
  const auto gone = Run(manager->Get(mine, running->id()));
  EXPECT_EQ(gone.error().code(), ErrorCode::kGone);
  EXPECT_FALSE(gone.error().remedy().empty());
  EXPECT_EQ(Create()->state(), SessionState::kRunning);
}

TEST_F(ManagerTest, TheAuditFindsWhatDoesNotAgree) {
  auto session = Create();
  EXPECT_TRUE(Run(manager->Audit())->findings.empty());
  auto stray = std::make_shared<FakeBox>();
  stray->id = "strayboxid";
  provider.boxes["strayboxid"] = stray;
  auto missing = Create();
  provider.boxes.erase(missing->id());
  auto unrecorded = Create();
  journal.records.erase(unrecorded->id());
  std::erase(journal.order, unrecorded->id());
  const auto report = Run(manager->Audit());
  ASSERT_TRUE(report);
  std::vector<FindingKind> kinds;
  for (const auto& finding : report->findings) kinds.push_back(finding.kind);
  EXPECT_EQ(std::ranges::count(kinds, FindingKind::kOrphan), 1);
  EXPECT_EQ(std::ranges::count(kinds, FindingKind::kMissingSandbox), 1);
  EXPECT_EQ(std::ranges::count(kinds, FindingKind::kUnrecorded), 1);
  EXPECT_EQ(kinds.size(), 3u);
}

TEST_F(ManagerTest, ClosingKeepsSandboxesAndRefusesCreates) {
  auto session = Create();
  Run(manager->Close(1s));
  EXPECT_EQ(Run(manager->Create({"acme", "key"}, {})).error().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(provider.boxes.contains(session->id()));
}

TEST_F(ManagerTest, BadRequestsAreRefusedBeforeAnythingHappens) {
  const std::vector<std::pair<SessionSpec, ErrorCode>> bad = {
      {{.network = "full"}, ErrorCode::kUnsupported},
      {{.provider = "nowhere"}, ErrorCode::kInvalidArgument},
      {{.min_isolation = IsolationLevel::kNamespaces}, ErrorCode::kUnsupported},
      {{.name = "a b"}, ErrorCode::kInvalidArgument},
      {{.timeout = 0ms}, ErrorCode::kInvalidArgument},
      {{.artifacts = {"/a/../b"}}, ErrorCode::kInvalidArgument},
      {{.env = {{"A=B", "x"}}}, ErrorCode::kInvalidArgument},
      {{.labels = {{"", "x"}}}, ErrorCode::kInvalidArgument},
      {{.scaling = {.memory_floor = 2, .memory_ceiling = 1}}, ErrorCode::kInvalidArgument},
      {{.idempotency_key = "a b"}, ErrorCode::kInvalidArgument},
      {{.queue = 1h}, ErrorCode::kInvalidArgument},
  };
  for (const auto& [spec, code] : bad) {
    auto made = Run(manager->Create({"acme", "key"}, spec));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), code) << made.error().message();
    EXPECT_FALSE(made.error().remedy().empty());
  }
  EXPECT_TRUE(journal.records.empty());
  EXPECT_EQ(provider.script.creates, 0);
}

}  // namespace
}  // namespace caisson::sandbox
