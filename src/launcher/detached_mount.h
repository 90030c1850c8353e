// File systems as descriptors: mounts that no path leads to until somebody attaches them.
// fsopen(2), fsconfig(2), fsmount(2), fspick(2): Linux 5.2.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {

struct MountOption {
  const char* key;
  std::string value;  // empty: a flag
};

// Makes a file system of this kind and a detached nosuid, nodev mount of it. The error is kIo and
// carries the kernel's own words where it gave any.
Result<sys::UniqueFd> MountDetached(const char* kind, std::initializer_list<MountOption> options);

// Changes options of the mounted file system that `mount_fd` is the root of.
Status Reconfigure(int mount_fd, std::initializer_list<MountOption> options);

}  // namespace caisson::launcher
