// What happens between clone and exec of a command.
//
// A SpawnPlan is made by init beforehand and holds every byte the child will need. The child runs
// in init's own memory (CLONE_VM|CLONE_VFORK below a supervisor that shares it too), so it only
// reads the plan, makes raw system calls and writes its SpawnReport: no heap, no libc.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "init/identity.h"
#include "init/passwd.h"
#include "wire/init_protocol.h"

namespace caisson::init {

class SpawnPlan {
 public:
  // Checks `start` (EINVAL names what is wrong) and works out environment, directory, candidates
  // of the PATH and limits. `defaults` are the sandbox's rlimits; those of `start` come on top.
  static Result<SpawnPlan> Create(const wire::init::Start& start, User user,
                                  const Privileges& privileges,
                                  const std::vector<wire::init::Rlimit>& defaults);

  const User& user() const { return user_; }

 private:
  friend int SpawnChild(void* context);

  User user_;
  bool switch_ids_ = false;
  bool has_tty_ = false;
  bool cwd_is_wish_ = false;  // the home directory: "/" when it is no directory
  uint64_t caps_held_ = 0;    // what init holds
  uint64_t caps_kept_ = 0;    // what the command gets
  std::string cwd_;
  std::vector<wire::init::Rlimit> limits_;
  std::vector<std::string> argv_, env_, candidates_;
  std::vector<char*> argv_pointers_, env_pointers_;
};

// How far the child came. Written by the child, read by its supervisor and by init.
struct SpawnReport {
  std::atomic<int> error_number = 0;
  std::atomic<wire::init::StartStage> stage = wire::init::StartStage::kSetup;
  std::atomic<bool> needs_oom_score = false;  // the child could not raise its own
  char cwd[4096 + 16];                        // scratch for the directory's real name
};

struct SpawnContext {
  const SpawnPlan* plan;
  SpawnReport* report;
};

// The child: its descriptors 0, 1 and 2 are in place. `context` is a SpawnContext. Execs, or
// fills the report and returns the exit code 127.
int SpawnChild(void* context);

// Writes `kOomScore` to the oom_score_adj at `path`. False when the kernel refuses.
bool RaiseOomScore(const char* path);

}  // namespace caisson::init
