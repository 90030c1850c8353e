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

class JailPool;

struct Pools {
  BerthPool& berths;
  CgroupPool& cgroups;
  NetPool& nets;
  JailPool& jails;
};

// What jails have in common that can stand in for one another.
struct JailKind {
  BerthRequest berth;
  wire::launcher::Profile profile = wire::launcher::Profile::kDefault;
  LimitPlan limits;
};
Result<JailKind> KindOf(const Host& host, const wire::launcher::Create& spec);

// Takes what a sandbox of this kind needs from the pools and clones its init, which builds its
// root, joins its cgroup and waits. `spec` gives mounts and bandwidth; a jail for the pool has
// neither. On failure all is given back.
Result<std::unique_ptr<Box>> PrepareJail(const Host& host, Pools pools, const JailKind& kind,
                                         wire::launcher::Create spec,
                                         std::vector<sys::UniqueFd> sources);

// Takes what the sandbox needs from the pools, clones its init and attaches it. The box comes back
// in state kStarting; `sources` are the descriptors of spec.mounts. On failure everything is given
// back.
Result<std::unique_ptr<Box>> StartBox(const Host& host, Pools pools, wire::launcher::Create spec,
                                      std::vector<sys::UniqueFd> sources);

// After init said Ready: looks at it from outside and completes birth->created.
Status ConfirmBox(const Host& host, Box& box);

}  // namespace caisson::launcher
