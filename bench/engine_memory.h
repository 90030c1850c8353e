// What the host's memory says about sandboxes: read from /proc, in bytes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "measure.h"

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

// The engine of `owner`, a process with one child: that launcher, and the launcher's children.
struct Engine {
  pid_t launcher;
  std::vector<pid_t> inits;
};
Result<Engine> FindEngine(pid_t owner);

struct ProcessMemory {
  int64_t resident;   // Rss
  int64_t anonymous;  // RssAnon
};
Result<ProcessMemory> ReadProcessMemory(pid_t pid);
// Private_Clean + Private_Dirty of smaps_rollup: what ending the process would give back.
Result<int64_t> ReadPrivateBytes(pid_t pid);

// Memory at one moment: the host's, and what an engine's processes (its owner, the launcher, the
// inits) hold of it for themselves.
struct Snapshot {
  HostMemory host;
  int64_t engine_anonymous = 0;
  int64_t owner_resident = 0;
  int64_t launcher_resident = 0;
  Samples init_private;
};
Result<Snapshot> TakeSnapshot(pid_t owner);

// Bytes that each of `count` sandboxes took between two moments: what is no longer available, less
// what other programs of the host took meanwhile; and, from the other side, the sum of the parts.
boost::json::object MemoryLine(std::string_view name, const Snapshot& before, const Snapshot& after,
                               int64_t count);

}  // namespace caisson::bench
