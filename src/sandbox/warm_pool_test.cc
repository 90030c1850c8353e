#include "sandbox/warm_pool.h"

#include "sandbox/test_manager.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;

class WarmPoolTest : public ManagerTest {
 protected:
  WarmPoolTest() {
    options.look_every = 1ms;
    options.back_off = 1ms;
    options.environments = {{"Python3", "host"}};
  }
  void Open() {
    pool = std::make_unique<WarmPool>(loop, *admission, [this] { return busy; }, options);
  }
  ~WarmPoolTest() override { manager.reset(); }

  bool busy = false;
  WarmPoolOptions options;
  std::unique_ptr<WarmPool> pool;
};

TEST_F(WarmPoolTest, AFloorIsFilledAndRefilled) {
  Open();
  pool->KeepReady(provider, {}, 3);
  ASSERT_TRUE(Until([&] { return pool->ready() == 3; }));
  auto claimed = pool->Claim(provider, {.environment = "Python3"});
  ASSERT_TRUE(claimed);
  EXPECT_FALSE(pool->Holds(claimed->id()));
  ASSERT_TRUE(Until([&] { return pool->ready() == 3; }));
  EXPECT_EQ(provider.boxes.size(), 4u);
  Run(pool->Close());
  EXPECT_EQ(provider.boxes.size(), 1u);
}

TEST_F(WarmPoolTest, WhatIsKnownToBeGoneIsNotGivenOutAndIsReplaced) {
  Open();
  pool->KeepReady(provider, {}, 2);
  ASSERT_TRUE(Until([&] { return pool->ready() == 2; }));
  provider.LoseAll("the launcher died");
  EXPECT_FALSE(pool->Claim(provider, {}));
  ASSERT_TRUE(Until([&] { return pool->ready() == 2; }));
  EXPECT_EQ(provider.boxes.size(), 2u);
  Run(pool->Close());
}

TEST_F(WarmPoolTest, DemandMakesItGrowAndItsEndMakesItShrink) {
  options.average_over = 50ms;
  options.react_in = 20ms;
  options.ceiling = 4;
  Open();
  EXPECT_FALSE(pool->Claim(provider, {.environment = "nobody made one yet"}));
  pool->Made(provider, {});
  for (int i = 0; i < 1000; ++i) (void)pool->Claim(provider, {});
  EXPECT_EQ(pool->misses(), 1001u);
  ASSERT_TRUE(Until([&] { return pool->ready() > 0; }));
  EXPECT_LE(pool->ready(), 4u);
  ASSERT_TRUE(Until([&] { return pool->ready() == 0 && provider.boxes.empty(); }));
}

TEST_F(WarmPoolTest, WhatCannotBeChangedLiveIsNotClaimed) {
  Open();
  pool->KeepReady(provider, {}, 1);
  ASSERT_TRUE(Until([&] { return pool->ready() == 1; }));
  EXPECT_FALSE(pool->Claim(provider, {.limits = {.disk_bytes = 64 * kMiB}}));
  EXPECT_FALSE(pool->Claim(provider, {.limits = {.memory_bytes = 64 * kMiB}}));
  EXPECT_FALSE(pool->Claim(provider, {.profile = Profile::kStrict}));
  EXPECT_TRUE(pool->Claim(provider, {.limits = {.memory_bytes = 1024 * kMiB}}));
}

TEST_F(WarmPoolTest, AFullHostAndAFailingProviderGetNoMore) {
  headroom.memory_bytes = 0;
  Open();
  pool->KeepReady(provider, {}, 1);
  Settle();
  EXPECT_EQ(provider.script.creates, 0);
  headroom.memory_bytes = uint64_t{1} << 40;
  provider.script.create_error = Error(ErrorCode::kIo, "no");
  ASSERT_TRUE(Until([&] { return provider.script.creates >= 2; }));
  EXPECT_EQ(pool->ready(), 0u);
  provider.script.create_error.reset();
  EXPECT_TRUE(Until([&] { return pool->ready() == 1; }));
}

TEST_F(WarmPoolTest, DeadAndOldOnesAreReplaced) {
  Open();
  pool->KeepReady(provider, {}, 1);
  ASSERT_TRUE(Until([&] { return pool->ready() == 1; }));
  const std::string first = provider.boxes.begin()->first;
  provider.Lose(first);
  ASSERT_TRUE(Until([&] { return provider.boxes.size() == 1 && !pool->Holds(first); }));
}

TEST_F(WarmPoolTest, AClaimMakesASessionWithoutAnotherSandboxAndWithItsOwnLimits) {
  Open();
  pool->KeepReady(provider, {}, 1);
  ASSERT_TRUE(Until([&] { return pool->ready() == 1; }));
  warm = pool.get();
  // A new server would remove what waits; this one is told of it.
  provider.boxes.clear();
  Restart();
  ASSERT_TRUE(Until([&] { return pool->ready() == 1 && provider.boxes.size() == 1; }));
  const int made = provider.script.creates;
  const std::string waiting = provider.boxes.begin()->first;
  auto session = Create({.limits = {.cpu_millis = 250}, .env = {{"A", "1"}}});
  ASSERT_TRUE(session);
  EXPECT_EQ(session->record().sandbox_id, waiting);
  EXPECT_NE(session->id(), waiting);
  EXPECT_EQ(provider.Box(waiting).updates.at(0).cpu_millis, 250u);
  EXPECT_EQ(journal.log, (std::vector<std::string>{session->id() + " running"}));
  ASSERT_TRUE(Until([&] { return pool->ready() == 1; }));
  EXPECT_EQ(provider.script.creates, made + 1);
  EXPECT_TRUE(Run(manager->Audit())->findings.empty());
  provider.script.update_error = Error(ErrorCode::kLimitRefused, "no");
  auto cold = Create({.limits = {.cpu_millis = 300}});
  EXPECT_EQ(cold->record().sandbox_id, cold->id());
}

}  // namespace
}  // namespace caisson::sandbox
