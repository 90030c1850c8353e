// Control groups: one sandbox's share of memory, CPU, processes and disk I/O, on cgroup v1, v2,
// both (hybrid) or none, behind one class.
//
// Theory of operation. A CgroupTree stands for one instance of the launcher. In every hierarchy it
// uses it owns a directory `caisson-<instance>`, below the cgroup that the launcher was started in,
// and each sandbox is a directory below that one. Which hierarchy serves which controller is found
// once, by Open():
//
//   * v1: one hierarchy per controller (or per co-mounted set), one write to attach a process to
//     each. The device list sits on the instance's directory and is shared by all sandboxes; blkio
//     is joined only by sandboxes that ask for an I/O rate.
//   * v2: one directory with all controllers. Controllers are handed to children only by a cgroup
//     without processes of its own ("no internal processes", cgroups(7)), so Open() may move the
//     launcher into the leaf `caisson.launcher-<instance>` beside; the tree's destructor moves it
//     back.
//   * hybrid: limits come from wherever each controller is mounted, while the v2 directory gives
//     what only v2 has: clone3(CLONE_INTO_CGROUP), cgroup.kill, a freezer that SIGKILL passes,
//     pressure, and the device filter.
//   * none: every limit is refused with the reason.
//
// A sandbox costs one descriptor (its v2 directory) or none. Files are opened relative to the
// instance's directory for each operation.
//
// Not thread-safe: one thread uses a tree and all its groups.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::sys {

inline constexpr uint64_t kNoLimit = UINT64_MAX;
inline constexpr uint32_t kNoLimit32 = UINT32_MAX;

struct IoRate {
  std::optional<uint64_t> read_bps, write_bps, read_iops, write_iops;  // kNoLimit lifts one
  bool operator==(const IoRate&) const = default;
};

// An empty field means "no opinion": no limit in ApplyLimits on a fresh group, unchanged in Update.
// kNoLimit and kNoLimit32 lift a limit.
struct CgroupLimits {
  std::optional<uint64_t>
      memory_bytes;  // at least 1 MiB; includes page cache, tmpfs and kernel memory
  std::optional<uint64_t> swap_bytes;  // beyond memory_bytes
  std::optional<uint32_t> cpu_millis;  // 1000 is one core; 1 to 8 192 000
  std::optional<uint32_t> cpu_weight;  // 1 to 10 000, 100 is usual
  std::optional<uint32_t> pids;        // processes and threads, 1 to 4 194 304
  std::optional<IoRate> io;
  dev_t io_device = 0;  // what `io` is about; a partition stands for its disk
};

struct LimitReport {
  std::string_view name;  // "memory", "swap", "cpu", "cpu_weight", "pids", "io_read_bps", …
  bool enforced = false;
  uint64_t value = 0;  // read back from the kernel, in the unit of CgroupLimits
  std::string by;      // "cgroup v1 memory.limit_in_bytes"
  std::string reason;  // why it is refused, else empty
  std::string remedy;  // what to do about it, else empty
};

// Counters are since the group was handed out (Create or Recycle). What this host does not count is
// empty, never zero.
struct CgroupStats {
  std::optional<uint64_t> memory_current, memory_peak, swap_current, oom_kills;
  // False when memory_peak is only the highest value that Stats() happened to see: a recycled v2
  // group on a kernel before 6.12, whose memory.peak cannot be reset.
  bool memory_peak_exact = true;
  std::optional<uint64_t> cpu_usage_us, cpu_user_us, cpu_system_us, throttled_us;
  std::optional<uint64_t> pids_current, pids_limit_hits;
  std::optional<uint64_t> io_read_bytes, io_write_bytes;
  // Time that some task of the group was stalled (PSI).
  std::optional<uint64_t> cpu_stalled_us, memory_stalled_us, io_stalled_us;
};

enum class CgroupLayout { kNone, kV1, kV2, kHybrid };
std::string_view NameOf(CgroupLayout layout);

enum class Controller { kMemory, kCpu, kCpuAcct, kPids, kFreezer, kIo, kDevices };
inline constexpr int kControllerCount = 7;
std::string_view NameOf(Controller controller);

// One line for `doctor`.
struct ControllerReport {
  Controller controller;
  bool works = false;
  std::string by;      // "cgroup v1 at /sys/fs/cgroup/memory"
  std::string reason;  // when it does not work
  std::string remedy;
};

