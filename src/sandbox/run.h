// Run: one command from start to outcome, its output collected.
#pragma once

#include <string>

#include "sandbox/provider.h"

namespace caisson::sandbox {

struct ExecResult {
  ExecOutcome outcome;
  std::string out, err;
};

// Starts `spec` in `sandbox`, feeds `input` to its stdin when there is any, collects what it
// writes, and releases it. `sandbox` must outlive the task.
Task<Result<ExecResult>> Run(Sandbox* sandbox, ExecSpec spec, std::string input = {});

}  // namespace caisson::sandbox
