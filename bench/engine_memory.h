// What the host's memory says about sandboxes: read from /proc, in bytes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace caisson::bench {

struct HostMemory {
  int64_t available;      // MemAvailable
  int64_t anonymous;      // AnonPages, of all processes
  int64_t kernel;         // Slab + KernelStack + PageTables + Percpu
  int64_t unreclaimable;  // SUnreclaim
};
Result<HostMemory> ReadHostMemory();

// Memory cgroups of the host, those included that are removed but still pinned.
Result<int64_t> CountMemoryCgroups();

// The engine's processes: this one, the launcher (its only child), and the launcher's children.
struct Engine {
  pid_t launcher;
  std::vector<pid_t> inits;
};
Result<Engine> FindEngine();

struct ProcessMemory {
  int64_t resident;   // Rss
  int64_t anonymous;  // RssAnon
};
Result<ProcessMemory> ReadProcessMemory(pid_t pid);
// Private_Clean + Private_Dirty of smaps_rollup: what ending the process would give back.
Result<int64_t> ReadPrivateBytes(pid_t pid);

}  // namespace caisson::bench
