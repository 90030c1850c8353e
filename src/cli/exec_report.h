// What `exec` tells about a command: --json and --stats.
#pragma once

#include <chrono>
#include <string>

#include "cli/colour.h"
#include "sandbox/provider.h"

namespace caisson::cli {

struct ExecTiming {
  std::chrono::nanoseconds launcher{0}, create{0}, command{0}, destroy{0};
};

struct ExecReport {
  sandbox::ExecOutcome outcome;
  sandbox::SandboxStats stats;
  ExecTiming timing;
  sandbox::SandboxReport sandbox;
  std::string out, err;  // collected for --json
};

std::string AsJson(const ExecReport& report);
std::string AsText(const ExecReport& report, Colour colour);

}  // namespace caisson::cli
