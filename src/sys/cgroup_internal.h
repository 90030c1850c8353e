// The parts that cgroup.h is made of; included by cgroup*.cc and their tests only.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/cgroup.h"
#include "sys/text_file.h"
#include "sys/unique_fd.h"

namespace caisson::sys::internal {

inline constexpr std::string_view kInstancePrefix = "caisson-";
// Beside the instance's directory, not in it: the device rules of sandboxes are not the launcher's.
inline constexpr std::string_view kLeafPrefix = "caisson.launcher-";
inline constexpr std::string_view kNoHostSwap = "host has no swap";  // LimitReport::by

// A point on the steady clock.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds from_now)
      : at_(std::chrono::steady_clock::now() + from_now) {}
  bool Passed() const { return std::chrono::steady_clock::now() >= at_; }
  // Milliseconds left for poll(2), at most `at_most`, rounded up.
  int Left(int at_most) const;

 private:
  std::chrono::steady_clock::time_point at_;
};
// Sleeps a little longer at each `attempt` (0, 1, …): 50 µs to 5 ms.
void BackOff(int attempt);

enum class Version : int { k1 = 1, k2 = 2 };

constexpr uint32_t BitOf(Controller controller) { return 1u << static_cast<int>(controller); }
// The controllers that a hierarchy's word list names ("rw,cpu,cpuacct" or "cpu memory pids").
uint32_t ControllersIn(std::string_view words, Version version);

// One mounted hierarchy as this process sees it.
struct CgroupMount {
  Version version;
  std::string mount_point;
  std::string own_dir;  // the caller's cgroup as an absolute path; empty when it is not reachable
  std::string problem;  // why own_dir is empty
  uint32_t controllers = 0;
};
// Reads <proc>/self/mountinfo and <proc>/self/cgroup. Empty when there is no cgroup file system.
std::vector<CgroupMount> ReadMounts(const CgroupHost& host);

// One group's directory: a name below an open directory. Does not own the descriptor.
struct GroupDir {
  int parent;
  std::string_view name;  // "." for the parent itself

  ShortText Path(std::string_view file) const { return ShortText(name).Add("/").Add(file); }
  int TryWrite(std::string_view file, std::string_view text) const {
    return TryWriteText(parent, Path(file).c_str(), text);
  }
  std::optional<std::string_view> TryRead(std::string_view file, std::span<char> buffer) const {
    return TryReadText(parent, Path(file).c_str(), buffer);
  }
  std::optional<uint64_t> TryNumber(std::string_view file) const;
  bool Has(std::string_view file) const;
};

// A hierarchy in use, with the instance's directory in it.
struct Hierarchy {
  enum class Use { kSandboxes, kIoOnly, kDevicesOnly };

  Version version = Version::k1;
  Use use = Use::kSandboxes;
  std::string base;  // the directory that holds the instance's
  std::string instance_name;
  std::string leaf_name;  // of the launcher, v2 only
  UniqueFd base_fd;
  UniqueFd instance_fd;
  uint32_t controllers = 0;  // those that children get
  std::string problem;       // why v2 controllers are not handed down, else empty
  std::string remedy;
  bool has_swap_file = false;
  bool has_pressure = false;
  // v2: what Open moved and enabled, to be undone.
  std::vector<pid_t> moved;
  uint32_t enabled = 0;

  bool Serves(Controller controller) const { return (controllers & BitOf(controller)) != 0; }
  GroupDir Group(std::string_view name) const { return {instance_fd.get(), name}; }
};

int MakeDir(const CgroupHost& host, int dir_fd, const char* name);
int RemoveDir(const CgroupHost& host, int dir_fd, const char* name);

// Makes the instance's directory in a v1 hierarchy. The Error says why it cannot be used.
Result<std::unique_ptr<Hierarchy>> OpenV1(const CgroupHost& host, const CgroupMount& mount,
                                          const CgroupOptions& options);
// The same on v2, where controllers have to be handed down. Controllers that cannot be are missing
// from `controllers`, with problem and remedy set.
Result<std::unique_ptr<Hierarchy>> OpenV2(const CgroupHost& host, const CgroupMount& mount,
                                          const CgroupOptions& options);
// Undoes OpenV1 or OpenV2 as far as the directories are empty.
void Close(const CgroupHost& host, Hierarchy& hierarchy);

struct MemoryCaps {
  uint64_t memory = kNoLimit;
  uint64_t swap = kNoLimit;
};

