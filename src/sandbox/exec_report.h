// What a foreground command is asked to be, and what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/outcome.h"
#include "sandbox/spec.h"
#include "sandbox/wall_clock.h"

namespace caisson::sandbox {

// A file of a session that outlives it.
struct KeptArtifact {
  std::string path;  // inside the sandbox
  std::string name;  // in the store
  uint64_t size = 0;
};

struct ExecRequest {
  ExecSpec spec;
  std::string input;                        // given to stdin, which is closed then
  size_t output_cap = 8 * 1024 * 1024;      // of each stream; the rest is counted and left out
  std::vector<std::string> artifacts = {};  // globs of files kept when it has ended
};

struct ExecReport {
  uint32_t process = 0;
  WallTime started;
  ExecOutcome outcome;
  std::string out, err;
  uint64_t out_omitted = 0, err_omitted = 0;  // bytes that are in neither
  std::vector<KeptArtifact> artifacts;
};

}  // namespace caisson::sandbox
