// The protocol between an owner of sandboxes (server or CLI) and caisson-launcher.
//
// Theory of operation. The owner sends one request per packet over a SOCK_SEQPACKET socket;
// descriptors travel beside it. The launcher answers each with the named reply, `Done` or `Failed`,
// under the request's tag, not necessarily in order: a create that waits for its child does not
// hold up others. `Lost` (tag 0) tells of a sandbox that ended without being asked to.
//
// An ephemeral launcher has exactly one owner, on the socket it was started with; when that closes
// it destroys everything and exits. A keeping launcher also listens on a path: sandboxes outlive
// their owner, and the next owner finds them with `List` and takes each one's control socket with
// `Adopt`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/frame.h"

namespace caisson::wire::launcher {

inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kMaxId = 64;
inline constexpr size_t kMaxKey = 128;
inline constexpr size_t kMaxPath = 4096;
inline constexpr size_t kMaxText = 1024;
inline constexpr size_t kMaxOverlays = 12;
inline constexpr size_t kMaxMounts = 32;
inline constexpr size_t kMaxFacts = 64;
inline constexpr size_t kMaxSandboxes = 1024;  // in one page of List
inline constexpr uint64_t kNoLimit = ~uint64_t{0};

enum class Type : uint16_t {
  kHello = 1,
  kHelloReply,
  kDone,
  kFailed,
  kRegisterRoot,
  kCreate,
  kCreated,
  kDestroy,
  kDestroyed,
  kUpdate,
  kUpdated,
  kFreeze,
  kStats,
  kStatsReply,
  kList,
  kSandboxes,
  kAdopt,
  kAdopted,
  kLost,
  kShutdown,
};

struct Fact {  // something read back from the kernel or decided by a probe
  std::string name, value;
  template <typename A>
  void Fields(A& a) {
    a.Str(name, kMaxKey);
    a.Str(value, kMaxText);
  }
};
struct LimitFact {
  std::string name;
  uint8_t enforced = 0;
  uint64_t value = 0;  // as the kernel says it
  std::string by;      // what enforces it
  std::string reason;  // why it is not enforced
  template <typename A>
  void Fields(A& a) {
    a.Str(name, kMaxKey);
    a.Int(enforced);
    a.Int(value);
    a.Str(by, kMaxText);
    a.Str(reason, kMaxText);
  }
};

struct Hello {
  static constexpr Type kType = Type::kHello;
  uint32_t version = kVersion;
  template <typename A>
  void Fields(A& a) {
    a.Int(version);
  }
};
struct HelloReply {
  static constexpr Type kType = Type::kHelloReply;
  uint32_t version = kVersion;
  std::string instance;
  uint8_t rootless = 0;
  std::vector<Fact>
      host;  // what this launcher found: cgroup layout, Landlock ABI, disk back ends, …
  template <typename A>
  void Fields(A& a) {
    a.Int(version);
    a.Str(instance, kMaxId);
    a.Int(rootless);
    a.StructList(host, kMaxFacts);
  }
};

struct Done {
  static constexpr Type kType = Type::kDone;
  template <typename A>
  void Fields(A&) {}
};
struct Failed {
  static constexpr Type kType = Type::kFailed;
  uint16_t code = 0;         // ErrorCode
  int32_t error_number = 0;  // errno, or 0
  std::string message, remedy;
  template <typename A>
  void Fields(A& a) {
    a.Int(code);
    a.Int(error_number);
    a.Str(message, kMaxText);
    a.Str(remedy, kMaxText);
  }
};

// Makes a root known under a key. With it come one O_PATH directory descriptor per entry of
// `inside`: the lower layer that is seen (copy-on-write) at that path. The first is "/".
// Registering a key again replaces it.
struct RegisterRoot {
  static constexpr Type kType = Type::kRegisterRoot;
  std::string key;
  std::vector<std::string> inside;
  template <typename A>
  void Fields(A& a) {
    a.Str(key, kMaxKey);
    a.StrList(inside, kMaxOverlays, kMaxPath);
  }
};

enum class Profile : uint8_t { kDefault = 0, kStrict = 1 };
enum class MountMode : uint8_t { kReadWrite = 0, kReadOnly = 1 };
enum class DiskBackend : uint8_t { kAuto = 0, kTmpfs = 1, kLoop = 2, kQuota = 3 };
enum class NetNs : uint8_t { kLoopback = 0 };

struct Mount {  // its source is the descriptor at the same index
  std::string target;
  MountMode mode = MountMode::kReadOnly;
  template <typename A>
  void Fields(A& a) {
    a.Str(target, kMaxPath);
    a.Int(mode);
  }
};
enum LimitBit : uint32_t {
  kMemoryBit = 1 << 0,
  kSwapBit = 1 << 1,
  kCpuBit = 1 << 2,
  kPidsBit = 1 << 3,
  kDiskBit = 1 << 4,
};
struct Limits {  // kNoLimit: leave as it is (Update) or do not limit (Create)
  uint64_t memory_bytes = kNoLimit, swap_bytes = kNoLimit, cpu_millis = kNoLimit, pids = kNoLimit;
  uint64_t disk_bytes = kNoLimit, disk_inodes = kNoLimit, open_files = kNoLimit;
  uint64_t io_read_bps = kNoLimit, io_write_bps = kNoLimit, io_read_iops = kNoLimit,
           io_write_iops = kNoLimit;
  uint64_t memory_bandwidth_percent = kNoLimit;
  // Bits of LimitBit: limits that nobody asked for by name. Where the host cannot enforce one of
  // these it is reported as not enforced; any other makes the request fail.
  uint32_t defaulted = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(memory_bytes);
    a.Int(swap_bytes);
    a.Int(cpu_millis);
    a.Int(pids);
    a.Int(disk_bytes);
    a.Int(disk_inodes);
    a.Int(open_files);
    a.Int(io_read_bps);
    a.Int(io_write_bps);
    a.Int(io_read_iops);
    a.Int(io_write_iops);
    a.Int(memory_bandwidth_percent);
    a.Int(defaulted);
  }
};

