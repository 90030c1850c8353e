// Box: everything that one sandbox owns on the host. Destroying it frees all of it, in reverse
// order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/berth.h"
#include "launcher/jail.h"
#include "sys/cgroup.h"
#include "sys/process.h"
#include "sys/resctrl.h"
#include "sys/unique_fd.h"
#include "wire/launcher_protocol.h"

namespace caisson::launcher {

enum class BoxState : uint8_t {
  kStarting,  // cloned; waiting for init's Ready or a StageFailure
  kRunning,
  kDying,  // killed; waiting for the last process to be gone
};

// What is needed only until the sandbox runs. Its plan points into the rest of it.
struct Birth {
  wire::launcher::Create spec;
  std::vector<sys::UniqueFd> mounts;  // detached, consumed by the jail
  std::vector<sys::UniqueFd> nodes;   // rootless: device nodes
  std::string caps_text;
  JailPlan plan;
  wire::launcher::Created created;
  sys::UniqueFd report;  // read end of the StageFailure pipe
  sys::UniqueFd go;      // write end
};

struct Box {
  std::string id;
  uint64_t serial = 0;
  BoxState state = BoxState::kStarting;
  bool spare = false;  // nobody's yet
  bool frozen = false;
  bool quarantined = false;  // did not die by its deadline

  // Destroyed last to first: the process is gone before its cgroup, the cgroup before the disk and
  // ids.
  std::optional<Berth> berth;
  std::optional<sys::Cgroup> cgroup;
  std::optional<sys::ResctrlGroup> bandwidth;
  sys::UniqueFd net_ns;          // from the kill on
  sys::UniqueFd control;         // the owner's end; kept so that a later owner can have it
  std::unique_ptr<Birth> birth;  // null once it runs
  sys::Child init;

  std::string created;       // the packet of Created: kept small, a thousand boxes may be idle
  uint64_t deadline_ns = 0;  // of kStarting and kDying
  uint64_t asked_ns = 0;     // when the create came

  // Who waits for what.
  uint64_t waiting_client = 0;
  uint32_t waiting_tag = 0;
  wire::launcher::Counters last_counters;
};

}  // namespace caisson::launcher
