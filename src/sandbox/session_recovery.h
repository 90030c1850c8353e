// SessionRecovery: what a server does first with what an earlier one left.
//
// Goes through the records of sessions that have not ended and compares them with what the
// providers hold. Running sandboxes are taken over with their processes and output; paused ones
// stay paused; half-made ones are undone; ends that were acknowledged are finished; what has gone
// is recorded as lost with a reason; sandboxes without a record are removed. A crash in the middle
// does no harm: the next run finds the same questions and gives the same answers.
#pragma once

#include <map>
#include <set>
#include <string>

#include "sandbox/session_manager.h"

namespace caisson::sandbox {

class SessionRecovery {
 public:
  explicit SessionRecovery(SessionManager& manager) : manager_(manager) {}

  // Fails when the journal or a provider cannot be asked; nothing has been decided then. The object
  // must outlive the task.
  Task<Status> Run();

 private:
  Task<void> Settle(SessionRecord record);
  Task<Status> TakeOver(std::shared_ptr<Session> session, Provider* provider, SessionState state);

  SessionManager& manager_;
  std::map<std::string, std::set<std::string>> held_;  // provider → sandbox ids
};

}  // namespace caisson::sandbox