// Where the host's files are and how directories are made; replaced by tests.
struct CgroupHost {
  std::string proc = "/proc";
  std::string sys = "/sys";
  // 0 or errno, like mkdirat(2) and unlinkat(2) with AT_REMOVEDIR.
  int (*make_dir)(int dir_fd, const char* name) = nullptr;
  int (*remove_dir)(int dir_fd, const char* name) = nullptr;
};

enum class Bystanders { kLeave, kMove };

struct CgroupOptions {
  std::string instance;  // letters, digits, '-', '_'; at most 40 bytes
  // Processes besides the caller that may be moved into the launcher's leaf on v2: the server.
  std::vector<pid_t> companions;
  // kMove: also any other process of the caller's v2 cgroup. For a container that Caisson owns.
  Bystanders bystanders = Bystanders::kLeave;
};

namespace internal {
struct Hierarchy;
struct Counters;
struct MemoryCaps;
enum class Version;
}  // namespace internal

class Cgroup;

class CgroupTree {
 public:
  // Looks at the host and makes the instance's directories. Only an invalid instance name is an
  // error; a host without usable cgroups gives a tree with layout kNone that says why. Removes an
  // empty directory of the same instance first; a populated one is SweepInstance's business.
  static Result<std::unique_ptr<CgroupTree>> Open(CgroupHost host, CgroupOptions options);
  // Removes the instance's directories as far as they are empty and moves back what Open moved.
  // Every Cgroup of the tree must be gone before.
  ~CgroupTree();
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  CgroupLayout layout() const;
  const std::string& instance() const { return options_.instance; }
  const std::vector<ControllerReport>& controllers() const { return reports_; }
  const ControllerReport& report(Controller controller) const {
    return reports_[static_cast<size_t>(controller)];
  }
  // Whether a group can find and kill its processes.
  bool tracks_processes() const;

  // What ApplyLimits would say of each limit asked for, without applying any.
  std::vector<LimitReport> Check(const CgroupLimits& limits) const;

  // A new group. `name`: letters, digits, '-', '_', '.', not starting with '.', at most 64 bytes.
  // kConflict when it exists, kResourceExhausted when the kernel is out of groups.
  // On failure nothing is left. With layout kNone the group has no directories.
  Result<Cgroup> Create(std::string_view name);

  // Groups whose removal failed (a process in uninterruptible sleep); each call tries again.
  // Returns how many are left.
  size_t RetryLeftovers();

  // The instances that have directories in any hierarchy of this host, dead or alive. Sorted.
  static std::vector<std::string> ListInstances(const CgroupHost& host);
  // Kills every process of the instance's sandboxes and removes its directories in all hierarchies.
  // The launcher's leaf is never killed, and stays while it has processes. Idempotent;
  // kDeadlineExceeded when something is left, after everything else is done.
  static Status SweepInstance(const CgroupHost& host, std::string_view instance,
                              std::chrono::milliseconds deadline);
  // Groups of a controller that exist on the host, dying ones included (/proc/cgroups).
  static std::optional<uint64_t> CountGroups(const CgroupHost& host, Controller controller);

 private:
  friend class Cgroup;
  CgroupTree(CgroupHost host, CgroupOptions options);
  struct Findings;
  void OpenHierarchies();
  void OpenVersion(internal::Version version, uint32_t needed, Findings& findings);
  void WriteReports(const Findings& findings);
  const internal::Hierarchy* Serving(Controller controller) const;
  const internal::Hierarchy* Unified() const;
  // An empty `impossible` means that the value is within what can be.
  LimitReport Judge(std::string_view name, Controller controller, std::string impossible) const;
  void CheckMemory(const CgroupLimits& limits, const CgroupLimits& now,
                   std::vector<LimitReport>& reports) const;
  void CheckIo(const CgroupLimits& limits, std::vector<LimitReport>& reports) const;
  std::vector<LimitReport> CheckFrom(const CgroupLimits& limits, const CgroupLimits& now) const;

  CgroupHost host_;
  CgroupOptions options_;
  std::vector<std::unique_ptr<internal::Hierarchy>> hierarchies_;
  std::vector<ControllerReport> reports_;
  std::vector<std::string> leftovers_;
  bool device_filter_ = false;  // a BPF program on the v2 directory decides about devices
};

