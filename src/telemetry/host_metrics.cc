#include "telemetry/host_metrics.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace caisson::telemetry {
namespace {

std::string Text(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Bytes of a line such as "MemTotal:  16384 kB".
double MemoryField(const std::string& proc, const std::string& name) {
  const std::string text = Text(proc + "/meminfo");
  const size_t at = text.find(name + ":");
  unsigned long long kilobytes = 0;
  if (at == std::string::npos ||
      std::sscanf(text.c_str() + at + name.size() + 1, "%llu", &kilobytes) != 1)
    return 0;
  return static_cast<double>(kilobytes) * 1024;
}

// Seconds that processors were not idle, since the boot; proc(5), "/proc/stat". Time of guests is
// part of user time already.
double BusySeconds(const std::string& proc) {
  const std::string text = Text(proc + "/stat");
  unsigned long long user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0,
                     steal = 0;
  if (std::sscanf(text.c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice,
                  &system, &idle, &wait, &irq, &soft, &steal) < 4)
    return 0;
  const auto ticks = static_cast<double>(user + nice + system + irq + soft + steal);
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double Load(const std::string& proc) {
  double load = 0;
  return std::sscanf(Text(proc + "/loadavg").c_str(), "%lf", &load) == 1 ? load : 0;
}

// Seconds that some task waited for the resource, since the boot: "some … total=MICROSECONDS".
std::optional<double> PressureSeconds(const std::string& path) {
  const std::string text = Text(path);
  const size_t at = text.find("total=");
  unsigned long long microseconds = 0;
  if (!text.starts_with("some ") || at == std::string::npos ||
      std::sscanf(text.c_str() + at, "total=%llu", &microseconds) != 1)
    return std::nullopt;
  return static_cast<double>(microseconds) / 1e6;
}

struct Disk {
  double bytes = 0, available = 0;
};
Disk DiskOf(const std::string& path) {
  struct statvfs disk{};
  if (statvfs(path.c_str(), &disk) != 0) return {};
  const auto size = static_cast<double>(disk.f_frsize);
  return {static_cast<double>(disk.f_blocks) * size, static_cast<double>(disk.f_bavail) * size};
}

}  // namespace

void AddHostMetrics(Registry& registry, const HostPaths& paths) {
  const std::string proc = paths.proc, disk = paths.disk;
  registry.AddComputedGauge("caisson_host_cpus", "Processors of the host",
                            [] { return static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)); });
  registry.AddComputedCounter("caisson_host_cpu_busy_seconds_total",
                              "Time that the host's processors were not idle, since its boot",
                              [proc] { return BusySeconds(proc); });
  registry.AddComputedGauge("caisson_host_memory_bytes", "Memory of the host",
                            [proc] { return MemoryField(proc, "MemTotal"); });
  registry.AddComputedGauge("caisson_host_memory_available_bytes",
                            "Memory of the host that can be had without swapping",
                            [proc] { return MemoryField(proc, "MemAvailable"); });
  registry.AddComputedGauge("caisson_host_load", "Load average of the host over one minute",
                            [proc] { return Load(proc); });
  registry.AddComputedGauge("caisson_host_disk_bytes", "Size of the data directory's file system",
                            [disk] { return DiskOf(disk).bytes; });
  registry.AddComputedGauge("caisson_host_disk_available_bytes",
                            "Space left on the data directory's file system",
                            [disk] { return DiskOf(disk).available; });
  for (const char* resource : {"cpu", "memory", "io"}) {
    const std::string path = proc + "/pressure/" + resource;
    if (!PressureSeconds(path)) continue;
    registry.AddComputedCounter(
        std::string("caisson_host_") + resource + "_pressure_seconds_total",
        std::string("Time that some task of the host waited for ") + resource + ", since its boot",
        [path] { return PressureSeconds(path).value_or(0); });
  }
}

}  // namespace caisson::telemetry
