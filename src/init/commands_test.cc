#include "init/commands.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include "init/test_client.h"

namespace caisson::init {
namespace {

using namespace wire::init;  // NOLINT: the requests and replies of this protocol
using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kMs = 1'000'000;

bool Lives(const std::string& pid) { return !pid.empty() && kill(std::stoi(pid), 0) == 0; }

bool GoneWithin(const std::string& pid, int ms) {
  for (int i = 0; i < ms / 5; ++i) {
    if (!Lives(pid)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return !Lives(pid);
}

std::string Words(const std::string& text, size_t index) {
  size_t at = 0;
  for (size_t i = 0; i < index; ++i)
    at = text.find_first_not_of(" \n", text.find_first_of(" \n", at));
  return text.substr(at, text.find_first_of(" \n", at) - at);
}

TEST(Commands, ReportsExitCodesAndSignals) {
  TestClient client;
  EXPECT_EQ(client.Shell("exit 0").exited.code, 0);
  EXPECT_EQ(client.Shell("exit 37").exited.code, 37);
  const auto killed = client.Shell("kill -SEGV $$").exited;
  EXPECT_EQ(killed.ended, Ended::kSignaled);
  EXPECT_EQ(killed.code, SIGSEGV);
  EXPECT_EQ(killed.cause, Cause::kItself);
}

TEST(Commands, StreamsBothOutputsWithOffsets) {
  TestClient client;
  const auto outcome = client.Shell("echo out; echo err >&2");
  EXPECT_EQ(outcome.out, "out\n");
  EXPECT_EQ(outcome.err, "err\n");
  EXPECT_EQ(outcome.exited.stdout_end, 4u);
  EXPECT_EQ(outcome.exited.stderr_end, 4u);
}

TEST(Commands, UsageComesFromTheKernel) {
  TestClient client;
  const auto usage =
      client.Shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.02").exited.usage;
  EXPECT_GT(usage.user_us + usage.system_us, 1000u);
  EXPECT_GT(usage.max_rss_kib, 100u);
  EXPECT_GT(usage.wall_ns, 20 * kMs);
}

TEST(Commands, SaysWhyAndWhereAStartFailed) {
  ScratchDir dir;
  TestClient client;
  const auto fails = [&](std::vector<std::string> argv, std::string cwd) {
    Start start;
    start.argv = std::move(argv);
    start.cwd = std::move(cwd);
    const auto started = client.Call<Started>(start);
    return started ? std::pair(started->error_number, started->stage)
                   : std::pair(-client.failure.error_number, StartStage::kSetup);
  };
  const std::string script = dir / "script";
  const int fd = open(script.c_str(), O_CREAT | O_WRONLY, 0755);
  ASSERT_EQ(write(fd, "echo hi\n", 8), 8);
  close(fd);
  EXPECT_EQ(fails({"/nonexistent"}, "/"), std::pair(ENOENT, StartStage::kExec));
  EXPECT_EQ(fails({"no-such-program"}, "/"), std::pair(ENOENT, StartStage::kExec));
  EXPECT_EQ(fails({"/etc/passwd"}, "/"), std::pair(EACCES, StartStage::kExec));
  EXPECT_EQ(fails({"/etc"}, "/"), std::pair(EACCES, StartStage::kExec));
  EXPECT_EQ(fails({"/etc/passwd/x"}, "/"), std::pair(ENOTDIR, StartStage::kExec));
  EXPECT_EQ(fails({script}, "/"), std::pair(ENOEXEC, StartStage::kExec));
  EXPECT_EQ(fails({"true"}, "/nonexistent"), std::pair(ENOENT, StartStage::kCwd));
  EXPECT_EQ(fails({"true"}, "/etc/passwd"), std::pair(ENOTDIR, StartStage::kCwd));
  EXPECT_EQ(fails({"true"}, "/proc/self"), std::pair(EACCES, StartStage::kCwd));
  EXPECT_EQ(fails({"true"}, "/proc"), std::pair(EACCES, StartStage::kCwd));
  EXPECT_EQ(fails({"true"}, "relative").first, -EINVAL);
  EXPECT_EQ(fails({}, "/").first, -EINVAL);
  EXPECT_EQ(fails({std::string("a\0b", 3)}, "/").first, -EINVAL);
  EXPECT_EQ(client.Call<Processes>(ListProcesses{})->processes.size(), 0u);
  EXPECT_EQ(client.Shell("exit 3").exited.code, 3);  // and it still works
}

TEST(Commands, RefusesMalformedUsers) {
  TestClient client;
  for (const char* user : {"0:0", "+0", "00", "-1", "4294967296", "１０００"}) {
    Start start = TestClient::ShellStart("true");
    start.user = user;
    EXPECT_FALSE(client.Call<Started>(start));
    EXPECT_EQ(client.failure.error_number, EINVAL) << user;
    EXPECT_THAT(client.failure.what, HasSubstr("uid 0..65534"));
  }
}

TEST(Commands, RunsAsTheUserWithoutAnyCapability) {
  TestClient client;
  Start start = TestClient::ShellStart(
      "id -u; id -g; grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status; grep Groups "
      "/proc/self/status");
  start.user = getuid() == 0 ? "4711" : std::to_string(getuid() + 1);
  const auto started = client.Call<Started>(start);
  if (getuid() != 0) {
    EXPECT_FALSE(started);
    EXPECT_EQ(client.failure.error_number, EPERM);
    return;
  }
  ASSERT_TRUE(started);
  ASSERT_TRUE(client.Call<Attached>(Attach{.process = started->process, .credit = 1 << 20}));
  const std::string out = client.UntilExited(started->process).out;
  EXPECT_THAT(out, StartsWith("4711\n4711\n"));
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    EXPECT_THAT(out, HasSubstr(std::string(set) + ":\t0000000000000000"));
  }
}

TEST(Commands, RootGetsExactlyTheSandboxesCapabilities) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  TestClient client;
  const std::string out = client.Shell("grep Cap /proc/self/status").out;
  EXPECT_THAT(out, HasSubstr("CapInh:\t0000000000000000"));
  EXPECT_THAT(out, HasSubstr("CapPrm:\t00000000800000fb"));
  EXPECT_THAT(out, HasSubstr("CapEff:\t00000000800000fb"));
  EXPECT_THAT(out, HasSubstr("CapAmb:\t0000000000000000"));
}

TEST(Commands, InitItselfHoldsNoEffectiveCapabilityAndIsOpaque) {
  TestClient client;
  (void)client.Shell("true");
  const std::string out =
      client.Shell("grep CapEff /proc/" + std::to_string(client.pid()) + "/status").out;
  EXPECT_THAT(out, HasSubstr("CapEff:\t0000000000000000"));
  if (getuid() != 0) return;
  Start start = TestClient::ShellStart("cat /proc/" + std::to_string(client.pid()) + "/maps");
  start.user = "4711";
  EXPECT_NE(client.Run(start).exited.code, 0);
}

TEST(Commands, ExactlyThreeDescriptorsReachTheCommand) {
  TestClient client;
  Start daemon = TestClient::ShellStart("sleep 5");
  daemon.stdin_kind = Stdin::kOpen;
  const auto other = client.Call<Started>(daemon);  // whose descriptors init holds
  EXPECT_EQ(client.Run({.argv = {"ls", "/proc/self/fd"}}).out, "0\n1\n2\n3\n");  // 3: ls itself
  EXPECT_TRUE(client.Call<Done>(Signal{.process = other->process, .signo = SIGKILL}));
}

TEST(Commands, FreshSessionUmaskSignalsAndEnvironment) {
  TestClient client;
  Start start = TestClient::ShellStart(
      "ps -o pid=,sid=,pgid= $$ | tr -s ' '; umask; grep -E 'Sig(Blk|Ign)' /proc/self/status; echo "
      "$HOME $PATH; pwd");
  start.cwd = "";
  const std::string out = client.Run(start).out;
  const std::string pid = Words(out.substr(out.find_first_not_of(' ')), 0);
  EXPECT_THAT(out, HasSubstr(pid + " " + pid + " " + pid));
  EXPECT_THAT(out, HasSubstr("0022\n"));
  EXPECT_THAT(out, HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_THAT(out, HasSubstr("SigIgn:\t0000000000000000"));
  EXPECT_THAT(out, HasSubstr("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
}

TEST(Commands, LimitsApplyAndDefaultsCanChange) {
  TestClient client;
  Start start = TestClient::ShellStart("ulimit -n; ulimit -c");
  start.rlimits = {{.resource = RLIMIT_NOFILE, .soft = 33, .hard = 44}};
  EXPECT_THAT(client.Run(start).out, StartsWith("33\n"));
  ASSERT_TRUE(client.Call<Done>(
      UpdateDefaults{.rlimits = {{.resource = RLIMIT_CORE, .soft = 0, .hard = 0},
                                 {.resource = RLIMIT_NOFILE, .soft = 55, .hard = 55}}}));
  EXPECT_EQ(client.Shell("ulimit -n; ulimit -c").out, "55\n0\n");
  EXPECT_EQ(client.Run(start).out, "33\n0\n");
  start.rlimits = {{.resource = 99, .soft = 1, .hard = 1}};
  EXPECT_FALSE(client.Call<Started>(start));
  EXPECT_EQ(client.failure.error_number, EINVAL);
}

TEST(Commands, ATimeoutKillsTheWholeTreeDaemonsIncluded) {
  TestClient client;
  Start start = TestClient::ShellStart(
      "setsid sh -c '(trap \"\" TERM HUP; echo $$; exec sleep 100) & trap \"\" TERM; sleep 100' & "
      "trap '' TERM; sleep 100");
  start.timeout_ns = 300 * kMs;
  const auto outcome = client.Run(start);
  EXPECT_EQ(outcome.exited.ended, Ended::kSignaled);
  EXPECT_EQ(outcome.exited.code, SIGKILL);
  EXPECT_EQ(outcome.exited.cause, Cause::kTimeout);
  EXPECT_GE(outcome.exited.usage.wall_ns, 300 * kMs);
  EXPECT_TRUE(GoneWithin(Words(outcome.out, 0), 2000));
}

TEST(Commands, AStoppedCommandStillTimesOut) {
  TestClient client;
  Start start = TestClient::ShellStart("kill -STOP $$; sleep 100");
  start.timeout_ns = 200 * kMs;
  EXPECT_EQ(client.Run(start).exited.cause, Cause::kTimeout);
}

TEST(Commands, KillingTheTreeOutrunsAForkingProcess) {
  TestClient client;
  // Each generation forks the next in a session of its own and dies, as fast as it can.
  Start start{.argv = {"python3", "-c",
                       "import os,signal\n"
                       "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                       "os.write(1, b'up')\n"
                       "if os.fork() == 0:\n"
                       "  while True:\n"
                       "    if os.fork(): os._exit(0)\n"
                       "    os.setsid()\n"
                       "    if os.fork() == 0:\n"
                       "      import time; time.sleep(0.05); os._exit(0)\n"
                       "signal.pause()\n"},
              .cwd = "/",
              .credit = 1 << 20};
  const auto started = client.Call<Started>(start);
  ASSERT_TRUE(started);
  while (client.collected[started->process].out != "up") ASSERT_TRUE(client.Receive());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_TRUE(client.Call<Done>(
      Signal{.process = started->process, .signo = SIGKILL, .scope = Scope::kTree}));
  const auto& seen = client.UntilExited(started->process);
  EXPECT_EQ(seen.exited->cause, Cause::kKilledByOwner);
  // Only a dead tree lets the supervisor go: nothing but `ps` and its shell is left below init.
  std::string left;
  for (int i = 0; i < 400; ++i) {
    left = client.Shell("ps -e -o ppid=,comm= | grep -c '^ *" + std::to_string(client.pid()) + " '")
               .out;
    if (left == "1\n") break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(left, "1\n");
}

TEST(Commands, DaemonsOutliveTheirCommandAndStayInItsTree) {
  TestClient client;
  Start start =
      TestClient::ShellStart("setsid sh -c 'echo $$; exec sleep 100' & sleep 0.1; exit 5");
  start.credit = 1 << 20;
  const auto started = client.Call<Started>(start);
  ASSERT_TRUE(started);
  const auto before = std::chrono::steady_clock::now();
  const auto& seen = client.UntilExited(started->process);
  EXPECT_LT(std::chrono::steady_clock::now() - before,
            std::chrono::seconds(2));  // it holds the pipe
  EXPECT_EQ(seen.exited->code, 5);
  const std::string daemon = Words(seen.out, 0);
  EXPECT_TRUE(Lives(daemon));
  ASSERT_TRUE(client.Call<Done>(
      Signal{.process = started->process, .signo = SIGTERM, .scope = Scope::kTree}));
  EXPECT_TRUE(GoneWithin(daemon, 2000));
}

TEST(Commands, ASignalToTheTreeReachesAChildThatIsBeingForked) {
  TestClient client;
  const std::string children = "/proc/" + std::to_string(client.pid()) + "/task/" +
                               std::to_string(client.pid()) + "/children";
  if (access(children.c_str(), R_OK) != 0) GTEST_SKIP() << "this kernel lists no children";
  const std::string forks =
      "for i in $(seq 300); do sleep 300 & [ $i = 40 ] && echo up; done; wait";
  // In the command's own process group, and in another one.
  for (int i = 0; i < 16; ++i) {
    const std::string script = i % 2 == 0 ? forks : "setsid --wait sh -c '" + forks + "'";
    Start start = TestClient::ShellStart(script);
    start.credit = 1 << 20;
    const auto started = client.Call<Started>(start);
    ASSERT_TRUE(started);
    while (client.collected[started->process].out.empty()) ASSERT_TRUE(client.Receive());
    ASSERT_TRUE(client.Call<Done>(Signal{.process = started->process, .signo = SIGTERM}));
    ASSERT_TRUE(client.UntilExited(started->process).exited);
    ASSERT_TRUE(client.Call<Done>(Release{started->process}));
    // The supervisor goes with the last of its tree.
    bool gone = false;
    for (int wait = 0; wait < 2000 && !gone; ++wait) {
      gone = std::ifstream(children).peek() == EOF;
      if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_TRUE(gone) << "a child lives on";
  }
}

TEST(Commands, AReleasedDaemonLivesOnAndIsNotBlocked) {
  ScratchDir dir;
  TestClient client;
  const std::string mark = dir / "mark";
  // Writes more than a pipe holds after its command has been released.
  const auto outcome = client.Shell(
      "setsid sh -c 'sleep 0.6; head -c 300000 /dev/zero; echo done > " + mark + "' & exit 0");
  EXPECT_EQ(outcome.exited.code, 0);
  for (int i = 0; i < 600 && access(mark.c_str(), F_OK) != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(access(mark.c_str(), F_OK), 0);
}

TEST(Commands, WhatDaemonsWriteAfterExitedIsDropped) {
  ScratchDir dir;
  TestClient client;
  const std::string mark = dir / "mark";
  Start start = TestClient::ShellStart(
      "setsid sh -c 'sleep 0.6; head -c 300000 /dev/zero; echo > " + mark + "' & exit 0");
  start.ring_bytes = 8192;
  const auto started = client.Call<Started>(start);
  for (int i = 0; i < 600 && access(mark.c_str(), F_OK) != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(access(mark.c_str(), F_OK), 0);  // it was not blocked
  ASSERT_TRUE(client.Call<Attached>(Attach{.process = started->process, .credit = 1}));
  EXPECT_EQ(client.UntilExited(started->process).exited->stdout_end, 0u);
  const auto list = client.Call<Processes>(ListProcesses{});
  EXPECT_EQ(list->processes[0].stdout_end, 0u);
}

TEST(Commands, GoesOnWhenItsSupervisorIsKilled) {
  TestClient client;
  // The parent of the command is its supervisor.
  Start start = TestClient::ShellStart(
      "(setsid sh -c 'echo $$; exec sleep 100' &) ; sleep 0.1; kill -9 $PPID; sleep 0.1; exit 9");
  start.credit = 1 << 20;
  const auto started = client.Call<Started>(start);
  const auto& seen = client.UntilExited(started->process);
  EXPECT_EQ(seen.exited->ended, Ended::kExited);
  EXPECT_EQ(seen.exited->code, 9);
  const std::string daemon = Words(seen.out, 0);
  EXPECT_TRUE(Lives(daemon));
  ASSERT_TRUE(client.Call<Done>(
      Signal{.process = started->process, .signo = SIGKILL, .scope = Scope::kTree}));
  EXPECT_TRUE(GoneWithin(daemon, 2000));
}

TEST(Commands, TimesOutEvenWhenItsSupervisorIsStopped) {
  TestClient client;
  Start start = TestClient::ShellStart("kill -STOP $PPID; sleep 100");
  start.timeout_ns = 200 * kMs;
  const auto exited = client.Run(start).exited;
  EXPECT_EQ(exited.cause, Cause::kTimeout);
  EXPECT_EQ(exited.code, SIGKILL);
}

TEST(Commands, TheOutputLimitIsExact) {
  TestClient client;
  Start start = TestClient::ShellStart("head -c 1000 /dev/zero; head -c 500 /dev/zero >&2");
  start.output_limit = 1500;
  auto outcome = client.Run(start);
  EXPECT_EQ(outcome.exited.cause, Cause::kItself);
  EXPECT_EQ(outcome.out.size() + outcome.err.size(), 1500u);

  start.argv[2] = "yes; sleep 100";
  start.output_limit = 100'001;
  outcome = client.Run(start);
  EXPECT_EQ(outcome.exited.cause, Cause::kOutputLimit);
  EXPECT_EQ(outcome.exited.code, SIGKILL);
  EXPECT_EQ(outcome.out.size(), 100'001u);
  EXPECT_EQ(outcome.exited.stdout_end, 100'001u);

  start.argv[2] = "printf 12345678; exit 0";
  start.output_limit = 4;
  outcome = client.Run(start);
  EXPECT_EQ(outcome.exited.cause, Cause::kOutputLimit);
  EXPECT_EQ(outcome.out, "1234");
}

TEST(Commands, ASlowReaderLosesNothing) {
  TestClient client;
  Start start =
      TestClient::ShellStart("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done");
  start.ring_bytes = 8192;
  start.credit = 1000;
  const auto started = client.Call<Started>(start);
  auto& seen = client.collected[started->process];
  std::string expected;
  for (int i = 0; i < 20000; ++i) expected += "line " + std::to_string(i) + "\n";
  uint64_t granted = 1000;
  while (!seen.exited || seen.out.size() < seen.exited->stdout_end) {
    if (seen.out.size() == granted) {
      client.Send(Credit{.process = started->process, .bytes = 3001});
      granted += 3001;
    }
    ASSERT_TRUE(client.Receive());
    ASSERT_LE(seen.out.size(), granted);  // never more than was granted
  }
  EXPECT_EQ(seen.out, expected);
  EXPECT_FALSE(seen.gap);
  EXPECT_EQ(seen.exited->stdout_dropped, 0u);
}

TEST(Commands, AFullRingBlocksTheCommandUntilSomebodyReads) {
  TestClient client;
  Start start = TestClient::ShellStart("head -c 500000 /dev/zero; exit 4");
  start.ring_bytes = 16384;
  const auto started = client.Call<Started>(start);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  const auto list = client.Call<Processes>(ListProcesses{});
  ASSERT_EQ(list->processes.size(), 1u);
  EXPECT_EQ(list->processes[0].ended, 0);
  EXPECT_EQ(list->processes[0].stdout_end, 16384u);
  ASSERT_TRUE(client.Call<Attached>(Attach{.process = started->process, .credit = UINT64_MAX}));
  const auto& seen = client.UntilExited(started->process);
  EXPECT_EQ(seen.out.size(), 500000u);
  EXPECT_EQ(seen.exited->code, 4);
}

TEST(Commands, DropOldestKeepsTheNewestAndCounts) {
  TestClient client;
  Start start = TestClient::ShellStart("head -c 100000 /dev/zero; echo end");
  start.ring_bytes = 8192;
  start.overflow = Overflow::kDropOldest;
  const auto started = client.Call<Started>(start);
  for (int i = 0; i < 500; ++i) {
    if (client.Call<Processes>(ListProcesses{})->processes[0].ended != 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const auto attached =
      client.Call<Attached>(Attach{.process = started->process, .credit = UINT64_MAX});
  EXPECT_EQ(attached->stdout_from, 100004u - 8192);
  const auto& seen = client.UntilExited(started->process);
  EXPECT_EQ(seen.out.size(), 8192u);
  EXPECT_THAT(seen.out, testing::EndsWith("end\n"));
  EXPECT_EQ(seen.exited->stdout_end, 100004u);
  EXPECT_EQ(seen.exited->stdout_dropped, 100004u - 8192);
}

TEST(Commands, ANewOwnerReplaysFromAnOffset) {
  TestClient client;
  Start start = TestClient::ShellStart("printf 0123456789; read line; printf \"$line\"; exit 6");
  start.stdin_kind = Stdin::kOpen;
  start.credit = 100;
  start.label = "mine";
  const auto started = client.Call<Started>(start);
  while (client.collected[started->process].out.size() < 10) ASSERT_TRUE(client.Receive());

  EXPECT_EQ(client.Hello(77).processes, 1u);  // as after the death of the owner before
  client.collected.clear();
  const auto list = client.Call<Processes>(ListProcesses{});
  ASSERT_EQ(list->processes.size(), 1u);
  EXPECT_EQ(list->processes[0].label, "mine");
  EXPECT_EQ(list->processes[0].stdout_end, 10u);
  ASSERT_TRUE(client.Call<Done>(Input{.process = started->process, .eof = 1, .data = "abc\n"}));
  EXPECT_FALSE(client.Receive(300)) << "an event came before Attach";
  const auto attached =
      client.Call<Attached>(Attach{.process = started->process, .stdout_from = 4, .credit = 100});
  EXPECT_EQ(attached->stdout_from, 4u);
  client.collected[started->process].out_at = 4;
  const auto& seen = client.UntilExited(started->process);
  EXPECT_EQ(seen.out, "456789abc");
  EXPECT_FALSE(seen.gap);
  EXPECT_EQ(seen.exited->code, 6);

  client.collected.clear();  // Exited is repeated for whoever attaches later
  ASSERT_TRUE(
      client.Call<Attached>(Attach{.process = started->process, .stdout_from = 13, .credit = 1}));
  while (!client.collected[started->process].exited) ASSERT_TRUE(client.Receive());
  ASSERT_TRUE(client.Call<Done>(Release{.process = started->process}));
  EXPECT_FALSE(client.Call<Attached>(Attach{.process = started->process}));
  EXPECT_EQ(client.failure.error_number, ESRCH);
}

TEST(Commands, InputIsWrittenWholeAndEofEndsIt) {
  TestClient client;
  Start start{.argv = {"sh", "-c", "sleep 0.2; wc -c"},
              .cwd = "/",
              .stdin_kind = Stdin::kOpen,
              .credit = 1 << 20};
  const auto started = client.Call<Started>(start);
  const std::string chunk(wire::kMaxData, 'x');
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(client.Call<Done>(Input{.process = started->process, .data = chunk}));
  // A second one while the first waits is refused.
  const uint32_t waiting = client.Send(Input{.process = started->process, .eof = 1, .data = chunk});
  const auto header = wire::PeekHeader(client.WaitFor(waiting));
  EXPECT_EQ(header->type, static_cast<uint16_t>(Type::kDone));
  EXPECT_EQ(Words(client.UntilExited(started->process).out, 0), std::to_string(5 * wire::kMaxData));
  EXPECT_FALSE(client.Call<Done>(Input{.process = started->process, .data = "late"}));
  EXPECT_EQ(client.failure.error_number, EPIPE);
}

TEST(Commands, InputToAProcessThatDoesNotReadIsOnePendingRequest) {
  TestClient client;
  Start start{.argv = {"sleep", "100"}, .cwd = "/", .stdin_kind = Stdin::kOpen, .credit = 100};
  const auto started = client.Call<Started>(start);
  const std::string chunk(wire::kMaxData, 'x');
  ASSERT_TRUE(
      client.Call<Done>(Input{.process = started->process, .data = chunk}));  // fills the pipe
  const uint32_t pending = client.Send(Input{.process = started->process, .data = chunk});
  EXPECT_FALSE(client.Call<Done>(Input{.process = started->process, .data = "x"}));
  EXPECT_EQ(client.failure.error_number, EBUSY);
  client.Send(Signal{.process = started->process, .signo = SIGKILL});
  const auto failed = wire::Decode<Failed>(client.WaitFor(pending));
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->error_number, EPIPE);
}

TEST(Commands, ATerminalHasASizeAndCanBeResized) {
  TestClient client;
  Start start = TestClient::ShellStart(
      "stty size; read x; stty size; tty >/dev/null && echo is-a-tty; test -e /dev/tty && echo "
      "has-tty > /dev/tty");
  start.stdio = Stdio::kPty;
  start.rows = 33;
  start.cols = 111;
  start.credit = 1 << 20;
  const auto started = client.Call<Started>(start);
  auto& seen = client.collected[started->process];
  while (!seen.out.contains("33 111")) ASSERT_TRUE(client.Receive());
  ASSERT_TRUE(client.Call<Done>(Resize{.process = started->process, .rows = 10, .cols = 20}));
  ASSERT_TRUE(client.Call<Done>(Input{.process = started->process, .data = "go\n"}));
  client.UntilExited(started->process);
  EXPECT_THAT(seen.out, HasSubstr("10 20"));
  EXPECT_THAT(seen.out, HasSubstr("is-a-tty"));
  EXPECT_THAT(seen.out, HasSubstr("has-tty"));
  EXPECT_FALSE(client.Call<Done>(
      Resize{.process = client.Call<Started>(TestClient::ShellStart("true"))->process}));
  EXPECT_EQ(client.failure.error_number, ENOTTY);
}

TEST(Commands, EofOnATerminalIsTheEofCharacter) {
  TestClient client;
  Start start{.argv = {"cat"}, .cwd = "/", .stdio = Stdio::kPty, .credit = 1 << 20};
  const auto started = client.Call<Started>(start);
  ASSERT_TRUE(client.Call<Done>(Input{.process = started->process, .eof = 1, .data = "hello\n"}));
  const auto& seen = client.UntilExited(started->process);
  EXPECT_EQ(seen.exited->code, 0);
  EXPECT_THAT(seen.out, HasSubstr("hello\r\nhello"));
}

TEST(Commands, ClosingItsTerminalIsNotTheEndOfACommand) {
  TestClient client;
  Start start =
      TestClient::ShellStart("exec <&- >&- 2>&-; sleep 0.3; echo back > /dev/tty; exit 3");
  start.stdio = Stdio::kPty;
  const auto outcome = client.Run(start);
  EXPECT_EQ(outcome.exited.ended, Ended::kExited);
  EXPECT_EQ(outcome.exited.code, 3);
  EXPECT_EQ(outcome.out, "back\r\n");
}

TEST(Commands, SignalsReachProcessOrGroup) {
  TestClient client;
  Start start = TestClient::ShellStart(
      "trap 'echo got; exit 8' USR1; echo ready; while :; do sleep 0.05; done");
  start.credit = 1 << 20;
  const auto started = client.Call<Started>(start);
  while (client.collected[started->process].out != "ready\n") ASSERT_TRUE(client.Receive());
  EXPECT_FALSE(client.Call<Done>(Signal{.process = started->process, .signo = 65}));
  EXPECT_EQ(client.failure.error_number, EINVAL);
  EXPECT_FALSE(client.Call<Done>(Release{.process = started->process}));
  EXPECT_EQ(client.failure.error_number, EBUSY);
  ASSERT_TRUE(client.Call<Done>(
      Signal{.process = started->process, .signo = SIGUSR1, .scope = Scope::kProcess}));
  EXPECT_EQ(client.UntilExited(started->process).exited->code, 8);
  EXPECT_FALSE(client.Call<Done>(
      Signal{.process = started->process, .signo = SIGUSR1, .scope = Scope::kProcess}));
  EXPECT_EQ(client.failure.error_number, ESRCH);
}

TEST(Commands, FailedStartsLeaveNothingOpen) {
  TestClient client;
  const std::string count = "sleep 0.05; ls /proc/" + std::to_string(client.pid()) + "/fd | wc -l";
  const std::string before = client.Shell(count).out;
  for (const Stdio stdio : {Stdio::kPipes, Stdio::kPty}) {
    for (int i = 0; i < 20; ++i) {
      Start start{.argv = {"/nonexistent"}, .stdio = stdio, .stdin_kind = Stdin::kOpen};
      EXPECT_EQ(client.Call<Started>(start)->error_number, ENOENT);
    }
  }
  EXPECT_EQ(client.Shell(count).out, before);
}

TEST(Commands, TheOomKillerPrefersThemToInit) {
  TestClient client;
  EXPECT_GE(std::stoi(client.Shell("sleep 0.1; cat /proc/self/oom_score_adj").out), 500);
}

TEST(Commands, ManyAtOnceAllEndAndNothingIsLeftOpen) {
  TestClient client;
  const std::string fds = "/proc/" + std::to_string(client.pid()) + "/fd";
  const std::string before = client.Shell("ls " + fds + " | wc -l").out;
  std::vector<uint32_t> ids;
  for (int i = 0; i < 100; ++i) {
    Start start =
        TestClient::ShellStart("echo " + std::to_string(i) + "; exit " + std::to_string(i));
    start.credit = 1000;
    ids.push_back(client.Call<Started>(start)->process);
  }
  for (int i = 0; i < 100; ++i) {
    const auto& seen = client.UntilExited(ids[static_cast<size_t>(i)]);
    EXPECT_EQ(seen.exited->code, i);
    EXPECT_EQ(seen.out, std::to_string(i) + "\n");
    EXPECT_TRUE(client.Call<Done>(Release{.process = ids[static_cast<size_t>(i)]}));
  }
  EXPECT_EQ(client.Shell("ls " + fds + " | wc -l").out, before);
  EXPECT_EQ(client.Call<UsageReply>(Usage{})->output_bytes > 190, true);
}

}  // namespace
}  // namespace caisson::init
