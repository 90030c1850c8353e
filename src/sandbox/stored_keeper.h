// StoredKeeper: artifacts and logs of sessions, in the data directory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sandbox/artifact_keeper.h"
#include "sandbox/session_keeper.h"
#include "sandbox/session_log.h"
#include "sandbox/stored_artifacts.h"

namespace caisson::sandbox {

class StoredKeeper : public SessionKeeper {
 public:
  // Everything given outlives it; `disk` does the writing.
  StoredKeeper(async::Loop& loop, store::Store& store, store::Blobs& blobs, async::ThreadPool& disk)
      : artifacts_(loop, store, blobs, disk), keeper_(artifacts_), log_(loop, blobs) {}

  Task<Result<std::vector<KeptArtifact>>> Keep(Session* session,
                                               std::vector<std::string> globs) override {
    return keeper_.Keep(session, std::move(globs));
  }
  void Log(Session& session, std::shared_ptr<ProcessFeed> process) override {
    log_.Follow(session, std::move(process));
  }
  SessionLog& log() { return log_; }

 private:
  StoredArtifacts artifacts_;
  ArtifactKeeper keeper_;
  SessionLog log_;
};

}  // namespace caisson::sandbox
