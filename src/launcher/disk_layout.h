// What stands on a sandbox's writable file system before the sandbox starts.
//
//   u0 w0 … uN wN   upper and work directory of each overlay
//   tmp ws          /tmp and /workspace of a strict sandbox, whose root is read-only
//   shm             /dev/shm
//   dev             the nodes and mount points of /dev
//   mf md           an empty file and an empty directory, used as masks
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace caisson::launcher {

struct DiskOwner {
  uint32_t first_id = 0;     // host id of uid 0 inside
  uint32_t default_uid = 0;  // inside; owns /workspace
};
enum class DeviceNodes : uint8_t { kMake, kLeaveForBinding };  // mknod needs real root

// Furnishes the file system behind `disk` (a mount descriptor) for overlays at these inside paths.
Status FurnishDisk(int disk, const std::vector<std::string>& overlay_paths, DiskOwner owner,
                   DeviceNodes nodes);

struct DeviceNode {
  const char* name;
  unsigned major, minor;
};
inline constexpr DeviceNode kDeviceNodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
                                              {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

}  // namespace caisson::launcher