// Monotonic counters of a group; empty where not counted.
struct Counters {
  std::optional<uint64_t> oom_kills, cpu_usage_us, cpu_user_us, cpu_system_us, throttled_us;
  std::optional<uint64_t> pids_limit_hits, io_read_bytes, io_write_bytes;
  std::optional<uint64_t> cpu_stalled_us, memory_stalled_us, io_stalled_us;
};

struct LimitFiles {
  std::string_view memory, swap, cpu, cpu_weight, pids, io;
};

// How one version of cgroups spells limits and counters. Stateless. Setters give back what the
// kernel then says is in force.
class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual const LimitFiles& files() const = 0;

  // kConflict when more is in use than `to` allows and cannot be reclaimed. `from` is in force.
  virtual Result<MemoryCaps> SetMemory(const Hierarchy& hierarchy, const GroupDir& dir,
                                       MemoryCaps from, MemoryCaps to) const = 0;
  virtual Result<uint32_t> SetCpu(const GroupDir& dir, uint32_t from, uint32_t to) const = 0;
  virtual Result<uint32_t> SetWeight(const GroupDir& dir, uint32_t weight) const = 0;
  virtual Result<IoRate> SetIo(const GroupDir& dir, dev_t disk, const IoRate& rate) const = 0;

  virtual std::string_view memory_current_file() const = 0;
  virtual std::optional<uint64_t> SwapCurrent(const GroupDir& dir) const = 0;
  virtual std::optional<uint64_t> OomKills(const GroupDir& dir) const = 0;
  virtual void ReadCpu(const Hierarchy& hierarchy, const GroupDir& dir,
                       Counters& counters) const = 0;
  virtual void ReadIo(const GroupDir& dir, Counters& counters) const = 0;
  // Asks the kernel to give back page cache and the like. Best effort by nature.
  virtual void Reclaim(const GroupDir& dir) const = 0;
};
const Dialect& DialectOf(Version version);
const Dialect& DialectV1();
const Dialect& DialectV2();

// Both versions spell pids.max alike. kNoLimit32 lifts it.
Result<uint32_t> SetPids(const GroupDir& dir, uint32_t pids);

// Writes `text` and gives the number at the start of what the file then says; "max", "-1" and v1's
// largest page count are kNoLimit.
Result<uint64_t> ExchangeNumber(const GroupDir& dir, std::string_view file, std::string_view text);
// "N" or the word for no limit.
ShortText ValueOr(uint64_t value, std::string_view no_limit_word);
Error WriteError(const GroupDir& dir, std::string_view file, std::string_view text, int error);
Error MemoryInUse(const GroupDir& dir, std::string_view usage_file, uint64_t wanted);

// CFS period in microseconds for a CPU limit: 100 ms, or 1 s for less than a hundredth of a core
// (the kernel's smallest quota is 1 ms).
constexpr uint32_t PeriodFor(uint32_t millis) { return millis < 10 ? 1'000'000 : 100'000; }
constexpr uint64_t QuotaFor(uint32_t millis) {
  return static_cast<uint64_t>(millis) * PeriodFor(millis) / 1000;
}

// The whole disk that `device` is or is a part of; kLimitRefused when it is no block device.
Result<dev_t> WholeDisk(const CgroupHost& host, dev_t device);

// Processes in a group. An entry 0 is a process outside the caller's pid namespace.
Result<std::vector<pid_t>> ListProcesses(const GroupDir& dir);
Result<bool> IsEmpty(const GroupDir& dir);
Status FreezeGroup(const GroupDir& dir, Version version, const Deadline& deadline);
Status ThawGroup(const GroupDir& dir, Version version);
// `freezer` (v1) is the same group in the freezer hierarchy, thawed after SIGKILL; may be null.
Status KillGroup(const GroupDir& dir, Version version, const GroupDir* freezer,
                 const Deadline& deadline);

// The device rules of a sandbox: null, zero, full, random, urandom, tty, ptmx and pts for reading
// and writing, nothing else, no mknod.
Status ApplyDeviceListV1(const GroupDir& dir);
// The same as a BPF_PROG_TYPE_CGROUP_DEVICE program on a v2 directory (Linux 4.15, CAP_BPF and
// CAP_NET_ADMIN, or CAP_SYS_ADMIN); holds for all groups below it and goes with the directory.
Status AttachDeviceFilter(int dir_fd);

}  // namespace caisson::sys::internal
