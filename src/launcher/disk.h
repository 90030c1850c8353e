// Disk: the writable file system of one sandbox, walled in bytes and inodes.
//
// Everything that a sandbox writes (overlay upper and work, /tmp, /dev/shm) lives on one Disk, so
// that one wall holds for all of it. Three kinds exist; a probe says which work on this host:
//
//   kTmpfs  memory; always there, also inside a user namespace. The pages count as the sandbox's
//           memory as well.
//   kLoop   an ext4 without journal in a sparse, nameless file behind a loop device. Needs root,
//           /dev/loop-control, Linux 5.8 and mkfs.ext4.
//   kQuota  a directory with a project quota on ext4 or xfs. Needs root, Linux 5.14 and a state
//           directory on a file system mounted with `prjquota`. ext4 does not hold CAP_SYS_RESOURCE
//           (of the host's user namespace) to the quota, and overlayfs writes with the credentials
//           of whoever mounted it: the process that mounts an overlay on such a Disk must have
//           given that capability up.
//
// A Disk owns what it is made of and frees it when it is destroyed: the loop device detaches by
// itself when the last user is gone, its file has no name, the quota directory moves to the trash.
// A process that dies leaves at most a quota directory behind, which SweepDisks removes.
//
// Not thread-safe; meant for the single-threaded launcher.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/remove_tree.h"

namespace caisson::launcher {

enum class DiskBackend { kTmpfs, kLoop, kQuota };
std::string_view NameOf(DiskBackend backend);  // "tmpfs", "loop", "quota"

inline constexpr uint64_t kMinDiskBytes = uint64_t{1} << 20;
inline constexpr uint64_t kMaxDiskBytes = uint64_t{1} << 44;
inline constexpr uint64_t kMinDiskInodes = 64;
inline constexpr uint64_t kMaxDiskInodes = uint64_t{1} << 31;

struct DiskRequest {
  uint64_t bytes = 0;      // of the whole file system; ext4's own tables come out of it
  uint64_t inodes = 0;     // kLoop rounds up to what fills whole inode tables
  uint32_t owner_uid = 0;  // of the root directory: the sandbox's root, as this process sees ids
  uint32_t owner_gid = 0;
};

// What the kernel enforces and counts, read back from it.
struct DiskStats {
  uint64_t bytes_limit = 0;
  uint64_t bytes_used = 0;
  uint64_t inodes_limit = 0;
  uint64_t inodes_used = 0;
};

class Disk {
 public:
  // Makes a Disk with an empty root directory (mode 0755). `state_dir` is a private directory of
  // ours that exists; kTmpfs does not use it. kLimitRefused for sizes outside the bounds above,
  // kUnsupported where the probe of the backend fails, kResourceExhausted when out of loop devices.
  static Result<std::unique_ptr<Disk>> Create(DiskBackend backend, const DiskRequest& request,
                                              const std::string& state_dir);
  virtual ~Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  virtual DiskBackend backend() const = 0;

  // The file system as a mount that is attached nowhere (nosuid, nodev). The sandbox's first
  // process attaches it with move_mount; the Disk keeps the descriptor. Directories can be made
  // relative to it at once.
  virtual int mount_fd() const = 0;

  // Changes the walls of a Disk in use and returns what is in force now. kLimitRefused when it
  // cannot be done: less than is in use, any shrinking of kLoop, growing kLoop without
  // CAP_SYS_RESOURCE. Nothing has changed then. A kLoop that grows gains inodes in proportion,
  // so inodes_limit may come out above what was asked for.
  virtual Result<DiskStats> Resize(uint64_t bytes, uint64_t inodes) = 0;
  virtual Result<DiskStats> Stats() const = 0;

 protected:
  Disk() = default;
};

struct DiskProbe {
  DiskBackend backend;
  bool works;
  std::string detail;  // how it works here, or why it does not and what would help
};

// Tries every backend, in the order of the enum. Leaves nothing behind. About 1 ms.
std::vector<DiskProbe> ProbeDisks(const std::string& state_dir);

// Makes what the first kLoop of this size would have to make (tens of milliseconds, runs
// mkfs.ext4), so that Disk::Create pays only for a copy of it.
Status PrepareLoopTemplate(const DiskRequest& request, const std::string& state_dir);

// Goes on removing the trash of destroyed kQuota Disks, about `budget` files at most. Each
// project id is free again once its directory is gone.
Result<sys::RemoveProgress> EmptyDiskTrash(const std::string& state_dir, uint64_t budget);

// Removes what a process that died left in `state_dir`. No Disk may be alive there.
Status SweepDisks(const std::string& state_dir);

}  // namespace caisson::launcher