// With it come one O_PATH descriptor per entry of `mounts`.
struct Create {
  static constexpr Type kType = Type::kCreate;
  std::string id;  // [a-z0-9]{8,40}, chosen by the owner
  std::string root_key;
  std::string hostname;
  std::string user;  // default user of commands; a strict sandbox is wholly this one
  Profile profile = Profile::kDefault;
  DiskBackend disk_backend = DiskBackend::kAuto;
  Limits limits;
  std::vector<Mount> mounts;
  template <typename A>
  void Fields(A& a) {
    a.Str(id, kMaxId);
    a.Str(root_key, kMaxKey);
    a.Str(hostname, 64);
    a.Str(user, 64);
    a.Int(profile);
    a.Int(disk_backend);
    a.Struct(limits);
    a.StructList(mounts, kMaxMounts);
  }
};
// With it come the control socket of the sandbox's init and, as the flags say, the files in which
// the kernel counts out-of-memory kills and refused forks (sys::Cgroup::OpenEvents), in this order.
struct Created {
  static constexpr Type kType = Type::kCreated;
  uint8_t memory_events = 0, pids_events = 0;
  int32_t pid = 0;         // of init, as the launcher sees it
  uint32_t server_us = 0;  // time inside the launcher, request to reply
  std::vector<Fact> isolation;
  std::vector<LimitFact> limits;
  template <typename A>
  void Fields(A& a) {
    a.Int(memory_events);
    a.Int(pids_events);
    a.Int(pid);
    a.Int(server_us);
    a.StructList(isolation, kMaxFacts);
    a.StructList(limits, kMaxFacts);
  }
};

