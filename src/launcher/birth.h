// The birth of a sandbox: from a request to a cloned child that walks through its jail.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "launcher/berth.h"
#include "launcher/box.h"
#include "launcher/cgroup_pool.h"
#include "launcher/host.h"
#include "launcher/net_pool.h"

namespace caisson::launcher {

struct Pools {
  BerthPool& berths;
  CgroupPool& cgroups;
  NetPool& nets;
};

// Takes what the sandbox needs from the pools, clones its init and attaches it. The box comes back
// in state kStarting; `sources` are the descriptors of spec.mounts. On failure everything is given
// back.
Result<std::unique_ptr<Box>> StartBox(const Host& host, Pools pools, wire::launcher::Create spec,
                                      std::vector<sys::UniqueFd> sources);

// After init said Ready: looks at it from outside and completes birth->created.
Status ConfirmBox(const Host& host, Box& box);

}  // namespace caisson::launcher
