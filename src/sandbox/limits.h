// Limits of a sandbox and of a command, and what a provider says about each.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace caisson::sandbox {

inline constexpr uint64_t kMiB = 1024 * 1024;

// What was asked for. An empty field means the default of the profile; 0 for io and bandwidth does
// not exist.
struct Limits {
  std::optional<uint64_t> memory_bytes;
  std::optional<uint64_t> swap_bytes;
  std::optional<uint32_t> cpu_millis;  // 1000 is one core
  std::optional<uint32_t> pids;
  std::optional<uint64_t> disk_bytes;
  std::optional<uint64_t> disk_inodes;
  std::optional<uint32_t> open_files;
  std::optional<uint64_t> io_read_bps, io_write_bps, io_read_iops, io_write_iops;
  std::optional<uint32_t> memory_bandwidth_percent;
  std::optional<std::chrono::milliseconds> wall_time;  // of one command
  std::optional<uint64_t> output_bytes;                // of one command, both streams
};

struct DefaultLimits {
  uint64_t memory_bytes, swap_bytes;
  uint32_t cpu_millis, pids;
  uint64_t disk_bytes, disk_inodes;
  uint32_t open_files;
  std::chrono::milliseconds wall_time;  // 0: none
  uint64_t output_bytes;                // 0: none
};
// Restrictive on purpose. `strict` is the profile for running code that a model wrote.
inline constexpr DefaultLimits kDefaultLimits = {
    512 * kMiB, 0, 500, 256, 256 * kMiB, 65536, 1024, std::chrono::hours(1), 0};
inline constexpr DefaultLimits kStrictLimits = {
    256 * kMiB, 0, 500, 128, 128 * kMiB, 32768, 512, std::chrono::seconds(5), 16 * kMiB};

// How one limit stands, as the provider found it, not as it was asked for.
struct LimitState {
  std::string name;  // "memory", "cpu", "pids", "disk", …
  bool enforced = false;
  uint64_t value = 0;  // read back, in the unit of Limits
  std::string by;      // what enforces it
  std::string reason;  // why it is not enforced
};

}  // namespace caisson::sandbox
