// SessionKeeper: what outlives a session: its artifacts and its log.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sandbox/session.h"

namespace caisson::sandbox {

class SessionKeeper {
 public:
  virtual ~SessionKeeper() = default;
  // Copies the files that match out of the running sandbox.
  virtual Task<Result<std::vector<KeptArtifact>>> Keep(Session* session,
                                                       std::vector<std::string> globs) = 0;
  // A command has started: its output goes to the session's log.
  virtual void Log(Session& session, std::shared_ptr<ProcessFeed> process) = 0;
};

// Sandboxes made ahead.
class WarmSource {
 public:
  virtual ~WarmSource() = default;
  // One that fits the spec, the caller's from now on; null when there is none. Notes the demand.
  virtual std::unique_ptr<Sandbox> Claim(Provider& provider, const SessionSpec& spec) = 0;
  // A session of this spec was made without one: more of its kind may come.
  virtual void Made(Provider& provider, const SessionSpec& spec) = 0;
  // Whether this sandbox is one of those that wait.
  virtual bool Holds(const std::string& sandbox_id) const = 0;
};

}  // namespace caisson::sandbox
