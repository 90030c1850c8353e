// Init as PID 1 of a pid namespace, as it runs in a sandbox.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "init/test_client.h"

namespace caisson::init {
namespace {

using namespace wire::init;  // NOLINT: the requests and replies of this protocol
using std::chrono::steady_clock;

constexpr auto kApart = TestClient::Where::kPidNamespace;

class Pid1 : public testing::Test {
 protected:
  void SetUp() override {
    if (getuid() != 0) GTEST_SKIP() << "needs root";
  }
};

uint32_t ProcessesIn(TestClient& client) { return client.Call<UsageReply>(Usage{})->processes; }

// Waits until only init is left.
bool Empties(TestClient& client) {
  for (int i = 0; i < 1000; ++i) {
    if (ProcessesIn(client) == 1) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST_F(Pid1, SurvivesEverySignalFromInside) {
  TestClient client(kApart);
  EXPECT_EQ(
      client.Shell("for s in $(seq 1 31); do kill -$s 1; done; kill -STOP 1; kill -9 1; exit 7")
          .exited.code,
      7);
  EXPECT_EQ(client.Shell("echo $PPID").exited.code, 0);
}

TEST_F(Pid1, ACommandThatKillsEverythingElseStillEndsProperly) {
  TestClient client(kApart);
  Start other = TestClient::ShellStart("sleep 100");
  other.credit = 1;
  const auto started = client.Call<Started>(other);
  const auto outcome =
      client.Shell("echo before; kill -9 -1; echo after; exit 5");  // its supervisor too
  EXPECT_EQ(outcome.exited.ended, Ended::kExited);
  EXPECT_EQ(outcome.exited.code, 5);
  EXPECT_EQ(outcome.out, "before\nafter\n");
  EXPECT_EQ(client.UntilExited(started->process).exited->code, SIGKILL);
  EXPECT_TRUE(Empties(client));
  EXPECT_EQ(client.Shell("exit 3").exited.code, 3);
}

TEST_F(Pid1, ReapsOrphans) {
  TestClient client(kApart);
  (void)client.Shell("kill -9 $PPID; for i in 1 2 3 4 5; do (sleep 0.05 &) ; done; exit 0");
  EXPECT_TRUE(Empties(client));
}

TEST_F(Pid1, AForkBombIsKilledAsATree) {
  TestClient client(kApart);
  Start start{.argv = {"bash", "-c", "echo up; bomb() { bomb | bomb & }; bomb; sleep 100"},
              .cwd = "/",
              .user = "4711",
              .credit = 1 << 20};
  start.rlimits = {{.resource = RLIMIT_NPROC, .soft = 150, .hard = 150}};
  start.output_limit = 1 << 26;
  start.overflow = Overflow::kDropOldest;
  start.timeout_ns = 700'000'000;
  const auto started = client.Call<Started>(start);
  ASSERT_TRUE(started);
  const auto before = steady_clock::now();
  const auto& seen = client.UntilExited(started->process);
  EXPECT_EQ(seen.exited->cause, Cause::kTimeout);
  EXPECT_LT(steady_clock::now() - before, std::chrono::seconds(20));
  EXPECT_TRUE(Empties(client));
}

TEST_F(Pid1, NothingOutlivesIt) {
  TestClient client(kApart);
  Start start = TestClient::ShellStart("for i in 1 2 3; do setsid sleep 100 & done; sleep 100");
  ASSERT_TRUE(client.Call<Started>(start));
  client.Send(Shutdown{});
  EXPECT_TRUE(client.EndsWithin(5000));
}

}  // namespace
}  // namespace caisson::init
