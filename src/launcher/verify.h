// The self-assert: what a sandbox's init really is, read from outside before the sandbox is called
// running.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/jail.h"

namespace caisson::launcher {

// Identity of the launcher's own namespaces, to compare with.
struct OwnNamespaces {
  static Result<OwnNamespaces> Read();
  ino_t ids[7] = {};
};

struct Verified {
  std::vector<wire::launcher::Fact> facts;  // what was read
};

// Reads /proc/PID/{status,uid_map,gid_map,ns/*,cgroup,mountinfo,fd} of `pid` and compares with the
// plan. kIsolationFailed names the first thing that is not as planned.
Result<Verified> VerifyJail(pid_t pid, const JailPlan& plan, const OwnNamespaces& own,
                            const std::string& cgroup_name, uint32_t id_count);

}  // namespace caisson::launcher
