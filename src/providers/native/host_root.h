// The environment `host`: a root made of the host's own system directories.
//
// /usr (and /bin, /sbin, /lib* where they are real directories, and /var/lib/dpkg) are shown as
// they are. Everything else is a skeleton that is built once and cached: empty directories, the
// allow-listed part of /etc (host_etc.h), and generated accounts. Nothing of /root, /home, /var,
// /opt, /srv or /run is in it.
//
// A skeleton is named after what it was made from, so a change of the host's files leads to a new
// one, and sandboxes that use the old one keep it. It lives in `cache_dir` as host-<boot>-<key>;
// those of earlier boots are removed, since no sandbox survives a reboot.
#pragma once

#include <string>

#include "base/result.h"
#include "providers/native/root_plan.h"

namespace caisson::native {

// Gives the plan of the environment `host`, building the skeleton when the cached one is missing or
// stale. Safe to call from several processes and threads at once. As root the skeleton belongs to
// root (and /home/user, /workspace to id 1000); otherwise all of it to the user.
// kUnsupported when the host has no usable /usr; kPermissionDenied for an unsafe cache directory.
Result<RootPlan> PrepareHostRoot(const std::string& cache_dir);

// The same for a host that lies below `host_root`, for tests.
Result<RootPlan> PrepareHostRootFrom(const std::string& host_root, const std::string& cache_dir);

}  // namespace caisson::native
