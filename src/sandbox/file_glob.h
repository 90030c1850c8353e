// Finding files in a sandbox by pattern.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/files.h"

namespace caisson::sandbox {

struct GlobBounds {
  size_t files = 1000;      // found at most
  size_t entries = 50'000;  // looked at, at most
  int depth = 32;
};

struct FoundFile {
  std::string path;
  uint64_t size = 0;
};
struct GlobResult {
  std::vector<FoundFile> files;  // each once, in order of path
  bool complete = true;          // false: a bound was reached
};

// The regular files that match one of the patterns, seen as `user`. `*`, `?` and `[…]` match within
// a name, `**` any number of folders; a folder that matches stands for all files below. Patterns
// that do not begin with / are relative to /workspace. Symbolic links are not followed. What cannot
// be listed is passed over. `files` outlives the task.
Task<Result<GlobResult>> FindFiles(Files* files, std::vector<std::string> patterns,
                                   std::string user, GlobBounds bounds);

}  // namespace caisson::sandbox