// One sandbox's directories. Move-only; the destructor kills what is inside and removes them (what
// cannot be removed goes to the tree's leftovers). The tree must outlive it.
class Cgroup {
 public:
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&& other) noexcept;
  ~Cgroup();

  const std::string& name() const { return name_; }

  // The v2 directory for clone3(CLONE_INTO_CGROUP), or -1. Owned by the group.
  int dir_fd() const { return unified_fd_.get(); }

  // Puts the process `pid` (all its threads) into every hierarchy.
  Status Attach(pid_t pid);
  // The same for a process that was cloned into dir_fd(): v1 hierarchies only.
  Status AttachCloned(pid_t pid);

  // Sets each limit asked for and reads it back. A limit that this host cannot enforce, or an
  // impossible one, is kLimitRefused with reason and remedy, before any is written. On failure half
  // way the limits that were in force are put back. The reports come in the order of CgroupLimits.
  //
  // Works on a live group too: memory lowered below what is in use makes the kernel reclaim, and is
  // kConflict (nothing is killed) when that does not free enough.
  Result<std::vector<LimitReport>> ApplyLimits(const CgroupLimits& limits);
  // ApplyLimits by the name that says what a caller means on a running sandbox.
  Result<std::vector<LimitReport>> Update(const CgroupLimits& limits) {
    return ApplyLimits(limits);
  }
  const CgroupLimits& limits() const { return limits_; }  // those in force

  CgroupStats Stats();

  // The file that counts what a limit did: kMemory (a line `oom_kill N`) or kPids (`max N`). Its
  // reader needs no privilege; read it from offset 0 each time. Empty when this host does not count
  // it.
  UniqueFd OpenEvents(Controller controller) const;

  // Stops every process, or lets them go on. Freeze returns when all are stopped; when they are not
  // by the deadline it thaws and says kDeadlineExceeded.
  Status Freeze(std::chrono::milliseconds deadline);
  Status Thaw();

  // SIGKILLs everything in the group, frozen or not, forking or not, until it is empty. Zombies
  // count as gone. kDeadlineExceeded when something is left (uninterruptible sleep).
  Status KillAll(std::chrono::milliseconds deadline);
  Result<bool> Empty() const;

  // Makes an empty group as good as new: limits lifted, thawed, counters at zero, page cache of the
  // former life reclaimed. kConflict when it has processes or memory that cannot be reclaimed; the
  // group is then fit only for Remove. RecycleInForce leaves the limits, for a life under the same.
  Status Recycle();
  Status RecycleInForce();

  // Kills what is inside, gives its memory back and removes the directories, so that no dying
  // memory group stays behind. (On v2 one does as long as an inode that the group wrote is cached:
  // delete the sandbox's files too.) Retries EBUSY until the deadline. After success the group is
  // empty of meaning; after failure it may be called again.
  Status Remove(std::chrono::milliseconds deadline);

 private:
  friend class CgroupTree;
  Cgroup(CgroupTree* tree, std::string name);
  // Both give back what the kernel then says is in force.
  Result<CgroupLimits> Write(const CgroupLimits& limits);
  Result<internal::MemoryCaps> WriteMemory(const CgroupLimits& limits);
  void PutBack(const CgroupLimits& before);
  Status AttachTo(const internal::Hierarchy& hierarchy, pid_t pid);
  Status JoinIo();
  Status LiftIo();
  internal::Counters ReadCounters() const;
  std::optional<uint64_t> ReadPeak(const internal::Hierarchy& memory, CgroupStats& stats);
  void ResetPeak(const internal::Hierarchy& memory);
  Status Clear();
  void StartCounting();
  const internal::Hierarchy* Tracking() const;
  const internal::Hierarchy* Freezing() const;
  bool Uses(const internal::Hierarchy& hierarchy) const;

  CgroupTree* tree_ = nullptr;  // null when moved from or removed
  std::string name_;
  UniqueFd unified_fd_;
  UniqueFd peak_fd_;  // v2 memory.peak, reset through this descriptor (Linux 6.12)
  bool io_joined_ = false;
  bool frozen_ = false;
  CgroupLimits limits_;
  std::unique_ptr<internal::Counters> baseline_;  // of a recycled group
  uint64_t stale_peak_ = 0;                       // memory.peak of former lives, when it stays
  uint64_t seen_peak_ = 0;
};

}  // namespace caisson::sys
