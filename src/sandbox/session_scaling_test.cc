#include "sandbox/session_scaling.h"

#include "sandbox/test_manager.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;

class ScalingTest : public testing::Test {
 protected:
  Limits Look(uint64_t memory, std::chrono::milliseconds cpu, std::chrono::milliseconds throttled) {
    stats.memory_bytes = memory;
    stats.cpu += cpu;
    stats.cpu_throttled += throttled;
    const Limits next = DecideScaling(bounds, now, stats, 1s, options, state);
    if (next.memory_bytes) now.memory_bytes = *next.memory_bytes;
    if (next.cpu_millis) now.cpu_millis = *next.cpu_millis;
    return next;
  }
  ScalingSpec bounds{128 * kMiB, 1024 * kMiB, 250, 2000};
  DefaultLimits now = kDefaultLimits;
  ScalingOptions options;
  ScalingState state;
  SandboxStats stats;
};

TEST_F(ScalingTest, PressureRaisesLimitsUpToTheCeiling) {
  Look(100 * kMiB, 0ms, 0ms);
  EXPECT_EQ(Look(500 * kMiB, 500ms, 400ms).memory_bytes, 768 * kMiB);
  EXPECT_EQ(now.cpu_millis, 750u);
  for (int i = 0; i < 9; ++i) Look(now.memory_bytes, 900ms, 500ms);
  EXPECT_EQ(now.memory_bytes, bounds.memory_ceiling);
  EXPECT_EQ(now.cpu_millis, bounds.cpu_ceiling);
}

TEST_F(ScalingTest, AKillAtTheLimitRaisesItToo) {
  Look(10 * kMiB, 0ms, 0ms);
  ++stats.oom_kills;
  EXPECT_TRUE(Look(10 * kMiB, 0ms, 0ms).memory_bytes);
}

TEST_F(ScalingTest, CalmLowersThemSlowlyDownToTheFloor) {
  int changes = 0;
  for (int i = 0; i < 4; ++i) changes += Look(10 * kMiB, 0ms, 0ms).memory_bytes.has_value();
  EXPECT_EQ(changes, 0);
  for (int i = 0; i < 200; ++i) Look(10 * kMiB, 0ms, 0ms);
  EXPECT_EQ(now.memory_bytes, bounds.memory_floor);
  EXPECT_EQ(now.cpu_millis, bounds.cpu_floor);
}

TEST_F(ScalingTest, BetweenHighAndLowNothingMoves) {
  for (int i = 0; i < 50; ++i) {
    const Limits next = Look(now.memory_bytes * 6 / 10, 300ms, 20ms);
    EXPECT_FALSE(next.memory_bytes);
    EXPECT_FALSE(next.cpu_millis);
  }
}

TEST_F(ScalingTest, ALoweredLimitIsNotHighAtOnce) {
  for (int i = 0; i < 300; ++i) {
    Look(150 * kMiB, 0ms, 0ms);
    EXPECT_LT(150 * kMiB, static_cast<uint64_t>(0.85 * static_cast<double>(now.memory_bytes)));
  }
}

TEST_F(ManagerTest, TheScalerMovesTheLimitsOfARunningSessionAndWritesThemDown) {
  auto session = Create({.scaling = {.memory_floor = 64 * kMiB, .memory_ceiling = 256 * kMiB}});
  EXPECT_EQ(session->spec().limits.memory_bytes, 256 * kMiB);
  auto apply = [this](std::shared_ptr<Session> target, Limits limits) {
    return manager->SetLimits(std::move(target), limits);
  };
  ScalingOptions options;
  options.interval = 1h;
  SessionScaler scaler(loop, manager->sessions(), apply, options);
  provider.Box(session->id()).stats.memory_bytes = 10 * kMiB;
  for (int i = 0; i < 5; ++i) Run(scaler.Round(1s));
  EXPECT_EQ(session->spec().limits.memory_bytes, 192 * kMiB);
  EXPECT_EQ(provider.Box(session->id()).updates.at(0).memory_bytes, 192 * kMiB);
  EXPECT_EQ(journal.records[session->id()].spec.limits.memory_bytes, 192 * kMiB);
  const auto heard = Heard();
  EXPECT_EQ(std::ranges::count(heard, "session.scaled"), 1);
}

}  // namespace
}  // namespace caisson::sandbox
