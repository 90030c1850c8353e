#include "auth/rate_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::auth {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

const RateLimiter::Time kStart = RateLimiter::Time() + std::chrono::hours(1);
const Rates kRates = {{{2, 5}, {0.1, 1}, {}, {1000, 4000}}};

TEST(RateLimiter, AllowsTheBurstThenTheRate) {
  RateLimiter limiter(kRates);
  for (int i = 0; i < 5; ++i) {
    const auto decision = limiter.Take("k", Limited::kRequests, kStart);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.limit, 5);
    EXPECT_EQ(decision.remaining, 4 - i);
  }
  const auto refused = limiter.Take("k", Limited::kRequests, kStart);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_after, 1);
  EXPECT_EQ(refused.reset_seconds, 3);
  EXPECT_FALSE(limiter.Take("k", Limited::kRequests, kStart + milliseconds(499)).allowed);
  EXPECT_TRUE(limiter.Take("k", Limited::kRequests, kStart + milliseconds(500)).allowed);
  EXPECT_EQ(limiter.Take("k", Limited::kRequests, kStart + seconds(1000)).remaining, 4);
}

TEST(RateLimiter, KeysAndKindsHaveTheirOwnBuckets) {
  RateLimiter limiter(kRates);
  EXPECT_TRUE(limiter.Take("a", Limited::kCreates, kStart).allowed);
  const auto refused = limiter.Take("a", Limited::kCreates, kStart);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_after, 10);
  EXPECT_TRUE(limiter.Take("b", Limited::kCreates, kStart).allowed);
  EXPECT_TRUE(limiter.Take("a", Limited::kRequests, kStart).allowed);
}

TEST(RateLimiter, NoRateIsNoLimit) {
  RateLimiter limiter(kRates);
  for (int i = 0; i < 1000; ++i) {
    const auto decision = limiter.Take("k", Limited::kExecs, kStart);
    EXPECT_TRUE(decision.allowed);
    EXPECT_FALSE(decision.limited);
  }
}

TEST(RateLimiter, ACostAboveTheBurstPassesOnceAndIsPaidOff) {
  RateLimiter limiter(kRates);
  EXPECT_TRUE(limiter.Take("k", Limited::kBytes, kStart, 10'000).allowed);
  EXPECT_FALSE(limiter.Take("k", Limited::kBytes, kStart + seconds(5), 1).allowed);
  EXPECT_TRUE(limiter.Take("k", Limited::kBytes, kStart + seconds(7), 1).allowed);
}

TEST(RateLimiter, AClockThatStandsStillOrGoesBackGivesNothing) {
  RateLimiter limiter(kRates);
  EXPECT_TRUE(limiter.Take("k", Limited::kCreates, kStart).allowed);
  EXPECT_FALSE(limiter.Take("k", Limited::kCreates, kStart - seconds(100)).allowed);
}

TEST(RateLimiter, AKeyMayHaveItsOwnRates) {
  RateLimiter limiter(kRates);
  limiter.SetRates("vip", {{{100, 100}, {}, {}, {}}});
  EXPECT_EQ(limiter.Take("vip", Limited::kRequests, kStart).limit, 100);
  limiter.Forget("vip");
  EXPECT_EQ(limiter.Take("vip", Limited::kRequests, kStart).limit, 5);
}

TEST(RateLimiter, ManyKeysDoNotGrowItAndTheBusyOnesAreKept) {
  RateLimiter limiter(kRates, 100);
  EXPECT_TRUE(limiter.Take("busy", Limited::kCreates, kStart).allowed);
  for (int i = 0; i < 10'000; ++i) {
    const auto now = kStart + std::chrono::microseconds(i);
    limiter.Take("k" + std::to_string(i), Limited::kRequests, now);
    EXPECT_FALSE(limiter.Take("busy", Limited::kCreates, now).allowed) << i;
  }
}

TEST(QuotaLedger, LeasesCountAndGiveBack) {
  QuotaLedger ledger;
  const Holding quota{.sandboxes = 2, .cpu_millis = 4000, .memory_bytes = 1 << 30};
  const Holding size{.sandboxes = 1, .cpu_millis = 1000, .memory_bytes = 1 << 20};
  auto first = ledger.Acquire("k", size, quota);
  auto second = ledger.Acquire("k", size, quota);
  ASSERT_TRUE(first && second);
  const auto third = ledger.Acquire("k", size, quota);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(third.error().message(), HasSubstr("2 sandboxes"));
  EXPECT_TRUE(ledger.Acquire("other", size, quota));
  first->Release();
  first->Release();
  EXPECT_EQ(ledger.HeldBy("k").sandboxes, 1);
  EXPECT_TRUE(ledger.Acquire("k", size, quota));
  {
    const auto moved = std::move(*second);
    EXPECT_EQ(ledger.HeldBy("k").cpu_millis, 1000);
  }
  EXPECT_EQ(ledger.HeldBy("k").sandboxes, 0);
}

TEST(QuotaLedger, CpuAndMemoryAreCountedToo) {
  QuotaLedger ledger;
  EXPECT_THAT(ledger.Acquire("k", {1, 3000, 0}, {.cpu_millis = 2000}).error().message(),
              HasSubstr("CPUs"));
  EXPECT_THAT(ledger.Acquire("k", {1, 0, 2 << 20}, {.memory_bytes = 1 << 20}).error().message(),
              HasSubstr("memory"));
  EXPECT_TRUE(ledger.Acquire("k", {1000, 1'000'000, INT64_MAX / 2}, {}));
}

TEST(QuotaLedger, ResizingChecksWhatIsMore) {
  QuotaLedger ledger;
  const Holding quota{.cpu_millis = 4000};
  auto lease = *ledger.Acquire("k", {1, 1000, 0}, quota);
  EXPECT_TRUE(lease.Resize({1, 4000, 0}, quota));
  EXPECT_FALSE(lease.Resize({1, 4001, 0}, quota));
  EXPECT_EQ(ledger.HeldBy("k").cpu_millis, 4000);
  EXPECT_TRUE(lease.Resize({1, 500, 0}, {.cpu_millis = 100}));  // less is always allowed
  EXPECT_EQ(ledger.HeldBy("k").cpu_millis, 500);
}

TEST(QuotaLedger, AdoptedThingsCountWithoutACheck) {
  QuotaLedger ledger;
  const auto adopted = ledger.Adopt("k", {5, 0, 0});
  EXPECT_EQ(ledger.HeldBy("k").sandboxes, 5);
  EXPECT_FALSE(ledger.Acquire("k", {1, 0, 0}, {.sandboxes = 5}));
}

TEST(QuotaLedger, ALeaseMayOutliveTheLedger) {
  QuotaLedger::Lease lease;
  {
    QuotaLedger ledger;
    lease = ledger.Adopt("k", {1, 0, 0});
  }
  lease.Release();
}

}  // namespace
}  // namespace caisson::auth
