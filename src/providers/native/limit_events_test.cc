#include "providers/native/limit_events.h"

#include <gtest/gtest.h>

namespace caisson::native {
namespace {

TEST(LimitEvents, FindsTheCounterByItsWholeName) {
  const char* v2 = "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n";
  EXPECT_EQ(CountIn(v2, "oom_kill"), 5u);
  EXPECT_EQ(CountIn(v2, "oom"), 4u);
  EXPECT_EQ(CountIn("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", "oom_kill"), 7u);
  EXPECT_EQ(CountIn("max 12", "max"), 12u);
}

TEST(LimitEvents, AnAbsentCounterIsZero) {
  EXPECT_EQ(CountIn("", "max"), 0u);
  EXPECT_EQ(CountIn("max", "max"), 0u);
  EXPECT_EQ(LimitEvents().Read().oom_kills, 0u);
}

}  // namespace
}  // namespace caisson::native
