#include "telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace caisson::telemetry {
namespace {

TEST(Metrics, TheTextFormat) {
  Registry registry;
  registry.AddCounter("caisson_starts_total", "Starts.").Add(3);
  registry.AddGauge("caisson_pool_size", "Line one\nand \\two").Set(0.5);
  auto& family = registry.AddCounters("caisson_execs_total", "Execs.", {"provider", "outcome"});
  family.With({"native", "ok"}).Add();
  family.With({"a\"b\\c\nd", "failed"}).Add(2);
  registry.AddComputedGauge("caisson_load", "Load.",
                            [] { return std::numeric_limits<double>::infinity(); });
  EXPECT_EQ(registry.Expose(),
            "# HELP caisson_starts_total Starts.\n"
            "# TYPE caisson_starts_total counter\n"
            "caisson_starts_total 3\n"
            "# HELP caisson_pool_size Line one\\nand \\\\two\n"
            "# TYPE caisson_pool_size gauge\n"
            "caisson_pool_size 0.5\n"
            "# HELP caisson_execs_total Execs.\n"
            "# TYPE caisson_execs_total counter\n"
            "caisson_execs_total{provider=\"native\",outcome=\"ok\"} 1\n"
            "caisson_execs_total{provider=\"a\\\"b\\\\c\\nd\",outcome=\"failed\"} 2\n"
            "# HELP caisson_load Load.\n"
            "# TYPE caisson_load gauge\n"
            "caisson_load +Inf\n");
}

TEST(Metrics, HistogramsAreCumulative) {
  static constexpr double kBounds[] = {0.1, 1};
  Registry registry;
  auto& seconds = registry.AddHistogram("caisson_create_seconds", "Create.", kBounds);
  seconds.Observe(0.1);  // on the bound is within it
  seconds.Observe(std::chrono::milliseconds(500));
  seconds.Observe(7.0);
  EXPECT_EQ(registry.Expose(),
            "# HELP caisson_create_seconds Create.\n"
            "# TYPE caisson_create_seconds histogram\n"
            "caisson_create_seconds_bucket{le=\"0.1\"} 1\n"
            "caisson_create_seconds_bucket{le=\"1\"} 2\n"
            "caisson_create_seconds_bucket{le=\"+Inf\"} 3\n"
            "caisson_create_seconds_sum 7.6\n"
            "caisson_create_seconds_count 3\n");
}

TEST(Metrics, TheSameLabelsAreTheSameMetric) {
  Registry registry;
  auto& family = registry.AddGauges("caisson_pool", "Pool.", {"environment"});
  Gauge& gauge = family.With({"python"});
  gauge.Add(2);
  family.With({"python"}).Add(-0.5);
  EXPECT_EQ(&gauge, &family.With({"python"}));
  EXPECT_EQ(gauge.value(), 1.5);
}

TEST(Metrics, SeriesAreBounded) {
  Registry registry;
  auto& family = registry.AddCounters("caisson_x_total", "X.", {"environment"});
  for (int i = 0; i < 1000; ++i) family.With({std::to_string(i)}).Add();
  const auto samples = registry.Collect();
  EXPECT_EQ(samples.size(), Family<Counter>::kMaxSeries + 1);
  EXPECT_EQ(samples.back().labels[0].second, "other");
  EXPECT_EQ(samples.back().value, 1000.0 - Family<Counter>::kMaxSeries);
}

TEST(Metrics, CountsFromManyThreads) {
  Registry registry;
  auto& family = registry.AddCounters("caisson_x_total", "X.", {"n"});
  auto& seconds = registry.AddHistogram("caisson_seconds", "S.", kLatencyBounds);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        family.With({i % 2 == 0 ? "even" : "odd"}).Add();
        seconds.Observe(0.001);
        if (i % 100 == 0) (void)registry.Expose();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(family.With({"odd"}).value(), 2000u);
  EXPECT_EQ(seconds.Cumulative().back(), 4000u);
}

TEST(MetricsDeathTest, MisuseAborts) {
  GTEST_FLAG_SET(death_test_style, "fast");
  Registry registry;
  registry.AddCounter("caisson_x_total", "X.");
  EXPECT_DEATH(registry.AddCounter("caisson_x_total", "X."), "declared twice");
  EXPECT_DEATH(registry.AddCounter("caisson_y", "Y."), "_total");
  EXPECT_DEATH(registry.AddGauge("caisson-y", "Y."), "does not take");
}

}  // namespace
}  // namespace caisson::telemetry
