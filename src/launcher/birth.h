// The birth of a sandbox: from a request to a cloned child that walks through its jail.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "launcher/berth.h"
#include "launcher/box.h"
#include "launcher/cgroup_pool.h"
#include "launcher/host.h"
#include "launcher/limits.h"
#include "launcher/net_pool.h"

namespace caisson::launcher {

struct Pools {
  BerthPool& berths;
  CgroupPool& cgroups;
  NetPool& nets;
};

// kInvalidArgument, kProtocol or kUnsupported for a request that no host or not this one can serve.
Status CheckSpec(const Host& host, const wire::launcher::Create& spec, size_t sources);

// Whether a sandbox like this can be made before it is asked for: its parts are all the launcher's
// own and cost little while they wait.
bool CanBeSpare(const Host& host, const wire::launcher::Create& spec);

// Takes what the sandbox needs from the pools, clones its init and attaches it. The box comes back
// in state kStarting; `sources` are the descriptors of spec.mounts. On failure everything is given
// back.
Result<std::unique_ptr<Box>> StartBox(const Host& host, Pools pools, wire::launcher::Create spec,
                                      std::vector<sys::UniqueFd> sources);

// After init said Ready: looks at it from outside and completes birth->created.
Status ConfirmBox(const Host& host, Box& box);

}  // namespace caisson::launcher
