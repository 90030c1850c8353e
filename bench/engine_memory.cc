#include "engine_memory.h"

#include <dirent.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>

namespace caisson::bench {
namespace {

// "Name:   123 kB" lines as bytes by name.
using Fields = std::unordered_map<std::string, int64_t>;

Result<Fields> ReadFields(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error(ErrorCode::kIo, "cannot read " + path);
  Fields fields;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    fields[line.substr(0, colon)] = std::strtoll(line.c_str() + colon + 1, nullptr, 10) * 1024;
  }
  return fields;
}

Result<int64_t> SumOf(const Fields& fields, std::initializer_list<const char*> names) {
  int64_t sum = 0;
  for (const char* name : names) {
    const auto found = fields.find(name);
    if (found == fields.end())
      return Error(ErrorCode::kUnsupported, std::string("/proc has no ") + name);
    sum += found->second;
  }
  return sum;
}

// The parent and the name of a process; nothing when it has gone.
struct Kin {
  pid_t parent = 0;
  std::string name;
};
Kin ReadKin(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return {};
  const size_t open = line.find('('), close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 > line.size()) return {};
  return {static_cast<pid_t>(std::atoi(line.c_str() + close + 4)),
          line.substr(open + 1, close - open - 1)};
}

}  // namespace

Result<HostMemory> ReadHostMemory() {
  CAISSON_ASSIGN(const auto fields, ReadFields("/proc/meminfo"));
  HostMemory memory{};
  CAISSON_ASSIGN(memory.available, SumOf(fields, {"MemAvailable"}));
  CAISSON_ASSIGN(memory.anonymous, SumOf(fields, {"AnonPages"}));
  CAISSON_ASSIGN(memory.kernel, SumOf(fields, {"Slab", "KernelStack", "PageTables", "Percpu"}));
  CAISSON_ASSIGN(memory.unreclaimable, SumOf(fields, {"SUnreclaim"}));
  return memory;
}

Result<int64_t> CountMemoryCgroups() {
  // The unified hierarchy counts its own living and dying groups.
  if (std::ifstream stat("/sys/fs/cgroup/cgroup.stat"); stat) {
    int64_t sum = 0, value = 0;
    for (std::string name; stat >> name >> value;)
      if (name == "nr_descendants" || name == "nr_dying_descendants") sum += value;
    return sum;
  }
  std::ifstream file("/proc/cgroups");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t hierarchy = 0, count = 0;
    if (words >> name >> hierarchy >> count && name == "memory") return count;
  }
  return Error(ErrorCode::kUnsupported, "this host does not count memory cgroups");
}

Result<Engine> FindEngine(pid_t owner) {
  std::unordered_map<pid_t, Kin> kin;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (!proc) return Error::FromErrno("list /proc");
  while (const dirent* entry = readdir(proc.get()))
    if (const pid_t pid = std::atoi(entry->d_name); pid > 0) kin[pid] = ReadKin(pid);
  Engine engine{};
  for (const auto& [pid, of] : kin)
    if (of.parent == owner) engine.launcher = pid;
  if (engine.launcher == 0)
    return Error(ErrorCode::kNotFound,
                 "process " + std::to_string(owner) + " has no launcher for a child");
  for (const auto& [pid, of] : kin)
    if (of.parent == engine.launcher && of.name != "caisson-netpool") engine.inits.push_back(pid);
  return engine;
}

Result<ProcessMemory> ReadProcessMemory(pid_t pid) {
  CAISSON_ASSIGN(const auto fields, ReadFields("/proc/" + std::to_string(pid) + "/status"));
  ProcessMemory memory{};
  CAISSON_ASSIGN(memory.resident, SumOf(fields, {"VmRSS"}));
  CAISSON_ASSIGN(memory.anonymous, SumOf(fields, {"RssAnon"}));
  return memory;
}

Result<int64_t> ReadPrivateBytes(pid_t pid) {
  CAISSON_ASSIGN(const auto fields, ReadFields("/proc/" + std::to_string(pid) + "/smaps_rollup"));
  return SumOf(fields, {"Private_Clean", "Private_Dirty"});
}

Result<Snapshot> TakeSnapshot(pid_t owner) {
  Snapshot snapshot;
  CAISSON_ASSIGN(const Engine engine, FindEngine(owner));
  CAISSON_ASSIGN(const auto self, ReadProcessMemory(owner));
  CAISSON_ASSIGN(const auto launcher, ReadProcessMemory(engine.launcher));
  snapshot.engine_anonymous = self.anonymous + launcher.anonymous;
  snapshot.owner_resident = self.resident;
  snapshot.launcher_resident = launcher.resident;
  for (const pid_t init : engine.inits) {
    CAISSON_ASSIGN(const auto memory, ReadProcessMemory(init));
    CAISSON_ASSIGN(const auto own, ReadPrivateBytes(init));
    snapshot.engine_anonymous += memory.anonymous;
    snapshot.init_private.push_back(static_cast<double>(own));
  }
  CAISSON_ASSIGN(snapshot.host, ReadHostMemory());
  return snapshot;
}

boost::json::object MemoryLine(std::string_view name, const Snapshot& before, const Snapshot& after,
                               int64_t count) {
  const int64_t engine = after.engine_anonymous - before.engine_anonymous;
  const int64_t others = after.host.anonymous - before.host.anonymous - engine;
  const int64_t gone = before.host.available - after.host.available;
  const int64_t kernel = after.host.kernel - before.host.kernel;
  boost::json::object line = Line(name);
  line["bytes_per_sandbox"] = (gone - others) / count;
  line["parts_bytes_per_sandbox"] = (kernel + engine) / count;
  line["kernel_bytes_per_sandbox"] = kernel / count;
  line["user_bytes_per_sandbox"] = engine / count;
  line["other_programs_bytes"] = others;
  line["launcher_rss_bytes"] = after.launcher_resident;
  line["init_private_bytes"] = static_cast<int64_t>(Percentile(after.init_private, 0.5));
  return line;
}

}  // namespace caisson::bench
