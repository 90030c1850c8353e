// The jail: what a cloned child does to itself before it becomes caisson-init.
//
// Theory of operation. The launcher fills in a JailPlan, clones (pid, mount, ipc and uts
// namespaces), and the child walks a fixed list of stages (jail.cc). The order matters:
//
//   * everything that needs power is done as the launcher's root, with the namespaces owned by it;
//   the user
//     namespace is entered last. So the sandbox owns none of its other namespaces, and even every
//     capability inside gives it no power over mounts, links or routes;
//   * no path inside the sandbox's tree is ever followed: targets are opened with openat2 beneath
//   the root,
//     without links, and used as descriptors; /dev and /proc are file systems made here;
//   * capabilities, no_new_privs, Landlock and seccomp close the doors behind us, in that order.
//
// Between clone and exec there is no heap, no lock, no logging. A stage that fails writes {stage,
// errno} to the report pipe and the child exits: nothing that is half a jail ever runs.
#pragma once

#include <linux/filter.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>

#include "wire/launcher_protocol.h"

namespace caisson::launcher {

inline constexpr size_t kMaxOverlays = wire::launcher::kMaxOverlays;
inline constexpr size_t kMaxMounts = wire::launcher::kMaxMounts;

struct JailPlan {
  // Descriptors, in the gangway's block. The child takes a table of its own with only them in it.
  int disk = -1;  // detached mount of the writable file system, furnished (disk_layout.h)
  int net_ns = -1;
  int user_ns = -1;
  int control = -1;                         // init's end of the control socket
  int init = -1;                            // the sealed memfd of caisson-init
  int go = -1;                              // read end: the Departure
  int report = -1;                          // write end: StageFailure
  int left = -1;                            // write end: a byte when the table is our own
  int block_end = 0;                        // above all of these (gangway.h)
  int nodes[6] = {-1, -1, -1, -1, -1, -1};  // rootless: detached mounts of the host's device nodes

  struct Overlay {
    int lower;           // detached mount
    const char* inside;  // absolute path inside
  };
  Overlay overlays[kMaxOverlays] = {};
  size_t overlay_count = 0;
  struct Mount {
    int source;          // detached mount, attributes set
    const char* target;  // absolute path inside
    int is_directory;
  };
  Mount mounts[kMaxMounts] = {};
  size_t mount_count = 0;

  wire::launcher::Profile profile = wire::launcher::Profile::kDefault;
  int rootless = 0;
  int volatile_upper = 1;     // overlay `volatile`: no sync, the sandbox is ephemeral
  uint32_t uid = 0;           // inside: init's own and, in strict, everybody's
  uint32_t first_id = 0;      // host id of uid 0 inside
  uint64_t capabilities = 0;  // permitted set of init
  uint64_t processes = RLIM_INFINITY;
  const sock_fprog* seccomp = nullptr;
  int landlock_abi = 0;
  const char* capabilities_hex = "0";  // init's first argument
};

// What the child waits for with its root built: when it comes, the cgroup is joined.
struct Departure {
  char hostname[65] = {};
  char user[65] = {};  // init's second argument
};

enum class Stage : uint32_t {
  kSession,
  kPrivate,
  kDisk,
  kRoot,
  kProc,
  kDev,
  kWritable,
  kMounts,
  kMasks,
  kReadOnly,
  kPivot,
  kCgroup,
  kHostname,
  kNetwork,
  kUserNs,
  kIds,
  kRlimits,
  kCapabilities,
  kNoNewPrivs,
  kLandlock,
  kDescriptors,
  kSeccomp,
  kExec,
};
const char* StageName(Stage stage);

struct StageFailure {
  Stage stage;
  int32_t error_number;
};

// In the child: walks the stages and execs init. Never returns.
[[noreturn]] void EnterJail(const JailPlan& plan);

}  // namespace caisson::launcher
