// SessionEnder: brings sessions to their end in the background, and always gets there.
//
// Artifacts are kept first, within a time; then the sandbox is destroyed, with retries; then the
// end is written down. What the server does not live to finish, the next one does
// (session_recovery.h): the record says `stopping`.
#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "async/task_set.h"
#include "sandbox/session_journal.h"
#include "sandbox/session_keeper.h"
#include "sandbox/session_table.h"

namespace caisson::sandbox {

struct EnderOptions {
  std::chrono::milliseconds keep_time = std::chrono::seconds(30);
  std::chrono::milliseconds destroy_time = std::chrono::seconds(30);  // of one attempt
  std::chrono::milliseconds first_retry = std::chrono::milliseconds(100);
  std::chrono::milliseconds last_retry = std::chrono::seconds(30);
};

class SessionEnder {
 public:
  // All of them outlive it; `keeper` may be null.
  SessionEnder(async::Loop& loop, EnderOptions options, SessionTable& table,
               SessionJournal& journal, EventBus& events, SessionKeeper* keeper)
      : loop_(loop),
        options_(options),
        table_(table),
        journal_(journal),
        events_(events),
        keeper_(keeper),
        tasks_(loop) {}

  // Ends a session that is stopping, in the background.
  void End(std::shared_ptr<Session> session, Provider& provider);
  // The session has ended without our doing, or never began: changes its state now, writes it down
  // and forgets it in the background. With a provider, its sandbox goes too if it still is there.
  void Conclude(std::shared_ptr<Session> session, Provider* provider, SessionState state,
                std::string reason);
  // Destroys a sandbox that is nobody's, in the background.
  void Sweep(Provider& provider, std::string sandbox_id);

  // Whether this sandbox is on its way out.
  bool IsEnding(const std::string& sandbox_id) const { return ending_.contains(sandbox_id); }
  size_t running() const { return tasks_.size(); }
  Task<void> Join() { return tasks_.Join(); }
  void Cancel() { tasks_.Cancel(); }

 private:
  Task<void> EndTask(std::shared_ptr<Session> session, Provider* provider);
  Task<void> SweepTask(Provider* provider, std::string sandbox_id);
  Task<std::optional<SandboxStats>> EndSandbox(Provider* provider, Sandbox* sandbox,
                                               std::string sandbox_id);
  Task<std::optional<SandboxStats>> TryOnce(Provider* provider, Sandbox* sandbox,
                                            std::string sandbox_id);
  Task<void> SaveEnd(std::shared_ptr<Session> session);

  async::Loop& loop_;
  const EnderOptions options_;
  SessionTable& table_;
  SessionJournal& journal_;
  EventBus& events_;
  SessionKeeper* const keeper_;
  std::set<std::string> ending_;  // sandbox ids
  async::TaskSet tasks_;
};

}  // namespace caisson::sandbox
