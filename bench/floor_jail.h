#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// The smallest program that makes Caisson's full jail: the yardstick of the bench.
//
// One life is, in this order and with nothing deferred:
//   parent  mkdir of upper/work/merged and of the cgroups, limits, clone3, attach, release
//   child   private root, overlay, /proc, /dev, masks, pivot_root, loopback, capabilities, rlimits,
//           no_new_privs, seccomp, exec of a dynamic /bin/true
//   parent  reap, rmdir of the directories and the cgroups
//
// Only the kernel's own deferred work (the end of a network namespace) outlives a life. There is no
// pool, no protocol, no identity mapping and no check in the timed path, so a sandbox that is as
// fast as this one has hidden its own work behind prepared kernel objects.
//
// Nothing here is thread-safe; parallel lives come from separate processes.
namespace caisson::bench {

// The step that failed and its errno. False means success.
struct Failure {
  const char* stage = nullptr;
  int error = 0;
  explicit operator bool() const { return stage != nullptr; }
};

enum class Network { kShared, kLoopback };
enum class Upper { kDisk, kTmpfs };
enum class Users { kShared, kOwn };

struct JailOptions {
  Network network = Network::kLoopback;
  Upper upper = Upper::kDisk;
  Users users = Users::kShared;
  std::string directory;  // an existing directory on a disk file system; work files go below it
};

// One control group to make for each life. `limits` are pairs of file name and value.
struct CgroupDirectory {
  std::string path;
  std::vector<std::pair<std::string, std::string>> limits;
};

struct CgroupPlan {
  const char* version = "none";  // "v1", "v2", or "none" where the host lets us make no group
  std::vector<CgroupDirectory> directories;
};

// Owns the work directory (lower layer, and the run's upper) from Prepare until destruction.
class FloorJail {
 public:
  explicit FloorJail(JailOptions options) : options_(std::move(options)) {}
  FloorJail(const FloorJail&) = delete;
  FloorJail& operator=(const FloorJail&) = delete;
  ~FloorJail();

  // Builds everything that lives share: the lower layer with /bin/true and its libraries, the
  // seccomp program, the list of masks, the place of the cgroups. Moves the calling process into a
  // mount namespace of its own. Call once.
  Failure Prepare();

  // One whole life. Fails if any step fails or if /bin/true does not exit with 0.
  Failure RunOnce() { return Run(Watch::kNone); }

  // One whole life, held just before exec while its namespaces, capabilities, seccomp mode, root
  // and cgroups are read from outside. Fails if any of them is not what a full jail has.
  Failure Verify() { return Run(Watch::kInspect); }

  const char* cgroup_version() const { return cgroups_.version; }
  size_t masks() const { return masks_.size(); }
  size_t filter_length() const { return filter_.size(); }

 private:
  enum class Watch { kNone, kInspect };
  enum class MaskKind { kFile, kDirectory, kReadOnly };
  struct Mask {
    std::string path;
    MaskKind kind;
  };
  struct Channels;

  Failure BuildLower();
  void ChooseMasks();
  void PlanCgroups();
  void BuildFilter();

  Failure Run(Watch watch);
  Failure MakeDirectories();
  Failure RemoveDirectories();
  Failure MakeCgroups();
  Failure RemoveCgroups();
  Failure Release(int pid, Channels& channels, Watch watch);
  Failure Inspect(int pid) const;
  void Abandon();

  [[noreturn]] void Child(Channels& channels, Watch watch);
  Failure EnterRoot();
  Failure MakeDev();
  Failure ApplyMasks();
  Failure RaiseLoopback();
  Failure DropPrivileges();

  JailOptions options_;
  std::string work_;
  std::string upper_;
  std::string scratch_;
  std::string merged_;
  std::string overlay_options_;
  uint64_t clone_flags_ = 0;
  CgroupPlan cgroups_;
  std::vector<Mask> masks_;
  std::vector<sock_filter> filter_;
};

}  // namespace caisson::bench
