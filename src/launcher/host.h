// What the launcher found out about its host, once, at start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/disk.h"
#include "launcher/dock.h"
#include "launcher/gangway.h"
#include "launcher/instance.h"
#include "launcher/slots.h"
#include "launcher/verify.h"
#include "sys/cgroup.h"
#include "sys/seccomp.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {

// How sandboxes get their ids.
struct IdPlan {
  enum class Kind : uint8_t {
    kSlots,        // root: 65 536 ids of its own for each sandbox
    kSubordinate,  // ordinary user with /etc/subuid: 65 536 ids, shared by all of this user's
                   // sandboxes
    kSingle,       // ordinary user without: one id, the user's own
  };
  Kind kind = Kind::kSlots;
  uint32_t first_id = 0;  // kSubordinate, kSingle: as the launcher sees ids
  uint32_t count = kIdsPerSlot;
};

struct Host {
  bool rootless = false;
  IdPlan ids;
  std::string state_dir;  // this instance's own; loop images and quota directories
  std::unique_ptr<Instance> instance;
  std::unique_ptr<SlotTable> slots;
  std::unique_ptr<sys::CgroupTree> cgroups;
  std::unique_ptr<Dock> dock;
  std::unique_ptr<Gangway> gangway;
  std::vector<DiskProbe> disks;
  sys::SeccompFilter seccomp_default = sys::SeccompFilter::Build(sys::SeccompProfile::kDefault);
  sys::SeccompFilter seccomp_strict = sys::SeccompFilter::Build(sys::SeccompProfile::kStrict);
  sys::UniqueFd init_program;
  OwnNamespaces namespaces;
  int landlock_abi = 0;
  bool overlay_takes_id_maps = false;
  bool counts_processes_by_namespace = false;  // RLIMIT_NPROC (Linux 5.14)

  std::vector<wire::launcher::Fact> Facts() const;
};

struct HostOptions {
  std::string run_dir;    // locks and sockets
  std::string state_dir;  // on a real file system
};
// Looks, locks and prepares. As an ordinary user this enters a user namespace of its own first.
Result<Host> PrepareHost(const HostOptions& options);

}  // namespace caisson::launcher
