// From the command line of `exec` to what the engine is asked for.
#pragma once

#include "base/options.h"
#include "sandbox/spec.h"

namespace caisson::cli {

struct ExecRequest {
  sandbox::SandboxSpec sandbox;
  sandbox::ExecSpec command;
  bool stats = false, json = false;
};

Result<ExecRequest> ReadExecRequest(const Parsed& parsed);

}  // namespace caisson::cli