struct Destroy {
  static constexpr Type kType = Type::kDestroy;
  std::string id;
  template <typename A>
  void Fields(A& a) {
    a.Str(id, kMaxId);
  }
};

struct Counters {
  uint64_t memory_current = 0, memory_peak = 0, oom_kills = 0, cpu_us = 0, cpu_throttled_us = 0;
  uint64_t pids_current = 0, pids_limit_hits = 0, io_read_bytes = 0, io_write_bytes = 0;
  uint64_t disk_bytes = 0, disk_used_bytes = 0, disk_inodes = 0, disk_used_inodes = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(memory_current);
    a.Int(memory_peak);
    a.Int(oom_kills);
    a.Int(cpu_us);
    a.Int(cpu_throttled_us);
    a.Int(pids_current);
    a.Int(pids_limit_hits);
    a.Int(io_read_bytes);
    a.Int(io_write_bytes);
    a.Int(disk_bytes);
    a.Int(disk_used_bytes);
    a.Int(disk_inodes);
    a.Int(disk_used_inodes);
  }
};
// The sandbox's processes are dead and reaped. What is left is freed behind the reply.
struct Destroyed {
  static constexpr Type kType = Type::kDestroyed;
  Counters counters;
  template <typename A>
  void Fields(A& a) {
    a.Struct(counters);
  }
};

struct Update {
  static constexpr Type kType = Type::kUpdate;
  std::string id;
  Limits limits;
  template <typename A>
  void Fields(A& a) {
    a.Str(id, kMaxId);
    a.Struct(limits);
  }
};
struct Updated {
  static constexpr Type kType = Type::kUpdated;
  std::vector<LimitFact> limits;
  template <typename A>
  void Fields(A& a) {
    a.StructList(limits, kMaxFacts);
  }
};
enum class Freezer : uint8_t { kThaw = 0, kFreeze = 1 };
struct Freeze {
  static constexpr Type kType = Type::kFreeze;
  std::string id;
  Freezer state = Freezer::kFreeze;
  template <typename A>
  void Fields(A& a) {
    a.Str(id, kMaxId);
    a.Int(state);
  }
};
struct Stats {
  static constexpr Type kType = Type::kStats;
  std::string id;
  template <typename A>
  void Fields(A& a) {
    a.Str(id, kMaxId);
  }
};
struct StatsReply {
  static constexpr Type kType = Type::kStatsReply;
  Counters counters;
  template <typename A>
  void Fields(A& a) {
    a.Struct(counters);
  }
};

struct List {
  static constexpr Type kType = Type::kList;
  std::string after;  // id; empty: from the start
  template <typename A>
  void Fields(A& a) {
    a.Str(after, kMaxId);
  }
};
struct Sandboxes {
  static constexpr Type kType = Type::kSandboxes;
  std::vector<std::string> ids;  // sorted
  template <typename A>
  void Fields(A& a) {
    a.StrList(ids, kMaxSandboxes, kMaxId);
  }
};
struct Adopt {
  static constexpr Type kType = Type::kAdopt;
  std::string id;
  template <typename A>
  void Fields(A& a) {
    a.Str(id, kMaxId);
  }
};
// With it come the descriptors of Created.
struct Adopted {
  static constexpr Type kType = Type::kAdopted;
  Created created;
  template <typename A>
  void Fields(A& a) {
    a.Struct(created);
  }
};
struct Lost {
  static constexpr Type kType = Type::kLost;
  std::string id;
  uint8_t out_of_memory = 0;
  int32_t status = 0;  // waitid si_status of init
  template <typename A>
  void Fields(A& a) {
    a.Str(id, kMaxId);
    a.Int(out_of_memory);
    a.Int(status);
  }
};
// Destroy everything and exit. Answered by Done when nothing is left.
struct Shutdown {
  static constexpr Type kType = Type::kShutdown;
  template <typename A>
  void Fields(A&) {}
};

}  // namespace caisson::wire::launcher
