// Doctor: what this host is worth to sandboxes. It looks at the host, starts a launcher for its
// facts, makes one throw-away sandbox of each profile and tries the walls from the inside, so that
// an operator sees what is enforced and not what is hoped.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "providers/native/doctor_probes.h"
#include "providers/native/host_checks.h"
#include "providers/native/launcher_client.h"

namespace caisson::native {

enum class Probing { kRun, kSkip };

struct DoctorReport {
  std::string kernel;
  std::string mode;  // "root", "rootless"; empty when no launcher started
  std::vector<CheckLine> checks;
  std::vector<wire::launcher::Fact> facts;  // the launcher's, as it said them
  std::vector<SandboxTrial> sandboxes;  // empty with Probing::kSkip and when no launcher started
  std::chrono::microseconds checking{0}, launcher_start{0}, total{0};

  // Sandboxes work on this host, perhaps weaker than they could be: no check failed, and each trial
  // did.
  bool Works() const;
  size_t Count(CheckStatus status) const;
  size_t Count(ProbeStatus status) const;
};

// Examines the host. Blocks (less than a second on a quiet machine) and runs a loop of its own;
// call it from a thread that may wait. Leaves nothing behind but the cache of the host's root.
DoctorReport Examine(const LauncherPaths& paths, Probing probing);

// {"summary": {…}, "checks": [{group, name, status, detail, remedy}],
//  "probes": [{name, profile, status, detail}],
//  "isolation": {host: {…}, default: {…}, strict: {…}}, "timing": {…}} and a newline.
// Text that is not UTF-8 is replaced.
std::string ToJson(const DoctorReport& report);

}  // namespace caisson::native
