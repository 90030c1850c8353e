// The supervisor of one command: a process between init and the command that is a child subreaper,
// so that whatever the command leaves behind stays below it and can be found.
//
// Theory of operation. Init clones the supervisor with CLONE_VM: it shares init's memory (a fork
// would cost a third of a short command) but has its own descriptors, credentials and place in the
// process tree. It runs a few raw system calls on a stack in its Supervision block: puts
// the command's stdio in place, spawns the command (CLONE_VM|CLONE_VFORK), gives up every
// capability, and waits until it has no child left. Twice it stores facts in the block and then
// writes its process number into init's report pipe: when the command was spawned (or could not
// be), and when it ended.
//
// The supervisor is init's equal inside the sandbox, not more: code of the same user, or root,
// may stop or kill it. Then its children fall to init, which goes on from `child_pid` (see
// Commands).
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "init/spawn.h"

namespace caisson::init {

inline constexpr char kSupervisorName[] = "caisson-exec";  // also of its child, until the exec

// Memory shared by init, the supervisor and, until its exec, the command.
struct Supervision {
  // Set by init before the clone.
  uint32_t process = 0;
  int stdio[3] = {-1, -1, -1};
  int report_fd = -1;
  SpawnContext spawn{};

  // Set by the others. `spawned` and `ended` are stored after what they announce.
  SpawnReport report;
  std::atomic<int> child_pid = 0;
  std::atomic<bool> spawned = false;  // the child has left this memory, by exec or exit
  std::atomic<bool> ended = false;
  int status = 0;  // as of wait4(2), with `usage`
  rusage usage{};
  uint64_t ended_ns = 0;  // CLOCK_MONOTONIC

  alignas(16) char supervisor_stack[8 * 1024];
  alignas(16) char child_stack[16 * 1024];
};

// Hands out Supervision blocks; a few are kept for reuse, their pages warm.
class SupervisionPool {
 public:
  SupervisionPool() = default;
  SupervisionPool(const SupervisionPool&) = delete;
  SupervisionPool& operator=(const SupervisionPool&) = delete;
  ~SupervisionPool();

  // A block in its initial state; ENOMEM.
  Result<Supervision*> Take();
  // Takes a block back. Nobody else may run in it any more.
  void Return(Supervision* block);

 private:
  std::vector<Supervision*> spare_;
};

// Starts the supervisor for the prepared `block`; its pid. The plan must outlive `block.spawned`,
// and the block both the supervisor and (until `spawned`) the child.
Result<pid_t> StartSupervisor(Supervision& block);

}  // namespace caisson::init
