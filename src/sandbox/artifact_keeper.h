// ArtifactKeeper: copies files of a session to where they outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/artifact_store.h"
#include "sandbox/file_glob.h"
#include "sandbox/session.h"

namespace caisson::sandbox {

struct KeeperOptions {
  GlobBounds bounds;
  uint64_t file_bytes = 256 * kMiB;    // of one file; larger ones are passed over
  uint64_t total_bytes = 1024 * kMiB;  // of one call
};

class ArtifactKeeper {
 public:
  // The store outlives it.
  explicit ArtifactKeeper(ArtifactStore& store, KeeperOptions options = {})
      : store_(store), options_(options) {}

  // Copies the files of the session's sandbox that match, as they are at the moment, and publishes
  // each. What does not fit the bounds is left out, and an alert says so. Fails when the store
  // does. Session and keeper outlive the task.
  Task<Result<std::vector<KeptArtifact>>> Keep(Session* session, std::vector<std::string> globs);

 private:
  Task<Result<std::optional<KeptArtifact>>> KeepOne(Session* session, std::string path,
                                                    uint64_t room);

  ArtifactStore& store_;
  const KeeperOptions options_;
};

}  // namespace caisson::sandbox
