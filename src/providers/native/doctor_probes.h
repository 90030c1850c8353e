// Probes: what code in a real sandbox can and cannot do, tried from the inside.
//
// A probe is a shell one-liner and what must come of it. Each is harmless where it succeeds,
// because doctor runs on hosts that people use: it asks for a thing without using it, or sets what
// is set already.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/provider.h"

namespace caisson::native {

enum class ProbeStatus : uint8_t {
  kHeld,     // as it must be
  kBroken,   // a wall is not there, or a sandbox does not do its work
  kSkipped,  // could not be tried here; the detail says why
};
std::string_view NameOf(ProbeStatus status);  // "held", "broken", "skipped"; stable

struct ProbeLine {
  std::string_view name;  // the statement that was tried
  ProbeStatus status = ProbeStatus::kHeld;
  std::string detail;  // what came instead, or why it was skipped
};

// What the host offers to the probes.
struct ProbeSurroundings {
  std::string canary;  // a file of the host's that no sandbox may see
  std::string marker;  // a name that is on no disk yet; sandboxes try to leave it in /usr
  bool memory_limit = true, pids_limit = true, cpu_limit = true;  // the host can enforce these
  bool many_ids = true;  // a sandbox has more users than root
};

// One throw-away sandbox, from create to destroy.
struct SandboxTrial {
  sandbox::Profile profile = sandbox::Profile::kDefault;
  std::string error, remedy;  // why it could not be made or destroyed; else empty
  std::chrono::microseconds create{0}, first_exec{0}, probing{0}, destroy{0};
  sandbox::SandboxReport report;
  std::vector<ProbeLine> probes;

  bool Works() const;  // made, destroyed, and no probe broken
};

// Makes a sandbox of `profile` with small limits, runs every probe that applies and destroys it.
// Never fails as a task: what went wrong is in the result. `provider` must outlive the task.
Task<SandboxTrial> TrySandbox(sandbox::Provider* provider, sandbox::Profile profile,
                              ProbeSurroundings surroundings);

// --- for tests
// ------------------------------------------------------------------------------------
enum class Expect : uint8_t {
  kRefused,  // ends with an exit code of its own that is not 0
  kPrints,   // ends with 0 and prints `text`
  kErrno,    // prints the number of EPERM, EACCES, ENOSYS or one of `text`
  kOutcome,  // ends with `outcome`
};
struct Probe {
  std::string_view name;
  std::string_view script;  // for sh -c; @canary@ and @marker@ stand for those of the surroundings
  Expect expect = Expect::kRefused;
  std::string_view text = "";
  sandbox::OutcomeStatus outcome = sandbox::OutcomeStatus::kExited;
  unsigned needs = 0;     // bits of Needs
  unsigned profiles = 3;  // 1: default, 2: strict
};
enum Needs : unsigned { kNeedsMemoryLimit = 1, kNeedsPidsLimit = 2, kNeedsIds = 4 };

std::span<const Probe> Probes();
ProbeLine Judge(const Probe& probe, const sandbox::ExecOutcome& outcome, std::string_view out,
                std::string_view err);

}  // namespace caisson::native
