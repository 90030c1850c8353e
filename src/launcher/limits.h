// From the limits of a request to what each mechanism of this host is asked to do.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/host.h"
#include "sys/cgroup.h"
#include "wire/launcher_protocol.h"

namespace caisson::launcher {

struct LimitPlan {
  sys::CgroupLimits cgroup;                      // only what can be enforced
  std::optional<uint64_t> process_rlimit;        // RLIMIT_NPROC of its first process
  std::vector<wire::launcher::LimitFact> facts;  // of what no cgroup does
};

// What besides a cgroup can bound the number of a sandbox's processes.
enum class ProcessWall : uint8_t { kCgroup, kCgroupOrRlimit };
inline constexpr std::string_view kRlimitOfProcesses = "RLIMIT_NPROC of its one user";
// For a sandbox that is being born. RLIMIT_NPROC counts the processes of one id in one user
// namespace, so it is a wall where the sandbox has no second id to become.
ProcessWall WallOf(const Host& host, wire::launcher::Profile profile);

// Sorts the limits. kLimitRefused for one that was asked for by name and cannot be enforced here.
Result<LimitPlan> PlanLimits(const Host& host, const wire::launcher::Limits& limits,
                             ProcessWall wall);

// The disk back end for a request. kLimitRefused with the reasons when none fits.
Result<DiskBackend> ChooseDisk(const Host& host, wire::launcher::DiskBackend wanted,
                               const wire::launcher::Limits& limits);

std::vector<wire::launcher::LimitFact> ToFacts(const std::vector<sys::LimitReport>& reports);
wire::launcher::LimitFact DiskFact(const char* name, uint64_t value, DiskBackend backend);

wire::launcher::Counters ToCounters(const sys::CgroupStats& stats, const DiskStats& disk);

}  // namespace caisson::launcher
