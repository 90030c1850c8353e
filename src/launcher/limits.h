// From the limits of a request to what each mechanism of this host is asked to do.
#pragma once

#include <vector>

#include "base/result.h"
#include "launcher/host.h"
#include "sys/cgroup.h"
#include "wire/launcher_protocol.h"

namespace caisson::launcher {

struct LimitPlan {
  sys::CgroupLimits cgroup;                             // only what can be enforced
  std::vector<wire::launcher::LimitFact> not_enforced;  // defaults that this host cannot enforce
};

// Sorts the limits. kLimitRefused for one that was asked for by name and cannot be enforced here.
Result<LimitPlan> PlanLimits(const Host& host, const wire::launcher::Limits& limits);

// The disk back end for a request. kLimitRefused with the reasons when none fits.
Result<DiskBackend> ChooseDisk(const Host& host, wire::launcher::DiskBackend wanted,
                               const wire::launcher::Limits& limits);

std::vector<wire::launcher::LimitFact> ToFacts(const std::vector<sys::LimitReport>& reports);
wire::launcher::LimitFact DiskFact(const char* name, uint64_t value, DiskBackend backend);

wire::launcher::Counters ToCounters(const sys::CgroupStats& stats, const DiskStats& disk);

}  // namespace caisson::launcher
