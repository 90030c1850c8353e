#include "telemetry/host_metrics.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace caisson::telemetry {
namespace {

class HostMetricsTest : public testing::Test {
 protected:
  HostMetricsTest() {
    std::string pattern = testing::TempDir() + "caisson-proc-XXXXXX";
    proc = mkdtemp(pattern.data());
    Write("meminfo", "MemTotal:  2000 kB\nMemFree: 1 kB\nMemAvailable:   500 kB\n");
    Write("loadavg", "1.25 0.50 0.10 2/345 6789\n");
    Write("stat", "cpu  100 0 50 1000 30 20 10 20 500 0\ncpu0 1 2 3 4\n");
  }
  ~HostMetricsTest() override { std::filesystem::remove_all(proc); }

  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(proc + "/" + name).parent_path());
    std::ofstream(proc + "/" + name) << text;
  }
  double ValueOf(const Registry& registry, const std::string& name) {
    for (const Sample& sample : registry.Collect())
      if (sample.name == name) return sample.value;
    return -1;
  }
  std::string proc;
};

TEST_F(HostMetricsTest, AreReadWhenSomebodyLooks) {
  Write("pressure/memory",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
  Registry registry;
  AddHostMetrics(registry, {.disk = proc, .proc = proc});
  EXPECT_EQ(ValueOf(registry, "caisson_host_memory_bytes"), 2000 * 1024);
  EXPECT_EQ(ValueOf(registry, "caisson_host_memory_available_bytes"), 500 * 1024);
  EXPECT_EQ(ValueOf(registry, "caisson_host_load"), 1.25);
  EXPECT_EQ(ValueOf(registry, "caisson_host_cpu_busy_seconds_total"),
            200.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(ValueOf(registry, "caisson_host_memory_pressure_seconds_total"), 2.5);
  EXPECT_GE(ValueOf(registry, "caisson_host_cpus"), 1);
  EXPECT_GT(ValueOf(registry, "caisson_host_disk_bytes"),
            ValueOf(registry, "caisson_host_disk_available_bytes"));
  Write("loadavg", "3.00 0.50 0.10 2/345 6789\n");
  EXPECT_EQ(ValueOf(registry, "caisson_host_load"), 3);
}

TEST_F(HostMetricsTest, WhatTheKernelDoesNotHaveIsNotDeclared) {
  Registry registry;
  AddHostMetrics(registry, {.disk = proc, .proc = proc});
  EXPECT_EQ(ValueOf(registry, "caisson_host_memory_pressure_seconds_total"), -1);
  EXPECT_NE(ValueOf(registry, "caisson_host_load"), -1);
}

}  // namespace
}  // namespace caisson::telemetry
