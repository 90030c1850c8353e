// Capabilities of a process: setting our own, reading anyone's.
//
// The functions that return int give 0 or errno, use system calls only and no heap, and are fit
// for use between clone and exec. They act on the calling thread.
//
// Order in a jail: entering a user namespace (setns, unshare) fills the permitted, effective and
// bounding sets and resets securebits, so everything here comes after it; DropBoundingExcept and
// LockSecurebits need CAP_SETPCAP, so SetCapabilities comes last.
#pragma once

#include <linux/capability.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace caisson::sys {

constexpr uint64_t CapBit(int capability) { return uint64_t{1} << capability; }

// What apt, dpkg, useradd, su and chown need. Each is worth something only over ids that the
// sandbox's user namespace maps.
inline constexpr uint64_t kPackageManagerCaps =
    CapBit(CAP_CHOWN) | CapBit(CAP_DAC_OVERRIDE) | CapBit(CAP_FOWNER) | CapBit(CAP_FSETID) |
    CapBit(CAP_SETGID) | CapBit(CAP_SETUID) | CapBit(CAP_KILL) | CapBit(CAP_SETFCAP);

// capset(2) with all three sets. EPERM when `permitted` adds to what is permitted now.
int SetCapabilities(uint64_t effective, uint64_t permitted, uint64_t inheritable);

// Removes every capability that is not in `keep` from the bounding set, up to the last one this
// kernel knows, which may be newer than our headers. EPERM without CAP_SETPCAP.
int DropBoundingExcept(uint64_t keep);

// Empties the ambient set.
int ClearAmbient();

// Locks securebits for a process that shall never hold a capability again. EPERM without
// CAP_SETPCAP. The bits:
//   NOROOT on: exec as uid 0 gives nothing.
//   NO_CAP_AMBIENT_RAISE on.
//   KEEP_CAPS off: leaving uid 0 empties the permitted set.
//   NO_SETUID_FIXUP off: with it on, leaving uid 0 would keep what is held, which is the wrong
//     direction; off, coming to uid 0 copies permitted to effective, and permitted is empty.
// All four locked; the lock survives exec and is inherited.
int LockSecurebits();
inline constexpr unsigned kLockedSecurebits = 0xeb;  // what PR_GET_SECUREBITS then says

// What /proc/PID/status tells about privilege.
struct CapabilityState {
  uint64_t effective = 0;
  uint64_t permitted = 0;
  uint64_t inheritable = 0;
  uint64_t bounding = 0;
  uint64_t ambient = 0;
  bool no_new_privs = false;
  int seccomp_mode = 0;              // 0 none, 1 strict, 2 filter
  std::array<uint32_t, 4> uid = {};  // real, effective, saved, file system; as the reader sees them
  std::array<uint32_t, 4> gid = {};
};

// Parses the text of /proc/PID/status. kProtocol when a line is missing or malformed: a state that
// cannot be read is never taken for a safe one.
Result<CapabilityState> ParseCapabilities(std::string_view status_text);
// kNotFound when there is no such process.
Result<CapabilityState> ReadCapabilities(pid_t pid);

// "CAP_CHOWN,CAP_KILL"; "none" for 0; a bit without a name is its number: "CAP_63".
std::string CapabilityNames(uint64_t mask);

}  // namespace caisson::sys
